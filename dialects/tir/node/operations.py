"""Defines a class for the expressions of each op: `Add(a, b)` neither matches dtypes nor folds."""

from __future__ import annotations

from ... import tir
from .expr import Apply, Expr, ExprLike, Located, convert, fail, lanes_of, with_lanes


class Binary(Apply):
    """An op on two values of one dtype; its constructor neither matches dtypes nor folds.

    Raises MirError for values of two dtypes.
    """

    __slots__ = ()

    def __init__(self, a: ExprLike, b: ExprLike, span: Located | None = None):
        a, b = convert(a), convert(b)
        if a.dtype != b.dtype:
            raise fail(f"the operands of tir.{type(self).__name__} have different dtypes: {a.dtype} and {b.dtype}")
        super().__init__(self.result_dtype(a.dtype), (a, b), span)

    @staticmethod
    def result_dtype(dtype: str) -> str:
        """Returns the dtype of the result for operands of this one."""
        return dtype

    @property
    def a(self) -> Expr:
        """Returns the left operand."""
        return self.args[0]

    @property
    def b(self) -> Expr:
        """Returns the right operand."""
        return self.args[1]


class Add(Binary):
    """`a + b`."""

    __slots__ = ()

    op = tir.AddOp


class Sub(Binary):
    """`a - b`."""

    __slots__ = ()

    op = tir.SubOp


class Mul(Binary):
    """`a * b`."""

    __slots__ = ()

    op = tir.MulOp


class Div(Binary):
    """A quotient: of floats, or of integers rounded toward zero."""

    __slots__ = ()

    op = tir.DivOp


class Mod(Binary):
    """The remainder of `Div`."""

    __slots__ = ()

    op = tir.ModOp


class FloorDiv(Binary):
    """A quotient of integers rounded down."""

    __slots__ = ()

    op = tir.FloorDivOp


class FloorMod(Binary):
    """The remainder of `FloorDiv`."""

    __slots__ = ()

    op = tir.FloorModOp


class Min(Binary):
    """The smaller of two values."""

    __slots__ = ()

    op = tir.MinOp


class Max(Binary):
    """The larger of two values."""

    __slots__ = ()

    op = tir.MaxOp


class CompareExpr(Binary):
    """A comparison of two values, bool."""

    __slots__ = ()

    @staticmethod
    def result_dtype(dtype: str) -> str:
        return with_lanes("bool", lanes_of(dtype))


class Equality(CompareExpr):
    """`a == b` or `a != b`; `bool()` of it compares the objects' identity, so that Python containers work."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return (self.args[0] is self.args[1]) == (self.op is tir.EqOp)

    def asobject(self) -> Equality:
        """Returns the expression: in TVM `a == b` is a value from which it is made."""
        return self


class EQ(Equality):
    """`a == b`."""

    __slots__ = ()

    op = tir.EqOp


class NE(Equality):
    """`a != b`."""

    __slots__ = ()

    op = tir.NeOp


class LT(CompareExpr):
    """`a < b`."""

    __slots__ = ()

    op = tir.LtOp


class LE(CompareExpr):
    """`a <= b`."""

    __slots__ = ()

    op = tir.LeOp


class GT(CompareExpr):
    """`a > b`."""

    __slots__ = ()

    op = tir.GtOp


class GE(CompareExpr):
    """`a >= b`."""

    __slots__ = ()

    op = tir.GeOp


class And(Binary):
    """`a and b` of bools."""

    __slots__ = ()

    op = tir.AndOp


class Or(Binary):
    """`a or b` of bools."""

    __slots__ = ()

    op = tir.OrOp


class Not(Apply):
    """`not a` of a bool."""

    __slots__ = ()

    op = tir.NotOp

    def __init__(self, a: ExprLike, span: Located | None = None):
        a = convert(a)
        super().__init__(a.dtype, (a,), span)

    @property
    def a(self) -> Expr:
        """Returns the operand."""
        return self.args[0]


class Select(Apply):
    """One of two values, both of which are evaluated."""

    __slots__ = ()

    op = tir.SelectOp

    def __init__(self, condition: ExprLike, true_value: ExprLike, false_value: ExprLike, span: Located | None = None):
        condition, a, b = convert(condition), convert(true_value), convert(false_value)
        if not condition.dtype.startswith("bool"):
            raise fail(f"the condition of Select must be bool, not {condition.dtype}", "compare, as in x > 0")
        if a.dtype != b.dtype:
            raise fail(f"the values of tir.Select have different dtypes: {a.dtype} and {b.dtype}")
        super().__init__(a.dtype, (condition, a, b), span)

    @property
    def condition(self) -> Expr:
        """Returns the condition."""
        return self.args[0]

    @property
    def true_value(self) -> Expr:
        """Returns the value where the condition holds."""
        return self.args[1]

    @property
    def false_value(self) -> Expr:
        """Returns the value where the condition does not hold."""
        return self.args[2]


class Cast(Apply):
    """A value converted to a dtype; a float becomes the integer toward zero."""

    __slots__ = ()

    op = tir.CastOp

    def __init__(self, dtype: str, value: ExprLike, span: Located | None = None):
        super().__init__(dtype, (convert(value),), span)

    @property
    def value(self) -> Expr:
        """Returns the value that is converted."""
        return self.args[0]
