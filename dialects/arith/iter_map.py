"""Detects whether indices are a quasi-affine, one-to-one map of loops, and inverts such maps.

The terms are those of TVM's `arith/iter_affine_map.h`. A mark is a variable of known extent (a loop, or a fusion of
several loops); a split of a mark is `(mark // lower_factor) % extent * scale`; a sum of splits is an index. Detection
writes every index as a sum of splits, then checks that the splits used of each mark tile it like digits of a number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from . import expr as x
from .expr import ONE, TRUE, ZERO, Atom, Expr, Kind, conjuncts

if TYPE_CHECKING:
    from .analyzer import Analyzer, Value
    from .int_set import Ends


class IterMapLevel(Enum):
    """The requirement on a map.

    `BIJECTIVE`: every split of every used mark occurs. `SURJECTIVE`: splits are independent (no two indices share digits, so that
    the image is the full box of their extents). Otherwise only the quasi-affine form.
    """

    BIJECTIVE = auto()
    SURJECTIVE = auto()
    NO_CHECK = auto()


@dataclass(frozen=True)
class IterRange:
    """The values min, …, min + extent - 1."""

    min: Expr
    extent: Expr

    @staticmethod
    def of(min: Expr | int, extent: Expr | int) -> IterRange:
        """Returns the range of numbers or expressions."""
        return IterRange(x.as_expr(min), x.as_expr(extent))


@dataclass(frozen=True, eq=False)
class IterMark:
    """An iterator over [0, extent): a loop variable less its minimum, or a sum of splits that acts as one."""

    source: Atom | IterSumExpr
    extent: Expr


@dataclass(frozen=True)
class IterSplitExpr:
    """`(source // lower_factor) % extent * scale`."""

    source: IterMark
    lower_factor: Expr
    extent: Expr
    scale: Expr

    def scaled(self, factor: Expr) -> IterSplitExpr:
        """Times a factor."""
        return IterSplitExpr(self.source, self.lower_factor, self.extent, self.scale * factor)


@dataclass(frozen=True)
class IterSumExpr:
    """The sum of splits, plus `base`."""

    args: tuple[IterSplitExpr, ...]
    base: Expr


@dataclass(frozen=True)
class IterMapResult:
    """The result: `indices`, one sum per index, each of at most one split or constant; if empty, `errors`."""

    indices: tuple[IterSumExpr, ...] = ()
    errors: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.errors


class _NotAffine(Exception):
    """Tells why an expression is not a sum of splits."""


def detect_iter_map(
    analyzer: Analyzer,
    indices: Sequence[Expr],
    input_iters: Mapping[Atom, IterRange],
    predicate: Expr = x.TRUE,
    level: IterMapLevel = IterMapLevel.SURJECTIVE,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Returns `indices` over `input_iters` as an iteration map under `predicate`.

    A predicate that bounds a fusion of loops (`i * 4 + j < 13`) becomes the extent of that fusion. With
    `simplify_trivial_iterators`, loops of extent 1 are replaced by their minimum.
    """
    detector = _Detector(analyzer, input_iters, simplify_trivial_iterators)
    try:
        detector.add_predicate(predicate)
        results = tuple(detector.index(e) for e in indices)
        if level is not IterMapLevel.NO_CHECK:
            detector.check(results, level)
    except _NotAffine as reason:
        return IterMapResult(errors=(str(reason),))
    return IterMapResult(results)


def iter_sum(analyzer: Analyzer, e: Expr, input_iters: Mapping[Atom, IterRange]) -> IterSumExpr | str:
    """Returns an index as a sum of splits, which may overlap; a text says why it is none."""
    try:
        return _Detector(analyzer, input_iters, True).to_sum(e)
    except _NotAffine as reason:
        return str(reason)


@dataclass
class _Detector:
    """Rewrites expressions to sums of splits of marks."""

    analyzer: Analyzer
    inputs: Mapping[Atom, IterRange]
    simplify_trivial: bool
    marks: dict[Atom, IterMark] = field(default_factory=dict[Atom, IterMark])
    # Fusions by their splits, so that the same fusion is the same mark everywhere.
    fused: dict[tuple[tuple[IterSplitExpr, ...], Expr], IterMark] = field(
        default_factory=dict[tuple[tuple[IterSplitExpr, ...], Expr], IterMark]
    )
    # Fusions whose range a predicate narrows: (the fusion's splits, their mark, its least value); a fusion of fusions later.
    constrained: list[tuple[tuple[IterSplitExpr, ...], IterMark, Expr]] = field(
        default_factory=list[tuple[tuple[IterSplitExpr, ...], IterMark, Expr]]
    )

    def __post_init__(self) -> None:
        for atom, range in self.inputs.items():
            self.marks[atom] = IterMark(atom, self.simplify(range.extent))

    def simplify(self, e: Expr) -> Expr:
        return self.analyzer.simplify(e) if e.terms else e

    def equal(self, a: Expr, b: Expr) -> bool:
        return a == b or (bool(a.terms or b.terms) and self.analyzer.can_prove_equal(a, b))

    def divides(self, divisor: Expr, e: Expr) -> Expr | None:
        """Returns e / divisor if that is exact, otherwise None."""
        if divisor == ONE or e == ZERO:
            return e
        if not divisor.terms and not e.terms:
            return x.as_expr(e.const // divisor.const) if divisor.const and e.const % divisor.const == 0 else None
        if divisor == e:
            return ONE
        if self.simplify(x.floormod(e, divisor)) == ZERO:
            return self.simplify(x.floordiv(e, divisor))
        return x.exact_quotient(e, divisor)

    # Predicates ------------------------------------------------------------------------------------------------

    def add_predicate(self, predicate: Expr) -> None:
        """Records every conjunct: bounds of a loop or of a fusion of loops."""
        bounds: dict[tuple[x.Term, ...], tuple[Expr | None, Expr | None]] = {}
        for condition in conjuncts(self.simplify(predicate)):
            if condition == x.TRUE:
                continue
            atom = condition.atom
            if atom is None or atom.kind not in (Kind.GE, Kind.EQ):
                raise _NotAffine(f"the predicate {condition!r} does not bound a sum of loops")
            (e,) = atom.operands
            iters, rest = self.separate(e)
            if not iters.terms:
                raise _NotAffine(f"the predicate {condition!r} does not bound a sum of loops")
            negative = iters.terms[0][1] < 0
            key = (-iters if negative else iters).terms
            low, high = bounds.get(key, (None, None))
            # iters + rest >= 0, or -iters + rest >= 0
            if atom.kind is Kind.EQ or not negative:
                least = rest if negative else -rest
                low = least if low is None else self.simplify(x.maximum(low, least))
            if atom.kind is Kind.EQ or negative:
                most = rest if negative else -rest
                high = most if high is None else self.simplify(x.minimum(high, most))
            bounds[key] = (low, high)
        for terms in sorted(bounds, key=len):
            low, high = bounds[terms]
            self.constrain(Expr(terms, 0), low, high)

    def separate(self, e: Expr) -> tuple[Expr, Expr]:
        """Returns (terms with loops in them, the rest)."""
        iters = tuple(t for t in e.terms if any(a in self.inputs for a in x.free_vars(Expr((t,), 0))))
        return Expr(iters, 0), e - Expr(iters, 0)

    def constrain(self, e: Expr, low: Expr | None, high: Expr | None) -> None:
        """Records low <= e <= high."""
        total = self.to_sum(e)
        if total.args and (scale := total.args[0].scale).terms == () and scale.const < 0:
            flipped = tuple(a.scaled(x.as_expr(-1)) for a in total.args)
            total = IterSumExpr(flipped, -total.base)
            low, high = None if high is None else -high, None if low is None else -low
        chain = self.chain(total.args)
        if chain is None:
            raise _NotAffine(f"the predicate bounds {e!r}, which is not a fusion of loops")
        ordered, extent = chain
        unit = ordered[-1].scale
        least = ZERO if low is None else self.ceil_quotient(low - total.base, unit)
        most = extent - 1 if high is None else self.simplify(x.floordiv(high - total.base, unit))
        least, most = self.at_least(least, ZERO), self.at_most(most, extent - 1)
        count = self.simplify(most - least + 1)
        if self.equal(count, extent):
            return
        splits = tuple(self.unit_splits(ordered, unit))
        mark = IterMark(IterSumExpr(splits, -least), count)
        self.constrained.append((splits, mark, least))

    def ceil_quotient(self, e: Expr, unit: Expr) -> Expr:
        return self.simplify(-x.floordiv(-e, unit))

    def at_least(self, e: Expr, limit: Expr) -> Expr:
        return self.simplify(x.maximum(e, limit))

    def at_most(self, e: Expr, limit: Expr) -> Expr:
        return self.simplify(x.minimum(e, limit))

    # Rewriting ---------------------------------------------------------------------------------------------------

    def index(self, e: Expr) -> IterSumExpr:
        """Returns the index as one split (or none) plus a base."""
        return self.fuse(self.to_sum(self.simplify(e)), e)

    def to_sum(self, e: Expr) -> IterSumExpr:
        """Returns `e` as a sum of splits."""
        base = x.as_expr(e.const)
        args: list[IterSplitExpr] = []
        for atom, coefficient in e.terms:
            part = self.atom_to_sum(atom)
            factor = x.as_expr(coefficient)
            base += part.base * factor
            args += [a.scaled(factor) for a in part.args]
        return self.with_constraints(self.merged(args), base)

    def atom_to_sum(self, atom: Atom) -> IterSumExpr:
        range = self.inputs.get(atom)
        whole = Expr(((atom, 1),), 0)
        if range is not None:
            mark = self.marks[atom]
            if self.simplify_trivial and mark.extent == ONE:
                return IterSumExpr((), range.min)
            return IterSumExpr((IterSplitExpr(mark, ONE, mark.extent, ONE),), range.min)
        if not any(a in self.inputs for a in x.free_vars(whole)):
            return IterSumExpr((), whole)
        match atom.kind:
            case Kind.PRODUCT:
                return self.product(atom)
            case Kind.FLOORDIV | Kind.FLOORMOD:
                dividend, divisor = atom.operands
                if any(a in self.inputs for a in x.free_vars(divisor)):
                    raise _NotAffine(f"{whole!r} divides by a loop variable")
                total = self.fuse(self.to_sum(dividend), dividend)
                return (
                    self.quotient(total, divisor, whole)
                    if atom.kind is Kind.FLOORDIV
                    else self.remainder(total, divisor, whole)
                )
            case _:
                raise _NotAffine(f"{whole!r} is not affine in the loops")

    def product(self, atom: Atom) -> IterSumExpr:
        """Returns the product of one factor with loops and others without."""
        looped = [f for f in x.factors_of(atom) if any(a in self.inputs for a in x.free_vars(Expr(((f, 1),), 0)))]
        if len(looped) != 1:
            raise _NotAffine(f"{Expr(((atom, 1),), 0)!r} multiplies loop variables")
        others = list(x.factors_of(atom))
        others.remove(looped[0])
        factor = x.product_of(others)
        part = self.atom_to_sum(looped[0])
        return IterSumExpr(tuple(a.scaled(factor) for a in part.args), part.base * factor)

    def merged(self, args: list[IterSplitExpr]) -> tuple[IterSplitExpr, ...]:
        """Splits of the same digits added up."""
        total: dict[tuple[IterMark, Expr, Expr], Expr] = {}
        for a in args:
            key = (a.source, a.lower_factor, a.extent)
            total[key] = total.get(key, ZERO) + a.scale
        return tuple(IterSplitExpr(*key, scale) for key, scale in total.items() if scale != ZERO)

    def with_constraints(self, args: tuple[IterSplitExpr, ...], base: Expr) -> IterSumExpr:
        """Fusions that a predicate bounds replaced by their marks."""
        for splits, mark, least in self.constrained:
            if any(a.source is mark for a in args):
                continue
            factor = self.common_factor(args, splits)
            if factor is None:
                continue
            digits = [(s.source, s.lower_factor, s.extent) for s in splits]
            rest = [a for a in args if (a.source, a.lower_factor, a.extent) not in digits]
            args = (*rest, IterSplitExpr(mark, ONE, mark.extent, factor))
            base += least * factor
        return IterSumExpr(args, self.simplify(base))

    def common_factor(self, args: Sequence[IterSplitExpr], splits: Sequence[IterSplitExpr]) -> Expr | None:
        """Returns f if `args` holds every one of `splits` f times, otherwise None."""
        factor: Expr | None = None
        for split in splits:
            same = [
                a
                for a in args
                if (a.source, a.lower_factor, a.extent) == (split.source, split.lower_factor, split.extent)
            ]
            here = self.divides(split.scale, same[0].scale) if same else None
            if here is None or (factor is not None and not self.equal(factor, here)):
                return None
            factor = here
        return factor

    def chain(self, args: Sequence[IterSplitExpr]) -> tuple[list[IterSplitExpr], Expr] | None:
        """Orders splits from the largest scale to the smallest; returns them and the product of their extents.

        Each scale must be the next one times its extent; None otherwise.
        """
        if not args:
            return None
        left = list(args)
        # The smallest scale divides all others; of several such, take the split that is a factor of the next.
        units = [a for a in left if all(self.divides(a.scale, b.scale) is not None for b in left)]
        if not units:
            return None
        # Splits of extent 1 may share a scale with another; they come first.
        unit = min(units, key=lambda a: a.extent != ONE)
        ordered, expected = [unit], unit.scale * unit.extent
        left.remove(unit)
        while left:
            fitting = [a for a in left if self.equal(a.scale, self.simplify(expected))]
            if not fitting:
                return None
            following = min(fitting, key=lambda a: a.extent != ONE)
            left.remove(following)
            ordered.append(following)
            expected = following.scale * following.extent
        extent = ONE
        for a in ordered:
            extent = extent * a.extent
        return list(reversed(ordered)), self.simplify(extent)

    def unit_splits(self, ordered: Sequence[IterSplitExpr], unit: Expr) -> list[IterSplitExpr]:
        """Returns the splits with their scales divided by the common unit."""
        scales = [self.divides(unit, a.scale) for a in ordered]
        return [
            IterSplitExpr(a.source, a.lower_factor, a.extent, s)
            for a, s in zip(ordered, scales, strict=True)
            if s is not None
        ]

    def fuse(self, total: IterSumExpr, e: Expr) -> IterSumExpr:
        """Returns a sum of several splits as one split of a fused mark."""
        if len(total.args) <= 1:
            return total
        chain = self.chain(total.args)
        if chain is None:
            raise _NotAffine(
                f"the terms of {e!r} overlap or leave gaps: each factor must be the next one's times its extent"
            )
        ordered, extent = chain
        unit = ordered[-1].scale
        splits = tuple(self.unit_splits(ordered, unit))
        key = (splits, ZERO)
        mark = self.fused.get(key)
        if mark is None:
            mark = self.fused[key] = IterMark(IterSumExpr(splits, ZERO), extent)
        return IterSumExpr((IterSplitExpr(mark, ONE, extent, unit),), total.base)

    def quotient(self, total: IterSumExpr, divisor: Expr, e: Expr) -> IterSumExpr:
        """Returns (split + base) // divisor."""
        if not total.args:
            return IterSumExpr((), self.simplify(x.floordiv(total.base, divisor)))
        (split,) = total.args
        scale = self.divides(divisor, split.scale)
        if scale is not None:  # (c*k*s + b) // c = k*s + b // c
            return IterSumExpr(
                (IterSplitExpr(split.source, split.lower_factor, split.extent, scale),),
                self.simplify(x.floordiv(total.base, divisor)),
            )
        unit, base = self.aligned(split, total.base, divisor, e)
        if self.covers(unit, split.extent):
            return IterSumExpr((), base)
        if self.divides(unit, split.extent) is None and split.lower_factor != ONE:
            raise _NotAffine(f"{e!r}: {unit!r} does not divide the extent {split.extent!r} of what it splits")
        exact = self.divides(unit, split.extent)
        extent = self.simplify(x.floordiv(split.extent + unit - 1, unit)) if exact is None else exact
        return IterSumExpr((IterSplitExpr(split.source, split.lower_factor * unit, extent, ONE),), base)

    def remainder(self, total: IterSumExpr, divisor: Expr, e: Expr) -> IterSumExpr:
        """Returns (split + base) % divisor."""
        if not total.args:
            return IterSumExpr((), self.simplify(x.floormod(total.base, divisor)))
        (split,) = total.args
        if self.divides(divisor, split.scale) is not None:
            return IterSumExpr((), self.simplify(x.floormod(total.base, divisor)))
        unit, _ = self.aligned(split, total.base, divisor, e)
        if self.covers(unit, split.extent):
            return IterSumExpr((split,), ZERO)
        if self.divides(unit, split.extent) is None and not self.analyzer.can_prove_ge0(split.extent - unit):
            raise _NotAffine(f"{e!r}: {unit!r} does not divide the extent {split.extent!r} of what it splits")
        return IterSumExpr((IterSplitExpr(split.source, split.lower_factor, unit, split.scale),), ZERO)

    def aligned(self, split: IterSplitExpr, base: Expr, divisor: Expr, e: Expr) -> tuple[Expr, Expr]:
        """Returns (divisor / scale, base // divisor); fails unless scale | divisor and divisor | base."""
        unit, quotient = self.divides(split.scale, divisor), self.divides(divisor, base)
        if unit is None:
            raise _NotAffine(f"{e!r}: neither of {divisor!r} and the factor {split.scale!r} divides the other")
        if quotient is None:
            raise _NotAffine(f"{e!r}: the offset {base!r} is not a multiple of {divisor!r}")
        return unit, quotient

    def covers(self, unit: Expr, extent: Expr) -> bool:
        return self.analyzer.can_prove_ge0(unit - extent)

    # Checking ------------------------------------------------------------------------------------------------------

    def check(self, results: Sequence[IterSumExpr], level: IterMapLevel) -> None:
        """Checks that every mark's splits tile it, and that no index exceeds a predicate."""
        used: dict[IterMark, list[IterSplitExpr]] = {}
        pending = [a for r in results for a in r.args]
        while pending:
            split = pending.pop()
            first_visit = split.source not in used
            used.setdefault(split.source, []).append(split)
            if first_visit and isinstance(split.source.source, IterSumExpr):
                pending += split.source.source.args
        for splits, mark, _ in self.constrained:
            if mark not in used and any(s.source in used for s in splits):
                fusion = normalize_iter_sum(IterSumExpr(splits, ZERO))
                raise _NotAffine(f"the predicate bounds {fusion!r}, but the indices use its parts apart")
        for mark, splits in used.items():
            self.check_mark(mark, splits, level)
        if level is IterMapLevel.BIJECTIVE:
            for atom, mark in self.marks.items():
                if mark not in used and mark.extent != ONE:
                    raise _NotAffine(f"loop {Expr(((atom, 1),), 0)!r} is in no index")

    def check_mark(self, mark: IterMark, splits: list[IterSplitExpr], level: IterMapLevel) -> None:
        """Checks that the splits are digits of the mark: each starts where the last ends (or above)."""
        name = "a fusion of loops" if isinstance(mark.source, IterSumExpr) else f"loop {Expr(((mark.source, 1),), 0)!r}"
        left, expected = list(splits), ONE
        while left:
            following = self.next_digit(left, expected)
            if following is None or (
                level is IterMapLevel.BIJECTIVE and not self.equal(following.lower_factor, expected)
            ):
                raise _NotAffine(f"the parts of {name} that the indices use overlap or leave gaps")
            left.remove(following)
            expected = self.simplify(following.lower_factor * following.extent)
        if self.equal(expected, mark.extent):
            return
        if level is IterMapLevel.BIJECTIVE:
            raise _NotAffine(f"the indices use {expected!r} values of {name}, which has {mark.extent!r}")
        # One digit alone takes all its values even where the mark's extent is not a multiple of its period.
        if len(splits) > 1 and self.divides(expected, mark.extent) is None:
            raise _NotAffine(
                f"{expected!r} does not divide the extent {mark.extent!r} of {name}, which the indices split"
            )

    def next_digit(self, left: Sequence[IterSplitExpr], expected: Expr) -> IterSplitExpr | None:
        """Returns the split of the lowest digits from `expected` up; None if they overlap lower ones."""
        for split in left:
            if self.divides(expected, split.lower_factor) is not None and all(
                o is split or self.divides(split.lower_factor, o.lower_factor) is not None for o in left
            ):
                return split
        return None


def normalize_iter_sum(total: IterSumExpr) -> Expr:
    """Returns the sum as an expression of the variables, counted from 0 (each mark's minimum is left out)."""
    result = total.base
    for split in total.args:
        result += split_to_expr(split)
    return result


def split_to_expr(split: IterSplitExpr) -> Expr:
    """Returns one split as a plain expression."""
    source = split.source.source
    inner = normalize_iter_sum(source) if isinstance(source, IterSumExpr) else Expr(((source, 1),), 0)
    if split.lower_factor != ONE:
        inner = x.floordiv(inner, split.lower_factor)
    past_end = split.lower_factor * split.extent - split.source.extent
    if past_end.terms or past_end.const < 0:
        inner = x.floormod(inner, split.extent)
    return inner * split.scale


def filled(
    starts: Sequence[Expr],
    sizes: Sequence[Expr],
    inner: Mapping[Value, tuple[Value, Value]],
    analyzer: Analyzer,
    predicate: Expr = TRUE,
) -> list[Ends] | str:
    """Returns the ends of the box that regions fill completely while the `inner` loops run.

    For the starts (i * 4 + j, k) and the sizes (1, 2), with i and j in range(4), j inner: (0, 15) and (k, k + 1). The ends are in terms
    of the other loops, whose ranges `analyzer` knows; a text says why such a box does not exist. `inner` maps variables to (min, extent).
    """
    found = analyzer.detect_iter_map(starts, inner, predicate, IterMapLevel.SURJECTIVE)
    if not found:
        return found.errors[0]
    dims: list[Ends] = []
    variables = {analyzer.expr(loop).atom for loop in inner}
    for number, (total, size) in enumerate(zip(found.indices, sizes, strict=True)):
        low, count = total.base, size
        if total.args:
            (split,) = total.args
            if split.scale != size:
                return f"the steps in dimension {number} leave elements out, or meet elements twice"
            count = analyzer.simplify(split.extent * size)
        if any(atom in variables for atom in x.free_vars(low, count)):
            return f"how far dimension {number} is written depends on the iteration"
        low = analyzer.simplify(low)
        dims.append((low, analyzer.simplify(low + count - 1)))
    return dims


def inverse_affine_iter_map(
    analyzer: Analyzer, result: IterMapResult, input_iters: Mapping[Atom, IterRange], outputs: Sequence[Expr]
) -> dict[Atom, Expr]:
    """Returns the loop variables as expressions of the indices' values, for a map detected as bijective.

    Loops of extent 1 get their minimum. Raises ValueError when `result` is a failure.
    """
    if not result:
        raise ValueError(f"no inverse: {result.errors[0]}")
    values: dict[IterMark, Expr] = {}
    ordered: list[IterMark] = []
    for index in result.indices:
        _order_marks(index, ordered, set(ordered))
    for index, output in zip(result.indices, outputs, strict=True):
        _spread(index, output, values)
    # Marks come before the marks in their sums.
    for mark in reversed(ordered):
        if isinstance(mark.source, IterSumExpr):
            _spread(mark.source, analyzer.simplify(values[mark]), values)
    inverse = {atom: range.min for atom, range in input_iters.items()}
    for mark, value in values.items():
        if isinstance(mark.source, Atom):
            inverse[mark.source] = analyzer.simplify(value + input_iters[mark.source].min)
    return inverse


def _order_marks(total: IterSumExpr, ordered: list[IterMark], seen: set[IterMark]) -> None:
    """Appends the marks in the sum, each after the marks in its own sum."""
    for split in total.args:
        if split.source in seen:
            continue
        seen.add(split.source)
        if isinstance(split.source.source, IterSumExpr):
            _order_marks(split.source.source, ordered, seen)
        ordered.append(split.source)


def _spread(total: IterSumExpr, value: Expr, values: dict[IterMark, Expr]) -> None:
    """Adds to the value of each mark the digits that the sum's value determines."""
    value = value - total.base
    largest_first = total.args
    for position, split in enumerate(largest_first):
        digit = x.floordiv(value, split.scale)
        if position:
            digit = x.floormod(digit, split.extent)
        values[split.source] = values.get(split.source, ZERO) + digit * split.lower_factor
