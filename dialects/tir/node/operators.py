"""Builds scalar expressions: operators match the dtypes of operands and fold constants.

    add(x_int8, y_int32)     Add(Cast("int32", x), y)
    multiply(x, 1)           x

Source: TVM 0.16, "tir/op/op.cc" and "arith/const_fold.h".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from ... import tir
from ...arith.const_fold import NumberType, Operand, fold, fold_cast, takes_right
from ..types import FLOAT_LIMITS
from .buffer import Broadcast, element_dtype
from .expr import (
    BUILD,
    INT_LIMITS,
    Apply,
    Choice,
    Const,
    Expr,
    ExprLike,
    FloatImm,
    IntImm,
    apply,
    bits_of,
    call,
    const,
    convert,
    fail,
    is_float,
    lanes_of,
    with_lanes,
)


def immediate(value: int | float, dtype: str) -> Const:
    """Returns a number that the dtype holds as a constant."""
    return FloatImm(dtype, value) if is_float(dtype) else IntImm(dtype, int(value))


_Build: TypeAlias = "Callable[[ExprLike, ExprLike], Expr]"


def match_types(a: Expr, b: Expr, symbol: str) -> tuple[Expr, Expr]:
    """Casts both values to one dtype: float over integer, wider over narrower, unsigned over signed."""
    x, y = a.dtype, b.dtype
    if x == y:
        return a, b
    if x == "handle" or y == "handle":
        raise fail(f"'{symbol}' cannot combine {x} and {y}")
    if (lanes := lanes_of(x)) != (others := lanes_of(y)):
        if lanes > 1 and others > 1:
            raise fail(f"'{symbol}' cannot combine {x} and {y}: the number of lanes differs")
        return match_types(Broadcast(a, others) if lanes == 1 else a, Broadcast(b, lanes) if others == 1 else b, symbol)
    return (cast(y, a), b) if takes_right(_number_type(x), _number_type(y)) else (a, cast(x, b))


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
    if (lanes := lanes_of(dtype)) > 1:
        return Broadcast(_adapted(value, element_dtype(dtype)), lanes)
    limits = INT_LIMITS.get(dtype)
    if limits is not None and limits[0] <= value <= limits[1]:
        return IntImm(dtype, int(value))
    return const(value, dtype if limits is None else None)


@cache
def _number_type(dtype: str) -> NumberType:
    """Returns TVM's dtype as constant folding asks for it."""
    return NumberType(is_float(dtype), bits_of(element_dtype(dtype)), dtype.startswith("int"))


def _made(make: Callable[..., Expr], op: type[tir.BinaryOp] | str, a: Expr, b: Expr, dtype: str) -> Expr:
    """Returns `make(op, (a, b), dtype)`, folded if the operands, both of one dtype, are constants.

    Raises MirError for an integer division by the constant 0.
    """
    x = a.value if isinstance(a, Const) else None
    y = b.value if isinstance(b, Const) else None
    if x is None and y is None:
        return make(op, (a, b), dtype)
    try:
        folded = fold(op if isinstance(op, str) else op.name, x, y, _number_type(a.dtype))
    except ZeroDivisionError:
        raise fail("division by zero") from None
    if folded is None:
        return make(op, (a, b), dtype)
    return a if folded is Operand.LEFT else b if folded is Operand.RIGHT else immediate(folded, dtype)


def _operator(op: type[tir.BinaryOp], symbol: str, doc: str, *, integers: bool = False) -> _Build:
    """Returns the function that builds `a op b` of operands cast to one dtype; `integers` refuses floats."""
    compares = issubclass(op, tir.CompareOp)

    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if integers and is_float(a.dtype):
            raise fail(
                f"{symbol} is for integers, not {a.dtype}", "for floats write a / b, te.floor(a / b) or te.fmod(a, b)"
            )
        return _made(apply, op, a, b, with_lanes("bool", lanes_of(a.dtype)) if compares else a.dtype)

    build.__doc__ = doc
    BUILD[op] = build
    return build


add = _operator(tir.AddOp, "+", "`a + b`.")
subtract = _operator(tir.SubOp, "-", "`a - b`.")
multiply = _operator(tir.MulOp, "*", "`a * b`.")
floordiv = _operator(tir.FloorDivOp, "floordiv", "a / b rounded down.", integers=True)
floormod = _operator(tir.FloorModOp, "floormod", "The remainder of `floordiv`.", integers=True)
truncdiv = _operator(tir.DivOp, "truncdiv", "a / b rounded toward zero.", integers=True)
truncmod = _operator(tir.ModOp, "truncmod", "The remainder of `truncdiv`.", integers=True)
minimum = _operator(tir.MinOp, "min", "The smaller of both.")
maximum = _operator(tir.MaxOp, "max", "The larger of both.")
less = _operator(tir.LtOp, "<", "`a < b`.")
less_equal = _operator(tir.LeOp, "<=", "`a <= b`.")
greater = _operator(tir.GtOp, ">", "`a > b`.")
greater_equal = _operator(tir.GeOp, ">=", "`a >= b`.")
equal = _operator(tir.EqOp, "==", "`a == b`.")
not_equal = _operator(tir.NeOp, "!=", "`a != b`.")


def divide(a: ExprLike, b: ExprLike) -> Expr:
    """Returns `a / b` of floats. Integers must name their rounding: floordiv (`//`), truncdiv, indexdiv."""
    a, b = convert(a), convert(b)
    if not is_float(a.dtype) and not is_float(b.dtype):
        raise fail(
            "integer division by '/' is ambiguous", "write // (floordiv), te.truncdiv(a, b), or te.indexdiv(a, b)"
        )
    a, b = match_types(a, b, "/")
    return _made(apply, tir.DivOp, a, b, a.dtype)


def _quotient(a: Expr, b: Expr) -> Expr:
    return divide(a, b) if is_float(a.dtype) else truncdiv(a, b)


BUILD[tir.DivOp] = _quotient


def as_condition(value: ExprLike, where: str) -> Expr:
    """Returns a value, checked to be bool; `where` names its use in the error."""
    expr = convert(value)
    if expr.dtype != "bool":
        raise fail(f"{where} must be bool, not {expr.dtype}", "compare, as in x > 0")
    return expr


def logical_and(a: ExprLike, b: ExprLike) -> Expr:
    """Returns `a and b`, both evaluated."""
    a, b = as_condition(a, "an operand of 'and'"), as_condition(b, "an operand of 'and'")
    return _made(apply, tir.AndOp, a, b, "bool")


def logical_or(a: ExprLike, b: ExprLike) -> Expr:
    """Returns `a or b`, both evaluated."""
    a, b = as_condition(a, "an operand of 'or'"), as_condition(b, "an operand of 'or'")
    return _made(apply, tir.OrOp, a, b, "bool")


def logical_not(a: ExprLike) -> Expr:
    """Returns `not a`."""
    a = as_condition(a, "the operand of 'not'")
    return IntImm("bool", 1 - int(a.value)) if isinstance(a, Const) else apply(tir.NotOp, (a,), "bool")


def select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """Returns one of two values, both of which are evaluated."""
    chosen = as_condition(condition, "the condition of Select")
    a, b = _operands(true_value, false_value, "Select")
    return apply(tir.SelectOp, (chosen, a, b), a.dtype)


BUILD.update({"/": divide, tir.AndOp: logical_and, tir.OrOp: logical_or, tir.NotOp: logical_not, tir.SelectOp: select})


def if_then_else(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """Returns one of two values; only it is evaluated, so that the other may read out of bounds."""
    chosen = as_condition(condition, "the condition of if_then_else")
    # Here a Python int is an int32 to be matched, as in TVM: it does not take the other side's dtype.
    a, b = match_types(convert(true_value), convert(false_value), "if_then_else")
    if isinstance(chosen, Const):
        return a if chosen.value else b
    return Choice(chosen, a, b)


_PLAIN = {"int": "int32", "float": "float32", "uint": "uint32"}
"""The dtypes of words without a width."""


def cast(dtype: str, value: ExprLike) -> Expr:
    """Returns `value` converted to `dtype`; a float becomes the integer toward zero."""
    expr, dtype = convert(value), _PLAIN.get(dtype, dtype)
    if expr.dtype == dtype:
        return expr
    if (lanes := lanes_of(dtype)) > 1 and element_dtype(dtype) in (*INT_LIMITS, *FLOAT_LIMITS):
        if lanes_of(expr.dtype) == 1:
            return Broadcast(cast(element_dtype(dtype), expr), lanes)
        if lanes_of(expr.dtype) == lanes:
            return apply(tir.CastOp, (expr,), dtype)
        raise fail(f"a value of {expr.dtype} cannot be cast to {dtype}: the number of lanes differs")
    if dtype not in INT_LIMITS and dtype not in FLOAT_LIMITS:
        raise fail(f"no value can be cast to dtype '{dtype}'", "dtypes are written like float32, int64, uint8 or bool")
    if isinstance(expr, Const):
        folded = fold_cast(expr.value, _number_type(dtype))
        if isinstance(folded, int):
            return immediate(folded, dtype)
        # A float that the dtype does not hold becomes infinity when it is converted.
        if folded is not None and not abs(folded) > FLOAT_LIMITS[dtype]:
            return const(folded, dtype)
        if folded is not None and not math.isfinite(folded):
            return immediate(folded, dtype)
    return apply(tir.CastOp, (expr,), dtype)


def _bitwise(intrinsic: str, symbol: str) -> _Build:
    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if is_float(a.dtype):
            raise fail(f"'{symbol}' is for integers and bool, not {a.dtype}")
        bits = bits_of(element_dtype(a.dtype))
        if isinstance(b, Const) and intrinsic.startswith("shift") and not 0 <= b.value < bits:
            raise fail(
                f"a shift of {a.dtype} by {b.value} is undefined", f"it has {bits} bits: shift by 0 to {bits - 1}"
            )
        return _made(call, intrinsic, a, b, a.dtype)

    return build


bitwise_and, bitwise_or, bitwise_xor = (
    _bitwise("bitwise_and", "&"),
    _bitwise("bitwise_or", "|"),
    _bitwise("bitwise_xor", "^"),
)
left_shift, right_shift = _bitwise("shift_left", "<<"), _bitwise("shift_right", ">>")


def bitwise_not(a: ExprLike) -> Expr:
    """Inverts all bits."""
    expr = convert(a)
    if is_float(expr.dtype):
        raise fail(f"'~' is for integers and bool, not {expr.dtype}")
    return call("bitwise_not", (expr,), expr.dtype)


def distance(low: Expr, high: Expr) -> Expr:
    """Returns `high - low`, which is n for `low + n` minus `low`."""
    if isinstance(high, Apply) and high.op is tir.AddOp:
        first = high.args[0]
        if first is low or (isinstance(first, Const) and isinstance(low, Const) and first.value == low.value):
            return high.args[1]
    return subtract(high, low)


BUILD.update({
    "broadcast": Broadcast, "bitwise_and": bitwise_and, "bitwise_or": bitwise_or, "bitwise_xor": bitwise_xor, "bitwise_not": bitwise_not,
    "-": subtract, "+": add, "%": floormod, "distance": distance, "*": multiply, "//": floordiv, "shift_left": left_shift, "shift_right": right_shift, tir.CastOp: cast,
})  # fmt: skip
