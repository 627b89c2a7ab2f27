"""Simplifies expressions under an analyzer's knowledge; its normal form decides equality."""

from __future__ import annotations

from math import gcd
from operator import is_
from typing import TYPE_CHECKING

from . import expr as x
from .expr import FALSE, TRUE, ZERO, Atom, Expr, Kind, logical_and, logical_not, rebuild, select

if TYPE_CHECKING:
    from .analyzer import Analyzer

_ROUNDS = 4
_FOLDED = frozenset({Kind.FLOORDIV, Kind.FLOORMOD, Kind.PRODUCT})
"""Atoms that may fold with other terms of a sum."""
_DIVISIONS = frozenset({Kind.FLOORDIV, Kind.FLOORMOD})


class Simplifier:
    """Rewrites atoms from the inside out, by ranges and divisibility; caches until the knowledge changes."""

    def __init__(self, analyzer: Analyzer):
        self.analyzer = analyzer
        self._memo: dict[Atom, Expr] = {}
        self._normal: dict[Atom, Expr] = {}

    def clear(self) -> None:
        """Forgets results that knew more or less than is known now."""
        self._memo.clear()

    def simplify(self, e: Expr) -> Expr:
        """Simplifies `e`."""
        if not e.terms:
            return e
        for _ in range(_ROUNDS):
            result = self._once(e)
            if result is e or result == e:
                break
            e = result
        if len(e.terms) > 1 and any([atom.kind in _DIVISIONS for atom, _ in e.terms]):
            # Quotients and remainders of different divisors may cancel: x//16*16 + x%16//4*4 + x%4.
            plain = self.normal(e)
            if len(plain.terms) < len(e.terms) or all(atom.kind is Kind.VAR for atom, _ in plain.terms):
                return self.simplify(plain)
        return e

    def _once(self, e: Expr) -> Expr:
        parts: list[Expr] = []
        same = True
        for atom, _ in e.terms:
            simple = self._memo.get(atom)
            if simple is None:
                # Meanwhile the atom represents itself: knowledge about it may lead back to it.
                self._memo[atom] = Expr(((atom, 1),), 0)
                simple = self._memo[atom] = self._atom(atom)
            parts.append(simple)
            same = same and simple.atom is atom
        total = e
        if not same:
            total = x.as_expr(e.const)
            for simple, (_, coefficient) in zip(parts, e.terms, strict=True):
                total += simple.scaled(coefficient)
        if len(total.terms) > 1:
            for atom, _ in total.terms:
                if atom.kind in _FOLDED:
                    return self._folded(fold_quotients(total))
        return total

    def _folded(self, e: Expr) -> Expr:
        """Applies `fold_quotients` to quotients that the knowledge simplifies.

        With a = 16*i + j and j < 16, a // 2240 is i // 140.
        """
        for atom, here in e.terms:
            if atom.kind is not Kind.FLOORMOD or atom.operands[1].terms or len(e.terms) == 1:
                continue
            dividend, divisor = atom.operands
            # A quotient in the dividend may hide known facts of the sum: (16*i + j // 28) // 28 is (448*i + j) // 784.
            nested = _opened(dividend, divisor)
            for quotient in (x.floordiv(dividend, divisor), *([] if nested is None else [x.floordiv(*nested)])):
                quotient = self.simplify(quotient)
                if quotient.terms and _multiple_of(e, quotient * divisor) == here:
                    rest = e - (quotient * divisor + Expr(((atom, 1),), 0)).scaled(here)
                    return self._folded(fold_quotients(rest + dividend.scaled(here)))
        return e

    def _atom(self, atom: Atom) -> Expr:
        known = self.analyzer.known(atom).equal
        if known is not None:
            return self.simplify(known)
        if atom.kind is Kind.VAR:
            low, high = self.analyzer.bound_of_atom(atom)
            return x.as_expr(low) if low == high else self._memo[atom]
        if atom.kind is Kind.SELECT or atom.kind is Kind.AND:
            result = self._select(atom) if atom.kind is Kind.SELECT else self._conjunction(atom)
        else:
            operands = tuple([self.simplify(e) for e in atom.operands])
            same = all(map(is_, operands, atom.operands))
            result = Expr(((atom, 1),), 0) if same else rebuild(atom, operands)
        rebuilt = result.atom
        if rebuilt is None:
            return result
        known = self.analyzer.known(rebuilt).equal if rebuilt is not atom else None
        if known is not None:
            return known
        match rebuilt.kind:
            case Kind.FLOORDIV:
                return self._floordiv(rebuilt.operands[0], rebuilt.operands[1], result)
            case Kind.FLOORMOD:
                return self._floormod(rebuilt.operands[0], rebuilt.operands[1], result)
            case Kind.TRUNCDIV | Kind.TRUNCMOD:
                return self._truncated(rebuilt, result)
            case Kind.MIN | Kind.MAX:
                return self._extremum(rebuilt, result)
            case Kind.GE | Kind.EQ:
                return self._comparison(rebuilt, result)
            case _:
                return self._number_or(result)

    def _number_or(self, e: Expr) -> Expr:
        """Returns the only number that `e` can be, otherwise `e`."""
        low, high = self.analyzer.const_int_bound(e)
        return x.as_expr(low) if low == high else e

    def _floordiv(self, a: Expr, b: Expr, otherwise: Expr) -> Expr:
        low, high = self.analyzer.const_int_bound(a)
        if b.terms or b.const <= 0:
            return self._symbolic_floordiv(a, b, otherwise)
        if low // b.const == high // b.const:
            return x.as_expr(low // b.const)
        large, _, unit = self._split_small(a, b.const)
        if unit:  # (g*x + y) // c with 0 <= y < g, g | c
            return x.floordiv(large, b)
        return self._by_modular(a, b.const) or otherwise

    def _symbolic_floordiv(self, a: Expr, b: Expr, otherwise: Expr) -> Expr:
        number = self._number_or(otherwise)
        return ZERO if number is otherwise and self._is_remainder(a, b) else number

    def _is_remainder(self, a: Expr, b: Expr) -> bool:
        """Returns True if 0 <= a < b is proven, for a symbolic b."""
        bound = self.analyzer.const_int_bound
        positive = bool(b.terms) and bound(b).min_value > 0 and bound(a).min_value >= 0
        return positive and self.analyzer.can_prove_ge0(b - a - 1)

    def _by_modular(self, a: Expr, c: int) -> Expr | None:
        """Returns a // c as the exact (a - r) // c if a is known to be c*k + r for one r."""
        modular = self.analyzer.modular_set(a)
        if modular.coeff and modular.coeff % c == 0 and modular.base % c:
            return x.floordiv(a - modular.base % c, x.as_expr(c))
        return None

    def _floormod(self, a: Expr, b: Expr, otherwise: Expr) -> Expr:
        if b.terms or b.const <= 0:
            return a if self._is_remainder(a, b) else otherwise
        low, high = self.analyzer.const_int_bound(a)
        if low // b.const == high // b.const:
            return a - low // b.const * b.const
        modular = self.analyzer.modular_set(a)
        if modular.coeff % b.const == 0:
            return x.as_expr(modular.base % b.const)
        large, small, unit = self._split_small(a, b.const)
        if unit:
            return x.floormod(large, b) + small
        return otherwise

    def _split_small(self, a: Expr, c: int) -> tuple[Expr, Expr, int]:
        """Returns (g*x, y, g) with a = g*x + y, where g > 1 divides c and 0 <= y < g; g is 0 if none exists."""
        terms = sorted(a.terms, key=lambda t: (-gcd(t[1], c), t[0].serial))
        unit = c
        for count, (_, coefficient) in enumerate(terms):
            unit = gcd(unit, coefficient)
            if unit == 1:
                break
            rest = Expr(tuple(sorted(terms[count + 1 :], key=lambda t: t[0].serial)), a.const % unit)
            if not rest.terms:
                break
            bound = self.analyzer.const_int_bound(rest)
            if bound.min_value >= 0 and bound.max_value < unit:
                return a - rest, rest, unit
        return a, ZERO, 0

    def _truncated(self, atom: Atom, otherwise: Expr) -> Expr:
        a, b = atom.operands
        divides = atom.kind is Kind.TRUNCDIV
        if self.analyzer.const_int_bound(b).min_value > 0 and self.analyzer.const_int_bound(a).min_value >= 0:
            return self.simplify(x.floordiv(a, b) if divides else x.floormod(a, b))
        modular = self.analyzer.modular_set(a)
        if b.value and modular.coeff % b.const == 0 and modular.base % b.const == 0:
            return self.simplify(x.floordiv(a, b)) if divides else ZERO
        return otherwise

    def _extremum(self, atom: Atom, otherwise: Expr) -> Expr:
        """Drops operands that another one beats for sure."""
        least = atom.kind is Kind.MIN
        kept = list(atom.operands)
        if len(kept) > 8:
            return otherwise
        for each in atom.operands:
            for other in kept:
                if other is not each and self.analyzer.can_prove_ge0(each - other if least else other - each):
                    kept.remove(each)
                    break
        return otherwise if len(kept) == len(atom.operands) else (x.minimum if least else x.maximum)(*kept)

    def _comparison(self, atom: Atom, otherwise: Expr) -> Expr:
        (e,) = atom.operands
        bound = self.analyzer.const_int_bound(e)
        if atom.kind is Kind.GE:
            if bound.min_value >= 0:
                return TRUE
            return FALSE if bound.max_value < 0 else otherwise
        if bound.min_value == bound.max_value == 0 or self.is_zero(e):
            return TRUE
        if bound.min_value > 0 or bound.max_value < 0 or self.analyzer.modular_set(e).base:
            return FALSE
        return otherwise

    def _select(self, atom: Atom) -> Expr:
        condition, if_true, if_false = atom.operands
        condition = self.simplify(condition)
        if not condition.terms:
            return self.simplify(if_true if condition.const else if_false)
        with self.analyzer.constraint(condition):
            if_true = self.simplify(if_true)
        with self.analyzer.constraint(logical_not(condition)):
            if_false = self.simplify(if_false)
        return select(condition, if_true, if_false, bool(atom.payload))

    def _conjunction(self, atom: Atom) -> Expr:
        """Simplifies each part of a conjunction under those before it."""
        kept: list[Expr] = []
        scopes = [self.analyzer.constraint(TRUE)]
        for part in atom.operands:
            simple = self.simplify(part)
            kept.append(simple)
            if simple == FALSE:
                break
            scopes.append(self.analyzer.constraint(simple))
        with scopes[0]:
            return logical_and(*kept)

    def is_zero(self, e: Expr) -> bool:
        """Returns True if e is 0 for all values of its variables, by the normal form (knowledge is not used)."""
        if all(atom.kind is Kind.VAR or atom.kind is Kind.PRODUCT for atom, _ in e.terms):
            return not e.terms and e.const == 0
        return self.normal(e) == ZERO

    def normal(self, e: Expr) -> Expr:
        """Rewrites every a % c in `e` to a - c * (a // c).

        Equal linear arithmetic with nested quotients and remainders has equal normal forms.
        """
        total = x.as_expr(e.const)
        for atom, coefficient in e.terms:
            form = self._normal.get(atom)
            if form is None:
                operands = tuple(self.normal(operand) for operand in atom.operands)
                if atom.kind is Kind.FLOORMOD:
                    form = operands[0] - _normal_quotient(*operands) * operands[1]
                elif atom.kind is Kind.FLOORDIV:
                    form = _normal_quotient(*operands)
                else:
                    form = rebuild(atom, operands)
                self._normal[atom] = form
            total += form.scaled(coefficient)
        return total


def _normal_quotient(a: Expr, b: Expr) -> Expr:
    """Returns a // b with the dividend's coefficients in (-b/2, b/2], so that equal quotients look equal.

    A quotient inside the dividend is merged with it.
    """
    c = b.const
    if b.terms or c <= 1:
        return x.floordiv(a, b)
    opened = _opened(a, b)
    if opened is not None:
        return _normal_quotient(*opened)
    whole = Expr(tuple((atom, n) for atom, n in ((t[0], -((c - 2 * t[1]) // (2 * c))) for t in a.terms) if n), 0)
    return whole + x.floordiv(a - whole.scaled(c), b)


def _opened(a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
    """Returns the operands of (k + y // d) // b as (d*k + y) // (d*b), or None if `a` is not such a sum."""
    inner = next(
        (t[0] for t in a.terms if t[1] == 1 and t[0].kind is Kind.FLOORDIV and not t[0].operands[1].terms), None
    )
    if inner is None or len(a.terms) < 2 or inner.operands[1].const <= 1:
        return None
    dividend, divisor = inner.operands
    rest = a - Expr(((inner, 1),), 0)
    return rest.scaled(divisor.const) + dividend, b.scaled(divisor.const)


def fold_quotients(e: Expr) -> Expr:
    """Replaces k*c*(a // c) + k*(a % c) by k*a, and k*a - k*c*(a // c) by k*(a % c), also for symbolic c."""
    for atom, _ in e.terms:
        if atom.kind is Kind.FLOORMOD:
            quotient = x.floordiv(*atom.operands)
            matched = _multiple_of(e, quotient * atom.operands[1])
            here = e.coefficient(atom)
            if matched and matched == here:
                return _fold_again(
                    e
                    - (quotient * atom.operands[1] + Expr(((atom, 1),), 0)).scaled(here)
                    + atom.operands[0].scaled(here)
                )
        elif atom.kind is Kind.FLOORDIV or atom.kind is Kind.PRODUCT:
            folded = _folded_remainder(e, atom)
            if folded is not None:
                return _fold_again(folded)
    return e


def _fold_again(e: Expr) -> Expr:
    return fold_quotients(e) if len(e.terms) > 1 else e


def _multiple_of(e: Expr, part: Expr) -> int:
    """Returns k if e has k * part among its terms, otherwise 0."""
    if not part.terms:
        return 0
    atom, coefficient = part.terms[0]
    here = e.coefficient(atom)
    if not here or here % coefficient:
        return 0
    multiple = here // coefficient
    return multiple if all(e.coefficient(a) == c * multiple for a, c in part.terms) else 0


def _folded_remainder(e: Expr, atom: Atom) -> Expr | None:
    """Replaces k*a - k*c*(a // c) in e by k*(a % c); `atom` is a // c or its product with a symbolic c."""
    for factor in x.factors_of(atom):
        if factor.kind is not Kind.FLOORDIV:
            continue
        dividend, divisor = factor.operands
        whole = Expr(((factor, 1),), 0) * divisor
        if len(whole.terms) != 1 or whole.terms[0][0] is not atom or not dividend.terms:
            continue
        multiple = -e.coefficient(atom) // whole.terms[0][1] if e.coefficient(atom) % whole.terms[0][1] == 0 else 0
        if multiple and _multiple_of(e, Expr(dividend.terms, 0)) == multiple:
            return e - (dividend - whole).scaled(multiple) + x.floormod(dividend, divisor).scaled(multiple)
    return None
