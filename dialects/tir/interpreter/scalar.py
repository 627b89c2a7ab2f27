"""Compiles scalar ops: exact arithmetic in the op's dtype, on Python ints, numpy floats or arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ... import elementary, numeric
from ..arithmetic import BinaryOp, NotOp
from ..expr import BroadcastOp, CastOp, ConstOp, RampOp, SelectOp, ShuffleOp
from ..scalar_ops import BINARY_ROWS, BOOL, BOOLS, ScalarOp
from ..types import I1, element_of, lanes_of
from .frame import Frame, Step
from .values import Array, Value, as_array, dtype_of, integer_limits, is_integer, is_vector, scalar_of, wrapper

if TYPE_CHECKING:
    from .compiler import Compiler

Binary = Callable[[Any, Any], Any]

_OWN = ("scalar", "intrinsics")
"""The modules of this package that rows of the table name functions of."""


@cache
def meaning(path: str) -> Callable[..., Any]:
    """Returns the function that a row of the table names: `numpy.floor`, `scalar.floored_quotient`."""
    module, _, name = path.rpartition(".")
    found = {"numpy": np, "numeric": numeric, "elementary": elementary}.get(module)
    return getattr(found or import_module(f".{module}" if module in _OWN else module, __package__), name)


def constant(op: ConstOp) -> Value:
    """Returns the value of an immediate."""
    match op.value:
        case StringAttr():
            return op.value.data
        case IntegerAttr() | FloatAttr():
            return scalar_of(op.value.value.data, op.result.type, op)


def compile_scalar(c: Compiler, op: Operation) -> Step | None:
    """Returns the closure of a pure scalar or vector op, None for other ops."""
    match op:
        case BinaryOp():
            return _compile_binary(c, op)
        case NotOp():
            return _compile_unary(c, op, lambda a: np.logical_not(a) if isinstance(a, np.ndarray) else not a)
        case CastOp():
            return _compile_unary(c, op, caster(op.value.type, op.result.type, op))
        case SelectOp():
            return _compile_select(c, op)
        case RampOp():
            return _compile_ramp(c, op)
        case BroadcastOp():
            return _compile_broadcast(c, op)
        case ShuffleOp():
            return _compile_shuffle(c, op)
        case _:
            return None


def _compile_unary(c: Compiler, op: Operation, function: Callable[[Any], Any]) -> Step:
    a, r = c.slot(op.operands[0]), c.slot(op.results[0])

    def step(f: Frame) -> None:
        f.v[r] = function(f.v[a])

    return step


def _compile_binary(c: Compiler, op: BinaryOp) -> Step:
    a, b, r = c.slot(op.lhs), c.slot(op.rhs), c.slot(op.result)
    function = binary_function(op)

    def step(f: Frame) -> None:
        v = f.v
        v[r] = function(v[a], v[b])

    return step


def binary_function(op: BinaryOp) -> Binary:
    """Returns the function that the op computes, in its operands' dtype."""
    type, row = element_of(op.lhs.type), BINARY_ROWS[op.__class__]
    return _integer_function(row, type) if row.result is not BOOL and is_integer(type) else meaning(row.numpy)


def _integer_function(row: ScalarOp, type: Attribute) -> Binary:
    assert row.integers is not None
    scalars, arrays = row.integers, meaning(row.numpy_integer)
    wrap = bool if type == I1 else wrapper(type)

    # A chosen operand needs no wrapping around.
    def choose_one(a: Any, b: Any) -> Any:
        return arrays(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else scalars(a, b)

    # An integer divided by 0, and its remainder, are 0: as numpy has it for arrays, and native code.
    def divide(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return arrays(a, b)
        return wrap(scalars(a, b) if b else 0)

    def compute(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return arrays(a, b)
        return wrap(scalars(a, b))

    def connect(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return arrays(a, b)
        return bool(scalars(bool(a), bool(b)))

    if row.operands is BOOLS:
        return connect
    if row.name in ("min", "max"):
        return choose_one
    return divide if row.divides else compute


def truncated_quotient(a: Any, b: Any) -> Array:
    """Returns arrays of integers divided, rounded toward zero."""
    return (a - np.fmod(a, b)) // b


def floored_quotient(a: Any, b: Any) -> Any:
    """Returns floats divided, rounded down."""
    return np.floor(a / b)


def caster(source: Attribute, target: Attribute, op: Operation) -> Callable[[Any], Any]:
    """Returns the conversion by value between two types of as many lanes."""
    dtype = dtype_of(target, op)
    to_bool, to_integer = element_of(target) == I1, is_integer(element_of(target))
    from_integer = is_integer(element_of(source))
    wrap = wrapper(target) if to_integer else None
    limits = integer_limits(target) if to_integer else (0, 0)
    through_float32 = from_integer and dtype.kind != "f"

    def cast(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return numeric.convert(value, dtype)
        if to_bool:
            return bool(value != 0)
        if wrap is None:
            value = _sized(value) if from_integer else value
            # Floats of ml_dtypes cannot be converted from large integers; native code goes by way of float32, too.
            return dtype.type(np.float32(value) if through_float32 else value)
        return wrap(int(value)) if from_integer else numeric.convert_scalar(value, *limits)

    return cast


def _sized(value: Any) -> Any:
    """Returns a Python integer as one of numpy's, which is rounded once where it becomes a float."""
    # numpy's bool cannot be compared with large integers.
    value = int(value)
    return np.int64(value) if -(1 << 63) <= value < 1 << 63 else np.uint64(value)


def _compile_select(c: Compiler, op: SelectOp) -> Step:
    condition, a, b, r = c.slot(op.condition), c.slot(op.true_value), c.slot(op.false_value), c.slot(op.result)
    dtype = dtype_of(op.result.type, op)
    widen = is_vector(op.result.type) and not is_vector(op.condition.type)

    def step(f: Frame) -> None:
        v = f.v
        chosen = v[condition]
        if isinstance(chosen, np.ndarray):
            v[r] = choose(chosen[..., None] if widen else chosen, v[a], v[b], dtype)
        else:
            v[r] = v[a] if chosen else v[b]

    return step


def choose(condition: Array, a: Value, b: Value, dtype: np.dtype[Any]) -> Array:
    """Chooses element by element, in exactly this dtype."""
    return np.where(condition, as_array(a, dtype), as_array(b, dtype))


def _lane_dimension(value: Value, dtype: np.dtype[Any]) -> Array:
    """Returns a scalar value with a last dimension of size 1."""
    return as_array(value, dtype)[..., None]


def _compile_ramp(c: Compiler, op: RampOp) -> Step:
    base, stride, r = c.slot(op.base), c.slot(op.stride), c.slot(op.result)
    dtype, count = dtype_of(op.result.type, op), lanes_of(op.result.type)
    lanes = np.arange(count).astype(dtype)

    def step(f: Frame) -> None:
        f.v[r] = _lane_dimension(f.v[base], dtype) + _lane_dimension(f.v[stride], dtype) * lanes

    return step


def _compile_broadcast(c: Compiler, op: BroadcastOp) -> Step:
    a, r = c.slot(op.value), c.slot(op.result)
    dtype, count = dtype_of(op.result.type, op), lanes_of(op.result.type)

    def step(f: Frame) -> None:
        value = _lane_dimension(f.v[a], dtype)
        f.v[r] = np.broadcast_to(value, (*value.shape[:-1], count))

    return step


def _compile_shuffle(c: Compiler, op: ShuffleOp) -> Step:
    parts = [(c.slot(v), is_vector(v.type)) for v in op.vectors]
    r, dtype = c.slot(op.result), dtype_of(op.result.type, op)
    indices = [i.data for i in op.indices.data]

    def step(f: Frame) -> None:
        pieces = [as_array(f.v[s], dtype) if vector else _lane_dimension(f.v[s], dtype) for s, vector in parts]
        leading = np.broadcast_shapes(*(p.shape[:-1] for p in pieces))
        whole = np.concatenate([np.broadcast_to(p, (*leading, p.shape[-1])) for p in pieces], axis=-1)
        f.v[r] = scalar_or_array(whole[..., indices[0]]) if len(indices) == 1 else whole[..., indices]

    return step


def scalar_or_array(value: Any) -> Value:
    """Returns an array of no dimensions, or a numpy integer, as a scalar."""
    if np.ndim(value):
        return value
    one: Any = value[()] if isinstance(value, np.ndarray) else value
    return one.item() if isinstance(one, np.integer | np.bool_) else one
