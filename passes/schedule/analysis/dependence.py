"""Data dependences of loops: whether two nests may be interleaved, or iterations run in parallel.

The first nest ends before the second begins. Interleaved, iteration p of the second runs before every later iteration q > p of
the first. That changes nothing when no later iteration of the first touches what iteration p of the second touches, unless both
only read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, symbol
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import Atom, free_vars, logical_and, substitute
from ....dialects.arith.iter_map import IterMapLevel
from ....dialects.tir.stmt import RegionsOp
from ....support.walk import enclosing, walk_ops
from ...tir.blocks.loop_carried import CarriedValues
from .access import Box, extents_of, made_in, reads_of, relaxed, whole, writes_of
from .block_kind import are_all_digits_of, axis_kinds, bind_axes, conditions_of
from .structure import (
    all_loops_above,
    buffers_written,
    child_blocks,
    const_int,
    function_of,
    is_inside,
    loops_above,
    read_regions,
    scope_of,
    write_regions,
)

Nest = Sequence[tir.ForOp]


def why_turns_conflict(first: Nest, second: Nest) -> str | None:
    """Returns why iteration k of `second` may not precede iteration k + 1 of `first`; None when it may.

    The nests have the same extents, each loop directly around the next; their bodies may hold any blocks.
    """
    touched = [_touched(nest) for nest in (first, second)]
    for one, other in zip(touched, ("first", "second"), strict=True):
        if isinstance(one, str):
            return f"{one} in the {other} nest"
    (reads, writes), (later_reads, later_writes) = (each for each in touched if not isinstance(each, str))
    for mine, theirs in ((writes, later_reads + later_writes), (reads, later_writes)):
        for a in mine:
            for b in theirs:
                if a.buffer is b.buffer and not _apart(a, first, b, second):
                    name = tir.buffer_name(a.buffer)
                    return (
                        f"a later iteration of the first nest may touch the element of '{name}' that the second touches"
                    )
    return None


def _touched(nest: Nest) -> tuple[list[Box], list[Box]] | str:
    """Returns (reads, writes) of the blocks in a nest in terms of its loops, or why they are not known."""
    innermost = nest[-1]
    for op in walk_ops(innermost):
        if isinstance(op, tir.StoreOp | tir.EvaluateOp) and not _in_block(op, innermost):
            return "a statement stands outside of blocks"
    analyzer = Analyzer()
    for loop in all_loops_above(nest[0]):
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    for loop in nest:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    reads: list[Box] = []
    writes: list[Box] = []
    for block in child_blocks(innermost):
        inner = [loop for loop in loops_above(block) if is_inside(loop, innermost) and loop is not innermost]
        for loop in inner:
            analyzer.bind(loop.loop_var, loop.min, loop.extent)
        bind_axes(analyzer, block)
        for boxes, target in ((reads_of(block, analyzer), reads), (writes_of(block, analyzer), writes)):
            for box in boxes:
                target.append(relaxed(box, block, inner, analyzer) or whole(box.buffer, analyzer))
    return reads, writes


def _in_block(op: tir.StoreOp | tir.EvaluateOp, root: tir.ForOp) -> bool:
    return any(isinstance(each, tir.BlockOp) for each in enclosing(op, root))


def _apart(a: Box, first: Nest, b: Box, second: Nest) -> bool:
    """Returns whether `a` of later iterations of `first` is disjoint from `b` of an iteration of `second`."""
    for level in range(len(first)):
        # In the outer loops both are at one iteration, in this one the first nest is 1 + t ahead, in the inner ones at any.
        analyzer = Analyzer()
        mine: dict[Atom, Expr] = {}
        theirs: dict[Atom, Expr] = {}
        for depth, (loop, other) in enumerate(zip(first, second, strict=True)):
            extent = analyzer.expr(loop.extent)
            turn = symbol("p")
            if depth == level:
                ahead = symbol("t")
                analyzer.bind(turn, 0, extent - 1)
                analyzer.bind(ahead, 0, extent - 1 - turn)
                later = turn + ahead + 1
            else:
                analyzer.bind(turn, 0, extent)
                later = turn
                if depth > level:
                    later = symbol("q")
                    analyzer.bind(later, 0, extent)
            mine[analyzer.variable(loop.loop_var)] = later
            theirs[analyzer.variable(other.loop_var)] = turn
        if not any(
            analyzer.can_prove_ge0(substitute(low, mine) - substitute(top, theirs) - 1)
            or analyzer.can_prove_ge0(substitute(bottom, theirs) - substitute(high, mine) - 1)
            for (low, high), (bottom, top) in zip(a.dims, b.dims, strict=True)
        ):
            return False
    return True


def why_iterations_meet(
    loop: tir.ForOp, shared: Callable[[tir.BlockOp, SSAValue], bool]
) -> tuple[tir.BlockOp, str] | None:
    """Returns a block of a loop that touches what another iteration writes, with the reason, or None.

    for i in range(8):
        with T.block("C"): C[vi] = A[vi]
        with T.block("D"): D[vi] = C[vi - 1]       # D reads elements of 'C' that another iteration writes

    A buffer that is allocated for the loop alone carries nothing: each iteration has one of its own, if it reads only what it
    wrote itself.

    `shared(block, buffer)`: whether threads wait for what the block writes to the buffer, which then counts as not written.
    """
    blocks = child_blocks(loop)
    written: dict[SSAValue, list[tir.BlockOp]] = {}
    for block in blocks:
        for buffer in dict.fromkeys(buffers_written(block)):
            if not shared(block, buffer):
                written.setdefault(buffer, []).append(block)
    touching: dict[SSAValue, set[tir.BlockOp]] = {}
    for block in blocks:
        for region in (*read_regions(block), *write_regions(block)):
            touching.setdefault(region.buffer, set()).add(block)
    places: dict[tir.BlockOp, _Uses] = {}
    for buffer, those in written.items():
        if len(touching[buffer]) == 1 and all(
            _writes_where_loop_is(loop, region) for region in write_regions(those[0]) if region.buffer is buffer
        ):
            continue
        found = _meeting(loop, buffer, those, blocks, places)
        if found is not None and not is_of_iteration(buffer, loop):
            return found
    return None


def why_order_carries(chain: Nest, target: Nest) -> tuple[tir.BlockOp, str] | None:
    """Returns a block of which the loop order `target` breaks a dependence, with the reason, or None.

    for i, j in T.grid(8, 8):
        with T.block("C"): C[vi] = A[vi, vj]
        with T.block("D"): D[vi, vj] = C[7 - vi]     # of iterations before and after: j may not get outside of i

    Iterations that touch one element are apart in those loops only for which this is not disproved. These keep their order.

    Instances of one block are apart by its axes; not so of a block that holds others, of which one may carry values to the next instance.
    """
    blocks = child_blocks(chain[0])
    held = {block for block in blocks if child_blocks(block) and "R" not in axis_kinds(block)}
    if len(blocks) < 2 and not held:
        return None
    uses = {block: _Uses.of(block, chain[0]) for block in blocks}
    for writer in blocks:
        for block in blocks:
            if block is writer and block not in held:
                continue
            for mine in uses[writer].writes:
                for theirs in (*uses[block].reads, *uses[block].writes):
                    if mine.buffer is not theirs.buffer:
                        continue
                    meet = [
                        each for each in chain if not iterations_apart(each, mine, uses[writer], theirs, uses[block])
                    ]
                    if [each for each in target if each in meet] == meet:
                        continue
                    if not all(is_of_iteration(mine.buffer, each) for each in meet):
                        name = tir.buffer_name(mine.buffer)
                        used = f"block '{block.block_name.data}' uses elements of '{name}' that"
                        if block is writer:
                            return block, f"{used} an earlier instance of it writes"
                        return block, f"{used} block '{writer.block_name.data}' writes in other iterations"
    return None


def writes_apart(block: tir.BlockOp, loop: tir.ForOp) -> bool:
    """Returns whether a block is known to write each element in only one iteration of a loop around it."""
    if all(_writes_where_loop_is(loop, region) for region in write_regions(block)):
        return True
    uses = _Uses.of(block, loop)
    return all(
        iterations_apart(loop, one, uses, other, uses)
        for one in uses.writes
        for other in uses.writes
        if one.buffer is other.buffer
    )


def _writes_where_loop_is(loop: tir.ForOp, region: tir.BufferRegionOp) -> bool:
    """Returns whether a block writes `B[vi, vj, …]` at axes that differ between iterations, as most do."""
    block = scope_of(region)
    assert isinstance(block, tir.BlockOp)
    values = dict(zip(block.iter_vars, block.bindings, strict=True))
    elements = zip(region.mins, region.extents, strict=True)
    return are_all_digits_of(loop, block, [values[v] for v, size in elements if v in values and const_int(size) == 1])


def is_of_iteration(buffer: SSAValue, loop: tir.ForOp) -> bool:
    """Returns whether an allocated buffer is local to a loop's iterations: only used there, not carried."""
    allocated = isinstance(buffer.owner, tir.AllocBufferOp)
    return (
        allocated
        and all(_is_in(use.operation, loop) for use in buffer.uses)
        and not CarriedValues(buffer).outlasts(loop)
    )


def _is_in(use: Operation, loop: tir.ForOp) -> bool:
    """Returns whether a use of a buffer is in a loop; blocks around the loop only declare theirs."""
    if is_inside(use, loop):
        return True
    if not isinstance(use, tir.BufferRegionOp):
        return False
    return all(isinstance(u.operation, RegionsOp) and is_inside(loop, scope_of(u.operation)) for u in use.result.uses)


class Site(Protocol):
    """The place of an access: the loops around it from one on, outermost first, and its conditions."""

    @property
    def loops(self) -> list[tir.ForOp]: ...
    @property
    def conditions(self) -> list[Expr]: ...
    @property
    def analyzer(self) -> Analyzer: ...

    def reached(self, box: Box, fixed: Sequence[tir.ForOp]) -> Box:
        """Returns the part of a box that is touched while the loops run that are not fixed."""
        ...


@dataclass(frozen=True)
class _Uses:
    """The reads and writes of a block in a loop, and the loops around the block from that loop on."""

    block: tir.BlockOp
    loops: list[tir.ForOp]
    reads: list[Box]
    writes: list[Box]
    conditions: list[Expr]
    analyzer: Analyzer

    @staticmethod
    def of(block: tir.BlockOp, loop: tir.ForOp) -> _Uses:
        """Returns the uses of one block."""
        analyzer = Analyzer()
        for each in all_loops_above(block):
            analyzer.bind(each.loop_var, each.min, each.extent)
        bind_axes(analyzer, block)
        loops = [each for each in loops_above(block) if is_inside(each, loop)]
        conditions = [] if block.predicate is None else conditions_of(block.predicate, analyzer)
        return _Uses(block, loops, reads_of(block, analyzer), writes_of(block, analyzer), conditions, analyzer)

    def reached(self, box: Box, fixed: Sequence[tir.ForOp]) -> Box:
        """Returns the part of the block's box that is touched while the loops run that are not fixed."""
        inner = [each for each in self.loops if each not in fixed]
        return relaxed(box, self.block, inner, self.analyzer) or whole(box.buffer, self.analyzer)


def _meeting(
    loop: tir.ForOp,
    buffer: SSAValue,
    written: list[tir.BlockOp],
    blocks: list[tir.BlockOp],
    places: dict[tir.BlockOp, _Uses],
) -> tuple[tir.BlockOp, str] | None:
    """Returns a block that touches elements that a writer writes in another iteration, with the reason."""
    for block in (*written, *blocks):
        if block not in places:
            places[block] = _Uses.of(block, loop)
    name = tir.buffer_name(buffer)
    for writer in written:
        boxes = [box for box in places[writer].writes if box.buffer is buffer]
        for block in blocks:
            for verb, others in (("reads", places[block].reads), ("overwrites", places[block].writes)):
                for other in others:
                    if other.buffer is buffer and not all(
                        iterations_apart(loop, box, places[writer], other, places[block]) for box in boxes
                    ):
                        of = "it" if block is writer else f"block '{writer.block_name.data}'"
                        return block, (
                            f"block '{block.block_name.data}' {verb} elements of '{name}' that {of} may write in another iteration"
                        )
    return None


def iterations_apart(loop: tir.ForOp, a: Box, mine: Site, b: Box, theirs: Site) -> bool:
    """Returns whether box `a` of an iteration of the loop is disjoint from box `b` of every other one."""
    common = [each for each in mine.loops if each in theirs.loops]
    for fixed in dict.fromkeys(((loop,), tuple(common), (*loops_above(loop), *common))):
        one, other = mine.reached(a, fixed), theirs.reached(b, fixed)
        if _digits_apart(loop, fixed, one, other, mine, theirs):
            return True
        if len(fixed) == 1 and _ranges_apart(loop, one, other, mine.analyzer):
            return True
        if len(fixed) == 1:
            flat = [_flattened(box, mine.analyzer) for box in (one, other)]
            if flat[0] is not None and flat[1] is not None and _ranges_apart(loop, flat[0], flat[1], mine.analyzer):
                return True
    return False


def _flattened(box: Box, analyzer: Analyzer) -> Box | None:
    """Returns the place of a single element as a box of one dimension; None for other boxes.

    [f // 14, f % 14] of a buffer of 14 columns is [f]: elements at different places are different ones, wherever f ends.
    """
    sizes = [analyzer.simplify(size).value for size in extents_of(box.buffer, analyzer)]
    place, step = Expr((), 0), 1
    for (low, high), size in zip(reversed(box.dims), reversed(sizes), strict=True):
        if size is None or analyzer.simplify(high - low).value != 0:
            return None
        place = place + low.scaled(step)
        step *= size
    place = analyzer.simplify(place)
    return Box(box.buffer, ((place, place),))


def _digits_apart(loop: tir.ForOp, fixed: Sequence[tir.ForOp], a: Box, b: Box, mine: Site, theirs: Site) -> bool:
    """Returns whether loops are digits of a box's start, each with steps longer than both boxes.

    a = [4 * (f // 8) : +4, 16 * (f % 8) : +16] is disjoint from itself in all other iterations of f.
    """
    analyzer = mine.analyzer
    atoms = {analyzer.variable(each.loop_var): each for each in fixed}
    own = analyzer.variable(loop.loop_var)
    used = [number for number, (low, _) in enumerate(a.dims) if not atoms.keys().isdisjoint(free_vars(low))]
    seen = {atom for number in used for atom in free_vars(a.dims[number][0])}
    if own not in seen:
        return False
    iters: dict[Value, tuple[Value, Value]] = {
        each.loop_var: (each.min, each.extent) for atom, each in atoms.items() if atom in seen
    }
    # Iterations in which one of both does not run need not be apart: those that a split leaves over, in most cases.
    others = {analyzer.variable(each.loop_var) for each in (*mine.loops, *theirs.loops)} - seen
    conditions = [
        c
        for c in mine.conditions
        if c in theirs.conditions and others.isdisjoint(free_vars(c)) and not made_in(function_of(loop), c)
    ]
    starts = [a.dims[number][0] for number in used]
    found = analyzer.detect_iter_map(starts, iters, logical_and(*conditions), IterMapLevel.BIJECTIVE)
    if not found:
        return False
    for number, total in zip(used, found.indices, strict=True):
        (low, high), (bottom, top) = a.dims[number], b.dims[number]
        for split in total.args:
            step = split.scale if analyzer.can_prove_ge0(split.scale) else -split.scale
            if not analyzer.can_prove_ge0(step):
                return False
            # Steps take a's start past the end of b, and b's, which equals a's up to a known difference, past the end of a.
            length = high - low
            if not atoms.keys().isdisjoint(free_vars(analyzer.simplify(length))):
                return False
            if not (
                analyzer.can_prove_ge0(step - 1 - (top - low))
                and analyzer.can_prove_ge0(step - 1 - (low - bottom) - length)
            ):
                return False
    return True


def _ranges_apart(loop: tir.ForOp, a: Box, b: Box, analyzer: Analyzer) -> bool:
    """Returns whether one dimension keeps `a` of each iteration disjoint from `b` of all other iterations."""
    atom = analyzer.variable(loop.loop_var)
    here = analyzer.expr(loop.loop_var)
    ahead = symbol("ahead")
    for mine, theirs in ((a, b), (b, a)):
        with analyzer.bind(ahead, 0, here - analyzer.expr(loop.min)):
            earlier = {atom: here - ahead - 1}
            if not any(
                analyzer.can_prove_ge0(low - substitute(top, earlier) - 1)
                or analyzer.can_prove_ge0(substitute(bottom, earlier) - high - 1)
                for (low, high), (bottom, top) in zip(mine.dims, theirs.dims, strict=True)
            ):
                return False
    return True
