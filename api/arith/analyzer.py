"""`Analyzer`: simplifies and proves expressions of TIR from what is known about their variables."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import Flag, IntEnum
from functools import reduce
from typing import TypeAlias

from ...dialects.arith import bounds
from ...dialects.arith.bounds import INF
from ...dialects.arith.node_analyzer import NodeAnalyzer
from ...dialects.arith.rewrite_simplify import RewriteSimplifier
from ...dialects.tir import node as ex
from ...dialects.tir.node import Expr, ExprLike, Range, Var, convert
from ...passes.tir.scalars.simplify import MAX_PARTS, prove_transitively
from ...support.arguments import check
from ...support.deep_stack import in_deep_stack
from ...support.public_names import public_names
from .int_set import IntervalSet, evaluate


class ProofStrength(IntEnum):
    """Names how hard `can_prove` tries; each proof here uses symbolic ends, too."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class Extension(Flag):
    """Names what an analyzer does only where it is asked to: `analyzer.enabled_extensions = Extension.…`.

    Comparisons of products with sums, and parts of conditions under the others, are always simplified as far as here is known.
    """

    NoExtensions = 0
    TransitivelyProveInequalities = 1
    """`can_prove` adds up the inequalities that are known: from a < b and b < c, a < c."""
    ConvertBooleanToAndOfOrs = 2
    """`simplify` brings conditions into the form of an `and` of `or`s."""
    ApplyConstraintsToBooleanBranches = 4
    ComparisonOfProductAndSum = 8


class ConstIntBound:
    """The least and the greatest number that a value can be; POS_INF, NEG_INF where none is known."""

    __slots__ = ("max_value", "min_value")

    POS_INF = (1 << 63) - 1
    NEG_INF = -POS_INF

    def __init__(self, min_value: int, max_value: int):
        self.min_value = min_value
        self.max_value = max_value

    def __repr__(self) -> str:
        return f"ConstIntBound[{self._shown(self.min_value)}, {self._shown(self.max_value)}]"

    def _shown(self, end: int) -> str:
        return {self.POS_INF: "pos_inf", self.NEG_INF: "neg_inf"}.get(end, str(end))


class ModularSet:
    """The values `coeff * k + base` for integers k; one value, `base`, where coeff is 0."""

    __slots__ = ("base", "coeff")

    def __init__(self, coeff: int, base: int):
        self.coeff = coeff
        self.base = base

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


Info: TypeAlias = "ConstIntBound | ModularSet | IntervalSet"
"""What `update` takes."""


class Analyzer:
    """Knows the ranges of variables, and conditions, and answers questions on expressions.

    analyzer = arith.Analyzer()
    analyzer.bind(x, ir.Range(0, 8))
    analyzer.simplify(x // 8)          # 0
    """

    def __init__(self) -> None:
        self._analyzer = NodeAnalyzer()
        self._domain: dict[Var, IntervalSet] = {}
        self._updated: dict[tuple[int, type[Info]], tuple[Var, Info]] = {}
        self._extensions = Extension.NoExtensions

    def __repr__(self) -> str:
        known = ", ".join(f"{variable} in {values}" for variable, values in self._domain.items())
        return f"Analyzer({known})"

    @property
    def enabled_extensions(self) -> Extension:
        """Returns what the analyzer does beyond what it always does."""
        return self._extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: Extension | int) -> None:
        check(flags, "flags", "an arith.Extension", Extension, int)
        self._extensions = Extension(flags)

    # Questions -------------------------------------------------------------------------------------------------------

    def const_int_bound(self, expr: ExprLike) -> ConstIntBound:
        """Returns the least and the greatest number that the expression can be."""
        low, high = self._analyzer.analyzer.const_int_bound(self._analyzer.analyzed(convert(expr)))
        return ConstIntBound(max(low, ConstIntBound.NEG_INF), min(high, ConstIntBound.POS_INF))

    def const_int_bound_is_bound(self, var: Var) -> bool:
        """Returns whether something was said about a variable's bound."""
        return var in self._domain or (id(var), ConstIntBound) in self._updated or self._is_equal(var)

    def modular_set(self, expr: ExprLike) -> ModularSet:
        """Returns the numbers that the expression can be, as those of one remainder."""
        e = self._analyzer.analyzed(convert(expr))
        found = self._analyzer.analyzer.modular_set(e)
        if found.coeff == 1:
            found = self._analyzer.analyzer.modular_set(self._analyzer.analyzer.simplify(e))
        return ModularSet(*found)

    def int_set(self, expr: ExprLike, dom_map: Mapping[Var, IntervalSet | Range] | None = None) -> IntervalSet:
        """Returns the expression's interval while the variables of `dom_map` (by default those bound) run."""
        return evaluate(convert(expr), self._domain if dom_map is None else dom_map, self._analyzer)

    def simplify(self, expr: ExprLike, steps: int = 2) -> Expr:
        """Returns the expression simplified, terms in canonical order.

        The form is reached in one step: `steps` does not change it.
        """
        given = convert(expr)
        if Extension.ConvertBooleanToAndOfOrs in self._extensions and isinstance(given, ex.And | ex.Or):
            given = _and_of_ors(given)
        return self._analyzer.simplify(given)

    def rewrite_simplify(self, expr: ExprLike) -> Expr:
        """Returns the expression simplified by local rules, which keep the order of terms.

        Where no rule applies, it is what `simplify` returns.
        """
        given = convert(expr)
        rewriter = RewriteSimplifier(self._analyzer)
        result = in_deep_stack(lambda: rewriter.simplify(given))
        return result if rewriter.steps else self.simplify(given)

    def canonical_simplify(self, expr: ExprLike) -> Expr:
        """Returns what `simplify` does."""
        return self.simplify(expr)

    def can_prove(self, expr: ExprLike, strength: ProofStrength = ProofStrength.DEFAULT) -> bool:
        """Returns whether the condition is proven to be true."""
        condition = convert(expr)
        if Extension.TransitivelyProveInequalities in self._extensions:
            return prove_transitively(self._analyzer.analyzer, self._analyzer.analyzed(condition))
        return self._analyzer.prove(condition)

    def can_prove_equal(self, lhs: ExprLike, rhs: ExprLike) -> bool:
        """Returns whether both are proven to be equal."""
        return self._analyzer.prove_equal(convert(lhs), convert(rhs))

    def can_prove_greater_equal(self, expr: ExprLike, lower_bound: int) -> bool:
        """Returns whether the expression is proven to be at least a number."""
        return self._analyzer.analyzer.can_prove_greater_equal(self._analyzer.analyzed(convert(expr)), lower_bound)

    def can_prove_less(self, expr: ExprLike, upper_bound: int) -> bool:
        """Returns whether the expression is proven to be less than a number."""
        return self._analyzer.analyzer.can_prove_less(self._analyzer.analyzed(convert(expr)), upper_bound)

    # Knowledge -------------------------------------------------------------------------------------------------------

    def bind(self, var: Var, expr: ExprLike | Range) -> None:
        """Says that a variable is an expression, or runs over a range."""
        check(var, "var", "a variable", Var)
        span = expr if isinstance(expr, Range) else Range.from_min_extent(convert(expr), ex.const(1, var.dtype))
        self._domain[var] = IntervalSet(span.min, self.simplify(span.min + span.extent - 1))
        self._analyzer.bind(var, span.min, span.extent)

    @contextmanager
    def constraint_scope(self, constraint: ExprLike) -> Generator[None]:
        """Assumes within the `with` that a condition is true."""
        with self._analyzer.knowing(convert(constraint)):
            yield

    def update(self, var: Var, info: Info, override: bool = False) -> None:
        """Says what is known about a variable.

        Raises MirError where another was said before, unless `override`.
        """
        check(var, "var", "a variable", Var)
        check(info, "info", "a ConstIntBound, ModularSet or IntervalSet", ConstIntBound, ModularSet, IntervalSet)
        key = (id(var), type(info))
        before = self._updated.get(key)
        if before is not None and not override and repr(before[1]) != repr(info):
            raise ex.fail(
                f"variable '{var.name}' is known to be in {before[1]}, not {info}",
                "override=True replaces what is known",
            )
        self._updated[key] = (var, info)
        analyzer = self._analyzer.analyzer
        atom = self._analyzer.variable(var)
        match info:
            case ConstIntBound():
                low = -INF if info.min_value <= ConstIntBound.NEG_INF else info.min_value
                high = INF if info.max_value >= ConstIntBound.POS_INF else info.max_value
                analyzer.learn(atom, bound=bounds.ConstIntBound(low, high))
            case ModularSet():
                analyzer.learn(atom, modular=bounds.ModularSet.of(info.coeff, info.base))
            case IntervalSet():
                self._domain[var] = info
        self._analyzer.forget_simplified()

    def _is_equal(self, var: Var) -> bool:
        return self._analyzer.equal_of(var) is not None


def _and_of_ors(e: Expr) -> Expr:
    clauses = _clauses(e)
    if clauses is None:
        return e
    return reduce(ex.logical_and, [reduce(ex.logical_or, clause) for clause in clauses])


def _clauses(e: Expr) -> list[list[Expr]] | None:
    """Returns the alternatives of each part of a condition; None for too many."""
    if not isinstance(e, ex.And | ex.Or):
        return [[e]]
    left, right = (_clauses(part) for part in e.args)
    if left is None or right is None or len(left) * len(right) > MAX_PARTS:
        return None
    return [*left, *right] if isinstance(e, ex.And) else [[*a, *b] for a in left for b in right]


__dir__ = public_names(__name__)
