"""Counts what each kernel computes, and the bytes that go in and out of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import relay, te, tir
from ...dialects.array import numpy_dtype
from ...dialects.tir.types import BufferType, type_to_dtype
from ...passes.schedule.analysis.structure import const_int
from ...support.walk import walk_ops

ARITHMETIC = (tir.AddOp, tir.SubOp, tir.MulOp, tir.DivOp, tir.MaxOp, tir.MinOp, tir.CallOp)
"""One operation each, in the values that are stored in tensors."""


@dataclass
class Cost:
    """A kernel: the number of its calls, and of one call the operations and bytes in and out."""

    name: str
    calls: int
    flops: int
    bytes: int
    ops: list[Operation]
    """The calls, which know the places of its operators; of a function that nothing calls itself."""
    seconds: float | None = None


def arithmetic(module: ModuleOp) -> dict[str, int]:
    """Returns the operations of each TIR function, by name, whose blocks have known sizes."""
    return {op.sym_name.data: _operations(op) for op in module.ops if isinstance(op, tir.PrimFuncOp)}


def _operations(function: tir.PrimFuncOp) -> int:
    total = 0
    for block in walk_ops(function):
        if isinstance(block, tir.BlockOp):
            points = prod(const_int(extent) or 1 for extent in block.dom_extents)
            stores = [op for op in block.body.block.ops if isinstance(op, tir.StoreOp)]
            total += points * sum(_in_value(store.value) for store in stores)
    return total


def _in_value(value: SSAValue) -> int:
    """Returns how many operations compute a value of what was loaded; indices do not count."""
    found: set[Operation] = set()
    pending = [value]
    count = 0
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op in found or isinstance(op, tir.LoadOp):
            continue
        found.add(op)
        count += isinstance(op, ARITHMETIC)
        pending += op.operands
    return count


def kernels_of(module: ModuleOp) -> list[Cost]:
    """Returns the kernels that the Relay functions of a module call; without any its TIR and TE functions."""
    calls: dict[str, list[relay.CallTirOp]] = {}
    for op in walk_ops(module):
        if isinstance(op, relay.CallTirOp):
            calls.setdefault(op.callee.root_reference.data, []).append(op)
    found = [
        Cost(name, len(ops), 0, sum(bytes_of(value.type) for value in (*ops[0].arguments, ops[0].result)), list(ops))
        for name, ops in calls.items()
    ]
    if any(isinstance(op, relay.FuncOp) for op in module.ops):
        return found
    return [
        Cost(op.sym_name.data, 1, 0, _parameter_bytes(op), list(walk_ops(op)))
        for op in module.ops
        if isinstance(op, tir.PrimFuncOp | te.FuncOp)
    ]


def _parameter_bytes(function: tir.PrimFuncOp | te.FuncOp) -> int:
    if isinstance(function, te.FuncOp):
        return 0
    buffers = [value.type for value in function.params if isinstance(value.type, BufferType)]
    buffers += [op.result.type for op in function.body.block.ops if isinstance(op, tir.MatchBufferOp)]
    return sum(map(_buffer_bytes, buffers))


def _buffer_bytes(type: BufferType) -> int:
    sizes = [getattr(getattr(size, "value", None), "data", 0) for size in type.shape.data]
    return prod(sizes) * numpy_dtype(type_to_dtype(type.dtype)).itemsize


def bytes_of(type_: Attribute) -> int:
    """Returns the bytes of a tensor, or of the tensors of a tuple; an open dimension counts as one."""
    if isinstance(type_, TupleType):
        return sum(bytes_of(field) for field in type_.types.data)
    if not isinstance(type_, TensorType):
        return 0
    return prod(max(size, 1) for size in type_.get_shape()) * numpy_dtype(type_to_dtype(type_.element_type)).itemsize
