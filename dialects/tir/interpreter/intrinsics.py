"""What `tir.call` computes: mathematics, bit operations and tests, on scalars and arrays alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from ....support.diagnostics import error_at
from ..types import element_of, is_unsigned, lanes_of, type_to_dtype
from .scalar import scalar_or_array
from .values import Array, as_array, dtype_of, is_integer, is_vector, wrapper

Function = Callable[..., Any]


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A Python function of a float on arrays, in float64, rounded to the argument's dtype."""
    raw = np.frompyfunc(function, 1, 1)

    def apply(value: Any) -> Any:
        array = np.asarray(value)
        return scalar_or_array(np.asarray(raw(array.astype(np.float64)), np.float64).astype(array.dtype))

    return apply


def _in_float64(function: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """A numpy expression of several roundings, computed in float64 and rounded once."""

    def apply(value: Any) -> Any:
        array = np.asarray(value)
        return scalar_or_array(function(array.astype(np.float64)).astype(array.dtype))

    return apply


def _half_away_from_zero(value: Any) -> Any:
    if not _exact(value):
        return value
    # Not floor(|x| + 0.5): the sum rounds up for the number just below 0.5.
    whole, one = np.trunc(value), np.asarray(value).dtype.type
    return whole + np.copysign(np.where(np.abs(value - whole) >= one(0.5), one(1), one(0)), value)


def _exact(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind == "f") or np.asarray(value).dtype.name == "bfloat16"


UNARY: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": _in_float64(lambda a: np.power(10.0, a)),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": _in_float64(lambda a: 1.0 / np.sqrt(a)),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _elementwise(math.erf),
    "sigmoid": _in_float64(lambda a: 1.0 / (1.0 + np.exp(-a))),
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": _half_away_from_zero,
    "nearbyint": np.rint,
    "fabs": np.abs,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}
BINARY: dict[str, Function] = {
    "pow": np.power,
    "power": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "ldexp": np.ldexp,
}
# C's names for them, as `call_extern` and `call_pure_extern` use; those of float end in "f".
_C_NAMES = {"rint": "nearbyint", "tgamma": "gamma"}
EXTERNS: dict[str, Function] = {
    **UNARY,
    **BINARY,
    "rint": np.rint,
    "cbrt": np.cbrt,
    "expm1": np.expm1,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "max": np.maximum,
    "min": np.minimum,
    "fma": lambda a, b, d: a * b + d,
    "erfc": _elementwise(math.erfc),
    "tgamma": _elementwise(lambda a: math.gamma(a) if a > 0 or a != math.floor(a) else math.nan),
    "lgamma": _elementwise(lambda a: math.lgamma(a) if a > 0 or a != math.floor(a) else math.inf),
    "abs": np.abs,
}


def extern_function(name: str) -> Function | None:
    """The mathematical function of C's library (or an LLVM intrinsic) of this name; None for another."""
    if name.startswith("llvm."):
        name = name.removeprefix("llvm.").split(".")[0]
    if name in EXTERNS:
        return EXTERNS[name]
    return EXTERNS.get(name[:-1]) if name.endswith("f") else None


EXTERN_NAMES = frozenset([*EXTERNS, *(f"{name}f" for name in EXTERNS)])


def integer_call(name: str, result: Attribute, operand: Attribute, op: Operation) -> Function | None:
    """The function of a call on integers; None when `name` is none."""
    type = element_of(result)
    if not is_integer(type):
        return None
    wrap, bits = wrapper(type), dtype_of(operand, op).itemsize * 8
    mask = (1 << bits) - 1
    unsigned = is_unsigned(operand)
    match name:
        case "bitwise_and":
            return lambda a, b: a & b
        case "bitwise_or":
            return lambda a, b: a | b
        case "bitwise_xor":
            return lambda a, b: a ^ b
        case "bitwise_not":
            return lambda a: ~a if isinstance(a, np.ndarray) or not unsigned else ~a & mask
        case "shift_left":
            return lambda a, b: a << b if _any_array(a, b) else wrap(a << b)
        case "shift_right":
            return lambda a, b: a >> b
        case "abs":
            return lambda a: np.abs(a) if isinstance(a, np.ndarray) else wrap(abs(a))
        case "popcount":
            return lambda a: (
                np.bitwise_count(_unsigned(a)).astype(dtype_of(result, op))
                if isinstance(a, np.ndarray)
                else (a & mask).bit_count()
            )
        case "clz":
            return lambda a: _leading_zeros(a, bits, mask, dtype_of(result, op))
        case "q_multiply_shift":
            return lambda a, b, q, s: _q_multiply_shift(a, b, q, s, dtype_of(result, op))
        case "q_multiply_shift_per_axis":
            return lambda a, b, left, right, q, *flags: _q_multiply_shift_per_axis(
                a, b, left, right, q, flags, dtype_of(result, op)
            )
        case "ceildiv":
            return lambda a, b: -(-a // b)
        case "pow" | "power":
            return lambda a, b: np.power(a, b) if _any_array(a, b) else wrap(a**b)
        case _:
            return None


def _any_array(*values: Any) -> bool:
    return any(isinstance(v, np.ndarray) for v in values)


def _unsigned(value: Array) -> Array:
    return value.view(f"uint{value.dtype.itemsize * 8}")


_BIT_LENGTH = np.frompyfunc(int.bit_length, 1, 1)


def _leading_zeros(value: Any, bits: int, mask: int, dtype: np.dtype[Any]) -> Any:
    if isinstance(value, np.ndarray):
        return (bits - _BIT_LENGTH(_unsigned(value).astype(object))).astype(dtype)
    return bits - (value & mask).bit_length()


def _q_multiply_shift(a: Any, b: Any, q: Any, s: Any, dtype: np.dtype[Any]) -> Any:
    """Fixed point: round(a * b * 2^(s - q)), ties toward plus infinity; TVM's documentation of the intrinsic."""
    a, b, q, s = (as_array(v, np.dtype(np.int64)) for v in (a, b, q, s))
    total = q + np.maximum(-s, 0)
    return _rounded_shift((a << np.maximum(s, 0)) * b, total, dtype)


def _q_multiply_shift_per_axis(a: Any, b: Any, left: Any, right: Any, q: Any, flags: Any, dtype: np.dtype[Any]) -> Any:
    """As `q_multiply_shift`, with the shifts to the left and to the right given apart; flags say which are in force."""
    a, b, left, right, q = (as_array(v, np.dtype(np.int64)) for v in (a, b, left, right, q))
    if not flags or bool(flags[0]):
        a = a << left
    total = q + right if len(flags) < 2 or bool(flags[1]) else q
    return _rounded_shift(a * b, total, dtype)


def _rounded_shift(product: Array, total: Array, dtype: np.dtype[Any]) -> Any:
    half = np.int64(1) << np.maximum(total - 1, 0)
    return scalar_or_array(((product + np.where(total > 0, half, 0)) >> total).astype(dtype))


def reinterpret(source: Attribute, target: Attribute, op: Operation) -> Function:
    """The same bits as another type, of as many bytes; lanes may become fewer and wider, or more and narrower."""
    before, after = dtype_of(source, op), dtype_of(target, op)
    if before.itemsize * lanes_of(source) != after.itemsize * lanes_of(target):
        raise error_at(
            op, f"T.reinterpret keeps the bits: {type_to_dtype(source)} is not as wide as {type_to_dtype(target)}"
        )

    def apply(value: Any) -> Any:
        array = np.ascontiguousarray(as_array(value, before))
        array = array.reshape(np.shape(value) if is_vector(source) else (*np.shape(value), 1)).view(after)
        return array if is_vector(target) else scalar_or_array(array[..., 0])

    return apply


def float_call(name: str, operand: Attribute, op: Operation) -> Function | None:
    """The function of a call on floats, or a test of one; None when `name` is none."""
    function = UNARY.get(name) or BINARY.get(name)
    if name == "abs":
        function = np.abs
    if name == "fma":
        function = EXTERNS["fma"]
    if function is None:
        return None
    if not is_integer(element_of(operand)) and dtype_of(operand, op).kind not in "f":
        # bfloat16 and float8: numpy's functions give them float32 results now and then.
        dtype, inner, test = dtype_of(operand, op), function, name.startswith("is")
        return lambda *values: (
            inner(*(as_array(v, np.dtype(np.float32)) for v in values))
            if test
            else scalar_or_array(np.asarray(inner(*(as_array(v, np.dtype(np.float32)) for v in values))).astype(dtype))
        )
    return function
