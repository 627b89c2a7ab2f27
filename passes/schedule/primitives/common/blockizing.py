"""Blocks put around blocks: the axes of a block divided between an outer and an inner block.

An axis bound to `outer * n + inner` becomes an axis `_o` of the outer block, bound to `outer`, and an axis `_i` over n values
of the inner one, bound to `inner`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from .....dialects import tir
from .....dialects.arith import Analyzer, Expr
from .....dialects.arith.expr import ONE, TRUE, ZERO, Atom, conjuncts, free_vars, logical_and, substitute
from .....dialects.arith.int_set import Ends, relax
from .....dialects.arith.iter_map import IterRange
from .....dialects.arith.subspace import IndexDivision, SubspaceDivision, subspace_divide
from .....support.edit import builder_at_end, builder_before, erase_op, move_to_end
from .....support.walk import enclosing, walk_ops
from ....tir.rewriting import erase_if_dead
from ...analysis.access import Box, declare_access, reads_of, replace_regions, united, whole, writes_of
from ...analysis.block_kind import analyzer_for, axis_kinds, bind_axes, why_not_reduction
from ...analysis.structure import all_loops_above, const_int, loops_above
from ...engine.errors import refuse
from ...engine.state import State
from ..decompose_reduction import declare_update
from .block_axes import (
    Axis,
    axes_of,
    bind_long_axes,
    make_block,
    make_self_contained,
    move_body,
    replace_variables,
    variables_used,
)
from .loops import copy_loops, require_own_values


@dataclass
class Part:
    """A block that goes into an outer block with its inner loops, and the division of its axes."""

    block: tir.BlockOp
    loops: list[tir.ForOp]
    division: SubspaceDivision
    analyzer: Analyzer
    # Which outer axis each axis of the block has, and what it is inside: filled in by `OuterAxes`.
    outer: list[Axis] = field(default_factory=list[Axis])


def part_under(block: tir.BlockOp, loops: list[tir.ForOp], primitive: str, preserve_unit_iters: bool) -> Part:
    """Divides a block between `loops`, its innermost ones, and the outer ones; raises when it cannot."""
    name = block.block_name.data
    above = loops_above(block)
    # A loop of one iteration that is to stay in the bindings must not be replaced by its start.
    known = all_loops_above(block)
    analyzer = analyzer_for(
        loop for loop in known if not preserve_unit_iters or loop not in above or const_int(loop.extent) != 1
    )
    iters: dict[Atom, IterRange] = {}
    inner: set[Atom] = set()
    for loop in above:
        atom = analyzer.variable(loop.loop_var)
        iters[atom] = IterRange(analyzer.expr(loop.min), analyzer.expr(loop.extent))
        if loop in loops:
            inner.add(atom)
    bindings = [analyzer.expr(b) for b in block.bindings]
    predicate = TRUE if block.predicate is None else analyzer.expr(block.predicate)
    division = subspace_divide(analyzer, bindings, iters, inner, predicate, not preserve_unit_iters)
    if division:
        division = _with_all_conditions(division, bindings, iters.keys(), inner, predicate)
    if not division:
        trivial = _by_nest(block, bindings, inner, analyzer) if predicate == TRUE else None
        if trivial is None:
            under = f"loop '{loops[0].var_name.data}'" if loops else "no loop"
            raise refuse(
                block,
                f"{primitive}: the axes of block '{name}' cannot be divided between {under} with those in it and the loops around: {division.error}",
                "split and reorder the loops so that each axis is bound to outer * extent of the inner loops + inner",
            )
        division = trivial
    require_own_values(block, primitive)
    part = Part(block, loops, division, analyzer)
    _require_bases(part, primitive)
    if block.find(tir.InitOp) is not None and "R" in axis_kinds(block):
        reason = why_not_reduction(block)
        if reason is None and not subspace_divide(analyzer, bindings, iters, inner, predicate):
            reason = "its bindings are not affine"
        if reason is not None:
            raise refuse(
                block,
                f"{primitive}: block '{name}' is not a reduction block, so that its T.init() cannot move out of the inner loops: {reason}",
                "decompose_reduction first",
            )
    return part


def _with_all_conditions(
    division: SubspaceDivision,
    bindings: Sequence[Expr],
    loops: AbstractSet[Atom],
    inner: set[Atom],
    predicate: Expr,
) -> SubspaceDivision:
    """Returns the division with the conditions on loops that drive no axis: they repeat instances."""
    driving = {atom for binding in bindings for atom in free_vars(binding)}
    sides = {True: division.inner_predicate, False: division.outer_predicate}
    for condition in conjuncts(predicate):
        about = loops & set(free_vars(condition))
        if about.isdisjoint(driving) and (about <= inner or about.isdisjoint(inner)):
            side = bool(about) and about <= inner
            if condition not in conjuncts(sides[side]):
                sides[side] = logical_and(sides[side], condition)
        elif not about <= driving:
            return SubspaceDivision((), error=f"the condition {condition!r} is about loops of which some drive no axis")
    return replace(division, inner_predicate=sides[True], outer_predicate=sides[False])


def _by_nest(
    block: tir.BlockOp, bindings: Sequence[Expr], inner: set[Atom], analyzer: Analyzer
) -> SubspaceDivision | None:
    """Returns the division when each binding uses loops of one nest only, whatever it does with them."""
    parts: list[IndexDivision] = []
    for low, extent, binding in zip(block.dom_mins, block.dom_extents, bindings, strict=True):
        used = set(free_vars(binding))
        base, size = analyzer.expr(low), analyzer.expr(extent)
        if not used & inner:
            parts.append(IndexDivision(ZERO, ONE, ZERO, ONE, binding) if not used else _all(binding - base, size, base))
        elif used <= inner:
            parts.append(IndexDivision(ZERO, ONE, binding - base, size, base))
        else:
            return None
    return SubspaceDivision(tuple(parts))


def _all(outer: Expr, extent: Expr, base: Expr) -> IndexDivision:
    return IndexDivision(outer, extent, ZERO, ONE, base)


def _require_bases(part: Part, primitive: str) -> None:
    """Raises where an axis never has its domain's first value: T.init() never runs and cannot be moved."""
    block = part.block
    for name, kind, low, index in zip(
        block.iter_names.data, axis_kinds(block), block.dom_mins, part.division.indices, strict=True
    ):
        constant = index.base.value is not None
        if index.inner_extent != ONE and not constant:
            raise refuse(
                block,
                f"{primitive}: axis '{name.data}' of block '{block.block_name.data}' starts at {index.base!r}, which is not a constant",
            )
        if kind == "R" and block.find(tir.InitOp) is not None and index.base != part.analyzer.expr(low):
            raise refuse(
                block,
                f"{primitive}: reduction axis '{name.data}' of block '{block.block_name.data}' starts at {index.base!r}, not at the start of its domain",
            )


class OuterAxes:
    """The axes of an outer block over several parts: parts that divide alike share an axis."""

    def __init__(self) -> None:
        self.axes: list[Axis] = []
        self.predicate = TRUE

    def add(self, part: Part) -> None:
        """Gives a part its outer axes."""
        self.predicate = logical_and(self.predicate, part.division.outer_predicate)
        free = list(self.axes)
        for position, (old, index) in enumerate(
            zip(axes_of(part.block, part.analyzer), part.division.indices, strict=True)
        ):
            wanted = _outer_axis(old, index, part.analyzer)
            same = [a for a in free if _alike(a, wanted)]
            here = self.axes[position] if position < len(self.axes) else None
            chosen = here if here in same else (same[0] if same else None)
            if chosen is None:
                chosen = wanted
                self.axes.append(wanted)
            else:
                free.remove(chosen)
            part.outer.append(chosen)


def _alike(a: Axis, b: Axis) -> bool:
    return (a.kind, a.min, a.extent, a.binding, a.type) == (b.kind, b.min, b.extent, b.binding, b.type)


def _outer_axis(old: Axis, index: IndexDivision, analyzer: Analyzer) -> Axis:
    """Returns the axis `_o`. Where nothing of the axis is left inside, it has its old value, base and all."""
    name = f"{old.name}_o"
    if index.inner_extent != ONE or index.base == ZERO:
        return Axis(name, old.kind, ZERO, index.outer_extent, analyzer.simplify(index.outer), old.type)
    return Axis(name, old.kind, old.min, old.extent, analyzer.simplify(index.outer + index.base), old.type)


def wrap(state: State, parts: Sequence[Part], outer: OuterAxes, name: str, nests: Sequence[Operation]) -> tir.BlockOp:
    """Puts an outer block around the statements `nests`, which hold the parts, and returns it."""
    first = nests[0]
    block, values = make_block(
        builder_before(first),
        state.fresh_block_name(first, name),
        outer.axes,
        parts[0].analyzer,
        predicate=outer.predicate,
    )
    move_to_end(nests, block.body.block)
    reads: list[Box] = []
    writes: list[Box] = []
    for part in parts:
        inner = _inner_block(state, part, values)
        if inner.find(tir.ReadsOp) is None or inner.find(tir.WritesOp) is None:
            declare_access(inner)
        covered = _covered(inner, block)
        reads += [b for b in covered[0] if b not in reads]
        writes += [b for b in covered[1] if b not in writes]
        if any(axis.kind == "R" for axis in part.outer):
            _move_init(state, block, inner, part.loops)
    if len(parts) > 1:
        reads, writes = _one_per_buffer(reads), _one_per_buffer(writes)
    replace_regions(block, tir.WritesOp, writes, Analyzer())
    replace_regions(block, tir.ReadsOp, reads, Analyzer())
    state.added(block)
    return block


def inner_axes(part: Part, outer: Mapping[Atom, Expr]) -> tuple[list[Axis], dict[SSAValue, Expr]]:
    """Returns the inner block's axes, and the old axes in terms of those and of the outer axes' values."""
    axes: list[Axis] = []
    values: dict[SSAValue, Expr] = {}
    for axis, index, above in zip(axes_of(part.block, part.analyzer), part.division.indices, part.outer, strict=True):
        whole_value = outer[above.atom]
        if index.inner_extent == ONE:
            # The only value that it has, where that is known; otherwise the outer axis.
            values[axis.variable] = above.min if above.extent == ONE and above.min.value is not None else whole_value
            continue
        binding = part.analyzer.simplify(index.inner)
        inner = Axis(f"{axis.name}_i", axis.kind, ZERO, index.inner_extent, binding, axis.type)
        axes.append(inner)
        start = ZERO if index.outer_extent == ONE else whole_value * index.inner_extent
        values[axis.variable] = start + inner.symbol + index.base
    return axes, values


def _inner_block(state: State, part: Part, outer: Mapping[Atom, Expr]) -> tir.BlockOp:
    """Replaces the block by one with axes over the inner loops only, to which its handles move."""
    old = part.block
    axes, values = inner_axes(part, outer)
    new, made = make_block(
        builder_before(old),
        old.block_name.data,
        axes,
        part.analyzer,
        predicate=part.division.inner_predicate,
        annotations=old.annotations,
    )
    move_body(old, new)
    analyzer = Analyzer()
    bind_axes(analyzer, new)
    around = next((each for each in enclosing(new) if isinstance(each, tir.BlockOp)), None)
    if around is not None:
        bind_long_axes(analyzer, around)
    replace_variables(new, {v: substitute(e, made) for v, e in values.items()}, analyzer)
    state.forward(old, new)
    before = list(old.operands)
    erase_op(old)
    erase_if_dead(*before)
    return new


def _covered(inner: tir.BlockOp, block: tir.BlockOp) -> tuple[list[Box], list[Box]]:
    """Returns the regions of an inner block over all of its axes, in terms of the outer block's axes."""
    analyzer = Analyzer()
    bind_axes(analyzer, inner)
    bind_long_axes(analyzer, block)
    variables = {atom for v in inner.iter_vars if (atom := analyzer.expr(v).atom) is not None}
    found: list[list[Box]] = []
    for boxes in (reads_of(inner, analyzer), writes_of(inner, analyzer)):
        found.append([])
        for box in boxes:
            dims: list[Ends] = []
            for number, (low, high) in enumerate(box.dims):
                starts, stops = relax(low, variables, analyzer), relax(high, variables, analyzer)
                if starts is None or stops is None:
                    dims.append(whole(box.buffer, analyzer).dims[number])
                else:
                    dims.append((analyzer.simplify(starts[0]), analyzer.simplify(stops[1])))
            found[-1].append(Box(box.buffer, tuple(dims)))
    return found[0], found[1]


def _move_init(state: State, block: tir.BlockOp, inner: tir.BlockOp, loops: Sequence[tir.ForOp]) -> None:
    """Moves the inner block's T.init() to the outer one, in copies of the inner loops of spatial axes."""
    init = inner.find(tir.InitOp)
    if not isinstance(init, tir.InitOp):
        return
    make_self_contained(init, inner)
    init.detach()
    declare_update(inner)
    analyzer = Analyzer()
    used = variables_used(walk_ops(init), inner.iter_vars)
    old_axes = [a for a in axes_of(inner, analyzer) if a.kind == "S" and a.atom.payload in used]
    driving = {a.payload for axis in old_axes for a in free_vars(axis.binding)}
    place = tir.InitOp()
    place.location = init.location
    body = block.body.block
    assert body.first_op is not None
    body.insert_op_before(place, body.first_op)
    driven = [loop for loop in loops if loop.loop_var in driving]
    builder = builder_at_end(place.body.block, init.location)
    renamed, builder = copy_loops(driven, builder, analyzer, init.location, is_init=True)
    axes = [Axis(f"{a.name}_init", "S", a.min, a.extent, substitute(a.binding, renamed), a.type) for a in old_axes]
    guard = TRUE if inner.predicate is None else analyzer.expr(inner.predicate)
    # Conditions on loops of the reduction alone, which are not copied, say nothing of where it begins.
    left = {loop.loop_var for loop in loops if loop.loop_var not in driving}
    kept = [c for c in conjuncts(guard) if all(a.payload not in left for a in free_vars(c))]
    new, values = make_block(
        builder,
        state.fresh_block_name(block, f"{inner.block_name.data}_init"),
        axes,
        analyzer,
        predicate=substitute(logical_and(*kept), renamed),
    )
    move_to_end(init.body.block.ops, new.body.block)
    init.erase()
    replaced = {old.variable: values[axis.atom] for old, axis in zip(old_axes, axes, strict=True)}
    replace_variables(new, replaced, analyzer)
    declare_access(new)
    state.added(new)


def _one_per_buffer(boxes: Sequence[Box]) -> list[Box]:
    joined: dict[SSAValue, Box] = {}
    for box in boxes:
        known = joined.get(box.buffer)
        joined[box.buffer] = box if known is None else united(known, box, Analyzer())
    return list(joined.values())
