"""Proves facts about integer expressions from ranges of and constraints on their variables.

    analyzer.bind(i, 0, 16)        # i in [0, 16)
    analyzer.simplify(i // 16)     # 0
    analyzer.can_prove(i < 20)     # True

Its parts have the names of TVM's `arith` namespace: constant integer bounds, modular sets, canonical and rewriting
simplification, integer sets, iteration maps, constraint scopes. Each fact holds for all values that the knowledge allows;
`can_prove` returns False both for false and for unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeAlias

from xdsl.builder import Builder
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ..tir.types import I32
from . import expr as x
from .bounds import (
    EVERYTHING,
    INF,
    ConstIntBound,
    ModularSet,
    bound_of_atom,
    bound_of_sum,
    bound_of_type,
    constant_bound,
    modular_of_atom,
    modular_of_sum,
)
from .expr import FALSE, TRUE, ZERO, Atom, Expr, Kind, conjuncts, ge, logical_not
from .from_ssa import from_ssa
from .iter_map import IterMapLevel, IterMapResult, IterRange, detect_iter_map
from .simplify import Simplifier
from .to_ssa import to_ssa

# How many inequalities about one atom are remembered, and variables a proof eliminates.
MAX_FACTS = 16
# How many proofs may be within each other: simplification asks for proofs, which simplify.
MAX_PROOFS = 8
# How deep a proof may be within others to try each operand of a minimum or maximum: their number multiplies.
MAX_EXTREMA = 2

Value: TypeAlias = Expr | SSAValue | int


class Known(NamedTuple):
    """Knowledge about one atom, besides what follows from its operands."""

    bound: ConstIntBound = EVERYTHING
    modular: ModularSet | None = None
    ends: tuple[Expr, Expr] | None = None  # least and greatest, by `bind`
    order: int = 0  # a variable bound later may range up to one bound earlier
    facts: tuple[Expr, ...] = ()  # e >= 0, for some e that the atom is a term of
    equal: Expr | None = None


NOTHING = Known()


class Scope:
    """Restores the analyzer's knowledge at the end of a `with`. Without `with`, the knowledge lasts."""

    __slots__ = ("_analyzer", "_mark")

    def __init__(self, analyzer: Analyzer, mark: int):
        self._analyzer = analyzer
        self._mark = mark

    def __enter__(self) -> Scope:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._analyzer.forget_to(self._mark)


class Analyzer:
    """Analyzes expressions under knowledge about their variables.

    Conversions of SSA values are cached: while an analyzer is in use, the ops of converted values must not change.
    """

    def __init__(self) -> None:
        self._converted: dict[SSAValue, Expr] = {}
        self._known: dict[Atom, Known] = {}
        # The knowledge before each change, restored from the end when a scope closes.
        self._trail: list[tuple[Atom, Known | None]] = []
        self._bound_memo: dict[Atom, ConstIntBound] = {}
        self._modular_memo: dict[Atom, ModularSet] = {}
        self._simplifier = Simplifier(self)
        self._proofs = 0

    # Knowledge ---------------------------------------------------------------------------------------------------

    def expr(self, value: Value) -> Expr:
        """Returns the expression of a value or number."""
        kind = type(value)
        if kind is Expr:
            return value  # pyright: ignore[reportReturnType]
        if kind is BlockArgument:
            return x.var(value)  # pyright: ignore[reportArgumentType]
        return x.as_expr(value) if isinstance(value, int | Expr) else from_ssa(value, self._converted)

    def variable(self, value: Value) -> Atom:
        """Returns the atom of a variable. Raises ValueError for any other value."""
        atom = self.expr(value).atom
        if atom is None:
            raise ValueError(f"only a variable can be bound, not {value!r}")
        return atom

    def to_ssa(
        self, expr: Expr, builder: Builder, type: Attribute = I32, values: dict[Atom, SSAValue] | None = None
    ) -> SSAValue:
        """Ops that compute `expr`; see `build.to_ssa`."""
        return to_ssa(expr, builder, type, values)

    def bind(self, variable: Value, min: Value, extent: Value | None = None) -> Scope:
        """Restricts `variable` to [min, min + extent), by default to `min`, for as long as `Scope` says."""
        order = len(self._trail)
        scope = Scope(self, order)
        atom, low = self.variable(variable), self.expr(min)
        if extent is None:
            self._learn_that(atom, equal=self.simplify(low))
            self._clear_memos()
            return scope
        size = self.expr(extent)
        if not low.terms and not size.terms and atom not in self._known:
            # A loop, mostly.
            high = x.number(low.const + size.const - 1)
            self._known[atom] = Known(constant_bound(low.const, high.const), None, (low, high), order)
            self._trail.append((atom, None))
            self._clear_memos()
            return scope
        high = low + size - 1
        least, most = self.const_int_bound(low).min_value, self.const_int_bound(high).max_value
        bound = self.known(atom).bound.intersect(ConstIntBound(least, most))
        self._learn_that(atom, bound=bound, ends=(low, high), order=order)
        for end in (low, high):
            if end.terms:
                fact = Expr(((atom, 1),), 0) - low if end is low else high - Expr(((atom, 1),), 0)
                self._learn_fact(fact)
        self._clear_memos()
        return scope

    def constraint(self, condition: Value) -> Scope:
        """Assumes that `condition` is true, for as long as `Scope` says."""
        scope = Scope(self, len(self._trail))
        for each in conjuncts(self.expr(condition)):
            self._learn(each)
            simple = self.simplify(each)
            if simple != each:
                for part in conjuncts(simple):
                    self._learn(part)
        return scope

    def mark_global_non_neg_value(self, value: Value) -> None:
        """Assumes that `value` (a size) is not negative."""
        self.constraint(ge(self.expr(value), ZERO))

    def learn(self, variable: Value, *, bound: ConstIntBound | None = None, modular: ModularSet | None = None) -> None:
        """Replaces what is known about a variable: its bound or its modular set, where given."""
        atom = self.variable(variable)
        if bound is not None:
            self._learn_that(atom, bound=bound)
        if modular is not None:
            self._learn_that(atom, modular=modular)
        self._clear_memos()

    def forget_to(self, mark: int) -> None:
        """Undoes the knowledge added since the trail was `mark` long; `Scope` calls it."""
        if len(self._trail) == mark:
            return
        while len(self._trail) > mark:
            atom, before = self._trail.pop()
            if before is None:
                del self._known[atom]
            else:
                self._known[atom] = before
        self._clear_memos()

    def known(self, atom: Atom) -> Known:
        """Returns the bounds and the modular set that `bind` and `constraint` have set for an atom."""
        return self._known.get(atom, NOTHING)

    def _learn_that(self, atom: Atom, **news: Any) -> None:
        before = self._known.get(atom)
        self._trail.append((atom, before))
        self._known[atom] = Known(**news) if before is None else before._replace(**news)

    def _clear_memos(self) -> None:
        if self._bound_memo:
            self._bound_memo.clear()
        if self._modular_memo:
            self._modular_memo.clear()
        self._simplifier.clear()

    def _learn(self, condition: Expr) -> None:
        """Records as true one condition that is not a conjunction."""
        atom = condition.atom
        if atom is not None and atom.kind is Kind.GE:
            self._learn_fact(atom.operands[0])
        elif atom is not None and atom.kind is Kind.EQ:
            self._learn_equality(atom.operands[0])
        if atom is not None:
            self._learn_that(atom, equal=TRUE)
        else:
            negated = logical_not(condition).atom
            if negated is not None:
                self._learn_that(negated, equal=FALSE)
                if negated.kind is Kind.EQ:
                    self._learn_difference(negated.operands[0])
        self._clear_memos()

    def _learn_fact(self, e: Expr) -> None:
        """Records e >= 0."""
        if len(e.terms) == 1:
            (atom, coefficient) = e.terms[0]
            limit = -(e.const // coefficient) if coefficient > 0 else e.const // -coefficient
            bound = ConstIntBound(limit, INF) if coefficient > 0 else ConstIntBound(-INF, limit)
            self._learn_that(atom, bound=self.known(atom).bound.intersect(bound))
            return
        for atom, coefficient in e.terms:
            known = self.known(atom)
            if e in known.facts:
                continue
            most = bound_of_sum(e - Expr(((atom, coefficient),), 0), self.bound_of_atom).max_value
            limit = EVERYTHING
            if most < INF:  # coefficient * atom >= -most
                end = most // abs(coefficient)
                limit = ConstIntBound(-end, INF) if coefficient > 0 else ConstIntBound(-INF, end)
            self._learn_that(atom, facts=(e, *known.facts)[:MAX_FACTS], bound=known.bound.intersect(limit))
            self._bound_memo.clear()

    def _learn_equality(self, e: Expr) -> None:
        """Records e == 0."""
        e = self.simplify(e)
        for atom, coefficient in e.terms:
            if abs(coefficient) == 1 and atom.kind is Kind.VAR:
                # No variable on the right has an equal, for `simplify` replaced them: equalities make no cycle.
                rest = (Expr(((atom, coefficient),), 0) - e).scaled(coefficient)
                if atom not in x.free_vars(rest):
                    self._learn_that(atom, equal=rest)
                    break
        if len(e.terms) == 1 and e.terms[0][0].kind is Kind.FLOORMOD:
            (atom, coefficient) = e.terms[0]
            dividend, divisor = atom.operands
            if divisor.value and dividend.atom is not None and coefficient == 1:
                self._learn_that(dividend.atom, modular=ModularSet.of(divisor.const, -e.const))
        self._learn_fact(e)
        self._learn_fact(-e)

    def _learn_difference(self, e: Expr) -> None:
        """Records e != 0: narrows a bound whose end it excludes."""
        bound = self.const_int_bound(e)
        if bound.min_value == 0:
            self._learn_fact(e - 1)
        elif bound.max_value == 0:
            self._learn_fact(-e - 1)

    # Questions ---------------------------------------------------------------------------------------------------

    def const_int_bound(self, value: Value) -> ConstIntBound:
        """Returns the least and greatest number that the value can be, as far as known."""
        e = self.expr(value)
        if not e.terms:
            return ConstIntBound(e.const, e.const)
        bound = bound_of_sum(e, self.bound_of_atom)
        return self._tightened(e, self._by_quotients(e, bound)) if len(e.terms) > 1 else bound

    bounds = const_int_bound

    def bound_of_atom(self, atom: Atom) -> ConstIntBound:
        """Returns the constant bound of an atom."""
        bound = self._bound_memo.get(atom)
        if bound is None and atom.kind is Kind.VAR and (known := self._known.get(atom, NOTHING)).equal is None:
            bound = self._bound_memo[atom] = bound_of_type(atom).intersect(known.bound)
        if bound is None:
            # Inequalities may lead back to the atom: meanwhile only its own bounds are used.
            self._bound_memo[atom] = self.known(atom).bound
            bound = bound_of_atom(atom, self.const_int_bound).intersect(self.known(atom).bound)
            known = self.known(atom).equal
            if known is not None and not known.terms:
                bound = ConstIntBound(known.const, known.const)
            self._bound_memo[atom] = bound
        return bound

    def _facts_about(self, e: Expr) -> dict[Expr, None]:
        found: dict[Expr, None] = {}
        for atom, _ in e.terms:
            found.update(dict.fromkeys(self.known(atom).facts))
        return found

    def _by_quotients(self, e: Expr, bound: ConstIntBound) -> ConstIntBound:
        """Narrows `bound` of an `e` that has k*(a // c) - k*(b // c).

        That difference is between k*((a - b) // c) rounded down and rounded up.
        """
        quotients = [t for t in e.terms if t[0].kind is Kind.FLOORDIV and (t[0].operands[1].value or 0) > 0]
        for first, factor in quotients:
            for second, other in quotients:
                if factor <= 0 or other != -factor or first.operands[1] != second.operands[1]:
                    continue
                distance = bound_of_sum(first.operands[0] - second.operands[0], self.bound_of_atom)
                if distance.min_value <= -INF and distance.max_value >= INF:
                    continue
                divisor = first.operands[1].const
                pair = Expr(((first, factor),), 0) + Expr(((second, other),), 0)
                rest = bound_of_sum(e - pair, self.bound_of_atom)
                low = -INF if distance.min_value <= -INF else factor * (distance.min_value // divisor)
                high = INF if distance.max_value >= INF else factor * -(-distance.max_value // divisor)
                bound = bound.intersect(
                    ConstIntBound(
                        -INF if -INF in (low, rest.min_value) else low + rest.min_value,
                        INF if INF in (high, rest.max_value) else high + rest.max_value,
                    )
                )
        return bound

    def _tightened(self, e: Expr, bound: ConstIntBound) -> ConstIntBound:
        """Narrows `bound` of e by single facts f >= 0: e = k*f + rest is at least the least of rest (k > 0)."""
        for fact in self._facts_about(e):
            for multiple in {e.coefficient(a) // c for a, c in fact.terms if e.coefficient(a) % c == 0} - {0}:
                rest = bound_of_sum(e - fact.scaled(multiple), self.bound_of_atom)
                if multiple > 0:
                    bound = bound.intersect(ConstIntBound(rest.min_value, INF))
                else:
                    bound = bound.intersect(ConstIntBound(-INF, rest.max_value))
        return bound

    def modular_set(self, value: Value) -> ModularSet:
        """Returns (coeff, base) with the value in {coeff * k + base}."""
        return modular_of_sum(self.expr(value), self._modular_of_atom)

    def _modular_of_atom(self, atom: Atom) -> ModularSet:
        known = self.known(atom).modular or self._modular_memo.get(atom)
        if known is None:
            known = self._modular_memo[atom] = modular_of_atom(atom, self.modular_set)
        return known

    def simplify(self, value: Value) -> Expr:
        """Returns the value in canonical form, shortened by all that is known."""
        e = self.expr(value)
        return self._simplifier.simplify(e) if e.terms else e

    def can_prove(self, condition: Value) -> bool:
        """Returns True if the condition is proven true."""
        e = self.expr(condition)
        return all(self._prove(each) for each in conjuncts(e))

    def _prove(self, condition: Expr) -> bool:
        if not condition.terms:
            return condition.const != 0
        simple = self.simplify(condition)
        if not simple.terms:
            return simple.const != 0
        for each in (condition, simple):
            atom = each.atom
            if atom is not None and atom.kind is Kind.GE and self.can_prove_ge0(atom.operands[0]):
                return True
            if atom is not None and atom.kind is Kind.EQ and self.can_prove_equal(atom.operands[0], ZERO):
                return True
            if atom is not None and atom.kind is Kind.AND and all(map(self._prove, atom.operands)):
                return True
        return self._prove_negation(simple)

    def _prove_negation(self, condition: Expr) -> bool:
        """Proves not(…): a difference, or one of several alternatives."""
        atom = logical_not(condition).atom
        if atom is None:
            return False
        if atom.kind is Kind.EQ:
            e = atom.operands[0]
            bound, modular = self.const_int_bound(e), self.modular_set(e)
            return bound.min_value > 0 or bound.max_value < 0 or modular.base != 0
        if atom.kind is Kind.AND:
            return any(self._prove(logical_not(part)) for part in atom.operands)
        return False

    def can_prove_equal(self, a: Value, b: Value) -> bool:
        """Returns True if a == b is proven."""
        difference = self.expr(a) - self.expr(b)
        if not difference.terms:
            return difference.const == 0
        if self._simplifier.is_zero(difference):
            return True
        simple = self.simplify(difference)
        if not simple.terms or self._simplifier.is_zero(simple):
            return simple.const == 0
        return self.can_prove_ge0(simple) and self.can_prove_ge0(-simple)

    def can_prove_greater_equal(self, value: Value, lower_bound: int) -> bool:
        """Returns True if value >= lower_bound is proven."""
        return self.can_prove_ge0(self.expr(value) - lower_bound)

    def can_prove_less(self, value: Value, upper_bound: int) -> bool:
        """Returns True if value < upper_bound is proven."""
        return self.can_prove_ge0(-self.expr(value) + (upper_bound - 1))

    def can_prove_ge0(self, e: Expr) -> bool:
        """Returns True if e >= 0 is proven by constant bounds, known inequalities or symbolic ends of ranges."""
        if self.const_int_bound(e).min_value >= 0:
            return True
        if self._proofs >= MAX_PROOFS:
            return False
        self._proofs += 1
        try:
            e = self.simplify(e)
            if self.const_int_bound(e).min_value >= 0:
                return True
            least = self._lowered(e)
            if least is not None and self.const_int_bound(least).min_value >= 0:
                return True
            return self._proofs <= MAX_EXTREMA and self._is_ge0_beside_extremum(e)
        finally:
            self._proofs -= 1

    def _is_ge0_beside_extremum(self, e: Expr) -> bool:
        """Proves e >= 0 with a minimum or maximum replaced by one of its operands.

        i - min(i, j) >= i - i
        """
        for atom, coefficient in e.terms:
            if atom.kind is Kind.MIN or atom.kind is Kind.MAX:
                rest = e - Expr(((atom, coefficient),), 0)
                # A minimum is no more than any of its operands, and no less than all of them.
                enough = any if (coefficient < 0) == (atom.kind is Kind.MIN) else all
                if enough(self.can_prove_ge0(rest + operand.scaled(coefficient)) for operand in atom.operands):
                    return True
        return False

    def _lowered(self, e: Expr) -> Expr | None:
        """Returns a lower bound of e: each variable at an end of its range, later bound ones first."""
        done: set[Atom] = set()
        for _ in range(MAX_FACTS):
            bound = [a for a in x.free_vars(e) if a not in done and self.known(a).ends is not None]
            if not bound:
                break
            atom = max(bound, key=lambda a: self.known(a).order)
            done.add(atom)
            ends, parts = self.known(atom).ends, linear_in(e, atom)
            if parts is None or ends is None:
                continue
            factor, rest = parts
            limits = self.const_int_bound(factor)
            if limits.min_value >= 0:
                e = rest + factor * ends[0]
            elif limits.max_value <= 0:
                e = rest + factor * ends[1]
        return self.simplify(e) if done else None

    # Iteration maps ----------------------------------------------------------------------------------------------

    def detect_iter_map(
        self,
        indices: Sequence[Value],
        input_iters: Mapping[Value, tuple[Value, Value]],
        predicate: Value = 1,
        level: IterMapLevel = IterMapLevel.SURJECTIVE,
    ) -> IterMapResult:
        """Returns `indices` as an iteration map of the loops `input_iters` (variable: (min, extent))."""
        iters: dict[Atom, IterRange] = {}
        for variable, (low, extent) in input_iters.items():
            atom = self.expr(variable).atom
            if atom is None:
                raise ValueError(f"a loop is a variable, not {variable!r}")
            iters[atom] = IterRange(self.expr(low), self.expr(extent))
        return detect_iter_map(self, [self.expr(e) for e in indices], iters, self.expr(predicate), level)


def linear_in(e: Expr, atom: Atom) -> tuple[Expr, Expr] | None:
    """Returns (f, r) with e = f * atom + r and atom in neither; None if e is not linear in it."""
    factor, rest = ZERO, x.as_expr(e.const)
    for other, coefficient in e.terms:
        if other is atom:
            factor += coefficient
        elif other.kind is Kind.PRODUCT and atom in x.factors_of(other):
            others = list(x.factors_of(other))
            others.remove(atom)
            if atom in others:
                return None
            factor += x.product_of(others).scaled(coefficient)
        elif atom in x.free_vars(Expr(((other, 1),), 0)):
            return None
        else:
            rest += Expr(((other, coefficient),), 0)
    if factor == ZERO or atom in x.free_vars(factor):
        return None
    return factor, rest
