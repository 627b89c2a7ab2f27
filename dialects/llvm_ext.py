"""Defines LLVM instructions that xDSL's `llvm` dialect lacks.

    switch, vector compares and selects, casts, atomics, poison, metadata of loops

Each op is one LLVM instruction and is translated as such by `lowering/llvm/translation`; the meaning is that of the LLVM
language reference. Intrinsics need no op here: `llvm.call_intrinsic` names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    I1,
    I64,
    AnyFloatConstr,
    ArrayAttr,
    DenseArrayBase,
    IntAttr,
    SignlessIntegerConstraint,
    StringAttr,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.dialects.llvm import FastMathAttr, LLVMPointerType, LLVMStructType
from xdsl.ir import Attribute, Block, Dialect, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    EqAttrConstraint,
    ParsePropInAttrDict,
    RangeOf,
    VarConstraint,
    base,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    successor_def,
    traits_def,
    var_operand_def,
    var_successor_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from .plain_op import PlainOp

ATOMIC_ORDERINGS = ("monotonic", "acquire", "release", "acq_rel", "seq_cst")
ATOMIC_RMW_KINDS = (
    *("xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin"),
    *("fadd", "fsub", "fmax", "fmin"),
)
LOOP_HINTS = (
    *("mustprogress", "vectorize.enable", "vectorize.width", "interleave.count"),
    *("unroll.count", "unroll.full", "unroll.enable", "unroll.disable", "distribute.enable", "licm.disable"),
)


@irdl_attr_definition
class LoopAnnotationAttr(ParametrizedAttribute):
    """LLVM's metadata of a loop: `#llvm_ext.loop<"unroll.count" = 4, "mustprogress" = 1>`.

    It is the attribute `loop_annotation` of the branch that goes back to the loop's header. Keys are LLVM's names
    after `llvm.loop.`; 1 also means `true` and 0 `false` for LLVM's flags.
    """

    name = "llvm_ext.loop"

    keys: ArrayAttr[StringAttr]
    values: ArrayAttr[IntAttr]

    @staticmethod
    def of(hints: dict[str, int]) -> LoopAnnotationAttr:
        """Returns the annotation of LLVM's hints; raises `VerifyException` for names not in `LOOP_HINTS`."""
        return LoopAnnotationAttr(
            ArrayAttr([StringAttr(key) for key in hints]), ArrayAttr([IntAttr(value) for value in hints.values()])
        )

    def hints(self) -> dict[str, int]:
        """Returns the hints' values by name."""
        return {key.data: value.data for key, value in zip(self.keys, self.values, strict=True)}

    def verify(self) -> None:
        if len(self.keys) != len(self.values):
            raise VerifyException("a loop annotation has one value per key")
        for key in self.keys:
            if key.data not in LOOP_HINTS:
                raise VerifyException(f"unknown loop hint '{key.data}'; known are {', '.join(LOOP_HINTS)}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(
                tuple(self.hints().items()), lambda pair: printer.print_string(f'"{pair[0]}" = {pair[1]}')
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> tuple[ArrayAttr[StringAttr], ArrayAttr[IntAttr]]:
        def parse_hint() -> tuple[StringAttr, IntAttr]:
            key = parser.parse_str_literal()
            parser.parse_punctuation("=")
            return StringAttr(key), IntAttr(parser.parse_integer())

        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_hint)
        return ArrayAttr([key for key, _ in pairs]), ArrayAttr([value for _, value in pairs])


_FLOAT_LIKE = AnyFloatConstr | VectorType.constr(AnyFloatConstr)


def _bool_like(operand: Attribute) -> Attribute:
    """Returns `i1`, or the vector of `i1` of the shape of `operand`."""
    return VectorType(i1, operand.shape) if isa(operand, VectorType) else i1


@irdl_op_definition
class PoisonOp(PlainOp):
    """A value that may be anything: `llvm_ext.poison : T`."""

    name = "llvm_ext.poison"
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])


@irdl_op_definition
class FreezeOp(PlainOp):
    """The operand, or some fixed value where it is poison: `llvm_ext.freeze %x : T`."""

    name = "llvm_ext.freeze"
    T: ClassVar = VarConstraint("T", AnyAttr())
    operand = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$operand attr-dict `:` type($operand)"

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand], result_types=[SSAValue.get(operand).type])


@irdl_op_definition
class FCmpOp(PlainOp):
    """Compares floats or vectors of floats to `i1` lane by lane: `llvm_ext.fcmp "olt" %a, %b : T`.

    `predicate` is LLVM's name: `oeq`, `ult`, `uno`, …; xDSL's `llvm.fcmp` takes scalars only.
    """

    name = "llvm_ext.fcmp"
    T: ClassVar = VarConstraint("T", _FLOAT_LIKE)
    PREDICATES: ClassVar = (
        *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
        *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
    )
    predicate = prop_def(StringAttr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(EqAttrConstraint(i1) | VectorType.constr(I1))
    fastmathFlags = opt_prop_def(FastMathAttr)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$predicate $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def __init__(self, predicate: str, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(
            operands=[lhs, rhs],
            properties={"predicate": StringAttr(predicate)},
            result_types=[_bool_like(SSAValue.get(lhs).type)],
        )

    def verify_(self) -> None:
        if self.predicate.data not in self.PREDICATES:
            raise VerifyException(f"unknown predicate '{self.predicate.data}'; LLVM has {', '.join(self.PREDICATES)}")
        if self.result.type != _bool_like(self.lhs.type):
            raise VerifyException(
                f"comparing {self.lhs.type} gives {_bool_like(self.lhs.type)}, not {self.result.type}"
            )


@irdl_op_definition
class SelectOp(PlainOp):
    """Lane by lane `cond ? lhs : rhs`: `llvm_ext.select %c, %a, %b : vector<4xi1>, vector<4xf32>`."""

    name = "llvm_ext.select"
    T: ClassVar = VarConstraint("T", base(VectorType))
    cond = operand_def(VectorType.constr(I1))
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($lhs)"

    def __init__(self, cond: SSAValue | Operation, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[cond, lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        if self.cond.type != _bool_like(self.lhs.type):
            raise VerifyException(f"the condition {self.cond.type} has not one lane per lane of {self.lhs.type}")


class _CastOp(PlainOp):
    """A conversion between number types, lane by lane."""

    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def __init__(self, value: SSAValue | Operation, result_type: Attribute):
        super().__init__(operands=[value], result_types=[result_type])


@irdl_op_definition
class FPToSIOp(_CastOp):
    """Float to signed integer, toward zero: `llvm_ext.fptosi %x : f32 to i32`."""

    name = "llvm_ext.fptosi"


@irdl_op_definition
class FPToUIOp(_CastOp):
    """Float to unsigned integer, toward zero: `llvm_ext.fptoui %x : f32 to i32`."""

    name = "llvm_ext.fptoui"


@irdl_op_definition
class UIToFPOp(_CastOp):
    """Unsigned integer to float, rounded to nearest: `llvm_ext.uitofp %x : i32 to f32`."""

    name = "llvm_ext.uitofp"


@irdl_op_definition
class ExtractElementOp(PlainOp):
    """One lane of a vector: `llvm_ext.extractelement %v[%i : i64] : vector<4xf32>`."""

    name = "llvm_ext.extractelement"
    T: ClassVar = VarConstraint("T", AnyAttr())
    vector = operand_def(VectorType.constr(T, shape=ArrayAttr.constr(RangeOf(IntAttr).of_length(1))))
    index = operand_def(SignlessIntegerConstraint)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$vector `[` $index `:` type($index) `]` attr-dict `:` type($vector) `->` type($result)"

    def __init__(self, vector: SSAValue | Operation, index: SSAValue | Operation):
        vector_type = SSAValue.get(vector, type=VectorType[Attribute]).type
        super().__init__(operands=[vector, index], result_types=[vector_type.element_type])


@irdl_op_definition
class LaneAddressesOp(PlainOp):
    """Computes the addresses `offsets` elements after `base`, one per lane, as getelementptr of vectors.

    `llvm_ext.lane_addresses %base[%offsets] elem f32 : !llvm.ptr, vector<4xi64> -> vector<4x!llvm.ptr>`
    """

    name = "llvm_ext.lane_addresses"
    base = operand_def(LLVMPointerType)
    offsets = operand_def(VectorType.constr(I64))
    elem_type = prop_def()
    result = result_def(VectorType)
    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$base `[` $offsets `]` `elem` $elem_type attr-dict `:` type($base) `,` type($offsets) `->` type($result)"
    )

    def __init__(self, base_pointer: SSAValue, offsets: SSAValue, elem_type: Attribute):
        offsets_type = SSAValue.get(offsets, type=VectorType[Attribute]).type
        super().__init__(
            operands=[base_pointer, offsets],
            properties={"elem_type": elem_type},
            result_types=[VectorType(base_pointer.type, offsets_type.shape)],
        )


@irdl_op_definition
class SwitchOp(PlainOp):
    """Branches on an integer.

    `"llvm_ext.switch"(%x, …)[^default, ^bb1, …] <{case_values = array<i64: …>}>`

    `case_operand_segments` holds the number of `case_operands` of each case.
    """

    name = "llvm_ext.switch"
    value = operand_def(SignlessIntegerConstraint)
    default_operands = var_operand_def()
    case_operands = var_operand_def()
    case_values = prop_def(DenseArrayBase.constr(i64))
    case_operand_segments = prop_def(DenseArrayBase.constr(i64))
    default_block = successor_def()
    case_blocks = var_successor_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsTerminator())

    def __init__(
        self,
        value: SSAValue | Operation,
        default_block: Block,
        default_operands: Sequence[SSAValue],
        cases: Sequence[tuple[int, Block, Sequence[SSAValue]]],
    ):
        super().__init__(
            operands=[value, default_operands, [operand for _, _, operands in cases for operand in operands]],
            successors=[default_block, *(block for _, block, _ in cases)],
            properties={
                "case_values": DenseArrayBase.from_list(i64, [number for number, _, _ in cases]),
                "case_operand_segments": DenseArrayBase.from_list(i64, [len(operands) for _, _, operands in cases]),
            },
        )

    def cases(self) -> list[tuple[int, Block, Sequence[SSAValue]]]:
        """Returns (value, block, operands for the block) of each case."""
        out: list[tuple[int, Block, Sequence[SSAValue]]] = []
        position = 0
        operands = tuple(self.case_operands)
        for number, count, block in zip(
            self.case_values.get_values(), self.case_operand_segments.get_values(), self.case_blocks, strict=True
        ):
            out.append((int(number), block, operands[position : position + int(count)]))
            position += int(count)
        return out

    def verify_(self) -> None:
        if len(self.case_values) != len(self.case_blocks):
            raise VerifyException("a switch has one block per case value")
        if len(self.case_operand_segments) != len(self.case_blocks):
            raise VerifyException("a switch has one operand segment per case")
        if sum(self.case_operand_segments.get_values()) != len(self.case_operands):
            raise VerifyException("the operand segments of a switch do not add up to its case operands")


def _verify_ordering(ordering: StringAttr, allowed: Sequence[str] = ATOMIC_ORDERINGS) -> None:
    if ordering.data not in allowed:
        raise VerifyException(f"memory ordering '{ordering.data}' is not one of {', '.join(allowed)}")


@irdl_op_definition
class AtomicRMWOp(PlainOp):
    """Atomically replaces `*ptr` and returns its old value.

    `llvm_ext.atomicrmw "add" "seq_cst" %p, %v : !llvm.ptr, i64`
    """

    name = "llvm_ext.atomicrmw"
    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint | AnyFloatConstr)
    kind = prop_def(StringAttr)
    ordering = prop_def(StringAttr)
    ptr = operand_def(LLVMPointerType)
    value = operand_def(T)
    result = result_def(T)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$kind $ordering $ptr `,` $value attr-dict `:` type($ptr) `,` type($value)"

    def __init__(self, kind: str, ptr: SSAValue, value: SSAValue, ordering: str = "seq_cst"):
        super().__init__(
            operands=[ptr, value],
            properties={"kind": StringAttr(kind), "ordering": StringAttr(ordering)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        _verify_ordering(self.ordering)
        if self.kind.data not in ATOMIC_RMW_KINDS:
            raise VerifyException(f"unknown atomic update '{self.kind.data}'; LLVM has {', '.join(ATOMIC_RMW_KINDS)}")


@irdl_op_definition
class CmpXchgOp(PlainOp):
    """Atomically stores `new` if `*ptr` equals `expected`; returns the old value and the success flag."""

    name = "llvm_ext.cmpxchg"
    T: ClassVar = VarConstraint("T", SignlessIntegerConstraint | base(LLVMPointerType))
    success_ordering = prop_def(StringAttr)
    failure_ordering = prop_def(StringAttr)
    weak = opt_prop_def(UnitAttr)
    ptr = operand_def(LLVMPointerType)
    expected = operand_def(T)
    new = operand_def(T)
    result = result_def(LLVMStructType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$success_ordering $failure_ordering $ptr `,` $expected `,` $new attr-dict `:` type($ptr) `,` type($expected)"
        " `->` type($result)"
    )

    def __init__(
        self,
        ptr: SSAValue,
        expected: SSAValue,
        new: SSAValue,
        success_ordering: str = "seq_cst",
        failure_ordering: str = "seq_cst",
    ):
        super().__init__(
            operands=[ptr, expected, new],
            properties={
                "success_ordering": StringAttr(success_ordering),
                "failure_ordering": StringAttr(failure_ordering),
            },
            result_types=[LLVMStructType.from_type_list([expected.type, i1])],
        )

    def verify_(self) -> None:
        _verify_ordering(self.success_ordering)
        _verify_ordering(self.failure_ordering, ("monotonic", "acquire", "seq_cst"))


@irdl_op_definition
class FenceOp(PlainOp):
    """A memory fence: `llvm_ext.fence "release"`."""

    name = "llvm_ext.fence"
    ordering = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$ordering attr-dict"

    def __init__(self, ordering: str):
        super().__init__(properties={"ordering": StringAttr(ordering)})

    def verify_(self) -> None:
        _verify_ordering(self.ordering, ATOMIC_ORDERINGS[1:])


LLVMExt = Dialect(
    "llvm_ext",
    [
        AtomicRMWOp,
        CmpXchgOp,
        ExtractElementOp,
        FCmpOp,
        FenceOp,
        FPToSIOp,
        FPToUIOp,
        FreezeOp,
        LaneAddressesOp,
        PoisonOp,
        SelectOp,
        SwitchOp,
        UIToFPOp,
    ],
    [LoopAnnotationAttr],
)
