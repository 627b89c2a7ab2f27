"""Simplifies index arithmetic on TE's expression trees in TVM's order of terms, and proves conditions.

Proofs are the analyzer's, whose own form of expressions has no order. The order here is that of TVM's canonical simplifier, so that
programs print as TVM prints them: larger coefficients first, equal ones as they were
written, then the constant, then subtracted terms; products of two unknowns are not multiplied out.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import gcd

from .. import tir
from ..te.expr_mutator import map_children
from ..te.value_numbering import Numbering
from ..tir import node as ex
from ..tir.node import Apply, Call, Choice, Const, Expr, IntImm, IterVar, Var, apply
from . import Analyzer
from . import expr as x
from .expr import select
from .from_ssa import ARITHMETIC, COMPARISONS, LOGIC

INDEX_DTYPES = ("int32", "int64")


def number(value: int, dtype: str = "int32") -> Const:
    """Returns an integer constant."""
    return IntImm(dtype, value)


def constant(e: Expr) -> int | None:
    """Returns the integer that the expression is, or None."""
    return e.value if isinstance(e, Const) and isinstance(e.value, int) else None


def is_zero(e: Expr) -> bool:
    """Returns whether the expression is the number 0."""
    return constant(e) == 0


def is_one(e: Expr) -> bool:
    """Returns whether the expression is the number 1."""
    return constant(e) == 1


class Sum:
    """Represents `const` plus coefficients · atoms, by their number in a `Numbering`, in order."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int = 0):
        self.const = const
        self.terms: dict[int, tuple[Expr, int]] = {}

    def add(self, other: Sum, factor: int = 1) -> Sum:
        """Adds `factor` times another sum to this one."""
        self.const += factor * other.const
        for key, (atom, coefficient) in other.terms.items():
            self.add_term(key, atom, factor * coefficient)
        return self

    def add_term(self, key: int, atom: Expr, coefficient: int) -> None:
        """Adds `coefficient` times an atom."""
        held = self.terms.get(key)
        total = coefficient + (0 if held is None else held[1])
        if total:
            self.terms[key] = (atom, total)
        else:
            self.terms.pop(key, None)


class Arith:
    """Simplifies and proves under knowledge about variables."""

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self.numbering = Numbering()
        self._atoms: dict[int, x.Expr] = {}
        self._analyzed: dict[int, x.Expr] = {}
        self._equal: dict[int, Expr] = {}
        self._memo: dict[int, Expr] = {}
        self._kept: list[Expr] = []

    # Knowledge -------------------------------------------------------------------------------------------------------

    @contextmanager
    def inside(self, variable: Expr, low: Expr, extent: Expr) -> Generator[None]:
        """Restricts `variable` to the nonempty range [low, low + extent) within the `with`."""
        scope = self.analyzer.constraint(1)
        with scope:
            self.bind(variable, low, extent)
            yield
        self._memo.clear()

    def bind(self, variable: Expr, low: Expr, extent: Expr) -> None:
        """Restricts `variable` to [low, low + extent) from now on."""
        self._kept.append(variable)
        if is_one(extent):
            self._equal[id(variable)] = self.simplify(low)
            self.analyzer.bind(self._atom(variable), self.analyzed(low))
        else:
            self.analyzer.bind(self._atom(variable), self.analyzed(low), self.analyzed(extent))
        self._memo.clear()

    @contextmanager
    def knowing(self, condition: Expr) -> Generator[None]:
        """Assumes within the `with` that the condition is true."""
        before = self._memo
        self._memo = {}
        try:
            with self.analyzer.constraint(self.analyzed(condition)):
                yield
        finally:
            self._memo = before

    def _atom(self, e: Expr) -> x.Expr:
        key = self.numbering.number(e)
        found = self._atoms.get(key)
        if found is None:
            found = self._atoms[key] = self._symbol(e)
        return found

    def _symbol(self, e: Expr) -> x.Expr:
        """Returns a fresh variable of the analyzer for an expression that it takes as a whole."""
        return x.symbol(e.name if isinstance(e, (Var, IterVar)) else "value")

    def analyzed(self, root: Expr) -> x.Expr:
        """Returns the expression as the analyzer's."""
        found = self._analyzed.get(id(root))
        if found is not None:
            return found
        pending = [root]
        while pending:
            e = pending[-1]
            if id(e) in self._analyzed:
                pending.pop()
                continue
            parts = self._parts(e)
            missing = [p for p in parts if id(p) not in self._analyzed]
            if missing:
                pending += missing
                continue
            pending.pop()
            result = self._analyze(e, [self._analyzed[id(p)] for p in parts])
            if len(result.terms) > x.MAX_TERMS or (result.terms and result.depth > x.MAX_DEPTH):
                result = self._atom(e)
            self._analyzed[id(e)] = result
            self._kept.append(e)
        return self._analyzed[id(root)]

    def _parts(self, e: Expr) -> tuple[Expr, ...]:
        """Returns the operands of analyzed ops: operators on indices, conditions, index casts, `likely`."""
        match e:
            case Apply() if e.op in LOGIC:
                return e.args
            case Apply() if e.args[-1].dtype in INDEX_DTYPES:
                known = e.op in COMPARISONS or (
                    e.dtype in INDEX_DTYPES and (e.op in ARITHMETIC or e.op in (tir.SelectOp, tir.CastOp))
                )
                return e.args if known else ()
            case Call() if e.intrinsic == "likely":
                return e.args
            case _:
                return ()

    def _analyze(self, e: Expr, parts: list[x.Expr]) -> x.Expr:
        if isinstance(e, Const) and isinstance(e.value, int):
            return x.as_expr(e.value)
        if not parts:
            equal = self._equal.get(id(e))
            return self._atom(e) if equal is None else self.analyzed(equal)
        if isinstance(e, Call) or not isinstance(e, Apply) or e.op is tir.CastOp:
            return parts[0]
        if e.op is tir.SelectOp:
            return select(parts[0], parts[1], parts[2])
        build = ARITHMETIC.get(e.op) or COMPARISONS.get(e.op) or LOGIC[e.op]
        return build(*parts)

    def prove(self, condition: Expr) -> bool:
        """Returns whether the condition is true for sure."""
        return self.analyzer.can_prove(self.analyzed(condition))

    def prove_equal(self, a: Expr, b: Expr) -> bool:
        """Returns whether both are equal for sure."""
        return self.analyzer.can_prove_equal(self.analyzed(a), self.analyzed(b))

    def bounds(self, e: Expr) -> tuple[int | float, int | float]:
        """Returns the least and greatest value, as numbers."""
        bound = self.analyzer.const_int_bound(self.analyzed(e))
        return bound.min_value, bound.max_value

    # Simplification --------------------------------------------------------------------------------------------------

    def simplify(self, e: Expr) -> Expr:
        """Simplifies an expression, with terms in TVM's order."""
        key = self.numbering.number(e)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._simplify(e)
            self._memo[self.numbering.number(found)] = found
        return found

    def _simplify(self, e: Expr) -> Expr:
        if e.dtype in INDEX_DTYPES and isinstance(e, (Apply, Const, Var, IterVar)):
            return self._present(self._sum(e), e.dtype)
        if isinstance(e, Apply):
            if e.op in COMPARISONS and e.args[0].dtype in INDEX_DTYPES:
                return self._comparison(e)
            if e.op is tir.GtOp:
                return ex.less(self.simplify(e.args[1]), self.simplify(e.args[0]))
            if e.op is tir.GeOp:
                return ex.less_equal(self.simplify(e.args[1]), self.simplify(e.args[0]))
            if e.op is tir.SelectOp:
                return self._choice(e, e.args, ex.Select)
        if isinstance(e, Choice):
            return self._choice(e, (e.args[0], e.then_value, e.else_value), ex.if_then_else)
        result = map_children(e, self.simplify)
        if isinstance(result, Call) and result.intrinsic == "likely" and isinstance(result.args[0], Const):
            return result.args[0]
        return result

    def _choice(self, e: Expr, parts: tuple[Expr, ...], build: Callable[[Expr, Expr, Expr], Expr]) -> Expr:
        condition = self.simplify(parts[0])
        if isinstance(condition, Const):
            return self.simplify(parts[1] if condition.value else parts[2])
        with self.knowing(condition):
            then = self.simplify(parts[1])
        with self.knowing(ex.logical_not(condition)):
            otherwise = self.simplify(parts[2])
        if self.numbering.number(then) == self.numbering.number(otherwise):
            return then
        if condition is parts[0] and then is parts[1] and otherwise is parts[2]:
            return e
        return build(condition, then, otherwise)

    def _sum(self, e: Expr) -> Sum:
        match e:
            case Const():
                return Sum(int(e.value))
            case Var() | IterVar():
                equal = self._equal.get(id(e))
                return self._single(e) if equal is None else self._sum(equal)
            case Apply() if e.op is tir.AddOp:
                return self._added(e)
            case Apply() if e.op is tir.SubOp:
                return self._sum(e.args[0]).add(self._sum(e.args[1]), -1)
            case Apply() if e.op is tir.MulOp:
                return self._product(e)
            case Apply() if e.op is tir.FloorDivOp:
                return self._floordiv(e)
            case Apply() if e.op is tir.FloorModOp:
                return self._floormod(e)
            case Apply() if e.op in (tir.MinOp, tir.MaxOp):
                return self._extremum(e)
            case Apply() if e.op is tir.SelectOp:
                chosen = self._choice(e, e.args, ex.Select)
                return self._single(chosen) if isinstance(chosen, Apply) else self._sum(chosen)
            case _:
                rebuilt = map_children(e, self.simplify)
                return Sum(int(rebuilt.value)) if isinstance(rebuilt, Const) else self._single(rebuilt)

    def _added(self, e: Apply) -> Sum:
        # Long chains of additions are common: without recursion along the left side.
        parts: list[Expr] = []
        left: Expr = e
        while isinstance(left, Apply) and left.op is tir.AddOp:
            parts.append(left.args[1])
            left = left.args[0]
        total = self._sum(left)
        for part in reversed(parts):
            total.add(self._sum(part))
        return total

    def _single(self, atom: Expr, coefficient: int = 1) -> Sum:
        total = Sum()
        total.add_term(self.numbering.number(atom), atom, coefficient)
        return total

    def _product(self, e: Apply) -> Sum:
        a, b = self._sum(e.args[0]), self._sum(e.args[1])
        for one, other in ((a, b), (b, a)):
            if not one.terms:
                return Sum().add(other, one.const) if one.const else Sum()
        return self._single(apply(tir.MulOp, (self._present(a, e.dtype), self._present(b, e.dtype)), e.dtype))

    def _bounds(self, total: Sum, dtype: str) -> tuple[int | float, int | float]:
        if not total.terms:
            return total.const, total.const
        return self.bounds(self._present(total, dtype))

    def _separate(self, total: Sum, divisor: int) -> tuple[Sum, Sum]:
        """Returns the part that the divisor divides, and the rest."""
        whole, rest = Sum(), Sum()
        (rest if total.const % divisor else whole).const = total.const
        for key, (atom, coefficient) in total.terms.items():
            (rest if coefficient % divisor else whole).add_term(key, atom, coefficient)
        return whole, rest

    def _coarse(self, rest: Sum, divisor: int, dtype: str) -> tuple[Sum, Sum, int] | None:
        """Returns (g*x, y, g) with rest = g*x + y, where g > 1 divides the divisor and 0 <= y < g is proven."""
        for g in sorted({gcd(c, divisor) for _, c in rest.terms.values()} - {1}, reverse=True):
            large, small = self._separate(rest, g)
            if large.terms:
                low, high = self._bounds(small, dtype)
                if low >= 0 and high < g:
                    return large, small, g
        return None

    def _floordiv(self, e: Apply) -> Sum:
        a, b = self._sum(e.args[0]), self._sum(e.args[1])
        dtype = e.dtype
        if b.terms or b.const <= 0:
            return self._symbolic(e, a, b)
        divisor = b.const
        whole, rest = self._separate(a, divisor)
        result = Sum(whole.const // divisor)
        for key, (atom, coefficient) in whole.terms.items():
            result.add_term(key, atom, coefficient // divisor)
        low, high = self._bounds(rest, dtype)
        if low // divisor == high // divisor:
            result.const += int(low // divisor)
            return result
        coarse = self._coarse(rest, divisor, dtype)
        if coarse is not None:
            large, _, g = coarse
            return result.add(self._floordiv(self._quotient(self._scaled_down(large, g, dtype), divisor // g)))
        inner = self._present(rest, dtype)
        if (
            isinstance(inner, Apply)
            and inner.op is tir.FloorDivOp
            and (c := constant(inner.args[1])) is not None
            and c > 0
        ):
            return result.add(self._single(self._quotient(inner.args[0], c * divisor)))
        return result.add(self._single(self._quotient(inner, divisor)))

    def _scaled_down(self, total: Sum, by: int, dtype: str) -> Expr:
        result = Sum(total.const // by)
        for key, (atom, coefficient) in total.terms.items():
            result.add_term(key, atom, coefficient // by)
        return self._present(result, dtype)

    @staticmethod
    def _quotient(a: Expr, divisor: int) -> Apply:
        return apply(tir.FloorDivOp, (a, number(divisor, a.dtype)), a.dtype)

    def _floormod(self, e: Apply) -> Sum:
        a, b = self._sum(e.args[0]), self._sum(e.args[1])
        dtype = e.dtype
        if b.terms or b.const <= 0:
            return self._symbolic(e, a, b)
        divisor = b.const
        _, rest = self._separate(a, divisor)
        low, high = self._bounds(rest, dtype)
        if low // divisor == high // divisor:
            rest.const -= int(low // divisor) * divisor
            return rest
        coarse = self._coarse(rest, divisor, dtype)
        if coarse is not None:
            large, small, g = coarse
            inner = apply(tir.FloorModOp, (self._scaled_down(large, g, dtype), number(divisor // g, dtype)), dtype)
            return Sum().add(self._floormod(inner), g).add(small)
        inner = self._present(rest, dtype)
        if (
            isinstance(inner, Apply)
            and inner.op is tir.FloorModOp
            and (c := constant(inner.args[1])) is not None
            and c % divisor == 0
        ):
            inner = inner.args[0]
        return self._single(apply(tir.FloorModOp, (inner, number(divisor, dtype)), dtype))

    def _symbolic(self, e: Apply, a: Sum, b: Sum) -> Sum:
        left, right = self._present(a, e.dtype), self._present(b, e.dtype)
        simple = self.analyzer.simplify(ARITHMETIC[e.op](self.analyzed(left), self.analyzed(right)))
        if not simple.terms:
            return Sum(simple.const)
        if e.op is tir.FloorModOp and simple == self.analyzed(left):
            return a
        for key, (atom, _) in a.terms.items():
            # (x * y) // y, (x * y) % y
            if isinstance(atom, Apply) and atom.op is tir.MulOp and len(a.terms) == 1 and not a.const:
                for side in (0, 1):
                    if self.numbering.number(atom.args[side]) == self.numbering.number(right) and a.terms[key][1] == 1:
                        return Sum() if e.op is tir.FloorModOp else self._sum(atom.args[1 - side])
        return self._single(apply(e.op, (left, right), e.dtype))

    def _extremum(self, e: Apply) -> Sum:
        a, b = self._sum(e.args[0]), self._sum(e.args[1])
        left, right = self._present(a, e.dtype), self._present(b, e.dtype)
        if self.prove(ex.less_equal(left, right)):
            return a if e.op is tir.MinOp else b
        if self.prove(ex.less_equal(right, left)):
            return b if e.op is tir.MinOp else a
        return self._single(apply(e.op, (left, right), e.dtype))

    def _folded(self, total: Sum) -> None:
        """Replaces k*c*(x // c) + k*(x % c) by k*x, in place."""
        for key, (atom, coefficient) in list(total.terms.items()):
            if not isinstance(atom, Apply) or atom.op is not tir.FloorModOp or key not in total.terms:
                continue
            quotient = self.numbering.number(apply(tir.FloorDivOp, atom.args, atom.dtype))
            held, divisor = total.terms.get(quotient), constant(atom.args[1])
            if held is not None and divisor and held[1] == coefficient * divisor:
                del total.terms[key], total.terms[quotient]
                total.add(self._sum(atom.args[0]), coefficient)

    def _present(self, total: Sum, dtype: str) -> Expr:
        """Returns the sum as a tree."""
        if len(total.terms) > 1:
            self._folded(total)
        ordered = sorted(total.terms.values(), key=_order)
        result: Expr = number(0, dtype)
        for atom, coefficient in ordered:
            if coefficient > 0:
                result = ex.add(result, ex.multiply(atom, number(coefficient, dtype)))
        if total.const > 0:
            result = ex.add(result, number(total.const, dtype))
        for atom, coefficient in ordered:
            if coefficient < 0:
                result = ex.subtract(result, ex.multiply(atom, number(-coefficient, dtype)))
        return ex.subtract(result, number(-total.const, dtype)) if total.const < 0 else result

    def _comparison(self, e: Apply) -> Expr:
        op, (left, right) = e.op, e.args
        if op in (tir.GtOp, tir.GeOp):
            op, left, right = (tir.LtOp if op is tir.GtOp else tir.LeOp), right, left
        dtype = left.dtype
        a, b = self._sum(left), self._sum(right)
        difference = Sum().add(a).add(b, -1)
        if not difference.terms:
            left, right = number(difference.const, dtype), number(0, dtype)
            return ex.BUILD[op](left, right)
        known = self.analyzer.simplify(COMPARISONS[op](self.analyzed(left), self.analyzed(right)))
        if not known.terms:
            return IntImm("bool", int(known.const != 0))
        if op is tir.LtOp:
            divided = self._divided(difference, dtype)
            if divided is not None:
                return divided
        least, most = ex.INT_LIMITS[dtype]
        if (b.const and op in (tir.LtOp, tir.LeOp) and a.terms and b.terms and a.const) or not b.terms:
            moved = (0, b.const - a.const)
        elif not a.terms:
            moved = (a.const - b.const, 0)
        else:
            moved = (a.const, b.const)
        if all(least <= each <= most for each in moved):
            # Other numbers the dtype does not hold.
            a.const, b.const = moved
        if op is tir.LtOp and b.terms and b.const == 1:
            op, b.const = tir.LeOp, 0
        elif op is tir.LeOp and a.terms and b.terms and a.const == 1 and not b.const:
            op, a.const = tir.LtOp, 0
        return ex.BUILD[op](self._present(a, dtype), self._present(b, dtype))

    def _divided(self, difference: Sum, dtype: str) -> Expr | None:
        """Returns d*x + y - d*c < 0 with -d < y < d as x < c; with one y beyond that as x + y // d < c."""
        scales = [abs(c) for _, c in difference.terms.values() if abs(c) > 1]
        common = gcd(difference.const, *scales) if scales else 0
        if common <= 1 or not difference.const:
            return None
        whole, rest = self._separate(difference, common)
        low, high = self._bounds(rest, dtype)
        result = Sum(whole.const // common)
        for key, (atom, coefficient) in whole.terms.items():
            result.add_term(key, atom, coefficient // common)
        if low < 0 or high >= common:
            if len(rest.terms) != 1 or rest.const or low < 0 or high == float("inf"):
                return None
            result.add(self._floordiv(self._quotient(self._present(rest, dtype), common)))
        right = number(-result.const, dtype)
        result.const = 0
        return ex.less(self._present(result, dtype), right)


def _order(term: tuple[Expr, int]) -> tuple[int, int]:
    atom, coefficient = term
    lower = 1
    if isinstance(atom, Apply) and atom.op is tir.FloorDivOp:
        lower = constant(atom.args[1]) or 1
    return -coefficient, -lower
