"""Scalar ops as closures: arithmetic exactly in the op's dtype, on Python ints, numpy floats or arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ... import numeric
from ..arithmetic import (
    AddOp,
    AndOp,
    BinaryOp,
    CompareOp,
    DivOp,
    EqOp,
    FloorDivOp,
    FloorModOp,
    GeOp,
    GtOp,
    LeOp,
    LtOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NeOp,
    NotOp,
    OrOp,
    SubOp,
)
from ..expr import BroadcastOp, CastOp, ConstOp, RampOp, SelectOp, ShuffleOp
from ..types import I1, element_of, lanes_of
from .frame import Frame, Step
from .values import Array, Value, as_array, dtype_of, integer_limits, is_integer, is_vector, scalar_of, wrapper

if TYPE_CHECKING:
    from .compiler import Compiler

Binary = Callable[[Any, Any], Any]

_COMPARE: dict[type[CompareOp], Binary] = {
    EqOp: operator.eq,
    NeOp: operator.ne,
    LtOp: operator.lt,
    LeOp: operator.le,
    GtOp: operator.gt,
    GeOp: operator.ge,
}


def constant(op: ConstOp) -> Value:
    """The value of an immediate."""
    match op.value:
        case StringAttr():
            return op.value.data
        case IntegerAttr() | FloatAttr():
            return scalar_of(op.value.value.data, op.result.type, op)


def compile_scalar(c: Compiler, op: Operation) -> Step | None:
    """The closure of a pure scalar or vector op; None for an op that is none of these."""
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
    """What the op computes, in its operands' dtype."""
    type = element_of(op.lhs.type)
    if isinstance(op, CompareOp):
        return _COMPARE[op.__class__]
    if isinstance(op, AndOp | OrOp):
        return _and if isinstance(op, AndOp) else _or
    return _integer_function(op, type) if is_integer(type) else _float_function(op)


def _and(a: Any, b: Any) -> Any:
    return np.logical_and(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a) and bool(b)


def _or(a: Any, b: Any) -> Any:
    return np.logical_or(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else bool(a) or bool(b)


def _integer_function(op: BinaryOp, type: Attribute) -> Binary:
    wrap = wrapper(type)
    if type == I1:
        wrap = bool
    scalar: Binary
    arrays: Binary
    match op:
        case AddOp():
            scalar = arrays = operator.add
        case SubOp():
            scalar = arrays = operator.sub
        case MulOp():
            scalar = arrays = operator.mul
        case FloorDivOp():
            scalar, arrays = _floor_quotient, np.floor_divide
        case FloorModOp():
            scalar, arrays = _floor_remainder, np.remainder
        case DivOp():
            scalar, arrays = _truncated_quotient, _array_truncated_quotient
        case ModOp():
            scalar, arrays = _truncated_remainder, _array_truncated_remainder
        case MinOp():
            scalar, arrays = min, np.minimum
        case _:
            scalar, arrays = max, np.maximum

    if isinstance(op, MinOp | MaxOp):

        def pick(a: Any, b: Any) -> Any:
            return arrays(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else scalar(a, b)

        return pick

    def function(a: Any, b: Any) -> Any:
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
            return arrays(a, b)
        return wrap(scalar(a, b))

    return function


# An integer divided by 0, and what that leaves, is 0: as numpy has it for arrays, and native code.
def _floor_quotient(a: int, b: int) -> int:
    return a // b if b else 0


def _floor_remainder(a: int, b: int) -> int:
    return a % b if b else 0


def _truncated_quotient(a: int, b: int) -> int:
    quotient = abs(a) // abs(b) if b else 0
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncated_remainder(a: int, b: int) -> int:
    return a - b * _truncated_quotient(a, b) if b else 0


def _array_truncated_remainder(a: Any, b: Any) -> Array:
    return np.fmod(a, b)


def _array_truncated_quotient(a: Any, b: Any) -> Array:
    return (a - np.fmod(a, b)) // b


def _float_function(op: BinaryOp) -> Binary:
    match op:
        case AddOp():
            return operator.add
        case SubOp():
            return operator.sub
        case MulOp():
            return operator.mul
        case DivOp():
            return _quotient
        case ModOp():
            return numeric.trunc_mod
        case FloorDivOp():
            return _floored_quotient
        case FloorModOp():
            return numeric.floor_mod
        case MinOp():
            return numeric.smaller
        case _:
            return numeric.larger


def _quotient(a: Any, b: Any) -> Any:
    return a / b


def _floored_quotient(a: Any, b: Any) -> Any:
    return np.floor(a / b)


def caster(source: Attribute, target: Attribute, op: Operation) -> Callable[[Any], Any]:
    """The conversion by value between two types of as many lanes."""
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
            # Floats of ml_dtypes cannot be made of large integers; native code goes by way of float32, too.
            return dtype.type(np.float32(value) if through_float32 else value)
        return wrap(int(value)) if from_integer else numeric.convert_scalar(value, *limits)

    return cast


def _sized(value: Any) -> Any:
    """A Python integer as one of numpy's, which is rounded once where it becomes a float."""
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
    """Element by element, in exactly this dtype."""
    return np.where(condition, as_array(a, dtype), as_array(b, dtype))


def _lane_dimension(value: Value, dtype: np.dtype[Any]) -> Array:
    """A scalar value with a last dimension of size 1."""
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
    """An array of no dimensions, or a numpy integer, as the scalar that it is."""
    if np.ndim(value):
        return value
    one: Any = value[()] if isinstance(value, np.ndarray) else value
    return one.item() if isinstance(one, np.integer | np.bool_) else one
