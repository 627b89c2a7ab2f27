"""Defines scalar expressions in Python, as TVM's `PrimExpr`; operators match dtypes and fold.

    A[i] * 2 + te.const(1, "int8")     Apply(AddOp, (Apply(MulOp, …), Apply(CastOp, …)), "int32")

A tree is cheap; it becomes tir ops when the function that it belongs to is emitted (`emit`). An expression keeps the
location that `location_scope` names when it is created, and so do its ops.

Source: TVM 0.16, "tir/op/op.cc" and "arith/const_fold.h".
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Operation

from ...support.diagnostics import MirError, error_at
from ...support.source_text import characters
from .. import tir
from ..arith.const_fold import NumberType, Operand, fold, fold_cast, takes_right
from ..tir.scalar_ops import OPERATORS, Precedence
from ..tir.types import FLOAT_LIMITS

if TYPE_CHECKING:
    import numpy as np

    from .tensor import TensorSlice

ExprLike: TypeAlias = "Expr | TensorSlice | int | float"
"""An expression or a Python number (int is int32, float is float32, bool is bool, as in TVM)."""

_location: LocationAttr = UNKNOWN_LOC

INT_LIMITS = {"bool": (0, 1)} | {
    f"{prefix}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if prefix == "int" else (0, (1 << bits) - 1)
    for prefix in ("int", "uint")
    for bits in (1, 2, 4, 8, 16, 32, 64)
}
"""Least and greatest value of each integer dtype."""


@contextmanager
def location_scope(location: LocationAttr) -> Generator[None]:
    """Locates the expressions created within the `with` at `location`."""
    global _location
    before, _location = _location, location
    try:
        yield
    finally:
        _location = before


def current_location() -> LocationAttr:
    """Returns the location of expressions that are created now."""
    return _location


def fail(message: str, *notes: str) -> MirError:
    """Returns the error to raise at the current location."""
    return error_at(_location, message, *notes)


class Elementwise:
    """Base of values whose arithmetic is element by element (tensors): scalars' operators defer to theirs."""

    __slots__ = ()


class Expr:
    """A scalar value: `dtype` is TVM's name of its type; `args` are the expressions it is computed from."""

    __slots__ = ("args", "dtype", "location")

    def __init__(self, dtype: str, args: tuple[Expr, ...] = ()):
        self.dtype = dtype
        self.args = args
        self.location = _location

    def __add__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else add(self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return add(other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else subtract(self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return subtract(other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else multiply(self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return multiply(other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else divide(self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return divide(other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else floordiv(self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return floordiv(other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else floormod(self, other)

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

    def __repr__(self) -> str:
        return text_of(self, most=10_000)

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

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Applies operators of numpy's numbers and arrays; refuses its functions, as `numpy.exp`."""
        import numpy as np

        given: list[Any] = []
        for value in inputs:
            if isinstance(value, Expr):
                held = np.empty((), object)
                held[()] = value
                value = held
            given.append(value)
        try:
            return getattr(ufunc, method)(*given, **keywords)
        except TypeError:
            name = ufunc.__name__
            raise fail(f"numpy.{name} takes numbers, not an expression", f"write {_te_function(name)}") from None

    def __float__(self) -> float:
        raise fail(
            "an expression is not a Python number while the program is described",
            "for math.exp(a) write te.exp(a), for float(a) te.Cast('float32', a)",
        )

    def equal(self, other: ExprLike) -> Expr:
        """Returns `self == other`."""
        return equal(self, other)

    def astype(self, dtype: str) -> Expr:
        """Returns this value converted to `dtype`."""
        return cast(dtype, self)


FUNCTIONS: set[str] = set()
"""The names of TE's functions, which `builder` adds: a refused function of numpy is mapped to that of the same name."""


def _te_function(name: str) -> str:
    """Returns TE's counterpart of a function of numpy, as a note writes it."""
    return f"te.{name}(…)" if name in FUNCTIONS else "it with the functions of te (te.exp, te.if_then_else, …)"


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
            raise fail(f"the {self.dtype} constant {self.value} is not an integer")
        return self.value

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class Var(Expr):
    """A symbolic size or scalar argument, `te.var("n")`; with `is_size` not negative, `te.size_var("n")`."""

    __slots__ = ("hint", "is_size", "name")

    def __init__(self, name: str, dtype: str = "int32", is_size: bool = False):
        super().__init__(dtype)
        self.name = characters(name)
        self.is_size = is_size
        self.hint: str | None = None

    def __repr__(self) -> str:
        return self.name


class IterVar(Expr):
    """An axis over `extent` values from `min`; as an expression it is its variable.

    `iter_type` is "S" for a spatial axis and "R" for a reduction's.
    """

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
        """Returns the axis as a value."""
        return self

    @property
    def dom(self) -> tuple[Expr, Expr]:
        """Returns the minimum and the extent."""
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
    """`a == b` or `a != b`; `bool()` of it compares the objects' identity, so that Python containers work."""

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


class Element(Expr):
    """An element of a tensor or of a buffer; `args` are the indices."""

    __slots__ = ()

    @property
    def array_name(self) -> str:
        """Returns the name of the tensor or buffer, for messages."""
        raise NotImplementedError


class IfThenElse(Expr):
    """A choice that evaluates one side only; `args` is the condition, the sides are emitted in own scopes."""

    __slots__ = ("else_value", "then_value")

    def __init__(self, condition: Expr, then_value: Expr, else_value: Expr):
        super().__init__(then_value.dtype, (condition,))
        self.then_value = then_value
        self.else_value = else_value


def is_float(dtype: str) -> bool:
    """Returns True if `dtype`, TVM's name, is a floating-point type."""
    return "float" in dtype


def bits_of(dtype: str) -> int:
    """Returns the width of a number of this dtype."""
    if dtype == "bool":
        return 1
    if "_" in dtype:
        return 4 if dtype.startswith("float4_") else 8
    return int(dtype.lstrip("abcdefghijklmnopqrstuvwxyz_"))


def const(value: object, dtype: str | None = None) -> Expr:
    """Returns the number as a constant.

    Without `dtype` one of numpy's keeps its own, an int is int32 (int64 where it does not fit), a float is float32 (float64 where
    it does not fit). Raises MirError for an unknown dtype and for a number that does not fit.
    """
    if is_numpy_scalar(value):
        dtype, value = dtype or value.dtype.name, value.item()
    if not isinstance(value, (int, float)):
        raise fail(f"a constant is a number, not {describe(value)}")
    if dtype is None:
        if isinstance(value, bool):
            dtype = "bool"
        elif isinstance(value, int):
            dtype = "int32" if -(1 << 31) <= value < 1 << 31 else "int64"
        else:
            dtype = "float32" if _fits_float32(value) else "float64"
    limits = INT_LIMITS.get(dtype)
    if limits is not None:
        if isinstance(value, float) and not math.isfinite(value):
            raise fail(f"{value} cannot be a constant of dtype {dtype}")
        if dtype != "bool" and value != int(value):
            raise fail(f"{value} cannot be a constant of dtype {dtype}", "write a whole number, or cut it by int(…)")
        value = int(value != 0 if dtype == "bool" else value)
        if not limits[0] <= value <= limits[1]:
            raise fail(f"{value} does not fit dtype {dtype}, which holds {limits[0]} to {limits[1]}")
        return Const(value, dtype)
    greatest = FLOAT_LIMITS.get(dtype)
    if greatest is None:
        raise fail(f"a constant cannot have dtype '{dtype}'", "dtypes are written like float32, int64, uint8 or bool")
    value = float(value)
    if dtype == "float32" and math.isfinite(value) and _fits_float32(value):
        return Const(struct.unpack("<f", struct.pack("<f", value))[0], dtype)
    if math.isfinite(value) and abs(value) > greatest:
        raise fail(f"{value} does not fit dtype {dtype}, whose greatest value is {greatest}")
    return Const(value, dtype)


def _fits_float32(value: float) -> bool:
    """Returns True if a finite value rounds to a finite float32, as 3.4028235e+38 does."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True


def is_numpy_scalar(value: object) -> TypeGuard[np.generic]:
    """Returns True for numpy's numbers, without importing numpy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def convert(value: object, dtype: str | None = None) -> Expr:
    """Returns an expression from a Python value; a Python int has dtype `dtype` if set."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return Const(int(value), "bool")
    if isinstance(value, int):
        return const(value, dtype)
    if isinstance(value, float):
        return const(value)
    if is_numpy_scalar(value) and not hasattr(value, "__index__"):
        return const(value)
    as_expr = getattr(value, "as_expr", None)
    if as_expr is not None:
        return as_expr()
    if hasattr(value, "__index__"):
        return const(operator.index(value), dtype)  # type: ignore[arg-type]
    if isinstance(value, (tuple, list)):
        raise fail("a scalar expression is expected here, not a tuple or list")
    raise fail(f"a scalar expression is expected here, not {describe(value)}")


def items_of(value: object) -> tuple[Any, ...] | None:
    """Returns the items of a tuple or list; None for anything else."""
    if isinstance(value, (tuple, list)):
        items: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return items
    return None


def describe(value: object) -> str:
    """Describes a Python value in a user's words, for messages."""
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


_Build: TypeAlias = "Callable[[ExprLike, ExprLike], Expr]"

BUILD: dict[type[Operation], Callable[..., Expr]] = {}
"""The function that builds the expression of each op, constants folded."""


def match_types(a: Expr, b: Expr, symbol: str) -> tuple[Expr, Expr]:
    """Casts both values to one dtype: float over integer, wider over narrower, unsigned over signed."""
    x, y = a.dtype, b.dtype
    if x == y:
        return a, b
    if x == "handle" or y == "handle":
        raise fail(f"'{symbol}' cannot combine {x} and {y}")
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
    limits = INT_LIMITS.get(dtype)
    if limits is not None and limits[0] <= value <= limits[1]:
        return Const(int(value), dtype)
    return const(value, dtype if limits is None else None)


@cache
def _number_type(dtype: str) -> NumberType:
    """Returns TVM's dtype as constant folding asks for it."""
    return NumberType(is_float(dtype), bits_of(dtype), dtype.startswith("int"))


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
    return a if folded is Operand.LEFT else b if folded is Operand.RIGHT else Const(folded, dtype)


def _operator(op: type[tir.BinaryOp], symbol: str, doc: str, *, integers: bool = False) -> _Build:
    """Returns the function that builds `a op b` of operands cast to one dtype; `integers` refuses floats."""
    compares = issubclass(op, tir.CompareOp)
    node = Equality if op in (tir.EqOp, tir.NeOp) else Apply

    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if integers and is_float(a.dtype):
            raise fail(
                f"{symbol} is for integers, not {a.dtype}", "for floats write a / b, te.floor(a / b) or te.fmod(a, b)"
            )
        return _made(node, op, a, b, "bool" if compares else a.dtype)

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
    return _made(Apply, tir.DivOp, a, b, a.dtype)


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
    return _made(Apply, tir.AndOp, a, b, "bool")


def logical_or(a: ExprLike, b: ExprLike) -> Expr:
    """Returns `a or b`, both evaluated."""
    a, b = as_condition(a, "an operand of 'or'"), as_condition(b, "an operand of 'or'")
    return _made(Apply, tir.OrOp, a, b, "bool")


def logical_not(a: ExprLike) -> Expr:
    """Returns `not a`."""
    a = as_condition(a, "the operand of 'not'")
    return Const(1 - int(a.value), "bool") if isinstance(a, Const) else Apply(tir.NotOp, (a,), "bool")


def Select(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """Returns one of two values, both of which are evaluated."""
    chosen = as_condition(condition, "the condition of Select")
    a, b = _operands(true_value, false_value, "Select")
    return Apply(tir.SelectOp, (chosen, a, b), a.dtype)


BUILD.update({tir.AndOp: logical_and, tir.OrOp: logical_or, tir.NotOp: logical_not, tir.SelectOp: Select})


def if_then_else(condition: ExprLike, true_value: ExprLike, false_value: ExprLike) -> Expr:
    """Returns one of two values; only it is evaluated, so that the other may read out of bounds."""
    chosen = as_condition(condition, "the condition of if_then_else")
    # Here a Python int is an int32 to be matched, as in TVM: it does not take the other side's dtype.
    a, b = match_types(convert(true_value), convert(false_value), "if_then_else")
    if isinstance(chosen, Const):
        return a if chosen.value else b
    return IfThenElse(chosen, a, b)


def cast(dtype: str, value: ExprLike) -> Expr:
    """Returns `value` converted to `dtype`; a float becomes the integer toward zero."""
    expr = convert(value)
    if expr.dtype == dtype:
        return expr
    if dtype not in INT_LIMITS and dtype not in FLOAT_LIMITS:
        raise fail(f"no value can be cast to dtype '{dtype}'", "dtypes are written like float32, int64, uint8 or bool")
    if isinstance(expr, Const):
        folded = fold_cast(expr.value, _number_type(dtype))
        if isinstance(folded, int):
            return Const(folded, dtype)
        # A float that the dtype does not hold becomes infinity when it is converted.
        if folded is not None and not abs(folded) > FLOAT_LIMITS[dtype]:
            return const(folded, dtype)
        if folded is not None and not math.isfinite(folded):
            return Const(folded, dtype)
    return Apply(tir.CastOp, (expr,), dtype)


def call(intrinsic: str, operands: tuple[object, ...], dtype: str) -> Expr:
    """Returns a call of the intrinsic that TVMScript writes `T.intrinsic(operands)`."""
    return Call(intrinsic, operands, dtype)


def _bitwise(intrinsic: str, symbol: str) -> _Build:
    def build(a: ExprLike, b: ExprLike) -> Expr:
        a, b = _operands(a, b, symbol)
        if is_float(a.dtype):
            raise fail(f"'{symbol}' is for integers and bool, not {a.dtype}")
        bits = bits_of(a.dtype)
        if isinstance(b, Const) and intrinsic.startswith("shift") and not 0 <= b.value < bits:
            raise fail(
                f"a shift of {a.dtype} by {b.value} is undefined", f"it has {bits} bits: shift by 0 to {bits - 1}"
            )
        return _made(Call, intrinsic, a, b, a.dtype)

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
    return Call("bitwise_not", (expr,), expr.dtype)


def distance(low: Expr, high: Expr) -> Expr:
    """Returns `high - low`, which is n for `low + n` minus `low`."""
    if isinstance(high, Apply) and high.op is tir.AddOp:
        first = high.args[0]
        if first is low or (isinstance(first, Const) and isinstance(low, Const) and first.value == low.value):
            return high.args[1]
    return subtract(high, low)


MOST_TEXT = 200
"""How long a text in a message may be; the rest is left out."""
MOST_DEPTH = 100
"""The depth of nesting from which a text leaves expressions out."""


def text_of(e: Expr, most: int = MOST_TEXT) -> str:
    """Returns the expression as text, `a * 2 + b`; a text longer than `most` ends in "…"."""
    return _Writer(most).text(e, 0)


class _Writer:
    """Writes expressions; a shared subexpression is written once, so that the work is linear in the graph."""

    def __init__(self, most: int):
        self._most = most
        self._known: dict[Expr, str] = {}

    def text(self, e: Expr, depth: int) -> str:
        known = self._known.get(e)
        if known is None:
            known = "…" if depth > MOST_DEPTH else self._text(e, depth + 1)
            if len(known) > self._most:
                known = known[: self._most - 1] + "…"
            self._known[e] = known
        return known

    def _list(self, parts: Iterable[Expr], depth: int) -> str:
        return ", ".join(self.text(part, depth) for part in parts)

    def _text(self, e: Expr, depth: int) -> str:
        match e:
            case Const():
                return str(bool(e.value)) if e.dtype == "bool" else str(e.value)
            case Var() | IterVar():
                return e.name
            case Apply():
                return self._operation(e, depth)
            case Element():
                return f"{e.array_name}[{self._list(e.args, depth)}]"
            case IfThenElse():
                return f"if_then_else({self._list((e.args[0], e.then_value, e.else_value), depth)})"
            case Call():
                return f"{e.intrinsic}({self._list(e.args, depth)})"
            case _:
                return "…"

    def _operation(self, e: Apply, depth: int) -> str:
        parts = [self.text(a, depth) for a in e.args]
        if e.op is tir.NotOp:
            return f"not {parts[0]}"
        if e.op is tir.SelectOp:
            return f"Select({', '.join(parts)})"
        if e.op is tir.CastOp:
            return f"{e.dtype}({parts[0]})"
        symbol = str(getattr(e.op, "SYMBOL", e.op.name))
        if symbol[0].isalpha() and symbol not in ("and", "or"):
            return f"{symbol.removeprefix('T.')}({', '.join(parts)})"
        strength = _precedence(e)
        left, right = _grouped(e.args[0], parts[0], strength), _grouped(e.args[1], parts[1], strength + 1)
        return f"{left} {symbol} {right}"


def _precedence(e: Expr) -> int:
    """Returns how tightly an infix operator binds; any other expression is an atom."""
    if not isinstance(e, Apply) or str(getattr(e.op, "SYMBOL", "T.")).startswith("T."):
        return Precedence.ATOM
    return OPERATORS[e.op].precedence


def _grouped(e: Expr, text: str, around: int) -> str:
    return f"({text})" if _precedence(e) < around else text
