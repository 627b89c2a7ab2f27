"""Implements `lift-transform-params`: moves what a kernel computes from constants to its own function.

    call_tir(@k, %x, %w)    →    call_tir(@k, %x, call_tir(@k_transform_params, %w))

A schedule may bring a kernel's weights into another layout first, in a stage at the kernel's root. Where the weights are the same at
every call (`tir.constant_params`), such stages are moved to `KERNEL_transform_params`, and the kernel takes their results in place of
the weights. The inner call depends on constants only, so it is made once, when the program is loaded. (The name is that of TVM's
Relax pass.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType, TupleType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.relay import ir as relay
from ....dialects.tir.intrinsics import Effect, intrinsic_effect
from ....passes.tir.buffers.constant_params import constant_params, set_constant_params
from ....passes.tir.rewriting import prim_funcs
from ....support.edit import add_op, clone_nested, erase_op, insert_op_before
from ....support.operands import operands_of
from ....support.text import FreshNames, take_name
from ....support.walk import all_ops
from ..functions.flat_values import TensorLeaf, leaves_of
from .constant_arguments import kernel_calls

MOST_GROWTH = 16
"""What takes more than so many times the memory of the constants that it is computed from is computed at each call."""


@dataclass(frozen=True)
class LiftTransformParams(ModulePass):
    """Move what kernels compute from constants alone to functions of their own."""

    name = "lift-transform-params"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the kernels, and their calls in Relay's functions."""
        calls = kernel_calls(op)
        names = {name.data for each in op.ops if isinstance(name := each.properties.get("sym_name"), StringAttr)}
        for function in prim_funcs(op):
            own = calls.get(function.sym_name.data)
            stages = find_stages(function) if own else None
            if own and stages is not None:
                name = take_name(f"{function.sym_name.data}_transform_params", names)
                _lift(function, stages, name, own)


@dataclass(eq=False)
class Stages:
    """The part of a function that depends on constant parameters only."""

    nests: list[Operation]
    """Its loop nests, in order."""
    constants: list[SSAValue]
    """The parameters that they read."""
    results: dict[SSAValue, SSAValue]
    """The buffers that the rest of the function reads, each with the parameter in whose place it is taken."""
    inner: list[SSAValue]
    """The buffers that only the nests use."""


@dataclass(eq=False)
class _Nest:
    """A statement at a function's root, and the buffers of the function that it uses."""

    op: Operation
    reads: dict[SSAValue, None]
    writes: dict[SSAValue, None]
    pure: bool


def find_stages(function: tir.PrimFuncOp) -> Stages | None:
    """Returns the stages at the function's root that depend on its constant parameters only, or None."""
    constants = constant_params(function)
    if not constants:
        return None
    nests = [_nest(op) for op in function.body.block.ops if op.regions or any(map(_is_buffer, op.operands))]
    written = {b for nest in nests for b in nest.writes}
    derived = {b for b in written if isinstance(b.owner, tir.AllocBufferOp) and _is_plain(b.owner)}
    if any(param in written for param in constants):
        return None
    while True:
        _keep_derived(nests, constants, derived)
        sources = _sources(nests, constants, derived)
        if derived <= sources.keys():
            break
        derived.intersection_update(sources)
    lifted = [nest for nest in nests if nest.writes and nest.writes.keys() <= derived]
    left = [nest for nest in nests if nest not in lifted]
    used = {b for nest in left for b in nest.reads}
    results = {b: sources[b] for nest in lifted for b in nest.writes if b in used}
    given = sum(_bytes(p) for p in constants)
    if not results or sum(map(_bytes, results)) > MOST_GROWTH * given:
        return None
    read = {b for nest in lifted for b in nest.reads}
    return Stages(
        [nest.op for nest in lifted],
        [p for p in constants if p in read],
        results,
        [b for b in dict.fromkeys(b for nest in lifted for b in nest.writes) if b not in results],
    )


def _keep_derived(nests: Sequence[_Nest], constants: Sequence[SSAValue], derived: set[SSAValue]) -> None:
    """Removes from `derived` the results of nests that are impure or read other buffers."""
    given = set(constants)
    changed = True
    while changed:
        changed = False
        for nest in nests:
            known = nest.pure and nest.reads.keys() <= derived | given and nest.writes.keys() <= derived
            if not known and nest.writes.keys() & derived:
                derived.difference_update(nest.writes)
                changed = True


def _sources(nests: Sequence[_Nest], constants: Sequence[SSAValue], derived: set[SSAValue]) -> dict[SSAValue, SSAValue]:
    """Maps each derived buffer to one of the constants that it is computed from, if there is one."""
    sources: dict[SSAValue, SSAValue] = {param: param for param in constants}
    for nest in nests:
        given = [sources[b] for b in nest.reads if b in sources]
        for buffer in nest.writes:
            if given and buffer in derived:
                sources.setdefault(buffer, given[0])
    return sources


def _nest(op: Operation) -> _Nest:
    reads: dict[SSAValue, None] = {}
    writes: dict[SSAValue, None] = {}
    pure = True
    ops = all_ops(op)
    inside = set(ops)
    for inner in ops:
        kind = type(inner)
        if type(inner) is tir.CallOp:
            opaque = inner.callee is not None or intrinsic_effect(inner.intrinsic.data) is Effect.OPAQUE
            pure = pure and not opaque
        elif kind is tir.AssertOp or kind is tir.LaunchThreadOp:
            pure = False
        for operand in operands_of(inner):
            if not _is_buffer(operand) or operand.owner in inside:
                continue
            if kind is tir.LoadOp:
                reads[operand] = None
            elif kind is tir.StoreOp:
                writes[operand] = None
            elif isinstance(inner, tir.BufferRegionOp):
                # What a block declares, loaded or not; tensor intrinsics work on views of it.
                reads[operand] = None
                views = [u.operation for u in inner.result.uses if isinstance(u.operation, tir.MatchBufferOp)]
                if any(isinstance(u.operation, tir.StoreOp) for view in views for u in view.result.uses):
                    writes[operand] = None
            else:
                pure = False
                reads[operand] = writes[operand] = None
    return _Nest(op, reads, writes, pure)


def _is_buffer(value: SSAValue) -> bool:
    return type(value.type) is tir.BufferType


def _is_plain(op: tir.AllocBufferOp) -> bool:
    """Returns whether the buffer could be a parameter: of known shape, compact, in ordinary memory."""
    type = op.result.type
    assert isinstance(type, tir.BufferType)
    return type.static_shape is not None and type.scope.data == "global" and not op.operands


def _bytes(buffer: SSAValue) -> int:
    (leaf,) = leaves_of(_tensor_type(buffer))
    assert isinstance(leaf, TensorLeaf)
    return leaf.bytes


def _tensor_type(buffer: SSAValue) -> TensorType[Attribute]:
    type = buffer.type
    assert isinstance(type, tir.BufferType) and type.static_shape is not None
    return TensorType(type.dtype, type.static_shape)


# The split


def _lift(function: tir.PrimFuncOp, stages: Stages, name: str, calls: Sequence[relay.CallTirOp]) -> None:
    """Makes the transform function, and has the kernel and its calls use it."""
    insert_op_before(_transform_function(function, stages, name), function)
    for op in reversed([*(buffer.owner for buffer in stages.inner), *stages.nests]):
        assert isinstance(op, Operation)
        erase_op(op)
    old = list(function.params)
    dropped = {param for param in stages.constants if not param.uses}
    params: list[SSAValue] = []
    for param in old:
        params += [] if param in dropped else [param]
        params += [buffer for buffer, source in stages.results.items() if source is param]
    inputs = [old.index(param) for param in stages.constants]
    kept = [
        old.index(param) if param in old else list(stages.results).index(param) - len(stages.results)
        for param in params
    ]
    types = [_tensor_type(buffer) for buffer in stages.results]
    _set_params(function, params)
    for call in calls:
        _change_call(call, name, inputs, types, kept)


def _transform_function(function: tir.PrimFuncOp, stages: Stages, name: str) -> tir.PrimFuncOp:
    """Returns the function that computes the stages: its parameters are the constants, then the results."""
    values = [*stages.constants, *stages.results]
    fresh = FreshNames()
    names = [fresh.fresh(tir.buffer_name(value)) for value in values]
    attrs = {key: attr for key, attr in function.attrs.data.items() if key == "tir.noalias"}
    private = function.sym_visibility is not None
    result = tir.PrimFuncOp(name, names, [v.type for v in values], attrs=DictionaryAttr(attrs), private=private)
    result.location = function.location
    mapper = dict(zip(values, result.params, strict=True))
    for param, label in zip(result.params, names, strict=True):
        param.name_hint = label
    wanted = _needed(function, stages)
    for op in function.body.block.ops:
        if op in wanted:
            add_op(result.body.block, clone_nested(op, mapper))
    return result


def _needed(function: tir.PrimFuncOp, stages: Stages) -> set[Operation]:
    """Returns the ops at the function's root of which the stages and their expressions consist."""
    home = function.body.block
    wanted: set[Operation] = {
        *stages.nests,
        *(buffer.owner for buffer in stages.results if isinstance(buffer, OpResult)),
    }
    outputs = wanted - {*stages.nests}
    pending: list[Operation] = list(stages.nests)
    while pending:
        for inner in all_ops(pending.pop()):
            for owner in {operand.owner for operand in operands_of(inner)}:
                if isinstance(owner, Operation) and owner.parent is home and owner not in wanted:
                    wanted.add(owner)
                    pending.append(owner)
    return wanted - outputs


def _set_params(function: tir.PrimFuncOp, values: Sequence[SSAValue]) -> None:
    """Sets the function's parameters to these of its parameters and allocated buffers, in this order."""
    block = function.body.block
    fresh = FreshNames()
    names = [fresh.fresh(tir.buffer_name(value)) for value in values]
    marked = {*constant_params(function)}
    constant = [place for place, value in enumerate(values) if value in marked or isinstance(value, OpResult)]
    old = list(block.args)
    for value, name in zip(values, names, strict=True):
        param = block.insert_arg(value.type, len(block.args))
        value.replace_all_uses_with(param)
        param.name_hint = name
        if isinstance(value, OpResult):
            erase_op(value.op)
    for param in reversed(old):
        block.erase_arg(param)
    function.properties["param_names"] = ArrayAttr([StringAttr(name) for name in names])
    set_constant_params(function, constant)


def _change_call(
    call: relay.CallTirOp,
    name: str,
    inputs: Sequence[int],
    types: Sequence[TensorType[Attribute]],
    kept: Sequence[int],
) -> None:
    """Changes a call of the kernel to take the results of the transform function `name`.

    That function takes the tensors at `inputs`. `kept` lists the kernel's new tensors: the numbers of those that it still takes, and
    negative numbers, counted from the end of `types`, of those that it takes instead.
    """
    tensors: dict[int, SSAValue] = {}
    start = 0
    for argument in call.arguments:
        tensors[start] = argument
        start += len(leaves_of(argument.type, argument))
    made = relay.CallTirOp(
        name, [tensors[place] for place in inputs], types[0] if len(types) == 1 else TupleType(ArrayAttr(types))
    )
    results: list[SSAValue] = [made.result]
    ops: list[Operation] = [made]
    if len(types) > 1:
        fields = [relay.TupleGetItemOp(made.result, k, type) for k, type in enumerate(types)]
        results = [field.result for field in fields]
        ops += fields
    for op in ops:
        op.location = call.location
        insert_op_before(op, call)
    # A tuple is at the place of its first tensor; the others have none.
    call.operands = [results[place] if place < 0 else tensors[place] for place in kept if place < 0 or place in tensors]
