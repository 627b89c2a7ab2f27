"""Defines TE's functions, and the ops in the bodies of computes.

The body of a compute consists of tir's scalar expressions, `te.read` and at most one `te.reduce`; the values that a
reduction combines are computed in the same body from its axes, which are values of `te.reduce_axis`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import DictionaryAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, RecursiveMemoryEffect, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ...support.text import counted
from ...support.walk import walk_ops
from .. import tir
from ..assembly import (
    FunctionForm,
    parse_attributes,
    parse_indexed_type,
    parse_indices,
    print_attributes,
    print_indexed,
    print_indexed_type,
    resolve,
)
from ..extents import why_too_large
from ..plain_op import PlainOp
from ..tir.buffer import NO_ATTRS
from ..tir.types import I1, I32, I64, ReducerType, limit, type_to_dtype
from .types import TensorType

if TYPE_CHECKING:
    from xdsl.parser import Parser
    from xdsl.printer import Printer


FOLDS: dict[str, type[tir.BinaryOp]] = {
    "sum": tir.AddOp, "prod": tir.MulOp, "min": tir.MinOp, "max": tir.MaxOp, "all": tir.AndOp, "any": tir.OrOp,
}  # fmt: skip
"""The op that combines two values, by the kind of a built-in reduction."""


def neutral(kind: str, type: Attribute) -> float:
    """Returns the value with which a built-in reduction of values of a type begins."""
    if kind in ("min", "max"):
        return limit("max_value" if kind == "min" else "min_value", type)
    return int(kind in ("prod", "all"))


def tensor_name(value: SSAValue) -> str:
    """Returns the name of a tensor: its op's, with `_v0`, `_v1`… for several results."""
    if not isinstance(value, OpResult):
        return value.name_hint or "tensor"
    op = value.op
    for field in ("var_name", "compute_name", "scan_name", "extern_name"):
        name = op.properties.get(field)
        if isinstance(name, StringAttr):
            return name.data if len(op.results) == 1 else f"{name.data}_v{value.index}"
    return value.name_hint or "tensor"


def check_shape(name: str, type: TensorType, values: Sequence[SSAValue]) -> None:
    if type.open_dims != len(values):
        raise VerifyException(
            f"tensor '{name}' has {counted(type.open_dims, 'symbolic extent')}, but {counted(len(values), 'value')} for them"
        )
    if type.static_shape is not None and (reason := why_too_large(type.static_shape, type.dtype)) is not None:
        raise VerifyException(f"tensor '{name}' {reason}")
    for value in values:
        if value.type not in (I32, I64):
            raise VerifyException(
                f"an extent of tensor '{name}' has dtype {type_to_dtype(value.type)}; an extent is an int32 or int64"
            )


@irdl_op_definition
class FuncOp(FunctionForm):
    """`@te.func def f(): …; return [A, n, B]`: tensors described in the region, ended by `te.return`.

    The returned values are the parameters in order: placeholders and scalars are inputs, all other tensors are outputs.
    `attrs` are a function's attributes, as of a `tir.prim_func`.
    """

    name = "te.func"
    sym_name = prop_def(StringAttr)
    sym_visibility = opt_prop_def(StringAttr)
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    def __init__(self, name: str, body: Region, attrs: DictionaryAttr = NO_ATTRS, *, private: bool = False):
        properties: dict[str, Attribute] = {"sym_name": StringAttr(name), "attrs": attrs}
        if private:
            properties["sym_visibility"] = StringAttr("private")
        super().__init__(properties=properties, regions=[body])

    @property
    def params(self) -> Sequence[SSAValue]:
        """Returns the inputs and outputs, in order."""
        last = self.body.block.last_op
        return last.values if isinstance(last, ReturnOp) else ()

    def param_names(self) -> list[str]:
        """Returns the parameters' names; a repeated one gets a number: A, A_1."""
        names: list[str] = []
        taken: set[str] = set()
        for value in self.params:
            base = name = _param_name(value)
            number = 0
            while name in taken:
                number += 1
                name = f"{base}_{number}"
            taken.add(name)
            names.append(name)
        return names

    def verify_(self) -> None:
        if self.body.block.args:
            raise VerifyException(
                f"function '{self.sym_name.data}' takes its inputs as te.placeholder, not as block arguments"
            )
        if not isinstance(self.body.block.last_op, ReturnOp):
            raise VerifyException(f"function '{self.sym_name.data}' must end with te.return of its parameters")


def _param_name(value: SSAValue) -> str:
    op = value.owner
    return op.var_name.data if isinstance(op, tir.VarOp) else tensor_name(value)


def is_input(value: SSAValue) -> bool:
    """Returns True for parameters that the caller passes: placeholders and scalars."""
    return isinstance(value.owner, PlaceholderOp | tir.VarOp)


@irdl_op_definition
class ReturnOp(PlainOp):
    """`return [A, B]`: the function's parameters: each input and output once."""

    name = "te.return"
    assembly_format = "attr-dict ($values^ `:` type($values))?"
    values = var_operand_def()
    traits = traits_def(IsTerminator())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[list(values)])

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), FuncOp):
            raise VerifyException("te.return ends a te.func")
        seen: set[SSAValue] = set()
        for value in self.values:
            name = _param_name(value)
            if not isinstance(value.type, TensorType) and not isinstance(value.owner, tir.VarOp):
                raise VerifyException("a function returns tensors and te.var scalars; this value is an expression")
            if value in seen:
                raise VerifyException(f"'{name}' is returned twice; each parameter is listed once")
            seen.add(value)


@irdl_op_definition
class PlaceholderOp(PlainOp):
    """`A = te.placeholder((m, 4), "float32", name="A")`: an input, or the state of a scan."""

    name = "te.placeholder"
    assembly_format = "$var_name ($shape^ `:` type($shape))? attr-dict `->` type($result)"
    shape = var_operand_def()
    var_name = prop_def(StringAttr)
    result = result_def(TensorType)
    # Not pure: two placeholders of the same name and type are still two.
    traits = traits_def()

    def __init__(self, name: str, type: TensorType, shape: Sequence[SSAValue] = ()):
        super().__init__(operands=[list(shape)], properties={"var_name": StringAttr(name)}, result_types=[type])

    def verify_(self) -> None:
        check_shape(self.var_name.data, self.result.type, self.shape)


@irdl_op_definition
class ReduceAxisOp(PlainOp):
    """`k = te.reduce_axis((0, n), name="k")`: the index of an axis over `extent` values from `min`."""

    name = "te.reduce_axis"
    assembly_format = "$var_name `from` $min `extent` $extent attr-dict `:` functional-type(operands, results)"
    min = operand_def()
    extent = operand_def()
    var_name = prop_def(StringAttr)
    result = result_def(IntegerType)
    traits = traits_def()

    def __init__(self, name: str, min: SSAValue, extent: SSAValue):
        super().__init__(operands=[min, extent], properties={"var_name": StringAttr(name)}, result_types=[extent.type])

    def verify_(self) -> None:
        name = self.var_name.data
        if self.extent.type not in (I32, I64) or not self.min.type == self.extent.type == self.result.type:
            raise VerifyException(
                f"axis '{name}' runs from {type_to_dtype(self.min.type)} over {type_to_dtype(self.extent.type)}; both are int32 or int64"
            )


@irdl_op_definition
class ReadOp(PlainOp):
    """`A[i, j]` in the body of a compute."""

    name = "te.read"
    tensor = operand_def(TensorType)
    indices = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tensor: SSAValue, indices: Sequence[SSAValue]):
        assert isinstance(tensor.type, TensorType)
        super().__init__(operands=[tensor, list(indices)], result_types=[tensor.type.dtype])

    def verify_(self) -> None:
        type, name = self.tensor.type, tensor_name(self.tensor)
        assert isinstance(type, TensorType)
        if len(self.indices) != type.rank:
            raise VerifyException(
                f"tensor '{name}' has {counted(type.rank, 'dimension')}, but is read with {counted(len(self.indices), 'index')}"
            )
        for number, index in enumerate(self.indices):
            if not isinstance(index.type, IntegerType) or index.type == I1:
                raise VerifyException(
                    f"index {number} of '{name}' has dtype {type_to_dtype(index.type)}; an index is an integer"
                )
        if self.result.type != type.dtype:
            raise VerifyException(
                f"'{name}' holds {type_to_dtype(type.dtype)}, but the read gives {type_to_dtype(self.result.type)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> ReadOp:
        tensor, indices = parser.parse_unresolved_operand(), parse_indices(parser)
        properties, attributes = parse_attributes(parser, cls)
        type, types = parse_indexed_type(parser, len(indices))
        parser.parse_punctuation("->")
        return cls.create(
            operands=resolve(parser, [tensor, *indices], [type, *types]),
            result_types=[parser.parse_type()],
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        """Prints `te.read %A[%i, %j] : !te.tensor<…> -> f32`."""
        print_indexed(printer, self.tensor, self.indices)
        print_attributes(printer, self)
        print_indexed_type(printer, self.tensor, self.indices)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)


@irdl_op_definition
class CommReducerOp(PlainOp):
    """`argmax = te.comm_reducer(combine, identity, name="argmax")` at given dtypes.

    `combiner` takes the left values, then the right ones, and yields the combined; `identity` yields the neutral values.
    """

    name = "te.comm_reducer"
    assembly_format = "$reducer_name `->` type($result) $combiner `identity` $identity attr-dict-with-keyword"
    reducer_name = prop_def(StringAttr)
    combiner = region_def("single_block")
    identity = region_def("single_block")
    result = result_def(ReducerType)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, name: str, combiner: Region, identity: Region):
        super().__init__(
            properties={"reducer_name": StringAttr(name)}, regions=[combiner, identity], result_types=[ReducerType()]
        )

    @property
    def dtypes(self) -> list[Attribute]:
        """Returns the types of the reduced values."""
        last = self.identity.block.last_op
        return [v.type for v in last.values] if isinstance(last, tir.YieldOp) else []

    def verify_(self) -> None:
        name, types = self.reducer_name.data, self.dtypes
        last = self.combiner.block.last_op
        if not types or not isinstance(last, tir.YieldOp):
            raise VerifyException(
                f"combiner and identity of reducer '{name}' must yield one value for each that it reduces"
            )
        if [v.type for v in last.values] != types or [a.type for a in self.combiner.block.args] != types * 2:
            raise VerifyException(
                f"reducer '{name}' has identities of ({_dtypes(types)}), so it must combine two such tuples into one"
            )


def _dtypes(types: Sequence[Attribute]) -> str:
    return ", ".join(map(type_to_dtype, types))


@irdl_op_definition
class ReduceOp(PlainOp):
    """`te.sum(x, axis=[k], where=c, init=x0)`: the whole value of a compute.

    `kind` is sum, prod, min, max, all or any, or custom with `reducer`. The values combined are `sources` at every
    point of the axes where `condition` holds; the result begins with `init`, without one with the identity.
    """

    name = "te.reduce"
    assembly_format = (
        "$kind `(` $sources `)` `over` $axes (`where` $condition^ `:` type($condition))? (`init` "
        "$init^ `:` type($init))? (`by` $reducer^ `:` type($reducer))? attr-dict `:` type($sources) "
        "`over` type($axes) `->` type($results_)"
    )
    sources = var_operand_def()
    axes = var_operand_def()
    condition = opt_operand_def()
    init = var_operand_def()
    reducer = opt_operand_def(ReducerType)
    kind = prop_def(StringAttr)
    results_ = var_result_def()
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    KINDS: ClassVar[tuple[str, ...]] = (*FOLDS, "custom")

    def __init__(
        self,
        kind: str,
        sources: Sequence[SSAValue],
        axes: Sequence[SSAValue],
        *,
        condition: SSAValue | None = None,
        init: Sequence[SSAValue] = (),
        reducer: SSAValue | None = None,
    ):
        super().__init__(
            operands=[
                list(sources),
                list(axes),
                [] if condition is None else [condition],
                list(init),
                [] if reducer is None else [reducer],
            ],
            properties={"kind": StringAttr(kind)},
            result_types=[[s.type for s in sources]],
        )

    def verify_(self) -> None:
        kind, types = self.kind.data, [s.type for s in self.sources]
        if kind not in self.KINDS:
            raise VerifyException(f"unknown reduction '{kind}'; a reduction is {', '.join(self.KINDS)}")
        if (kind == "custom") != (self.reducer is not None):
            raise VerifyException(f"a {kind} reduction takes {'a' if kind == 'custom' else 'no'} te.comm_reducer")
        if self.reducer is None and len(types) != 1:
            raise VerifyException(f"te.{kind} reduces one value, not {len(types)}")
        if kind in ("all", "any") and types[0] != I1:
            raise VerifyException(f"te.{kind} reduces bool, not {type_to_dtype(types[0])}")
        if self.reducer is not None:
            owner = self.reducer.owner
            if not isinstance(owner, CommReducerOp):
                raise VerifyException("the reducer of a reduction is the value of a te.comm_reducer")
            if owner.dtypes != types:
                raise VerifyException(
                    f"reducer '{owner.reducer_name.data}' is for ({_dtypes(owner.dtypes)}), but reduces ({_dtypes(types)})"
                )
        if [r.type for r in self.results] != types:
            raise VerifyException(
                f"the reduction of ({_dtypes(types)}) gives ({_dtypes([r.type for r in self.results])})"
            )
        if self.init and [v.type for v in self.init] != types:
            raise VerifyException(
                f"the reduction of ({_dtypes(types)}) begins with ({_dtypes([v.type for v in self.init])})"
            )
        if self.condition is not None and self.condition.type != I1:
            raise VerifyException(f"the 'where' of a reduction must be bool, not {type_to_dtype(self.condition.type)}")
        if not self.axes:
            raise VerifyException("a reduction needs an axis to reduce over")
        if any(not isinstance(axis.owner, ReduceAxisOp) for axis in self.axes):
            raise VerifyException("a reduction is over values of te.reduce_axis")
        if len(set(self.axes)) != len(self.axes):
            raise VerifyException("a reduction is given an axis twice")


def needed_ops(function: FuncOp) -> set[Operation]:
    """Returns the ops of the function's own block that its parameters depend on."""
    block = function.body.block
    found: set[Operation] = set()
    pending = [v.owner for v in function.params]
    while pending:
        op = pending.pop()
        if not isinstance(op, Operation) or op in found:
            continue
        found.add(op)
        pending += [v.owner for v in operands_inside(op) if isinstance(v.owner, Operation) and v.owner.parent is block]
    return found


def operands_inside(op: Operation) -> Iterator[SSAValue]:
    """Iterates over the operands of an op and of the ops in its regions."""
    for inner in walk_ops(op):
        yield from inner.operands
