"""Propagates values along the relations of a stage's axes (TVM, "message_passing").

Domains are passed down from roots to loops; index values, sets and bound checks are passed up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....dialects.arith.ordered import Arith, is_zero, number
from ....dialects.arith.ordered_int_set import Interval, IntSet
from ....dialects.te.axes import OPAQUE
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, IterVar, Range, text_of
from .stage import Fuse, Rebase, Relation, Singleton, Split, StageData, root_axes


class Domains:
    """The range of each axis, by identity."""

    def __init__(self) -> None:
        self._ranges: dict[int, Range] = {}
        self.axes: dict[int, IterVar] = {}

    def __contains__(self, axis: IterVar) -> bool:
        return id(axis) in self._ranges

    def __getitem__(self, axis: IterVar) -> Range:
        return self._ranges[id(axis)]

    def __setitem__(self, axis: IterVar, range: Range) -> None:
        self._ranges[id(axis)] = range
        self.axes[id(axis)] = axis

    def items(self) -> list[tuple[IterVar, Range]]:
        """Returns all axes with their ranges."""
        return [(axis, self._ranges[key]) for key, axis in self.axes.items()]


def update(domains: Domains, axis: IterVar, range: Range, arith: Arith, stage: StageData) -> None:
    """Gives the axis its range.

    Raises MirError where it has another already (a thread bound to loops of different extents).
    """
    if axis not in domains:
        domains[axis] = range
        arith.bind(axis, range.min, range.extent)
        return
    held = domains[axis]
    if not is_zero(held.min) or not arith.prove_equal(range.extent, held.extent):
        raise ex.fail(
            f"thread '{axis.name}' has {text_of(held.extent)} threads, but stage '{stage.name}' binds it to a loop over {text_of(range.extent)}",
            "all loops that are bound to one thread have the same extent: split them by the same factor",
        )


def check_from_zero(axis: IterVar, range: Range, stage: StageData) -> None:
    """Raises MirError where a thread would not begin at 0."""
    if not is_zero(range.min):
        raise ex.fail(
            f"loop '{axis.name}' of stage '{stage.name}' begins at {text_of(range.min)}, but a thread begins at 0",
            "split the axis, and bind one of its parts",
        )


def pass_down_domain(stage: StageData, domains: Domains, arith: Arith, *, allow_missing: bool = False) -> None:
    """The ranges of all axes from those of the roots.

    With `allow_missing` axes that nothing is known of are left out.
    """
    zero = number(0)
    # The axes that are, or lead to, a loop bound to a thread.
    bound = {key: 1 for key, attrs in stage.attrs.items() if attrs.thread is not None}
    spread(stage, bound, up=True)

    def parts(extent: Expr, size: Expr) -> Expr:
        if arith.prove_equal(ex.floormod(extent, size), zero):
            return arith.simplify(ex.floordiv(extent, size))
        return arith.simplify(ex.floordiv(ex.add(extent, ex.subtract(size, number(1, size.dtype))), size))

    def part(axis: IterVar, extent: Expr, size: Expr) -> Expr:
        if id(axis) in bound or allow_missing or is_zero(extent):
            return size
        return arith.simplify(extent) if arith.prove(ex.less(extent, size)) else arith.simplify(size)

    for relation in stage.relations:
        match relation:
            case Split():
                if relation.parent not in domains:
                    continue
                extent = domains[relation.parent].extent
                given, other, size = relation.inner, relation.outer, relation.factor
                if size is None:
                    given, other, size = relation.outer, relation.inner, relation.nparts
                assert size is not None
                update(domains, given, Range.from_min_extent(zero, part(given, extent, size)), arith, stage)
                update(domains, other, Range.from_min_extent(zero, parts(extent, size)), arith, stage)
            case Fuse():
                if relation.outer in domains and relation.inner in domains:
                    extent = ex.multiply(domains[relation.outer].extent, domains[relation.inner].extent)
                    domains[relation.fused] = Range.from_min_extent(zero, extent)
                    arith.bind(relation.fused, zero, extent)
            case Rebase():
                if relation.parent in domains:
                    update(
                        domains,
                        relation.rebased,
                        Range.from_min_extent(zero, domains[relation.parent].extent),
                        arith,
                        stage,
                    )
            case Singleton():
                update(domains, relation.axis, Range.from_min_extent(zero, number(1)), arith, stage)
    for axis in stage.leaves:
        attrs = stage.known_attrs(axis)
        if attrs is not None and attrs.thread is not None and axis in domains:
            check_from_zero(axis, domains[axis], stage)
            update(domains, attrs.thread, domains[axis], arith, stage)


Values = dict[int, Expr]
"""Values of axes, by the axis's id."""


def _from(value: Expr, low: Expr, move: Callable[[Expr, Expr], Expr] = ex.add) -> Expr:
    return value if is_zero(low) else move(value, low)


def pass_up_index(stage: StageData, domains: Domains, values: Values, *, allow_missing: bool = False) -> None:
    """Adds the values of all axes to those of the loops."""
    for relation in reversed(stage.relations):
        if allow_missing and any(id(axis) not in values for axis in parts_of(relation)[1]):
            continue
        match relation:
            case Split():
                value = ex.multiply(values[id(relation.outer)], domains[relation.inner].extent)
                value = ex.add(values[id(relation.inner)], value)
                values[id(relation.parent)] = _from(value, domains[relation.parent].min)
            case Fuse():
                value, factor = values[id(relation.fused)], domains[relation.inner].extent
                values[id(relation.outer)] = _from(ex.floordiv(value, factor), domains[relation.outer].min)
                values[id(relation.inner)] = _from(ex.floormod(value, factor), domains[relation.inner].min)
            case Rebase():
                values[id(relation.parent)] = _from(values[id(relation.rebased)], domains[relation.parent].min)
            case Singleton():
                pass


def pass_down_index(stage: StageData, domains: Domains, values: Values, *, allow_missing: bool = False) -> None:
    """Adds the values of all axes to those of the roots."""

    def counted(axis: IterVar) -> Expr:
        return _from(values[id(axis)], domains[axis].min, ex.subtract)

    for relation in stage.relations:
        if allow_missing and any(id(axis) not in values for axis in parts_of(relation)[0]):
            continue
        match relation:
            case Split():
                value, factor = counted(relation.parent), domains[relation.inner].extent
                values[id(relation.outer)] = ex.floordiv(value, factor)
                values[id(relation.inner)] = ex.floormod(value, factor)
            case Fuse():
                outer = ex.multiply(counted(relation.outer), domains[relation.inner].extent)
                values[id(relation.fused)] = ex.add(outer, counted(relation.inner))
            case Rebase():
                values[id(relation.rebased)] = counted(relation.parent)
            case Singleton():
                values[id(relation.axis)] = number(0)


def pass_up_set(stage: StageData, domains: Domains, sets: dict[int, IntSet], evaluate: Interval) -> None:
    """The sets of values of all axes from those of the loops."""
    for relation in reversed(stage.relations):
        match relation:
            case Split():
                outer, inner = sets[id(relation.outer)], sets[id(relation.inner)]
                whole = domains[relation.parent]
                if evaluate.matches(outer, domains[relation.outer]) and evaluate.matches(
                    inner, domains[relation.inner]
                ):
                    sets[id(relation.parent)] = IntSet.of_range(whole)
                    continue
                factor = domains[relation.inner].extent
                value = ex.add(ex.add(ex.multiply(relation.outer, factor), relation.inner), whole.min)
                sets[id(relation.parent)] = evaluate.of(value, {id(relation.outer): outer, id(relation.inner): inner})
            case Fuse():
                sets[id(relation.outer)], sets[id(relation.inner)] = _fused_sets(relation, domains, sets, evaluate)
            case Rebase():
                rebased = sets[id(relation.rebased)]
                if evaluate.matches(rebased, domains[relation.rebased]):
                    sets[id(relation.parent)] = IntSet.of_range(domains[relation.parent])
                    continue
                value = ex.add(relation.rebased, domains[relation.parent].min)
                sets[id(relation.parent)] = evaluate.of(value, {id(relation.rebased): rebased})
            case Singleton():
                pass


def _fused_sets(relation: Fuse, domains: Domains, sets: dict[int, IntSet], evaluate: Interval) -> tuple[IntSet, IntSet]:
    fused = sets[id(relation.fused)]
    outer, inner = domains[relation.outer], domains[relation.inner]
    if evaluate.matches(fused, domains[relation.fused]) or fused.min is None or fused.max is None:
        return IntSet.of_range(outer), IntSet.of_range(inner)
    if fused.is_point:
        quotient, rest = ex.floordiv(fused.min, inner.extent), ex.floormod(fused.min, inner.extent)
        return IntSet.point(ex.add(quotient, outer.min)), IntSet.point(ex.add(rest, inner.min))
    low, high = ex.floordiv(fused.min, inner.extent), ex.floordiv(fused.max, inner.extent)
    rows = IntSet(ex.add(outer.min, low), ex.add(outer.min, high))
    zero, arith = number(0), evaluate.arith
    length = arith.simplify(ex.add(ex.subtract(fused.max, fused.min), 1))
    if (
        not is_zero(length)
        and is_zero(arith.simplify(ex.floormod(inner.extent, length)))
        and arith.prove_equal(ex.floormod(fused.min, length), zero)
    ):
        # The values are in one row.
        begin, end = ex.floormod(fused.min, inner.extent), ex.floormod(fused.max, inner.extent)
        return rows, IntSet(ex.add(inner.min, begin), ex.add(inner.min, end))
    return rows, IntSet.of_range(inner)


def pass_up_bound_check(stage: StageData, domains: Domains, checked: dict[int, bool], arith: Arith) -> None:
    """Marks axes that may exceed their range, from the loops up: a split that does not divide does so."""
    for relation in reversed(stage.relations):
        match relation:
            case Split():
                needs = checked[id(relation.outer)] or checked[id(relation.inner)]
                if not needs and relation.inner in domains and relation.outer in domains:
                    covered = ex.multiply(domains[relation.inner].extent, domains[relation.outer].extent)
                    needs = not arith.prove_equal(domains[relation.parent].extent, covered)
                checked[id(relation.parent)] = needs
            case Fuse():
                checked[id(relation.outer)] = checked[id(relation.inner)] = checked[id(relation.fused)]
            case Rebase():
                checked[id(relation.parent)] = checked[id(relation.rebased)]
            case Singleton():
                pass


def parts_of(relation: Relation) -> tuple[Sequence[IterVar], Sequence[IterVar]]:
    """Returns the axes that a relation takes, and those that it makes."""
    match relation:
        case Split():
            return [relation.parent], [relation.outer, relation.inner]
        case Fuse():
            return [relation.outer, relation.inner], [relation.fused]
        case Rebase():
            return [relation.parent], [relation.rebased]
        case Singleton():
            return [], [relation.axis]


def spread(stage: StageData, masks: dict[int, int], *, up: bool = False) -> None:
    """Passes marks of axes to those made from them, or to those that they were made from."""
    for relation in reversed(stage.relations) if up else stage.relations:
        taken, made = parts_of(relation)
        source, target = (made, taken) if up else (taken, made)
        mask = 0
        for axis in source:
            mask |= masks.get(id(axis), 0)
        for axis in target if mask else ():
            masks[id(axis)] = masks.get(id(axis), 0) | mask


def visible_ranges(stage: StageData, domains: Domains) -> list[tuple[IterVar, Range]]:
    """Returns the axes, with ranges, of a stage and of the stages that it is computed in."""
    found: dict[int, IterVar] = {}
    around: StageData | None = stage
    while around is not None:
        threads = [a.thread for a in around.attrs.values() if a.thread is not None]
        found |= {id(axis): axis for axis in (*around.all_axes, *threads) if axis in domains}
        around = around.attach_spec().attach_stage
    return [(axis, domains[axis]) for axis in found.values()]


def make_bound_check(
    stage: StageData, domains: Domains, values: Values, *, skip_domain: bool, skip: set[int]
) -> list[Expr]:
    """Returns the conditions that keep the loops' values in the axes' ranges, if they may not hold.

    Unless `skip_domain`, they keep them in the operation's domain, too.
    """
    arith = Arith()
    evaluate = Interval(arith)
    sets: dict[int, IntSet] = {}
    for axis, range in visible_ranges(stage, domains):
        arith.bind(axis, range.min, range.extent)
        sets[id(axis)] = IntSet.of_range(range)
    checked = {id(axis): False for axis in stage.leaves}
    pass_up_bound_check(stage, domains, checked, arith)
    conditions: list[Expr] = []
    for axis in stage.all_axes:
        if id(axis) in skip or axis.iter_type == OPAQUE or not checked.get(id(axis)) or id(axis) not in values:
            continue
        domain = domains[axis]
        value = ex.subtract(values[id(axis)], domain.min)
        most = evaluate.of(value, sets).max
        if most is None or not arith.prove(ex.less(most, domain.extent)):
            conditions.append(ex.less(value, domain.extent))
    for axis in () if skip_domain or stage.op is None else root_axes(stage.op):
        if id(axis) in skip or axis.iter_type == OPAQUE:
            continue
        whole = axis.domain
        own = domains[axis]
        if whole is own or (arith.prove_equal(whole.min, own.min) and arith.prove_equal(whole.extent, own.extent)):
            continue
        value = ex.subtract(values[id(axis)], whole.min)
        reach = evaluate.of(value, sets)
        if reach.min is None or not arith.prove(ex.greater_equal(reach.min, number(0))):
            conditions.append(ex.greater_equal(value, number(0, value.dtype)))
        if reach.max is None or not arith.prove(ex.less(reach.max, whole.extent)):
            conditions.append(ex.less(value, whole.extent))
    return conditions
