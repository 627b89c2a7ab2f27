"""Defines functions of TVM's `te` and `tir` on scalars: mathematics, bits, limits and conditions."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..tir import node as ex
from ..tir.node import (
    Const,
    Expr,
    ExprLike,
    FloatImm,
    IntImm,
    argument,
    bits_of,
    call,
    cast,
    const,
    convert,
    fail,
    is_float,
)
from ..tir.scalar_ops import INTRINSICS, Operands, ScalarOp


def _unary(row: ScalarOp) -> Callable[[ExprLike], Expr]:
    fold = row.floats

    def build(x: ExprLike) -> Expr:
        x = convert(x)
        if fold is not None and not is_float(x.dtype):
            return x
        if fold is not None and isinstance(x, Const) and math.isfinite(x.value):
            return const(fold(x.value), x.dtype)
        return call(row.name, (x,), x.dtype)

    build.__name__ = row.name
    build.__doc__ = f"`T.{row.name}(x)`, of x's dtype{'' if fold is None else '; an integer stays as it is'}."
    return build


def abs(x: ExprLike) -> Expr:
    """Returns the absolute value."""
    x = convert(x)
    if is_float(x.dtype):
        return const(math.fabs(x.value), x.dtype) if isinstance(x, Const) else call("fabs", (x,), x.dtype)
    if x.dtype.startswith("uint") or x.dtype == "bool":
        return x
    if isinstance(x, Const):
        return const(math.fabs(x.value), x.dtype)
    return ex.Select(x >= 0, x, -x)


fabs = abs


def isnan(x: ExprLike) -> Expr:
    """Returns whether x is NaN; False for integers."""
    x = convert(x)
    if not is_float(x.dtype):
        return IntImm("bool", 0)
    if isinstance(x, Const):
        return IntImm("bool", int(math.isnan(x.value)))
    return call("isnan", (cast("float32", x) if bits_of(x.dtype) == 16 else x,), "bool")


def isinf(x: ExprLike) -> Expr:
    """Returns whether x is infinite; False for integers."""
    x = convert(x)
    if not is_float(x.dtype):
        return IntImm("bool", 0)
    return ex.logical_and(ex.equal(abs(x), infinity(x.dtype)), ex.logical_not(isnan(x)))


def isfinite(x: ExprLike) -> Expr:
    """Returns whether x is neither infinite nor NaN; True for integers."""
    x = convert(x)
    if not is_float(x.dtype):
        return IntImm("bool", 1)
    return ex.logical_and(ex.logical_not(isinf(x)), ex.logical_not(isnan(x)))


def _binary(name: str, symbol: str) -> Callable[[ExprLike, ExprLike], Expr]:
    def build(x: ExprLike, y: ExprLike) -> Expr:
        a, b = ex.match_types(convert(x), convert(y), symbol)
        return call(name, (a, b), a.dtype)

    build.__name__ = symbol
    build.__doc__ = f"`T.{name}(x, y)`, both in one dtype."
    return build


def _of_table() -> dict[str, Callable[..., Expr]]:
    """Returns the functions that rows of `tir.scalar_ops` alone describe, by their name in TE."""
    made: dict[str, Callable[..., Expr]] = {}
    for row in INTRINSICS.values():
        name = row.te_name
        if name == "abs" or not name or row.operands not in (Operands.FLOATS, Operands.NUMBERS):
            continue
        made[name] = _unary(row) if row.arity == 1 else _binary(row.name, name)
    return made | {"pow": made["power"]}


OF_TABLE = _of_table()
"""Mathematics by name: `exp`, `floor`, `power`, `nextafter`, …"""


def ldexp(x: ExprLike, exponent: ExprLike) -> Expr:
    """Returns x · 2^exponent, for an integer or float exponent.

    The power is rounded to x's dtype before the product, so that it may be infinite.
    """
    x = convert(x)
    return call("ldexp", (x, convert(exponent)), x.dtype)


def _integer(x: ExprLike, name: str) -> Expr:
    x = convert(x)
    if is_float(x.dtype):
        raise fail(f"{name} is for integers, not {x.dtype}")
    return x


def popcount(x: ExprLike) -> Expr:
    """Counts the set bits of x, in x's dtype."""
    x = _integer(x, "popcount")
    return call("popcount", (x,), x.dtype)


def clz(x: ExprLike) -> Expr:
    """Counts the zero bits above the highest set bit, as int32; undefined for 0."""
    return call("clz", (_integer(x, "clz"),), "int32")


def q_multiply_shift(x: ExprLike, y: ExprLike, q: ExprLike, s: ExprLike) -> Expr:
    """Returns round(x · y · 2^(s - q)) of int32 in fixed point, where y has q fractional bits."""
    return call("q_multiply_shift", tuple(map(convert, (x, y, q, s))), "int32")


def q_multiply_shift_per_axis(
    x: ExprLike,
    y: ExprLike,
    ls: ExprLike,
    rs: ExprLike,
    q: ExprLike,
    is_lshift_required: ExprLike,
    is_rshift_required: ExprLike,
) -> Expr:
    """As `q_multiply_shift`, with shifts left before and right after the product, if required."""
    arguments = (x, y, ls, rs, q, is_lshift_required, is_rshift_required)
    return call("q_multiply_shift_per_axis", tuple(map(convert, arguments)), "int32")


def likely(condition: ExprLike) -> Expr:
    """Returns the condition with the hint that it is mostly true."""
    condition = convert(condition)
    return condition if isinstance(condition, Const) else call("likely", (condition,), condition.dtype)


def reinterpret(dtype: str, value: ExprLike) -> Expr:
    """Returns the bits of `value` taken for a `dtype` of the same width."""
    value = convert(value)
    if dtype not in ex.INT_LIMITS and dtype not in ex.FLOAT_LIMITS:
        raise fail(f"no value can be reinterpreted as dtype '{dtype}'")
    if bits_of(dtype) != bits_of(value.dtype):
        raise fail(
            f"reinterpret keeps the width: {value.dtype} has {bits_of(value.dtype)} bits, {dtype} has {bits_of(dtype)}"
        )
    return call("reinterpret", (value,), dtype)


def min_value(dtype: str) -> Expr:
    """Returns the least finite value of a dtype."""
    if dtype in ex.INT_LIMITS:
        return IntImm(dtype, ex.INT_LIMITS[dtype][0])
    if dtype in ex.FLOAT_LIMITS:
        return const(-ex.FLOAT_LIMITS[dtype], dtype)
    raise fail(f"dtype '{dtype}' has no least value")


def max_value(dtype: str) -> Expr:
    """Returns the greatest finite value of a dtype."""
    if dtype in ex.INT_LIMITS:
        return IntImm(dtype, ex.INT_LIMITS[dtype][1])
    if dtype in ex.FLOAT_LIMITS:
        return const(ex.FLOAT_LIMITS[dtype], dtype)
    raise fail(f"dtype '{dtype}' has no greatest value")


def infinity(dtype: str) -> Expr:
    """Returns positive infinity of a float dtype."""
    if not is_float(dtype):
        raise fail(f"dtype '{dtype}' has no infinity")
    return FloatImm(dtype, math.inf)


def ceildiv(a: ExprLike, b: ExprLike) -> Expr:
    """Returns a / b rounded up, for b > 0."""
    a, b = convert(a), convert(b)
    return ex.floordiv(a + (b - 1), b)


def call_extern(dtype: str, name: str, *args: object) -> Expr:
    """Returns a call of the C function `name`; in an extern's body buffers may be passed."""
    return call("call_extern", _arguments((name, *args)), dtype)


def call_pure_extern(dtype: str, name: str, *args: object) -> Expr:
    """Returns a call of the C function `name`, which has no effects."""
    return call("call_pure_extern", _arguments((name, *args)), dtype)


def call_packed(name: str, *args: object) -> Expr:
    """Returns a call of the registered function `name`; buffers are passed as arrays."""
    return call("call_packed", _arguments((name, *args)), "int32")


def call_intrin(dtype: str, name: str, *args: object) -> Expr:
    """Returns a call of the intrinsic "tir.exp" or "exp"."""
    return call(name.removeprefix("tir."), _arguments(args), dtype)


def _arguments(args: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(map(argument, args))
