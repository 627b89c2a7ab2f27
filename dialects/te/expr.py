"""Scalar expressions in Python, as TVM's `PrimExpr`: trees with operators, TVM's dtype matching and constant folding.

A tree costs little; it becomes tir ops when the function that it belongs to is emitted (`emit`). An expression keeps the
location that `location_scope` names when it is made, and so do its ops.
"""

from __future__ import annotations

import math
import operator
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr

from ...support.diagnostics import MirError, error_at
from ...support.source_text import characters
from .. import tir
from ..tir.types import FLOAT_LIMITS

if TYPE_CHECKING:
    import numpy as np

    from .tensor import TensorSlice

ExprLike: TypeAlias = "Expr | TensorSlice | int | float"
"""What stands for an expression: one, or a Python number (int is int32, float is float32, bool is bool, as in TVM)."""

_location: LocationAttr = UNKNOWN_LOC

INT_LIMITS = {"bool": (0, 1)} | {
    f"{prefix}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) if prefix == "int" else (0, (1 << bits) - 1)
    for prefix in ("int", "uint")
    for bits in (1, 2, 4, 8, 16, 32, 64)
}
"""Least and greatest value of each integer dtype."""


@contextmanager
def location_scope(location: LocationAttr) -> Generator[None]:
    """Expressions made inside stand at `location`."""
    global _location
    before, _location = _location, location
    try:
        yield
    finally:
        _location = before


def current_location() -> LocationAttr:
    """Where what is made now stands."""
    return _location


def fail(message: str, *notes: str) -> MirError:
    """The error to raise at the current location."""
    return error_at(_location, message, *notes)


class Elementwise:
    """What arithmetic with is done element by element, so that scalars leave it to that: tensors."""

    __slots__ = ()


class Expr:
    """A scalar value. `dtype` is TVM's name of its type; `args` are the expressions that it is computed from."""

    __slots__ = ("args", "dtype", "location")

    def __init__(self, dtype: str, args: tuple[Expr, ...] = ()):
        self.dtype = dtype
        self.args = args
        self.location = _location

    def __add__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else arithmetic.add(self, other)

    def __radd__(self, other: ExprLike) -> Expr:
        return arithmetic.add(other, self)

    def __sub__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else arithmetic.subtract(self, other)

    def __rsub__(self, other: ExprLike) -> Expr:
        return arithmetic.subtract(other, self)

    def __mul__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else arithmetic.multiply(self, other)

    def __rmul__(self, other: ExprLike) -> Expr:
        return arithmetic.multiply(other, self)

    def __truediv__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else arithmetic.divide(self, other)

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return arithmetic.divide(other, self)

    def __floordiv__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else arithmetic.floordiv(self, other)

    def __rfloordiv__(self, other: ExprLike) -> Expr:
        return arithmetic.floordiv(other, self)

    def __mod__(self, other: ExprLike) -> Expr:
        return NotImplemented if isinstance(other, Elementwise) else arithmetic.floormod(self, other)

    def __rmod__(self, other: ExprLike) -> Expr:
        return arithmetic.floormod(other, self)

    def __neg__(self) -> Expr:
        return arithmetic.multiply(self, const(-1, self.dtype))

    def __lt__(self, other: ExprLike) -> Expr:
        return arithmetic.less(self, other)

    def __le__(self, other: ExprLike) -> Expr:
        return arithmetic.less_equal(self, other)

    def __gt__(self, other: ExprLike) -> Expr:
        return arithmetic.greater(self, other)

    def __ge__(self, other: ExprLike) -> Expr:
        return arithmetic.greater_equal(self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return arithmetic.equal(self, other)  # type: ignore[arg-type]

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return arithmetic.not_equal(self, other)  # type: ignore[arg-type]

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        from .expr_text import text_of

        return text_of(self, most=10_000)

    def __lshift__(self, other: ExprLike) -> Expr:
        return arithmetic.left_shift(self, other)

    def __rlshift__(self, other: ExprLike) -> Expr:
        return arithmetic.left_shift(other, self)

    def __rshift__(self, other: ExprLike) -> Expr:
        return arithmetic.right_shift(self, other)

    def __rrshift__(self, other: ExprLike) -> Expr:
        return arithmetic.right_shift(other, self)

    def __and__(self, other: ExprLike) -> Expr:
        return arithmetic.bitwise_and(self, other)

    def __rand__(self, other: ExprLike) -> Expr:
        return arithmetic.bitwise_and(other, self)

    def __or__(self, other: ExprLike) -> Expr:
        return arithmetic.bitwise_or(self, other)

    def __ror__(self, other: ExprLike) -> Expr:
        return arithmetic.bitwise_or(other, self)

    def __xor__(self, other: ExprLike) -> Expr:
        return arithmetic.bitwise_xor(self, other)

    def __rxor__(self, other: ExprLike) -> Expr:
        return arithmetic.bitwise_xor(other, self)

    def __invert__(self) -> Expr:
        return arithmetic.bitwise_not(self)

    def __bool__(self) -> bool:
        raise fail(
            "an expression has no truth value while the program is described",
            "for `and`, `or`, `not`, `if` write te.all(a, b), te.any(a, b), te.logical_not(a), te.if_then_else(c, a, b)",
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Operators of numpy's numbers and arrays with an expression; its functions, as `numpy.exp`, take none."""
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
            "an expression is no Python number while the program is described",
            "for math.exp(a) write te.exp(a), for float(a) te.Cast('float32', a)",
        )

    def equal(self, other: ExprLike) -> Expr:
        """`self == other`."""
        return arithmetic.equal(self, other)

    def astype(self, dtype: str) -> Expr:
        """This value converted to `dtype`."""
        return arithmetic.cast(dtype, self)


def _te_function(name: str) -> str:
    """What TE calls a function of numpy."""
    from . import builder

    return f"te.{name}(…)" if hasattr(builder, name) else "it with the functions of te (te.exp, te.if_then_else, …)"


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
        self.name = characters(name)
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
    """Whether rounding to float32 leaves a finite value finite: the text of the greatest, 3.4028235e+38, is a little more than it."""
    try:
        struct.pack("<f", value)
    except OverflowError:
        return False
    return True


def is_numpy_scalar(value: object) -> TypeGuard[np.generic]:
    """Whether a value is a number of numpy's, asked without importing it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


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
    """The items of a tuple or list; None for anything else."""
    if isinstance(value, (tuple, list)):
        items: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return items
    return None


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


# The operators of `Expr` are functions of a module that is made of expressions.
from . import arithmetic  # noqa: E402
