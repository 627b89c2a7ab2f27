"""TE's ops: functions of tensors that are described element by element.

The body of a compute is made of tir's scalar expressions, `te.read` and at most one `te.reduce`; the values that a
reduction combines are computed in the same body from its axes, which are values of `te.reduce_axis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, BlockArgument, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
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
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from ...support.walk import walk_ops
from .. import tir
from ..tir.buffer import NO_ATTRS
from ..tir.types import I1, I32, I64, BufferType, ReducerType, type_to_dtype
from .types import TensorType


def tensor_name(value: SSAValue) -> str:
    """The name of a tensor: its op's, with `_v0`, `_v1`… where that makes several."""
    if not isinstance(value, OpResult):
        return value.name_hint or "tensor"
    op = value.op
    for field in ("var_name", "compute_name", "scan_name", "extern_name"):
        name = op.properties.get(field)
        if isinstance(name, StringAttr):
            return name.data if len(op.results) == 1 else f"{name.data}_v{value.index}"
    return value.name_hint or "tensor"


def extents_of(value: SSAValue) -> list[IntegerAttr | SSAValue]:
    """Every extent of a tensor: a number, or the value that gives it."""
    type = value.type
    assert isinstance(type, TensorType)
    pending = iter(_shape_operands(value))
    return [d if isinstance(d, IntegerAttr) else next(pending) for d in type.shape.data]


def _shape_operands(value: SSAValue) -> Sequence[SSAValue]:
    match value.owner:
        case PlaceholderOp() | ComputeOp():
            return value.owner.shape
        case ScanOp():
            assert isinstance(value, OpResult)
            return _shape_operands(value.owner.state[value.index])
        case ExternOp():
            assert isinstance(value, OpResult)
            results = value.owner.results_
            before = sum(r.type.open_dims for r in results[: value.index] if isinstance(r.type, TensorType))
            return value.owner.shape[before:]
        case _:
            return ()


def _check_shape(name: str, type: TensorType, values: Sequence[SSAValue]) -> None:
    if type.open_dims != len(values):
        raise VerifyException(
            f"tensor '{name}' has {type.open_dims} symbolic extents, but {len(values)} values for them"
        )
    for value in values:
        if value.type not in (I32, I64):
            raise VerifyException(
                f"an extent of tensor '{name}' has dtype {type_to_dtype(value.type)}; an extent is an int32 or int64"
            )


@irdl_op_definition
class FuncOp(IRDLOperation):
    """`@te.func def f(): …; return [A, n, B]`: tensors that are described in the region, which `te.return` ends.

    What is returned are the parameters in order: placeholders and scalars are inputs, all other tensors are outputs.
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
        """The parameters, inputs and outputs, in order."""
        last = self.body.block.last_op
        return last.values if isinstance(last, ReturnOp) else ()

    def param_names(self) -> list[str]:
        """The parameters' names; one that occurs again gets a number: A, A_1."""
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
    """Whether a parameter is given by the caller: a placeholder or a scalar."""
    return isinstance(value.owner, PlaceholderOp | tir.VarOp)


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """`return [A, B]`: the function's parameters: each input and output once."""

    name = "te.return"
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
class PlaceholderOp(IRDLOperation):
    """`A = te.placeholder((m, 4), "float32", name="A")`: an input, or the state of a scan."""

    name = "te.placeholder"
    shape = var_operand_def()
    var_name = prop_def(StringAttr)
    result = result_def(TensorType)
    # Not pure: two placeholders of the same name and type are still two.
    traits = traits_def()

    def __init__(self, name: str, type: TensorType, shape: Sequence[SSAValue] = ()):
        super().__init__(operands=[list(shape)], properties={"var_name": StringAttr(name)}, result_types=[type])

    def verify_(self) -> None:
        _check_shape(self.var_name.data, self.result.type, self.shape)


@irdl_op_definition
class ReduceAxisOp(IRDLOperation):
    """`k = te.reduce_axis((0, n), name="k")`: an axis over `extent` values from `min`; its value stands for the index."""

    name = "te.reduce_axis"
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
class ReadOp(IRDLOperation):
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
        if len(self.indices) != type.rank:
            raise VerifyException(
                f"tensor '{name}' has {type.rank} dimensions, but is read with {len(self.indices)} indices"
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


@irdl_op_definition
class CommReducerOp(IRDLOperation):
    """`argmax = te.comm_reducer(combine, identity, name="argmax")` at given dtypes.

    `combiner` takes the left values, then the right ones, and yields the combined; `identity` yields the neutral values.
    """

    name = "te.comm_reducer"
    reducer_name = prop_def(StringAttr)
    combiner = region_def("single_block")
    identity = region_def("single_block")
    result = result_def(ReducerType)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, name: str, combiner: Region, identity: Region):
        super().__init__(
            properties={"reducer_name": StringAttr(name)},
            regions=[combiner, identity],
            result_types=[ReducerType()],
        )

    @property
    def dtypes(self) -> list[Attribute]:
        """The types of the values that it reduces."""
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
class ReduceOp(IRDLOperation):
    """`te.sum(x, axis=[k], where=c, init=x0)`: the whole value of a compute.

    `kind` is sum, prod, min, max, all or any, or custom with `reducer`. The values combined are `sources` at every
    point of the axes where `condition` holds; the result begins with `init`, without one with the identity.
    """

    name = "te.reduce"
    sources = var_operand_def()
    axes = var_operand_def()
    condition = opt_operand_def()
    init = var_operand_def()
    reducer = opt_operand_def(ReducerType)
    kind = prop_def(StringAttr)
    results_ = var_result_def()
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    KINDS: ClassVar[tuple[str, ...]] = ("sum", "prod", "min", "max", "all", "any", "custom")

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


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """`C = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="C", tag="", attrs={})`: one or several tensors of a shape.

    The region's arguments are the axes, of the extents' dtypes, named `iter_names`; it ends with `tir.yield` of one
    value for each tensor. `layout_free` are the tensors of the attribute `layout_free_placeholders`.
    """

    name = "te.compute"
    shape = var_operand_def()
    layout_free = var_operand_def(TensorType)
    compute_name = prop_def(StringAttr)
    tag = prop_def(StringAttr, default_value=StringAttr(""))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    iter_names = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    results_ = var_result_def(TensorType)
    traits = traits_def(RecursiveMemoryEffect())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        name: str,
        types: Sequence[TensorType],
        iter_names: Sequence[str],
        body: Region,
        *,
        shape: Sequence[SSAValue] = (),
        tag: str = "",
        attrs: DictionaryAttr = NO_ATTRS,
        layout_free: Sequence[SSAValue] = (),
    ):
        super().__init__(
            operands=[list(shape), list(layout_free)],
            properties={
                "compute_name": StringAttr(name),
                "tag": StringAttr(tag),
                "attrs": attrs,
                "iter_names": ArrayAttr([StringAttr(n) for n in iter_names]),
            },
            regions=[body],
            result_types=[list(types)],
        )

    @property
    def axes(self) -> Sequence[BlockArgument]:
        """The spatial axes."""
        return self.body.block.args

    @property
    def values(self) -> Sequence[SSAValue]:
        """The value of an element of each tensor."""
        last = self.body.block.last_op
        return last.values if isinstance(last, tir.YieldOp) else ()

    @property
    def reduction(self) -> ReduceOp | None:
        """The reduction that the compute is, or None."""
        values = self.values
        owner = values[0].owner if values else None
        return owner if isinstance(owner, ReduceOp) else None

    def verify_(self) -> None:
        name = self.compute_name.data
        if not self.results:
            raise VerifyException(f"compute '{name}' makes no tensor")
        type = self.results_[0].type
        assert isinstance(type, TensorType)
        _check_shape(name, type, self.shape)
        if any(isinstance(r.type, TensorType) and r.type.shape != type.shape for r in self.results):
            raise VerifyException(f"the tensors of compute '{name}' have different shapes")
        if not len(self.iter_names.data) == len(self.axes) == type.rank:
            raise VerifyException(
                f"compute '{name}' has {type.rank} dimensions, but {len(self.axes)} axes and {len(self.iter_names.data)} names for them"
            )
        for axis, axis_name, extent in zip(self.axes, self.iter_names.data, extents_of(self.results[0]), strict=True):
            if axis.type != extent.type:
                raise VerifyException(
                    f"axis '{axis_name.data}' of compute '{name}' has dtype {type_to_dtype(axis.type)}, but its extent is {type_to_dtype(extent.type)}"
                )
        self._verify_values()
        self._verify_body()

    def _verify_values(self) -> None:
        name = self.compute_name.data
        if not isinstance(self.body.block.last_op, tir.YieldOp) or len(self.values) != len(self.results):
            raise VerifyException(
                f"the body of compute '{name}' must yield {len(self.results)} values, one for each tensor"
            )
        for value, result in zip(self.values, self.results_, strict=True):
            assert isinstance(result.type, TensorType)
            if value.type != result.type.dtype:
                raise VerifyException(
                    f"compute '{name}' makes a tensor of {type_to_dtype(result.type.dtype)}, but its body yields {type_to_dtype(value.type)}"
                )

    def _verify_body(self) -> None:
        name, reduction = self.compute_name.data, self.reduction
        if reduction is not None and list(self.values) != list(reduction.results):
            raise VerifyException(f"compute '{name}' must yield the results of one reduction, all and in order")
        axes = set(reduction.axes) if reduction is not None else set[SSAValue]()
        for op in walk_ops(self):
            if op is self:
                continue
            if isinstance(op, ReduceOp) and op is not reduction:
                raise VerifyException(
                    f"a reduction must be the whole value of compute '{name}': give what follows it a compute of its own"
                )
            if not isinstance(op, BODY_OPS):
                raise VerifyException(
                    f"'{op.name}' is no expression, so it cannot stand in the body of compute '{name}'"
                )
            for value in op.operands:
                axis = value.owner
                if isinstance(axis, ReduceAxisOp) and value not in axes:
                    raise VerifyException(
                        f"axis '{axis.var_name.data}' is used in compute '{name}', which does not reduce over it"
                    )
        for result in () if reduction is None else reduction.results:
            if any(use.operation is not self.body.block.last_op for use in result.uses):
                raise VerifyException(
                    f"a reduction must be the whole value of compute '{name}': give what follows it a compute of its own"
                )


BODY_OPS = (
    *tir.BINARY_OPS,
    tir.ConstOp,
    tir.NotOp,
    tir.SelectOp,
    tir.IfThenElseOp,
    tir.YieldOp,
    tir.CastOp,
    tir.CallOp,
    ReadOp,
    ReduceOp,
)
"""What the body of a compute may hold."""


@irdl_op_definition
class ScanOp(IRDLOperation):
    """`te.scan(init, update, state, inputs)`: a recurrence along the first dimension.

    Result k has the shape of `state[k]`, a placeholder. Its first steps are `init[k]`; each further step t is `update[k]`
    at t, where the state stands for the result, of which steps before t are read. `inputs` are for documentation.
    """

    name = "te.scan"
    init = var_operand_def(TensorType)
    update = var_operand_def(TensorType)
    state = var_operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    scan_name = prop_def(StringAttr)
    tag = prop_def(StringAttr, default_value=StringAttr(""))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    results_ = var_result_def(TensorType)
    traits = traits_def(Pure())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        name: str,
        init: Sequence[SSAValue],
        update: Sequence[SSAValue],
        state: Sequence[SSAValue],
        inputs: Sequence[SSAValue] = (),
        *,
        tag: str = "",
        attrs: DictionaryAttr = NO_ATTRS,
    ):
        super().__init__(
            operands=[list(init), list(update), list(state), list(inputs)],
            properties={"scan_name": StringAttr(name), "tag": StringAttr(tag), "attrs": attrs},
            result_types=[[s.type for s in state]],
        )

    def verify_(self) -> None:
        name = self.scan_name.data
        if not self.state or not len(self.init) == len(self.update) == len(self.state) == len(self.results):
            raise VerifyException(
                f"scan '{name}' has {len(self.init)} init, {len(self.update)} update and {len(self.state)} state tensors and {len(self.results)} results; they go together"
            )
        for init, update, state, result in zip(self.init, self.update, self.state, self.results_, strict=True):
            _check_scan_state(name, init, update, state, result)
        from .dependence import verify_scan

        verify_scan(self)


def _check_scan_state(name: str, init: SSAValue, update: SSAValue, state: SSAValue, result: SSAValue) -> None:
    what = f"state '{tensor_name(state)}' of scan '{name}'"
    if not isinstance(state.owner, PlaceholderOp):
        raise VerifyException(f"the {what} must be a te.placeholder")
    if not isinstance(update.owner, ComputeOp):
        raise VerifyException(f"the update of the {what} must be a te.compute")
    begin, type = init.type, state.type
    assert isinstance(begin, TensorType) and isinstance(type, TensorType)
    if not type.rank:
        raise VerifyException(f"the {what} needs a first dimension to step along")
    if result.type != type:
        raise VerifyException(f"the {what} has another type than the result")
    if update.type != type or extents_of(update) != extents_of(state):
        raise VerifyException(f"the {what} and its update '{tensor_name(update)}' differ in shape or dtype")
    if begin.dtype != type.dtype or begin.rank != type.rank or extents_of(init)[1:] != extents_of(state)[1:]:
        raise VerifyException(
            f"the {what} and its init '{tensor_name(init)}' differ in dtype or in a dimension behind the first"
        )


@irdl_op_definition
class ExternOp(IRDLOperation):
    """`te.extern(shape, [A], lambda ins, outs: …, name="C")`: tensors that statements compute from whole tensors.

    The region's arguments are buffers: of the inputs, then of the results; it holds tir statements. `shape` gives the
    symbolic extents of the results, in order.
    """

    name = "te.extern"
    inputs = var_operand_def(TensorType)
    shape = var_operand_def()
    extern_name = prop_def(StringAttr)
    tag = prop_def(StringAttr, default_value=StringAttr(""))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    body = region_def("single_block")
    results_ = var_result_def(TensorType)
    traits = traits_def(NoTerminator())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        name: str,
        inputs: Sequence[SSAValue],
        types: Sequence[TensorType],
        body: Region,
        *,
        shape: Sequence[SSAValue] = (),
        tag: str = "",
        attrs: DictionaryAttr = NO_ATTRS,
    ):
        super().__init__(
            operands=[list(inputs), list(shape)],
            properties={"extern_name": StringAttr(name), "tag": StringAttr(tag), "attrs": attrs},
            regions=[body],
            result_types=[list(types)],
        )

    def verify_(self) -> None:
        name = self.extern_name.data
        if not self.results:
            raise VerifyException(f"extern '{name}' makes no tensor")
        types = [v.type for v in (*self.inputs, *self.results)]
        count = sum(r.type.open_dims for r in self.results_ if isinstance(r.type, TensorType))
        if count != len(self.shape):
            raise VerifyException(
                f"the results of extern '{name}' have {count} symbolic extents, but {len(self.shape)} values for them"
            )
        buffers = [t.buffer() for t in types if isinstance(t, TensorType)]
        if [a.type for a in self.body.block.args] != buffers:
            raise VerifyException(
                f"the body of extern '{name}' takes one buffer for each input and result, of its shape and dtype"
            )


def body_buffer(value: SSAValue) -> bool:
    """Whether a value is a buffer of an extern's body."""
    return isinstance(value.type, BufferType) and isinstance(value.owner.parent_op(), ExternOp)  # type: ignore[union-attr]
