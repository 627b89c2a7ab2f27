"""Evaluates TE tensors over numpy, all elements at once: an oracle for computes that needs no lowering.

A read outside a tensor is an error unless an `if_then_else` keeps that element from being read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mirstack.dialects.array import numpy_dtype
from mirstack.dialects.te import expr as ex
from mirstack.dialects.te.tensor import ComputeOp, PlaceholderOp, Read, Reduce, Tensor
from relay_numbers import erf, half_away


def _trunc_div(a: Any, b: Any) -> Any:
    if a.dtype.kind not in "iu":
        return a / b
    return (
        np.sign(a).astype(np.int64) * np.sign(b) * (np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64)))
    ).astype(a.dtype)


BINARY = {
    "AddOp": np.add, "SubOp": np.subtract, "MulOp": np.multiply, "DivOp": _trunc_div, "ModOp": np.fmod,
    "FloorDivOp": np.floor_divide, "FloorModOp": np.mod, "MinOp": np.minimum, "MaxOp": np.maximum,
    "EqOp": np.equal, "NeOp": np.not_equal, "LtOp": np.less, "LeOp": np.less_equal, "GtOp": np.greater,
    "GeOp": np.greater_equal, "AndOp": np.logical_and, "OrOp": np.logical_or, "NotOp": np.logical_not,
    "SelectOp": np.where,
}  # fmt: skip

CALLS = {
    "rsqrt": lambda x: 1 / np.sqrt(x), "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "round": half_away,
    "nearbyint": np.rint, "erf": erf, "pow": np.power, "shift_left": np.left_shift, "shift_right": np.right_shift,
    "bitwise_not": np.invert, "likely": lambda x: x, "atan2": np.arctan2,
}  # fmt: skip


class Evaluator:
    """Evaluates tensors, given the values of the placeholders and of the symbolic sizes that they need."""

    def __init__(self, inputs: dict[Tensor, np.ndarray], sizes: dict[ex.Var, int] | None = None):
        self.known: dict[int, Any] = {id(t.op): (array,) for t, array in inputs.items()}
        self.sizes = sizes or {}

    def tensor(self, tensor: Tensor) -> np.ndarray:
        op = tensor.op
        if id(op) not in self.known:
            assert isinstance(op, ComputeOp), f"{tensor.name} has no value"
            self.known[id(op)] = self._compute(op)
        return self.known[id(op)][tensor.value_index]

    def dim(self, dim: Any) -> int:
        return int(self._eval(ex.convert(dim), {}, None))

    def _compute(self, op: ComputeOp) -> tuple[np.ndarray, ...]:
        axes = [*op.axis, *op.reduce_axis]
        extents = [self.dim(a.extent) for a in axes]
        env: dict[int, Any] = {}
        for n, (axis, extent) in enumerate(zip(axes, extents, strict=True)):
            shape = [1] * len(axes)
            shape[n] = extent
            start = self.dim(axis.min)
            env[id(axis)] = np.arange(start, start + extent).astype(axis.dtype).reshape(shape)
        rank = len(op.axis)
        if isinstance(op.body[0], Reduce):
            reduction = op.body[0].reduction
            values = [np.broadcast_to(self._eval(s, env, None), extents) for s in reduction.sources]
            assert reduction.condition is None and not reduction.init
            over = tuple(range(rank, len(axes)))
            return tuple(self._reduce(reduction.reducer, values, over))
        return tuple(
            np.broadcast_to(self._eval(b, env, None), extents).astype(numpy_dtype(b.dtype)).copy() for b in op.body
        )

    def _reduce(self, reducer: Any, values: list[np.ndarray], over: tuple[int, ...]) -> list[np.ndarray]:
        if isinstance(reducer, str):
            x = values[0]
            if reducer in ("sum", "prod"):
                wide = x.astype(np.float64) if x.dtype.name in ("float16", "bfloat16", "float32") else x
                result = (np.sum if reducer == "sum" else np.prod)(wide, axis=over, dtype=wide.dtype)
                return [np.asarray(result).astype(x.dtype)]
            return [np.asarray(getattr(np, reducer)(x, axis=over))]
        rank = over[0] if over else values[0].ndim
        flat = [v.reshape(*v.shape[:rank], -1) for v in values]
        state = [
            np.full(v.shape[:-1], np.asarray(self._eval(i, {}, None))).astype(v.dtype)
            for v, i in zip(flat, reducer.identities, strict=True)
        ]
        for k in range(flat[0].shape[-1]):
            items = [*state, *(v[..., k] for v in flat)]
            env = {id(p): v for p, v in zip(reducer.parameters, items, strict=True)}
            state = [np.asarray(self._eval(r, env, None)) for r in reducer.results]
        return state

    def _eval(self, node: ex.Expr, env: dict[int, Any], mask: Any) -> Any:
        if id(node) in env:
            return env[id(node)]
        dtype = numpy_dtype(node.dtype)
        if isinstance(node, ex.Const):
            return np.asarray(node.value).astype(dtype)
        if isinstance(node, ex.Var):
            return np.asarray(self.sizes[node]).astype(dtype)
        if isinstance(node, ex.IfThenElse):
            condition = self._eval(node.args[0], env, mask)
            yes = condition if mask is None else mask & condition
            no = ~condition if mask is None else mask & ~condition
            then, other = self._eval(node.then_value, env, yes), self._eval(node.else_value, env, no)
            return np.where(condition, then, other).astype(dtype)
        if isinstance(node, Read):
            array = self.tensor(node.tensor)
            places = []
            for number, (index, size) in enumerate(zip(node.args, array.shape, strict=True)):
                value = self._eval(index, env, mask)
                outside = (value < 0) | (value >= size)
                outside = outside if mask is None else outside & mask
                assert not np.any(outside), f"index {number} of {node.tensor.name} leaves [0, {size})"
                places.append(np.clip(value, 0, max(size - 1, 0)))
            if 0 in array.shape:
                return np.zeros(np.broadcast_shapes(*(p.shape for p in places)), array.dtype)
            return array[tuple(places)]
        arguments = [self._eval(a, env, mask) for a in node.args]
        if isinstance(node, ex.Apply):
            name = node.op.__name__
            if name == "CastOp":
                from mirstack.dialects.relay.operators.elemwise import convert

                return convert(np.asarray(arguments[0]), node.dtype)
            return np.asarray(BINARY[name](*arguments)).astype(dtype)
        assert isinstance(node, ex.Call), node
        if node.intrinsic == "reinterpret":
            return np.array(arguments[0]).view(dtype)
        function = CALLS.get(node.intrinsic) or getattr(np, node.intrinsic)
        return np.asarray(function(*arguments)).astype(dtype)


def is_placeholder(tensor: Tensor) -> bool:
    return isinstance(tensor.op, PlaceholderOp)
