"""Expressions of TE over numpy: all points of a box of axes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...support.deep_stack import in_deep_stack
from ...support.diagnostics import error_at
from .. import tir
from ..tir.interpreter.intrinsics import extern_function, float_call, integer_call, reinterpret
from ..tir.interpreter.scalar import binary_function, caster
from ..tir.interpreter.values import dtype_of
from ..tir.scalar_ops import BINARY_ROWS
from .ops import ReadOp, tensor_name

Array: TypeAlias = NDArray[Any]

_SHALLOW = 60


class Run(Protocol):
    """The run of a function, as the evaluation of expressions uses it."""

    arrays: dict[SSAValue, Array]
    scalars: dict[SSAValue, Any]

    def scalar(self, value: SSAValue) -> Any:
        """A value at the function's level."""
        ...


class Points:
    """Evaluates expressions at all points of a box of axes at once."""

    def __init__(
        self,
        run: Run,
        axes: list[tuple[SSAValue, tuple[int, int]]],
        known: dict[SSAValue, Array],
        mask: Array | None = None,
        depth: int = 0,
        buffers: Mapping[SSAValue, Array] | None = None,
    ):
        self.run, self.axes, self.known, self.mask, self.depth = run, axes, known, mask, depth
        self.buffers = buffers or {}
        self.shape = tuple(high - low for _, (low, high) in axes)
        self.added: list[SSAValue] = []
        for number, (axis, (low, high)) in enumerate(axes):
            if axis not in known:
                shape = [1] * len(axes)
                shape[number] = high - low
                dtype = np.int32 if axis.type == IntegerType(32) else np.int64
                known[axis] = np.arange(low, high, dtype=dtype).reshape(shape)

    def values(self, roots: Sequence[SSAValue]) -> list[Array]:
        """The values of several expressions."""
        return [self.value(root) for root in roots]

    def value(self, root: SSAValue) -> Array:
        """The value of an expression."""
        known, pending = self.known, [root]
        while pending:
            value = pending[-1]
            if value in known:
                pending.pop()
                continue
            op = value.owner
            assert isinstance(op, Operation)
            if value in self.run.scalars or isinstance(op, tir.VarOp):
                found = np.asarray(self.run.scalar(value))
            else:
                operands = op.indices if isinstance(op, ReadOp | tir.LoadOp) else op.operands
                missing = [v for v in operands if v not in known and v not in self.buffers and not _is_text(v)]
                if missing:
                    pending += reversed(missing)
                    continue
                found = np.asarray(self._evaluate(op), dtype_of(value.type, op))
            pending.pop()
            known[value] = found
            self.added.append(value)
        return known[root]

    def _evaluate(self, op: Operation) -> Any:
        known = self.known
        match op:
            case tir.ConstOp():
                assert isinstance(op.value, IntegerAttr | FloatAttr)
                return _number(op.value.value.data, op.result.type, op)
            case tir.BinaryOp():
                a, b = known[op.lhs], known[op.rhs]
                if BINARY_ROWS[type(op)].divides and b.dtype.kind in "iu" and not b.ndim and not a.ndim:
                    a, b = a[None], b[None]
                    return binary_function(op)(a, b)[0]
                return binary_function(op)(a, b)
            case tir.NotOp():
                return np.logical_not(known[op.value])
            case tir.CastOp():
                return _cast(op, known[op.value])
            case tir.SelectOp():
                return np.where(known[op.condition], known[op.true_value], known[op.false_value])
            case tir.IfThenElseOp():
                return self._choose(op)
            case ReadOp():
                array = self.run.arrays[op.tensor]
                return array[self.indices(op, array.shape, op.indices, tensor_name(op.tensor))]
            case tir.LoadOp():
                array = self.buffers[op.buffer]
                return array[self.indices(op, array.shape, op.indices, tir.buffer_name(op.buffer))]
            case tir.CallOp():
                return self._call(op)
            case _:
                raise error_at(op, f"'{op.name}' cannot be interpreted in a tensor expression")

    def indices(
        self, op: Operation, shape: tuple[int, ...], values: Sequence[SSAValue], name: str
    ) -> tuple[Array, ...]:
        """Checked indices; those of elements that are masked are any that is within bounds."""
        result: list[Array] = []
        for dim, (value, extent) in enumerate(zip(values, shape, strict=True)):
            index = self.value(value)
            outside = (index < 0) | (index >= extent)
            if outside.any():
                wrong = outside if self.mask is None else outside & self.mask
                if wrong.any():
                    at = np.broadcast_to(index, wrong.shape)[wrong].flat[0]
                    raise error_at(op, f"index {at} is outside dimension {dim} of '{name}', which has {extent}")
                index = np.clip(index, 0, max(extent - 1, 0))
            result.append(index)
        if any(extent == 0 for extent in shape):
            # All elements are masked, or the box is empty: there is nothing to take.
            raise error_at(op, f"'{name}' has no elements to read")
        return tuple(result)

    def _choose(self, op: tir.IfThenElseOp) -> Array:
        condition = self.known[op.condition]
        active = condition if self.mask is None else condition & self.mask
        others = ~condition if self.mask is None else ~condition & self.mask
        dtype = dtype_of(op.result.type, op)
        sides: list[Array] = []
        for mask, region in ((active, op.then_region), (others, op.else_region)):
            if not mask.any():
                sides.append(np.zeros((), dtype))
                continue
            full = bool(mask.all())
            inner = Points(self.run, self.axes, self.known, None if full else mask, self.depth + 1, self.buffers)
            last = yielded_by(region.block)[0]
            side = (
                in_deep_stack(lambda i=inner, v=last: i.value(v)) if inner.depth % _SHALLOW == 0 else inner.value(last)
            )
            sides.append(side)
            for value in inner.added:
                # What was computed for some elements is not valid for others.
                del self.known[value]
        return np.where(condition, *sides)

    def _call(self, op: tir.CallOp) -> Any:
        name, result = op.intrinsic.data, op.result
        arguments = list(op.arguments)
        if result is None:
            raise error_at(op, f"T.{name} has no value to interpret")
        if name in ("call_extern", "call_pure_extern"):
            first = arguments[0].owner if arguments else None
            called = first.value.data if isinstance(first, tir.ConstOp) and isinstance(first.value, StringAttr) else ""
            function = extern_function(called)
            if function is None or any(v in self.buffers for v in arguments):
                raise error_at(op, f"the interpreter has no function '{called}' to call")
            return function(*self.values(arguments[1:]))
        if name in ("call_packed", "tvm_call_packed"):
            raise error_at(
                op, "the interpreter cannot call packed functions", "they belong to a program that registers them"
            )
        values = self.values(arguments)
        if name == "likely":
            return values[0]
        if name == "reinterpret":
            return reinterpret(arguments[0].type, result.type, op)(values[0])
        function = None
        if arguments:
            function = integer_call(name, result.type, arguments[0].type, op) or float_call(name, arguments[0].type, op)
        if function is None:
            raise error_at(op, f"the interpreter does not know T.{name}")
        if all(v.ndim == 0 for v in values):
            # The functions take arrays of elements, or Python numbers.
            return np.asarray(function(*(v[None] for v in values)))[0]
        return function(*values)


def _cast(op: tir.CastOp, value: Array) -> Any:
    result = caster(op.value.type, op.result.type, op)(value if value.ndim else value[None])
    return result if value.ndim else np.asarray(result)[0]


def _number(value: float, type: Attribute, op: Operation) -> Array:
    dtype = dtype_of(type, op)
    if dtype.kind in "iu" and isinstance(value, int):
        # Unsigned constants may be held as the signed number of the same bits.
        return np.asarray(value & ((1 << dtype.itemsize * 8) - 1), f"uint{dtype.itemsize * 8}").view(dtype)
    return np.asarray(value, dtype)


def yielded_by(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    return last.values if isinstance(last, tir.YieldOp) else ()


def _is_text(value: SSAValue) -> bool:
    return isinstance(value.owner, tir.ConstOp) and isinstance(value.owner.value, StringAttr)
