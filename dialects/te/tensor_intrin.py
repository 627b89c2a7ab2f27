"""Defines tensor intrinsics: a small compute, and statements that implement it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ..tir.node import Buffer, BufferField, Const, describe, fail
from . import extern as ext
from . import tensor as te


@dataclass(eq=False)
class TensorIntrin:
    """Implements the compute `op` by statements: all at once (`body`), or `reset` followed by `update`s."""

    name: str
    op: te.ComputeOp
    inputs: tuple[te.Tensor, ...]
    in_buffers: tuple[Buffer, ...]
    out_buffers: tuple[Buffer, ...]
    body: list[ext.Stmt] | None
    reset: list[ext.Stmt] | None
    update: list[ext.Stmt] | None

    @property
    def buffers(self) -> list[Buffer]:
        """Returns the buffers of inputs, then of results."""
        return [*self.in_buffers, *self.out_buffers]

    @property
    def reduce_init(self) -> list[ext.Stmt] | None:
        """Returns `reset`, by TVM's name."""
        return self.reset

    @property
    def reduce_update(self) -> list[ext.Stmt] | None:
        """Returns `update`, by TVM's name."""
        return self.update


def decl_tensor_intrin(
    op: te.Operation,
    fcompute: Callable[[Sequence[Buffer], Sequence[Buffer]], Any],
    name: str = "tensor_intrin",
    binds: Any = None,
    scalar_params: Any = None,
    default_buffer_params: Any = None,
) -> TensorIntrin:
    """Declares statements that implement the compute `op`, for `s[C].tensorize(axis, intrin)`.

    Args:
        op: a compute of static shapes on placeholders.
        fcompute: takes the buffers of inputs and of results; returns statements or a call, or for a reduction three of them: for
            the whole, for setting the result to the reduction's first value, and for adding to it (None for missing ones).
        name: names it in messages.
        binds: buffers by tensor. Those with strides make `strides` of the buffers that `fcompute` gets the strides that the tensor has
            where it is tensorized; other properties have no effect, since buffers take whatever layout the tensors have.
        scalar_params, default_buffer_params: of TVM's signature; scalar parameters are not supported.
    """
    if not isinstance(op, te.ComputeOp):
        raise fail(f"a tensor intrinsic is made of a te.compute, not of {describe(op)}")
    if scalar_params:
        raise fail(f"tensor intrinsic '{name}' takes scalar parameters", "an intrinsic computes from tensors only")
    inputs = tuple(op.input_tensors)
    for tensor in (*inputs, *op.outputs):
        if not all(isinstance(d, Const) for d in tensor.dims):
            raise fail(
                f"tensor '{tensor.name}' of intrinsic '{name}' has a symbolic extent", "give its extents as numbers"
            )
    for tensor in inputs:
        if not isinstance(tensor.op, te.PlaceholderOp):
            raise fail(
                f"tensor '{tensor.name}' of intrinsic '{name}' is computed", "an intrinsic reads te.placeholder tensors"
            )
    bound = {id(tensor): buffer for tensor, buffer in dict(binds or {}).items()}
    ins = tuple(_buffer(tensor, bound.get(id(tensor))) for tensor in inputs)
    outs = tuple(_buffer(tensor, bound.get(id(tensor))) for tensor in op.outputs)
    given = fcompute(ins, outs)
    # A list is of statements; a tuple has the three stages of a reduction.
    stages: tuple[Any, ...] = (given,)
    if isinstance(given, tuple):
        stages = cast(tuple[Any, ...], given)
        if len(stages) not in (2, 3):
            raise fail(f"the function of intrinsic '{name}' gives {len(stages)} values", "give body, reset, update")
    made = [None if part is None else ext.statements_of(part) for part in stages]
    made += [None] * (3 - len(made))
    return TensorIntrin(name, op, inputs, ins, outs, made[0], made[1], made[2])


def _buffer(tensor: te.Tensor, bound: Buffer | None) -> Buffer:
    """Returns the buffer of a tensor for the statements, with strides if the bound one has them."""
    buffer = Buffer(tensor.name, tensor.dims, tensor.dtype)
    if bound is not None and bound.strides:
        buffer.strides = tuple(BufferField(buffer, "strides", "int32", dim) for dim in range(len(tensor.dims)))
    return buffer
