"""Defines ops of `arith` and `memref` lane by lane on vectors, and dot products of groups of lanes.

Compares, selects, casts, gather and scatter, which xDSL's dialects have for scalars only. The ops have the names and the meaning of
their scalar counterparts in `arith` (`arith.cmpi`, `arith.sitofp`, …); gather and scatter those of MLIR's `vector` dialect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    AnyFloatConstr,
    DenseArrayBase,
    IndexType,
    IntegerType,
    MemRefType,
    StringAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .plain_op import PlainOp

CMPI_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
CAST_KINDS = ("extsi", "extui", "trunci", "fptosi", "fptoui", "sitofp", "uitofp", "index_cast", "index_castui")

_INTEGERS = VectorType.constr(base(IntegerType) | base(IndexType))
_FLOATS = VectorType.constr(AnyFloatConstr)
_MASK = VectorType.constr(I1)
_VECTOR = base(VectorType)


def _mask_type(value: SSAValue | Operation) -> VectorType:
    return VectorType(i1, SSAValue.get(value, type=VectorType[Attribute]).type.shape)


class _CompareOp(PlainOp):
    """A compare of two vectors, lane by lane."""

    PREDICATES: ClassVar[tuple[str, ...]]
    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"
    predicate = prop_def(StringAttr)
    result = result_def(_MASK)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    def __init__(self, predicate: str, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(
            operands=[lhs, rhs], properties={"predicate": StringAttr(predicate)}, result_types=[_mask_type(lhs)]
        )

    def verify_(self) -> None:
        if self.predicate.data not in self.PREDICATES:
            raise VerifyException(f"unknown predicate '{self.predicate.data}'; known are {', '.join(self.PREDICATES)}")
        if self.result.type != _mask_type(self.operands[0]):
            raise VerifyException(f"comparing {self.operands[0].type} gives {_mask_type(self.operands[0])}")


@irdl_op_definition
class CmpiOp(_CompareOp):
    """`vector_ext.cmpi "slt" %a, %b : vector<4xi32> -> vector<4xi1>`: `arith.cmpi` lane by lane."""

    name = "vector_ext.cmpi"
    PREDICATES: ClassVar[tuple[str, ...]] = CMPI_PREDICATES
    T: ClassVar = VarConstraint("T", _INTEGERS)
    lhs = operand_def(T)
    rhs = operand_def(T)


@irdl_op_definition
class CmpfOp(_CompareOp):
    """`vector_ext.cmpf "olt" %a, %b : vector<4xf32> -> vector<4xi1>`: `arith.cmpf` lane by lane."""

    name = "vector_ext.cmpf"
    PREDICATES: ClassVar[tuple[str, ...]] = CMPF_PREDICATES
    T: ClassVar = VarConstraint("T", _FLOATS)
    lhs = operand_def(T)
    rhs = operand_def(T)


@irdl_op_definition
class SelectOp(PlainOp):
    """`vector_ext.select %mask, %a, %b : vector<4xi1>, vector<4xf32>`: `arith.select` lane by lane."""

    name = "vector_ext.select"
    T: ClassVar = VarConstraint("T", _VECTOR)
    cond = operand_def(_MASK)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($lhs)"

    def __init__(self, cond: SSAValue | Operation, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[cond, lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        if self.cond.type != _mask_type(self.lhs):
            raise VerifyException(f"the condition {self.cond.type} has not one lane per lane of {self.lhs.type}")


@irdl_op_definition
class CastOp(PlainOp):
    """`vector_ext.cast "sitofp" %x : vector<4xi32> to vector<4xf32>`: an arith cast, lane by lane."""

    name = "vector_ext.cast"
    kind = prop_def(StringAttr)
    input = operand_def(_VECTOR)
    result = result_def(_VECTOR)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, kind: str, value: SSAValue | Operation, result_type: VectorType):
        super().__init__(operands=[value], properties={"kind": StringAttr(kind)}, result_types=[result_type])

    def verify_(self) -> None:
        if self.kind.data not in CAST_KINDS:
            raise VerifyException(f"unknown cast '{self.kind.data}'; known are {', '.join(CAST_KINDS)}")
        if _mask_type(self.input) != _mask_type(self.result):
            raise VerifyException(f"a cast keeps the shape: {self.input.type} to {self.result.type}")


@irdl_op_definition
class GatherOp(PlainOp):
    """Loads lane i from `base[indices][index_vec[i]]` if the mask is set, otherwise takes `pass_thru`.

    `vector_ext.gather %m[%i, %j] [%vec], %mask, %else : memref<…>, vector<4xi32>, vector<4xi1>, vector<4xf32>`; `index_vec` are steps
    along the last dimension.
    """

    name = "vector_ext.gather"
    T: ClassVar = VarConstraint("T", _VECTOR)
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    index_vec = operand_def(_INTEGERS)
    mask = operand_def(_MASK)
    pass_thru = operand_def(T)
    result = result_def(T)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $pass_thru attr-dict `:` type($base) `,`"
        " type($index_vec) `,` type($mask) `,` type($pass_thru)"
    )

    def __init__(
        self, ref: SSAValue, indices: Sequence[SSAValue], index_vec: SSAValue, mask: SSAValue, pass_thru: SSAValue
    ):
        super().__init__(operands=[ref, indices, index_vec, mask, pass_thru], result_types=[pass_thru.type])


@irdl_op_definition
class ScatterOp(PlainOp):
    """Stores lane i to `base[indices][index_vec[i]]` if the mask is set, in lane order.

    `index_vec` are steps along the last dimension.
    """

    name = "vector_ext.scatter"
    base = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    index_vec = operand_def(_INTEGERS)
    mask = operand_def(_MASK)
    value = operand_def(_VECTOR)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $value attr-dict `:` type($base) `,`"
        " type($index_vec) `,` type($mask) `,` type($value)"
    )

    def __init__(
        self, ref: SSAValue, indices: Sequence[SSAValue], index_vec: SSAValue, mask: SSAValue, value: SSAValue
    ):
        super().__init__(operands=[ref, indices, index_vec, mask, value])


@irdl_op_definition
class DotOp(PlainOp):
    """Adds to each lane of `acc` the products of its group of lanes of `lhs` and `rhs`, in acc's type.

    `vector_ext.dot %acc, %a, %b unsigned [1, 0] : vector<4xi32>, vector<16xi8>, vector<16xi8>`: lane 0 takes lanes
    0 to 3, lane 1 lanes 4 to 7, and so on; `unsigned` says how the integers of each side are extended. Sums of integers
    wrap around, those of floats are rounded in any order.
    """

    name = "vector_ext.dot"
    T: ClassVar = VarConstraint("T", _VECTOR)
    acc = operand_def(T)
    lhs = operand_def(_VECTOR)
    rhs = operand_def(_VECTOR)
    unsigned = prop_def(DenseArrayBase.constr(i1))
    result = result_def(T)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$acc `,` $lhs `,` $rhs `unsigned` $unsigned attr-dict `:` type($acc) `,` type($lhs) `,` type($rhs)"
    )

    def __init__(
        self,
        acc: SSAValue | Operation,
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        unsigned: tuple[bool, bool] = (False, False),
    ):
        flags = DenseArrayBase.from_list(i1, [int(flag) for flag in unsigned])
        super().__init__(
            operands=[acc, lhs, rhs], properties={"unsigned": flags}, result_types=[SSAValue.get(acc).type]
        )

    @property
    def lhs_unsigned(self) -> bool:
        """Returns True if the lanes of `lhs` are extended by zeros."""
        return self.unsigned.get_values()[0] != 0

    @property
    def rhs_unsigned(self) -> bool:
        """Returns True if the lanes of `rhs` are extended by zeros."""
        return self.unsigned.get_values()[1] != 0

    def verify_(self) -> None:
        vectors = [v.type for v in self.operands if isinstance(v.type, VectorType)]
        counts = [vector.element_count() for vector in vectors]
        if any(vector.get_num_dims() != 1 for vector in vectors):
            raise VerifyException("a dot product is of vectors of one dimension")
        if counts[1] != counts[2] or counts[1] % counts[0]:
            raise VerifyException(f"{counts[1]} and {counts[2]} lanes are no equal groups for {counts[0]} sums")
        kinds = [isinstance(vector.element_type, IntegerType) for vector in vectors]
        if len(set(kinds)) != 1:
            raise VerifyException("a dot product is of integers, or of floats")
        if len(self.unsigned) != 2:
            raise VerifyException("`unsigned` has one flag for each side")


VectorExt = Dialect("vector_ext", [CastOp, CmpfOp, CmpiOp, DotOp, GatherOp, ScatterOp, SelectOp], [])
