"""Arithmetic on scalar expressions by TVM's rules: dtypes are matched, constants fold (TVM, "tir/op/op.cc", "arith/const_fold.h")."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from .. import tir
from .expr import (
    FLOAT_LIMITS,
    INT_LIMITS,
    Apply,
    Call,
    Const,
    Equality,
    Expr,
    ExprLike,
    IfThenElse,
    bits_of,
    const,
    convert,
    fail,
    is_float,
)


def match_types(a: Expr, b: Expr, symbol: str) -> tuple[Expr, Expr]:
    """Both values in one dtype, by TVM's rules: float over integer, wider over narrower, unsigned over signed of one width."""
    x, y = a.dtype, b.dtype
    if x == y:
        return a, b
    if x == "handle" or y == "handle":
        raise fail(f"'{symbol}' cannot combine {x} and {y}")
    if is_float(x) != is_float(y):
        return (a, cast(x, b)) if is_float(x) else (cast(y, a), b)
    width_x, width_y = bits_of(x), bits_of(y)
    if width_x != width_y:
        return (cast(y, a), b) if width_x < width_y else (a, cast(x, b))
    if is_float(x):
        # Two kinds of one width (float16, bfloat16): the right one is converted.
        return a, cast(x, b)
    return (a, cast(x, b)) if x.startswith("uint") else (cast(y, a), b)


def _operands(a: ExprLike, b: ExprLike, symbol: str) -> tuple[Expr, Expr]:
    # A Python int takes the other side's dtype; a float is a float32 to be matched, as in TVM.
    if isinstance(b, int) and not isinstance(b, bool):
        a = convert(a)
        b = _adapted(b, a.dtype)
    elif isinstance(a, int) and not isinstance(a, bool):
        b = convert(b)
        a = _adapted(a, b.dtype)
    else:
        a, b = convert(a), convert(b)
    return (a, b) if a.dtype == b.dtype else match_types(a, b, symbol)


def _adapted(value: int, dtype: str) -> Expr:
    if dtype == "bool":
        return const(value, "int32")
    limits = INT_LIMITS.get(dtype)
    return const(value, dtype) if limits is None or limits[0] <= value <= limits[1] else const(value)


def _folded(value: float, dtype: str) -> Expr | None:
    """The constant, or None where the dtype cannot hold it (its overflow is left to the run)."""
    limits = INT_LIMITS.get(dtype)
    if limits is not None:
        return Const(int(value), dtype) if limits[0] <= value <= limits[1] else None
    if not math.isfinite(value) or abs(value) > FLOAT_LIMITS[dtype]:
        return None
    return const(value, dtype)


def _is_zero(value: Const, negative: bool) -> bool:
    """Whether a constant is 0; of floats, whether it is that of the two zeros which changes no sum (-0) or difference (0)."""
    return value.value == 0 and (not is_float(value.dtype) or (math.copysign(1.0, value.value) < 0) == negative)


def add(a: ExprLike, b: ExprLike) -> Expr:
    """`a + b`."""
    a, b = _operands(a, b, "+")
    if isinstance(a, Const):
        if _is_zero(a, negative=True):
            return b
        if isinstance(b, Const) and (folded := _folded(a.value + b.value, a.dtype)) is not None:
            return folded
    if isinstance(b, Const) and _is_zero(b, negative=True):
        return a
    return Apply(tir.AddOp, (a, b), a.dtype)


def subtract(a: ExprLike, b: ExprLike) -> Expr:
    """`a - b`."""
    a, b = _operands(a, b, "-")
    if isinstance(b, Const):
        if _is_zero(b, negative=False):
            return a
        if isinstance(a, Const) and (folded := _folded(a.value - b.value, a.dtype)) is not None:
            return folded
    return Apply(tir.SubOp, (a, b), a.dtype)


def multiply(a: ExprLike, b: ExprLike) -> Expr:
    """`a * b`."""
    a, b = _operands(a, b, "*")
    if isinstance(a, Const):
        if a.value == 1:
            return b
        # Of floats 0 * b is NaN for infinities and NaN, and -0 for what is below 0.
        if a.value == 0 and not is_float(a.dtype):
            return a
        if isinstance(b, Const) and (folded := _folded(a.value * b.value, a.dtype)) is not None:
            return folded
    if isinstance(b, Const):
        if b.value == 1:
            return a
        if b.value == 0 and not is_float(b.dtype):
            return b
    return Apply(tir.MulOp, (a, b), a.dtype)


def divide(a: ExprLike, b: ExprLike) -> Expr:
    """`a / b` of floats. Integers must name their rounding: floordiv (`//`), truncdiv, indexdiv."""
    a, b = convert(a), convert(b)
    if not is_float(a.dtype) and not is_float(b.dtype):
        raise fail(
            "integer division by '/' is ambiguous", "write // (floordiv), te.truncdiv(a, b), or te.indexdiv(a, b)"
        )
    a, b = match_types(a, b, "/")
    return _quotient(a, b)


def _quotient(a: Expr, b: Expr) -> Expr:
    if isinstance(b, Const) and b.value != 0:
        if b.value == 1:
            return a
        if isinstance(a, Const) and (folded := _folded(a.value / b.value, a.dtype)) is not None:
            return folded
    return Apply(tir.DivOp, (a, b), a.dtype)


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a >= 0) == (b >= 0) else -quotient


def _integer_division(
    op: type[tir.BinaryOp], symbol: str, fold: Callable[[int, int], int], is_remainder: bool
) -> Callable[[ExprLike, ExprLike], Expr]:
    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if is_float(a.dtype):
            raise fail(
                f"{symbol} is for integers, not {a.dtype}", "for floats write a / b, te.floor(a / b) or te.fmod(a, b)"
            )
        if isinstance(b, Const):
            if b.value == 0:
                raise fail("division by zero")
            if b.value == 1:
                return Const(0, a.dtype) if is_remainder else a
            if isinstance(a, Const) and (folded := _folded(fold(int(a.value), int(b.value)), a.dtype)) is not None:
                return folded
        if isinstance(a, Const) and a.value == 0:
            return a
        return Apply(op, (a, b), a.dtype)

    return build


floordiv = _integer_division(tir.FloorDivOp, "floordiv", lambda a, b: a // b, False)
floormod = _integer_division(tir.FloorModOp, "floormod", lambda a, b: a % b, True)
truncdiv = _integer_division(tir.DivOp, "truncdiv", _truncated, False)
truncmod = _integer_division(tir.ModOp, "truncmod", lambda a, b: a - b * _truncated(a, b), True)


def _extremum(
    op: type[tir.BinaryOp], symbol: str, pick: Callable[[float, float], float]
) -> Callable[[ExprLike, ExprLike], Expr]:
    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(pick(a.value, b.value), a.dtype)
        return Apply(op, (a, b), a.dtype)

    return build


# As native code compares: of a NaN and a number, and of two zeros, the second.
minimum = _extremum(tir.MinOp, "min", lambda a, b: a if a < b else b)
maximum = _extremum(tir.MaxOp, "max", lambda a, b: a if a > b else b)


def _comparison(
    op: type[tir.CompareOp], symbol: str, compare: Callable[[float, float], bool]
) -> Callable[[ExprLike, ExprLike], Expr]:
    node = Equality if op in (tir.EqOp, tir.NeOp) else Apply

    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(int(compare(a.value, b.value)), "bool")
        return node(op, (a, b), "bool")

    return build


less = _comparison(tir.LtOp, "<", operator.lt)
less_equal = _comparison(tir.LeOp, "<=", operator.le)
greater = _comparison(tir.GtOp, ">", operator.gt)
greater_equal = _comparison(tir.GeOp, ">=", operator.ge)
equal = _comparison(tir.EqOp, "==", operator.eq)
not_equal = _comparison(tir.NeOp, "!=", operator.ne)


def as_condition(value: ExprLike, where: str) -> Expr:
    """A value that must be bool; `where` says what it is for."""
    expr = convert(value)
    if expr.dtype != "bool":
        raise fail(f"{where} must be bool, not {expr.dtype}", "compare, as in x > 0")
    return expr


def logical_and(a: ExprLike, b: ExprLike) -> Expr:
    """`a and b`, both evaluated."""
    a, b = as_condition(a, "an operand of 'and'"), as_condition(b, "an operand of 'and'")
    if isinstance(a, Const):
        return b if a.value else a
    if isinstance(b, Const):
        return a if b.value else b
    return Apply(tir.AndOp, (a, b), "bool")


def logical_or(a: ExprLike, b: ExprLike) -> Expr:
    """`a or b`, both evaluated."""
    a, b = as_condition(a, "an operand of 'or'"), as_condition(b, "an operand of 'or'")
    if isinstance(a, Const):
        return a if a.value else b
    if isinstance(b, Const):
        return b if b.value else a
    return Apply(tir.OrOp, (a, b), "bool")


def logical_not(a: ExprLike) -> Expr:
    """`not a`."""
    a = as_condition(a, "the operand of 'not'")
    return Const(1 - int(a.value), "bool") if isinstance(a, Const) else Apply(tir.NotOp, (a,), "bool")


def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """One of two values, both of which are evaluated."""
    chosen = as_condition(condition, "the condition of Select")
    a, b = _operands(true_value, false_value, "Select")
    return Apply(tir.SelectOp, (chosen, a, b), a.dtype)


def if_then_else(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """One of two values; only the chosen one is evaluated, so that the other may read out of bounds."""
    chosen = as_condition(condition, "the condition of if_then_else")
    # Here a Python int is an int32 to be matched, as in TVM: it does not take the other side's dtype.
    a, b = match_types(convert(true_value), convert(false_value), "if_then_else")
    if isinstance(chosen, Const):
        return a if chosen.value else b
    return IfThenElse(chosen, a, b)


def cast(dtype: str, value: ExprLike) -> Expr:
    """`value` converted to `dtype`; a float becomes the integer toward zero."""
    expr = convert(value)
    if expr.dtype == dtype:
        return expr
    if dtype not in INT_LIMITS and dtype not in FLOAT_LIMITS:
        raise fail(f"no value can be cast to dtype '{dtype}'", "dtypes are written like float32, int64, uint8 or bool")
    if isinstance(expr, Const):
        if is_float(dtype):
            if not math.isfinite(expr.value):
                return Const(float(expr.value), dtype)
            if (folded := _folded(float(expr.value), dtype)) is not None:
                return folded
        elif isinstance(expr.value, int):
            if dtype == "bool":
                return Const(int(expr.value != 0), dtype)
            if (folded := _folded(expr.value, dtype)) is not None:
                return folded
    return Apply(tir.CastOp, (expr,), dtype)


def call(intrinsic: str, operands: tuple[object, ...], dtype: str) -> Expr:
    """A call of the intrinsic that TVMScript writes `T.intrinsic(operands)`."""
    return Call(intrinsic, operands, dtype)


def _bitwise(intrinsic: str, symbol: str, fold: Callable[[int, int], int]) -> Callable[[ExprLike, ExprLike], Expr]:
    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if is_float(a.dtype):
            raise fail(f"'{symbol}' is for integers and bool, not {a.dtype}")
        if isinstance(b, Const):
            bits = bits_of(a.dtype)
            if intrinsic.startswith("shift") and not 0 <= b.value < bits:
                raise fail(
                    f"a shift of {a.dtype} by {b.value} is undefined", f"it has {bits} bits: shift by 0 to {bits - 1}"
                )
            if isinstance(a, Const) and (folded := _folded(fold(int(a.value), int(b.value)), a.dtype)) is not None:
                return folded
        return Call(intrinsic, (a, b), a.dtype)

    return build


bitwise_and = _bitwise("bitwise_and", "&", lambda a, b: a & b)
bitwise_or = _bitwise("bitwise_or", "|", lambda a, b: a | b)
bitwise_xor = _bitwise("bitwise_xor", "^", lambda a, b: a ^ b)
left_shift = _bitwise("shift_left", "<<", lambda a, b: a << b)
right_shift = _bitwise("shift_right", ">>", lambda a, b: a >> b)


def bitwise_not(a: ExprLike) -> Expr:
    """All bits inverted."""
    expr = convert(a)
    if is_float(expr.dtype):
        raise fail(f"'~' is for integers and bool, not {expr.dtype}")
    return Call("bitwise_not", (expr,), expr.dtype)


def distance(low: Expr, high: Expr) -> Expr:
    """`high - low`, where `low + n` less `low` is n."""
    if isinstance(high, Apply) and high.op is tir.AddOp:
        first = high.args[0]
        if first is low or (isinstance(first, Const) and isinstance(low, Const) and first.value == low.value):
            return high.args[1]
    return subtract(high, low)
