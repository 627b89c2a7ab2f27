"""Defines TE's ops that compute tensors: compute, scan, extern."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    ParsePropInAttrDict,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import NoTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from ...support.text import counted
from ...support.walk import walk_ops
from .. import tir
from ..plain_op import PlainOp
from ..tir.buffer import NO_ATTRS
from ..tir.types import type_to_dtype
from .ops import FuncOp, PlaceholderOp, ReadOp, ReduceAxisOp, ReduceOp, check_shape, operands_inside, tensor_name
from .types import TensorType


def extents_of(value: SSAValue) -> list[IntegerAttr | SSAValue]:
    """Returns every extent of a tensor: a number, or the operand that holds it."""
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
            before = sum(r.type.open_dims for r in results[: value.index])
            return value.owner.shape[before:]
        case _:
            return ()


class _TensorsOp(PlainOp):
    """An op that defines tensors; `tag` and `attrs` are TVM's."""

    tag = prop_def(StringAttr, default_value=StringAttr(""))
    attrs = prop_def(DictionaryAttr, default_value=NO_ATTRS)
    results_ = var_result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(), AttrSizedOperandSegments(as_property=True))


@irdl_op_definition
class ComputeOp(_TensorsOp):
    """`C = te.compute((n, 4), lambda i, j: A[i, j] * 2.0, name="C")`: tensors of one shape, by element.

    The region's arguments are the axes, of the extents' dtypes, named `iter_names`; it ends with `tir.yield` of one
    value for each tensor. `layout_free` are the tensors of the attribute `layout_free_placeholders`.
    """

    name = "te.compute"
    assembly_format = (
        "$compute_name $iter_names (`shape` $shape^ `:` type($shape))? (`free` $layout_free^ `:` "
        "type($layout_free))? `->` type($results_) attr-dict-with-keyword $body"
    )
    shape = var_operand_def()
    layout_free = var_operand_def(TensorType)
    compute_name = prop_def(StringAttr)
    iter_names = prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

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
        """Returns the spatial axes."""
        return self.body.block.args

    @property
    def values(self) -> Sequence[SSAValue]:
        """Returns the value of an element of each tensor."""
        last = self.body.block.last_op
        return last.values if isinstance(last, tir.YieldOp) else ()

    @property
    def reduction(self) -> ReduceOp | None:
        """Returns the compute's reduction, or None."""
        values = self.values
        owner = values[0].owner if values else None
        return owner if isinstance(owner, ReduceOp) else None

    def verify_(self) -> None:
        name = self.compute_name.data
        if not self.results:
            raise VerifyException(f"compute '{name}' makes no tensor")
        type = self.results_[0].type
        assert isinstance(type, TensorType)
        check_shape(name, type, self.shape)
        if any(isinstance(r.type, TensorType) and r.type.shape != type.shape for r in self.results):
            raise VerifyException(f"the tensors of compute '{name}' have different shapes")
        if not len(self.iter_names.data) == len(self.axes) == type.rank:
            raise VerifyException(
                f"compute '{name}' has {counted(type.rank, 'dimension')}, but {counted(len(self.axes), 'axis')} and {counted(len(self.iter_names.data), 'name')} for them"
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
                f"the body of compute '{name}' must yield {counted(len(self.results), 'value')}, one for each tensor"
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
        stray: ReduceAxisOp | None = None
        for op in walk_ops(self):
            if op is self:
                continue
            if isinstance(op, ReduceOp) and op is not reduction:
                raise VerifyException(
                    f"a reduction must be the whole value of compute '{name}': give what follows it a compute of its own"
                )
            if not isinstance(op, BODY_OPS):
                raise VerifyException(
                    f"'{op.name}' is not an expression, so it cannot stand in the body of compute '{name}'"
                )
            for value in op.operands:
                if isinstance(value.owner, ReduceAxisOp) and value not in axes:
                    stray = stray or value.owner
        if stray is not None:
            raise VerifyException(
                f"axis '{stray.var_name.data}' is used in compute '{name}', which does not reduce over it"
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
"""The ops that the body of a compute may hold."""


@irdl_op_definition
class ScanOp(_TensorsOp):
    """`te.scan(init, update, state, inputs)`: a recurrence along the first dimension.

    Result k has the shape of `state[k]`, a placeholder. Its first steps are `init[k]`; each further step t is `update[k]`
    at t, where the state represents the result, of which steps before t are read. `inputs` are for documentation.
    """

    name = "te.scan"
    assembly_format = (
        "$scan_name (`init` $init^ `:` type($init))? (`update` $update^ `:` type($update))? "
        "(`state` $state^ `:` type($state))? (`inputs` $inputs^ `:` type($inputs))? attr-dict `->` type($results_)"
    )
    init = var_operand_def(TensorType)
    update = var_operand_def(TensorType)
    state = var_operand_def(TensorType)
    inputs = var_operand_def(TensorType)
    scan_name = prop_def(StringAttr)
    traits = traits_def(Pure())

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
        _verify_steps(self)


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
            f"the {what} and its init '{tensor_name(init)}' differ in dtype or in a dimension after the first"
        )


def steps_of(scan: ScanOp) -> list[ComputeOp]:
    """Returns the computes of a scan's step, in order: updates, and their producers that read the state."""
    ordered: list[ComputeOp] = []
    depends: dict[Operation, bool] = {}
    states, updates = set(scan.state), {u.owner for u in scan.update}
    pending: list[Operation] = [u.owner for u in reversed(scan.update) if isinstance(u.owner, Operation)]
    while pending:
        op = pending[-1]
        if op in depends:
            pending.pop()
            continue
        read = (
            [v for v in operands_inside(op) if isinstance(v.owner, ComputeOp) or v in states]
            if isinstance(op, ComputeOp)
            else []
        )
        missing = [v.owner for v in read if v not in states and v.owner not in depends]
        if missing:
            pending += [owner for owner in missing if isinstance(owner, Operation)]
            continue
        pending.pop()
        depends[op] = op in updates or any(
            v in states or (isinstance(v.owner, Operation) and depends[v.owner]) for v in read
        )
        if depends[op] and isinstance(op, ComputeOp):
            ordered.append(op)
    return ordered


def _verify_steps(scan: ScanOp) -> None:
    """Verifies that a step reads earlier steps of states, and computes of the same step before it.

    Nothing else may read these computes.
    """
    name = scan.scan_name.data
    if len({extents_of(init)[0] for init in scan.init}) != 1:
        raise VerifyException(f"the inits of scan '{name}' have different numbers of first steps")
    steps = steps_of(scan)
    states, inside = set(scan.state), {r for step in steps for r in step.results}
    for step in steps:
        if not step.axes:
            raise VerifyException(
                f"'{step.compute_name.data}' is computed at each step of scan '{name}', so it needs a first dimension to step along"
            )
        axis = step.iter_names.data[0].data
        for op in walk_ops(step):
            if not isinstance(op, ReadOp) or not op.indices:
                continue
            if op.tensor in states and not _is_before(op.indices[0], step):
                raise VerifyException(
                    f"step {axis} of scan '{name}' may read its state '{tensor_name(op.tensor)}' only at earlier steps, as in {tensor_name(op.tensor)}[{axis} - 1, …]"
                )
            if op.tensor in inside and op.indices[0] is not step.axes[0]:
                raise VerifyException(
                    f"'{tensor_name(op.tensor)}' is computed step by step in scan '{name}', so it is read at the step at hand: {tensor_name(op.tensor)}[{axis}, …]"
                )
    for step in steps:
        for result in step.results:
            for use in result.uses:
                outer = use.operation
                while (parent := outer.parent_op()) is not None and not isinstance(parent, FuncOp):
                    outer = parent
                if outer is not scan and outer not in steps:
                    raise VerifyException(
                        f"'{tensor_name(result)}' is computed step by step in scan '{name}', so it cannot be used outside of it: use the scan's result"
                    )


def _is_before(index: SSAValue, step: ComputeOp) -> bool:
    """Returns True if an index is the step's first axis minus a positive number."""
    if isinstance(index, BlockArgument) or not isinstance(index.owner, tir.SubOp | tir.AddOp):
        return False
    amount = index.owner.rhs.owner
    if index.owner.lhs is not step.axes[0] or not isinstance(amount, tir.ConstOp):
        return False
    if not isinstance(amount.value, IntegerAttr):
        return False
    number = amount.value.value.data
    return number > 0 if isinstance(index.owner, tir.SubOp) else number < 0


@irdl_op_definition
class ExternOp(_TensorsOp):
    """`te.extern(shape, [A], lambda ins, outs: …, name="C")`: tensors computed by statements.

    The region's arguments are buffers: of the inputs, then of the results; it holds tir statements. `shape` holds the
    symbolic extents of the results, in order.
    """

    name = "te.extern"
    assembly_format = (
        "$extern_name (`inputs` $inputs^ `:` type($inputs))? (`shape` $shape^ `:` type($shape))? `->` "
        "type($results_) attr-dict-with-keyword $body"
    )
    inputs = var_operand_def(TensorType)
    shape = var_operand_def()
    extern_name = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

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
        count = sum(r.type.open_dims for r in self.results_)
        if count != len(self.shape):
            raise VerifyException(
                f"the results of extern '{name}' have {counted(count, 'symbolic extent')}, but {counted(len(self.shape), 'value')} for them"
            )
        buffers = [t.buffer() for t in types if isinstance(t, TensorType)]
        if [a.type for a in self.body.block.args] != buffers:
            raise VerifyException(
                f"the body of extern '{name}' takes one buffer for each input and result, of its shape and dtype"
            )
