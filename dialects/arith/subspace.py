"""Divides an iteration map over two nests of loops, one inside the other, into a map of each.

Every index is written as `outer * inner_extent + inner + base`, where `outer` uses the outer loops alone and `inner` the
inner ones alone; the predicate falls into one part for each nest. This is TVM's `arith::SubspaceDivide`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import expr as x
from .expr import ONE, TRUE, ZERO, Atom, Expr, ge, logical_and, lt
from .iter_map import IterMapLevel, IterMark, IterRange, IterSplitExpr, IterSumExpr, detect_iter_map

if TYPE_CHECKING:
    from .analyzer import Analyzer


@dataclass(frozen=True)
class IndexDivision:
    """`outer * inner_extent + inner + base`, outer in [0, outer_extent), inner in [0, inner_extent)."""

    outer: Expr
    outer_extent: Expr
    inner: Expr
    inner_extent: Expr
    base: Expr = ZERO


@dataclass(frozen=True)
class SubspaceDivision:
    """The divisions, one per index, and the condition on each nest; on failure no `indices`, and `error`."""

    indices: tuple[IndexDivision, ...] = ()
    outer_predicate: Expr = TRUE
    inner_predicate: Expr = TRUE
    error: str | None = None

    def __bool__(self) -> bool:
        return self.error is None


def subspace_divide(
    analyzer: Analyzer,
    indices: Sequence[Expr],
    input_iters: Mapping[Atom, IterRange],
    inner_iters: AbstractSet[Atom],
    predicate: Expr = TRUE,
    simplify_trivial_iterators: bool = True,
) -> SubspaceDivision:
    """Divides `indices` over `input_iters`, of which `inner_iters` are the inner loops, under `predicate`.

    Without `simplify_trivial_iterators`, loops of extent 1 stay in the results. The indices must be an independent
    quasi-affine map of all loops; if they are not, they can still be divided when each uses loops of one nest only, and
    the predicate is true.
    """
    found = detect_iter_map(
        analyzer, indices, input_iters, predicate, IterMapLevel.SURJECTIVE, simplify_trivial_iterators
    )
    if not found:
        return SubspaceDivision(error=found.errors[0])
    divider = _Divider(analyzer, input_iters, inner_iters)
    try:
        for total in found.indices:
            divider.collect(total)
        parts = tuple(divider.index(total, e) for total, e in zip(found.indices, indices, strict=True))
    except _Undivided as reason:
        return SubspaceDivision(error=str(reason))
    return SubspaceDivision(parts, divider.outer_predicate, divider.inner_predicate)


class _Undivided(Exception):
    """Tells why an index is not the sum of an outer part and an inner part."""


@dataclass(frozen=True)
class _Part:
    """A split or sum, divided: the sums of each nest with their extents. An empty sum has extent 1."""

    outer: IterSumExpr
    outer_extent: Expr
    inner: IterSumExpr
    inner_extent: Expr


_NOTHING = IterSumExpr((), ZERO)


def _only_outer(split: IterSplitExpr) -> _Part:
    return _Part(IterSumExpr((split,), ZERO), split.extent, _NOTHING, ONE)


def _only_inner(split: IterSplitExpr) -> _Part:
    return _Part(_NOTHING, ONE, IterSumExpr((split,), ZERO), split.extent)


def _as_split(total: IterSumExpr, extent: Expr) -> IterSplitExpr:
    """Returns a sum as one split: itself if it is one of full extent, otherwise that of a new mark."""
    if len(total.args) == 1 and total.base == ZERO and total.args[0].scale == ONE and total.args[0].extent == extent:
        return total.args[0]
    return IterSplitExpr(IterMark(total, extent), ONE, extent, ONE)


@dataclass
class _Divider:
    analyzer: Analyzer
    inputs: Mapping[Atom, IterRange]
    inner: AbstractSet[Atom]
    outer_predicate: Expr = TRUE
    inner_predicate: Expr = TRUE
    splits_of: dict[IterMark, list[IterSplitExpr]] = field(default_factory=dict[IterMark, list[IterSplitExpr]])
    divided: dict[IterSplitExpr, _Part] = field(default_factory=dict[IterSplitExpr, _Part])

    def collect(self, total: IterSumExpr) -> None:
        """Records the used splits of each mark."""
        pending = list(total.args)
        while pending:
            split = pending.pop(0)
            known = self.splits_of.get(split.source)
            if known is None:
                known = self.splits_of[split.source] = []
                if isinstance(split.source.source, IterSumExpr):
                    pending += split.source.source.args
            bare = IterSplitExpr(split.source, split.lower_factor, split.extent, ONE)
            if bare not in known:
                known.append(bare)

    def index(self, total: IterSumExpr, e: Expr) -> IndexDivision:
        """Returns one index of the map: at most one split, and a base."""
        if not total.args:
            return IndexDivision(ZERO, ONE, ZERO, ONE, total.base)
        (split,) = total.args
        part = self.split(split, e)
        if split.scale != ONE:
            raise _Undivided(f"{e!r} leaves out values: it counts in steps of {split.scale!r}")
        return IndexDivision(
            self.plain(part.outer), part.outer_extent, self.plain(part.inner), part.inner_extent, total.base
        )

    def split(self, split: IterSplitExpr, e: Expr) -> _Part:
        """Returns the two parts of a split, its scale left out."""
        bare = IterSplitExpr(split.source, split.lower_factor, split.extent, ONE)
        if bare not in self.divided:
            self.divide_mark(split.source, e)
        return self.divided[bare]

    def divide_mark(self, mark: IterMark, e: Expr) -> None:
        """Divides every split of a mark that is in use."""
        splits = self.splits_of[mark]
        source = mark.source
        if isinstance(source, Atom):
            make = _only_inner if source in self.inner else _only_outer
            for split in splits:
                self.divided[split] = make(split)
            return
        whole = self.sum(source, mark.extent, e)
        if len(splits) == 1 and splits[0].lower_factor == ONE and self.same(splits[0].extent, mark.extent):
            self.divided[splits[0]] = whole
            return
        outer, inner = IterMark(whole.outer, whole.outer_extent), IterMark(whole.inner, whole.inner_extent)
        for split in splits:
            self.divided[split] = self.digits(split, outer, inner, e)

    def digits(self, split: IterSplitExpr, outer: IterMark, inner: IterMark, e: Expr) -> _Part:
        """Divides digits of the number `outer * inner.extent + inner`, which must be all of one of the two."""
        if self.at_most(split.lower_factor * split.extent, inner.extent):
            return _only_inner(IterSplitExpr(inner, split.lower_factor, split.extent, ONE))
        if self.multiple(split.lower_factor, inner.extent):
            lower = self.analyzer.simplify(x.floordiv(split.lower_factor, inner.extent))
            return _only_outer(IterSplitExpr(outer, lower, split.extent, ONE))
        raise _Undivided(
            f"the inner loops count to {inner.extent!r}, but {e!r} takes digits from {split.lower_factor!r} to {self.analyzer.simplify(split.lower_factor * split.extent)!r}"
        )

    def sum(self, total: IterSumExpr, extent: Expr, e: Expr) -> _Part:
        """Divides a fusion of splits, largest first: outer loops' must come before inner loops'."""
        outer: list[IterSplitExpr] = []
        inner: list[IterSplitExpr] = []
        for split in reversed(total.args):
            part = self.split(split, e)
            is_outer, is_inner = bool(part.outer.args), bool(part.inner.args)
            if is_outer and is_inner:
                raise _Undivided(f"part of {e!r} fuses inner with outer loops")
            # A counter of extent 1 is 0 everywhere.
            if is_inner and any(o.extent != ONE for o in outer) and part.inner_extent != ONE:
                raise _Undivided(f"in {e!r} an outer loop counts in smaller steps than an inner one")
            if is_inner:
                inner.append(_as_split(part.inner, part.inner_extent))
            else:
                outer.append(_as_split(part.outer, part.outer_extent))
        outer_sum, outer_extent = self.fused(outer)
        inner_sum, inner_extent = self.fused(inner)
        if total.base != ZERO or not self.same(self.analyzer.simplify(outer_extent * inner_extent), extent):
            return self.bounded(total, extent, (outer_sum, outer_extent), (inner_sum, inner_extent), e)
        return _Part(outer_sum, outer_extent, inner_sum, inner_extent)

    def bounded(
        self,
        total: IterSumExpr,
        extent: Expr,
        outer: tuple[IterSumExpr, Expr],
        inner: tuple[IterSumExpr, Expr],
        e: Expr,
    ) -> _Part:
        """Divides a fusion that the predicate bounds: it must be in one nest, which the bound restricts."""
        if outer[0].args and inner[0].args:
            raise _Undivided(f"the predicate bounds {e!r}, which uses inner and outer loops")
        is_outer = bool(outer[0].args)
        source = IterSumExpr((outer if is_outer else inner)[0].args, total.base)
        value = self.plain(source)
        condition = logical_and(ge(value, ZERO), lt(value, extent))
        condition = self.analyzer.simplify(condition)
        if is_outer:
            self.outer_predicate = logical_and(self.outer_predicate, condition)
            return _Part(source, extent, _NOTHING, ONE)
        self.inner_predicate = logical_and(self.inner_predicate, condition)
        return _Part(_NOTHING, ONE, source, extent)

    def fused(self, smallest_first: Sequence[IterSplitExpr]) -> tuple[IterSumExpr, Expr]:
        """Splits as the digits of one number, and how far that counts."""
        args: list[IterSplitExpr] = []
        extent = ONE
        for split in smallest_first:
            args.append(IterSplitExpr(split.source, split.lower_factor, split.extent, extent))
            extent = self.analyzer.simplify(extent * split.extent)
        return IterSumExpr(tuple(reversed(args)), ZERO), extent

    def plain(self, total: IterSumExpr) -> Expr:
        """Returns a sum of splits as an expression of the loop variables; each counts from its own minimum."""
        result = total.base
        for split in total.args:
            result += self.plain_split(split)
        return result

    def plain_split(self, split: IterSplitExpr) -> Expr:
        source = split.source.source
        if isinstance(source, IterSumExpr):
            value = self.plain(source)
        else:
            value = Expr(((source, 1),), 0) - self.inputs[source].min
        if split.lower_factor != ONE:
            value = x.floordiv(value, split.lower_factor)
        if not self.at_most(split.source.extent, split.lower_factor * split.extent):
            value = x.floormod(value, split.extent)
        return value * split.scale

    def same(self, a: Expr, b: Expr) -> bool:
        return a == b or self.analyzer.can_prove_equal(a, b)

    def at_most(self, a: Expr, b: Expr) -> bool:
        return a == b or self.analyzer.can_prove_ge0(b - a)

    def multiple(self, a: Expr, b: Expr) -> bool:
        return self.analyzer.simplify(x.floormod(a, b)) == ZERO
