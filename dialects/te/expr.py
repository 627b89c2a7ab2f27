"""Scalar expressions in Python, as TVM's `PrimExpr`: trees with operators, TVM's dtype matching and constant folding.

A tree costs little; it becomes tir ops when the function that it belongs to is emitted (`emit`). An expression keeps the
location that `location_scope` names when it is made, and so do its ops.
"""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...support.diagnostics import MirError, error_at
from .. import tir

if TYPE_CHECKING:
    from .tensor import TensorSlice

ExprLike: TypeAlias = "Expr | TensorSlice | int | float"
"""What stands for an expression: one, or a Python number (int is int32, float is float32, bool is bool, as in TVM)."""

_LOCATION: LocationAttr = UNKNOWN_LOC

INT_LIMITS = {"bool": (0, 1)} | {
    f"{prefix}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if prefix == "int" else (0, (1 << bits) - 1)
    for prefix in ("int", "uint")
    for bits in (1, 2, 4, 8, 16, 32, 64)
}
"""Least and greatest value of each integer dtype."""

FLOAT_LIMITS = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
    "e4m3_float8": 448.0,
    "e5m2_float8": 57344.0,
}
"""Greatest finite value of each float dtype."""


@contextmanager
def location_scope(location: LocationAttr) -> Generator[None]:
    """Expressions made inside stand at `location`."""
    global _LOCATION
    before, _LOCATION = _LOCATION, location
    try:
        yield
    finally:
        _LOCATION = before


def current_location() -> LocationAttr:
    """Where what is made now stands."""
    return _LOCATION


def fail(message: str, *notes: str) -> MirError:
    """The error to raise at the current location."""
    return error_at(_LOCATION, message, *notes)


class Expr:
    """A scalar value. `dtype` is TVM's name of its type; `args` are the expressions that it is computed from."""

    __slots__ = ("args", "dtype", "location")

    def __init__(self, dtype: str, args: tuple[Expr, ...] = ()):
        self.dtype = dtype
        self.args = args
        self.location = _LOCATION

    def __add__(self, other: ExprLike) -> Expr:
        return add(self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return add(other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return subtract(self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return subtract(other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return multiply(self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return multiply(other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return divide(self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return divide(other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return floordiv(self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return floordiv(other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return floormod(self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return floormod(other, self)

    def __neg__(self) -> Expr:
        return multiply(self, const(-1, self.dtype))

    def __lt__(self, other: ExprLike) -> Expr:
        return less(self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return less_equal(self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return greater(self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return greater_equal(self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return equal(self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return not_equal(self, other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def __lshift__(self, other: ExprLike) -> Expr:
        return left_shift(self, other)

    def __rlshift__(self, other: ExprLike) -> Expr:
        return left_shift(other, self)

    def __rshift__(self, other: ExprLike) -> Expr:
        return right_shift(self, other)

    def __rrshift__(self, other: ExprLike) -> Expr:
        return right_shift(other, self)

    def __and__(self, other: ExprLike) -> Expr:
        return bitwise_and(self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return bitwise_and(other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return bitwise_or(self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return bitwise_or(other, self)

    def __xor__(self, other: ExprLike) -> Expr:
        return bitwise_xor(self, other)

    def __rxor__(self, other: ExprLike) -> Expr:
        return bitwise_xor(other, self)

    def __invert__(self) -> Expr:
        return bitwise_not(self)

    def __bool__(self) -> bool:
        raise fail(
            "an expression has no truth value while the program is described",
            "for `and`, `or`, `not`, `if` write te.all(a, b), te.any(a, b), te.logical_not(a), te.if_then_else(c, a, b)",
        )

    def equal(self, other: ExprLike) -> Expr:
        """`self == other`."""
        return equal(self, other)

    def astype(self, dtype: str) -> Expr:
        """This value converted to `dtype`."""
        return cast(dtype, self)


class Const(Expr):
    """An immediate number."""

    __slots__ = ("value",)

    def __init__(self, value: int | float, dtype: str):
        super().__init__(dtype)
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __index__(self) -> int:
        if isinstance(self.value, float):
            raise fail(f"the {self.dtype} constant {self.value} is no integer")
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class Var(Expr):
    """A symbolic size or scalar argument, `te.var("n")`; with `is_size` known not to be negative, `te.size_var("n")`."""

    __slots__ = ("hint", "is_size", "name")

    def __init__(self, name: str, dtype: str = "int32", is_size: bool = False):
        super().__init__(dtype)
        self.name = name
        self.is_size = is_size
        self.hint: str | None = None

    def __repr__(self) -> str:
        return self.name


class IterVar(Expr):
    """An axis over `extent` values from `min`: spatial (`iter_type` "S") or of a reduction ("R"). It stands for its variable."""

    __slots__ = ("extent", "hint", "iter_type", "min", "name")

    def __init__(self, name: str, min: Expr, extent: Expr, iter_type: str):
        super().__init__(extent.dtype)
        self.name = name
        self.min = min
        self.extent = extent
        self.iter_type = iter_type
        self.hint: str | None = None

    @property
    def var(self) -> IterVar:
        """The axis as a value."""
        return self

    @property
    def dom(self) -> tuple[Expr, Expr]:
        """Minimum and extent."""
        return self.min, self.extent

    def __repr__(self) -> str:
        return self.name


class Apply(Expr):
    """A tir op on values: arithmetic, comparison, connective, select, cast."""

    __slots__ = ("op",)

    def __init__(
        self, op: type[tir.BinaryOp | tir.NotOp | tir.SelectOp | tir.CastOp], args: tuple[Expr, ...], dtype: str
    ):
        super().__init__(dtype, args)
        self.op = op


class Equality(Apply):
    """`a == b` or `a != b`: as a truth value it says whether both are one object, so that Python containers work."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return (self.args[0] is self.args[1]) == (self.op is tir.EqOp)


class Call(Expr):
    """A call of an intrinsic. Arguments may be strings, and buffers in the body of an extern."""

    __slots__ = ("intrinsic", "operands")

    def __init__(self, intrinsic: str, operands: tuple[object, ...], dtype: str):
        super().__init__(dtype, tuple(o for o in operands if isinstance(o, Expr)))
        self.intrinsic = intrinsic
        self.operands = operands


class IfThenElse(Expr):
    """A choice that evaluates one side only; `args` is the condition alone, the sides are emitted in scopes of their own."""

    __slots__ = ("else_value", "then_value")

    def __init__(self, condition: Expr, then_value: Expr, else_value: Expr):
        super().__init__(then_value.dtype, (condition,))
        self.then_value = then_value
        self.else_value = else_value


def is_float(dtype: str) -> bool:
    """Whether TVM's dtype `dtype` is a floating-point type."""
    return "float" in dtype


def bits_of(dtype: str) -> int:
    """The width of a number of this dtype."""
    if dtype == "bool":
        return 1
    if dtype in ("e4m3_float8", "e5m2_float8"):
        return 8
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz_"))


def const(value: float, dtype: str | None = None) -> Expr:
    """The number as a constant; without `dtype` an int is int32 (int64 where it does not fit), a float is float32.

    Raises MirError for an unknown dtype and for a number that does not fit.
    """
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
        else:
            dtype = "float32"
    if not isinstance(value, (int, float)):
        raise fail(f"a constant is a number, not {describe(value)}")
    limits = INT_LIMITS.get(dtype)
    if limits is not None:
        if isinstance(value, float) and not math.isfinite(value):
            raise fail(f"{value} cannot be a constant of dtype {dtype}")
        value = int(value)
        if dtype == "bool":
            value = int(value != 0)
        if not limits[0] <= value <= limits[1]:
            raise fail(f"{value} does not fit dtype {dtype}, which holds {limits[0]} to {limits[1]}")
        return Const(value, dtype)
    greatest = FLOAT_LIMITS.get(dtype)
    if greatest is None:
        raise fail(f"a constant cannot have dtype '{dtype}'", "dtypes are written like float32, int64, uint8 or bool")
    value = float(value)
    if dtype == "float32" and math.isfinite(value):
        try:
            return Const(struct.unpack("f", struct.pack("f", value))[0], dtype)
        except OverflowError:
            pass
    if math.isfinite(value) and abs(value) > greatest:
        raise fail(f"{value} does not fit dtype {dtype}, whose greatest value is {greatest}")
    return Const(value, dtype)


def convert(value: object, dtype: str | None = None) -> Expr:
    """An expression from what a person may write for one. A Python int takes `dtype` where that is given."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return Const(int(value), "bool")
    if isinstance(value, int):
        return const(value, dtype)
    if isinstance(value, float):
        return const(value)
    as_expr = getattr(value, "as_expr", None)
    if as_expr is not None:
        return as_expr()
    if hasattr(value, "__index__"):
        return const(operator.index(value), dtype)  # type: ignore[arg-type]
    if isinstance(value, (tuple, list)):
        raise fail("a scalar expression is expected here, not a tuple or list")
    raise fail(f"a scalar expression is expected here, not {describe(value)}")


def describe(value: object) -> str:
    """What a Python value is, in a user's words."""
    if isinstance(value, str):
        return f"the string {value!r}"
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float)):
        return f"the number {value}"
    if isinstance(value, Expr):
        return f"an expression of dtype {value.dtype}"
    kind = type(value).__name__
    return _KINDS.get(kind, f"{'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}")


_KINDS = {
    "Tensor": "a whole tensor (index it, as in A[i, j])",
    "function": "a function",
    "Function": "a function",
    "Builtin": "a function",
    "Namespace": "a module",
    "list": "a list",
    "dict": "a dictionary",
    "CommReducer": "a reducer",
    "Range": "a range",
    "IRBuilder": "an ir_builder",
}


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


def add(a: ExprLike, b: ExprLike) -> Expr:
    """`a + b`."""
    a, b = _operands(a, b, "+")
    if isinstance(a, Const):
        if a.value == 0:
            return b
        if isinstance(b, Const) and (folded := _folded(a.value + b.value, a.dtype)) is not None:
            return folded
    if isinstance(b, Const) and b.value == 0:
        return a
    return Apply(tir.AddOp, (a, b), a.dtype)


def subtract(a: ExprLike, b: ExprLike) -> Expr:
    """`a - b`."""
    a, b = _operands(a, b, "-")
    if isinstance(b, Const):
        if b.value == 0:
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
        if a.value == 0:
            return a
        if isinstance(b, Const) and (folded := _folded(a.value * b.value, a.dtype)) is not None:
            return folded
    if isinstance(b, Const):
        if b.value == 1:
            return a
        if b.value == 0:
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
    if isinstance(b, Const):
        if b.value == 0:
            raise fail("division by zero")
        if b.value == 1:
            return a
        if isinstance(a, Const) and (folded := _folded(a.value / b.value, a.dtype)) is not None:
            return folded
    if isinstance(a, Const) and a.value == 0:
        return a
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


floordiv = _integer_division(tir.FloorDivOp, "floordiv", operator.floordiv, False)
floormod = _integer_division(tir.FloorModOp, "floormod", operator.mod, True)
truncdiv = _integer_division(tir.DivOp, "truncdiv", _truncated, False)
truncmod = _integer_division(tir.ModOp, "truncmod", lambda a, b: a - b * _truncated(a, b), True)


def _extremum(
    op: type[tir.BinaryOp], symbol: str, pick: Callable[[float, float], float]
) -> Callable[[ExprLike, ExprLike], Expr]:
    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if a is b:
            return a
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(pick(a.value, b.value), a.dtype)
        return Apply(op, (a, b), a.dtype)

    return build


minimum = _extremum(tir.MinOp, "min", min)
maximum = _extremum(tir.MaxOp, "max", max)


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


def _condition(value: ExprLike, where: str) -> Expr:
    condition = convert(value)
    if condition.dtype != "bool":
        raise fail(f"{where} must be bool, not {condition.dtype}", "compare, as in x > 0")
    return condition


def logical_and(a: ExprLike, b: ExprLike) -> Expr:
    """`a and b`, both evaluated."""
    a, b = _condition(a, "an operand of 'and'"), _condition(b, "an operand of 'and'")
    if isinstance(a, Const):
        return b if a.value else a
    if isinstance(b, Const):
        return a if b.value else b
    return Apply(tir.AndOp, (a, b), "bool")


def logical_or(a: ExprLike, b: ExprLike) -> Expr:
    """`a or b`, both evaluated."""
    a, b = _condition(a, "an operand of 'or'"), _condition(b, "an operand of 'or'")
    if isinstance(a, Const):
        return a if a.value else b
    if isinstance(b, Const):
        return b if b.value else a
    return Apply(tir.OrOp, (a, b), "bool")


def logical_not(a: ExprLike) -> Expr:
    """`not a`."""
    a = _condition(a, "the operand of 'not'")
    return Const(1 - int(a.value), "bool") if isinstance(a, Const) else Apply(tir.NotOp, (a,), "bool")


def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """One of two values, both of which are evaluated."""
    condition = _condition(condition, "the condition of Select")
    a, b = _operands(true_value, false_value, "Select")
    return Apply(tir.SelectOp, (condition, a, b), a.dtype)


def if_then_else(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """One of two values; only the chosen one is evaluated, so that the other may read out of bounds."""
    condition = _condition(condition, "the condition of if_then_else")
    # Here a Python int is an int32 to be matched, as in TVM: it does not take the other side's dtype.
    a, b = match_types(convert(true_value), convert(false_value), "if_then_else")
    if isinstance(condition, Const):
        return a if condition.value else b
    return IfThenElse(condition, a, b)


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
        if isinstance(a, Const) and isinstance(b, Const):
            is_shift = intrinsic.startswith("shift")
            if is_shift and not 0 <= b.value < bits_of(a.dtype):
                raise fail(f"a shift of {a.dtype} by {b.value} is undefined")
            if (folded := _folded(fold(int(a.value), int(b.value)), a.dtype)) is not None:
                return folded
        return Call(intrinsic, (a, b), a.dtype)

    return build


bitwise_and = _bitwise("bitwise_and", "&", operator.and_)
bitwise_or = _bitwise("bitwise_or", "|", operator.or_)
bitwise_xor = _bitwise("bitwise_xor", "^", operator.xor)
left_shift = _bitwise("shift_left", "<<", operator.lshift)
right_shift = _bitwise("shift_right", ">>", operator.rshift)


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
