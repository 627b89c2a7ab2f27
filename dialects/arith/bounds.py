"""Computes constant bounds and modular sets of expressions."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

from ..tir.expr import CastOp
from .expr import Atom, Expr, Function, Kind, Symbol

INF = 1 << 200
_MOST_BITS = 64
"""A number that no bound of a program reaches: bounds at or beyond it (of either sign) are no bounds."""


class ConstIntBound(NamedTuple):
    """min_value <= e <= max_value; -INF and INF where nothing is known."""

    min_value: int
    max_value: int

    def __neg__(self) -> ConstIntBound:
        return ConstIntBound(-self.max_value, -self.min_value)

    def union(self, other: ConstIntBound) -> ConstIntBound:
        """Returns the least bound that holds where either does."""
        return ConstIntBound(min(self.min_value, other.min_value), max(self.max_value, other.max_value))

    def intersect(self, other: ConstIntBound) -> ConstIntBound:
        """Returns the bound that holds where both do."""
        low, high = self
        least, most = other
        if low >= least and high <= most:
            return self
        if least >= low and most <= high:
            return other
        return ConstIntBound(max(low, least), min(high, most))

    def shifted(self, amount: int) -> ConstIntBound:
        """Returns the bound of the value plus a number."""
        return constant_bound(
            self.min_value + amount if self.min_value > -INF else -INF,
            self.max_value + amount if self.max_value < INF else INF,
        )


EVERYTHING = ConstIntBound(-INF, INF)
BOOLEAN = ConstIntBound(0, 1)


def constant_bound(low: int, high: int) -> ConstIntBound:
    """Returns the bound between two numbers, of which those at or beyond `INF` are infinite."""
    return ConstIntBound(low if low > -INF else -INF, high if high < INF else INF)


class ModularSet(NamedTuple):
    """The values coeff * x + base for integer x; 0 <= base < coeff, and coeff 0 for the one value `base`."""

    coeff: int
    base: int

    @staticmethod
    def of(coeff: int, base: int) -> ModularSet:
        """Returns the normalized set."""
        coeff = abs(coeff)
        return ModularSet(coeff, base % coeff if coeff else base)

    def union(self, other: ModularSet) -> ModularSet:
        """Returns the least set that holds both."""
        return ModularSet.of(gcd(self.coeff, other.coeff, abs(self.base - other.base)), self.base)


BoundOf: TypeAlias = Callable[[Expr], ConstIntBound]


def bound_of_type(atom: Atom) -> ConstIntBound:
    """Returns the range of a variable's dtype: [0, 255] for uint8."""
    of = atom.payload
    if isinstance(of, Symbol):
        return EVERYTHING if of.bound is None else ConstIntBound(*of.bound)
    return type_bound(cast("SSAValue", of).type)


def type_bound(type: Attribute | None) -> ConstIntBound:
    """Returns the range of an integer dtype; everything for others."""
    if not isinstance(type, IntegerType):
        return EVERYTHING
    bits = type.width.data
    if type.signedness.data is Signedness.UNSIGNED or bits == 1:
        return ConstIntBound(0, (1 << bits) - 1)
    return ConstIntBound(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def bound_of_sum(expr: Expr, bound_of_atom: Callable[[Atom], ConstIntBound]) -> ConstIntBound:
    """Returns the bound of a linear combination, its atoms taken as independent."""
    low = high = expr.const
    for atom, coefficient in expr.terms:
        least, most = bound_of_atom(atom)
        if coefficient < 0:
            least, most = most, least
        low = -INF if low <= -INF or abs(least) >= INF else low + coefficient * least
        high = INF if high >= INF or abs(most) >= INF else high + coefficient * most
    return constant_bound(low, high)


def bound_of_atom(atom: Atom, bound: BoundOf) -> ConstIntBound:
    """Returns the bound of an atom from those of its operands."""
    operands = atom.operands
    match atom.kind:
        case Kind.VAR:
            return bound_of_type(atom)
        case Kind.GE | Kind.EQ | Kind.AND:
            return BOOLEAN
        case Kind.PRODUCT:
            result = bound(operands[0])
            for operand in operands[1:]:
                result = _bound_of_product(result, bound(operand))
            if len(operands) == 2 and operands[0] == operands[1]:
                result = ConstIntBound(max(result.min_value, 0), result.max_value)
            return result
        case Kind.MIN:
            parts = [bound(e) for e in operands]
            return ConstIntBound(min(p.min_value for p in parts), min(p.max_value for p in parts))
        case Kind.MAX:
            parts = [bound(e) for e in operands]
            return ConstIntBound(max(p.min_value for p in parts), max(p.max_value for p in parts))
        case Kind.SELECT:
            return bound(operands[1]).union(bound(operands[2]))
        case Kind.FLOORDIV:
            return _bound_of_quotient(bound(operands[0]), bound(operands[1]), lambda a, b: a // b)
        case Kind.TRUNCDIV:
            return _bound_of_quotient(bound(operands[0]), bound(operands[1]), _truncate)
        case Kind.FLOORMOD:
            dividend, divisor = bound(operands[0]), bound(operands[1])
            if divisor.min_value <= 0:
                return EVERYTHING
            if dividend.min_value >= 0:
                return ConstIntBound(0, min(dividend.max_value, divisor.max_value - 1))
            return ConstIntBound(0, divisor.max_value - 1 if divisor.max_value < INF else INF)
        case Kind.TRUNCMOD:
            dividend, divisor = bound(operands[0]), bound(operands[1])
            if divisor.min_value <= 0 or divisor.max_value >= INF:
                return EVERYTHING
            most = divisor.max_value - 1
            return ConstIntBound(
                0 if dividend.min_value >= 0 else max(-most, dividend.min_value),
                0 if dividend.max_value <= 0 else min(most, dividend.max_value),
            )
        case Kind.CALL:
            return _bound_of_call(atom, bound)


def _truncate(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _bound_of_product(a: ConstIntBound, b: ConstIntBound) -> ConstIntBound:
    corners = [p * q for p in a for q in b]
    return constant_bound(min(corners), max(corners))


def _bound_of_quotient(a: ConstIntBound, b: ConstIntBound, divide: Callable[[int, int], int]) -> ConstIntBound:
    if b.min_value <= 0 <= b.max_value:
        if b.min_value == 0 and b.max_value > 0:
            # By 0 the quotient is 0.
            by_more = _bound_of_quotient(a, ConstIntBound(1, b.max_value), divide)
            return by_more.union(ConstIntBound(0, 0))
        return EVERYTHING
    if b.min_value > b.max_value:
        return EVERYTHING  # no divisor is possible: the code is never reached
    # INF is larger than any number, so that a finite dividend over INF is 0 or -1, as it should be.
    corners = [divide(p, q) if abs(p) < INF else (p if q > 0 else -p) for p in a for q in b]
    return ConstIntBound(min(corners), max(corners))


def _bound_of_call(atom: Atom, bound: BoundOf) -> ConstIntBound:
    """Bounds bitwise operations on nonnegative operands and casts that keep them; others by their dtype."""
    function = atom.payload
    if not isinstance(function, Function):
        a, b = (bound(e) for e in atom.operands)
        return _bound_of_product(a, b)
    limits = type_bound(function.result)
    if function.name == "T.bitwise_and":
        known = [b.max_value for b in map(bound, atom.operands) if b.min_value >= 0]
        if known:
            return ConstIntBound(0, min(known)).intersect(limits)
    if function.name == "T.shift_right" and bound(atom.operands[0]).min_value >= 0:
        return ConstIntBound(0, bound(atom.operands[0]).max_value).intersect(limits)
    if function.name == "T.shift_left":
        value, count = map(bound, atom.operands)
        # Bits shifted beyond the width are lost, which may leave a negative number.
        if value.min_value >= 0 and 0 <= count.min_value <= count.max_value < _MOST_BITS:
            most = value.max_value << count.max_value
            return ConstIntBound(0, most) if most <= limits.max_value else limits
    # A cast to float rounds its operand, perhaps to infinity: floats are not analyzed.
    if function.op is CastOp and all(isinstance(type, IntegerType) for type in (function.operands[0], function.result)):
        value = bound(atom.operands[0])
        return value if limits.intersect(value) == value else limits
    if function.name == "T.abs":
        return ConstIntBound(0, limits.max_value)
    return limits


def modular_of_sum(expr: Expr, modular_of_atom: Callable[[Atom], ModularSet]) -> ModularSet:
    """Returns the modular set of a linear combination."""
    coeff, base = 0, expr.const
    for atom, coefficient in expr.terms:
        part = modular_of_atom(atom)
        coeff = gcd(coeff, coefficient * part.coeff)
        base += coefficient * part.base
    return ModularSet.of(coeff, base)


def modular_of_atom(atom: Atom, modular: Callable[[Expr], ModularSet]) -> ModularSet:
    """Returns the modular set of an atom from those of its operands."""
    operands = atom.operands
    match atom.kind:
        case Kind.PRODUCT:
            result = modular(operands[0])
            for operand in operands[1:]:
                other = modular(operand)
                coeff = gcd(result.coeff * other.coeff, result.coeff * other.base, other.coeff * result.base)
                result = ModularSet.of(coeff, result.base * other.base)
            return result
        case Kind.FLOORDIV | Kind.FLOORMOD:
            divisor = operands[1].value
            if divisor is None or divisor <= 0:
                return ModularSet(1, 0)
            inner = modular(operands[0])
            if atom.kind is Kind.FLOORMOD:
                return ModularSet.of(gcd(inner.coeff, divisor), inner.base % divisor)
            if inner.coeff % divisor == 0:
                return ModularSet.of(inner.coeff // divisor, inner.base // divisor)
            return ModularSet(1, 0)
        case Kind.MIN | Kind.MAX:
            result = modular(operands[0])
            for operand in operands[1:]:
                result = result.union(modular(operand))
            return result
        case Kind.SELECT:
            return modular(operands[1]).union(modular(operands[2]))
        case _:
            return ModularSet(1, 0)
