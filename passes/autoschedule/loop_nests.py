"""Random variables of what a rule works on: blocks, the loops around them alone, the loop of an axis."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer
from ...dialects.arith.expr import free_vars
from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.structure import buffers_read, child_blocks, const_int, is_only_block, scope_of
from .refusals import tolerating

PARALLEL_WORK = 1 << 16
"""Simple operations below which a kernel stays on one thread: some ten microseconds, many times what waking one costs."""


def block_of(sch: Schedule, block: BlockRV) -> tir.BlockOp:
    """Returns the block that a random variable refers to."""
    op = sch.resolve(block)
    assert isinstance(op, tir.BlockOp)
    return op


def cached(sch: Schedule, block: BlockRV, number: int) -> BlockRV:
    """Copies the buffer that a block reads as its `number`th; only this block reads the copy."""
    op = block_of(sch, block)
    buffer = buffers_read(op)[number]
    readers = [b for b in child_blocks(scope_of(op)) if any(read is buffer for read in buffers_read(b))]
    copy: BlockRV = sch.cache_read(block, number, "global", [block] if len(readers) > 1 else None)
    return copy


def own_loops(sch: Schedule, block: BlockRV) -> list[LoopRV]:
    """Returns the loops that hold nothing but this block."""
    op, loops = block_of(sch, block), sch.get_loops(block)
    own = len(loops)
    while own and is_only_block(op, sch.resolve(loops[own - 1])):
        own -= 1
    return loops[own:]


def loop_of_axis(sch: Schedule, block: BlockRV, axis: int) -> LoopRV | None:
    """Returns the one of its own loops that an axis of the block is bound to (plus what is fixed)."""
    return driving_loop(sch, own_loops(sch, block), block_of(sch, block).bindings[axis])


def loops_by_axis(sch: Schedule, block: BlockRV) -> list[LoopRV | None]:
    """Returns for each axis of a moved block the one of its own loops that it is bound to.

    None where it has none left, as loops of one iteration are gone.
    """
    loops = own_loops(sch, block)
    return [driving_loop(sch, loops, binding) for binding in block_of(sch, block).bindings]


def driving_loop(sch: Schedule, loops: list[LoopRV], value: SSAValue) -> LoopRV | None:
    """Returns the outermost of the loops whose variable a value is made of."""
    used = {a.payload for a in free_vars(Analyzer().expr(value))}
    return next((loop for loop in loops if sch.resolve(loop).loop_var in used), None)


def turns_of(sch: Schedule, loops: list[LoopRV], unknown: int = 1) -> int:
    """Returns the trip count of loops together; a symbolic extent counts as `unknown`."""
    return prod(unknown if (extent := extent_of(sch, loop)) is None else max(extent, 1) for loop in loops)


def partitioned(
    sch: Schedule, block: BlockRV, loop: LoopRV, turns: int, below: int
) -> tuple[list[LoopRV], list[tuple[BlockRV, LoopRV]]]:
    """Partitions the first iterations of a loop from the others; returns the loops of the parts.

    Each comes with its copy of the block and the first of the `below` loops around that.
    """
    name = block_of(sch, block).block_name.data
    loops: list[LoopRV] = sch.loop_partition(loop, [turns])
    parts: list[tuple[BlockRV, LoopRV]] = []
    for part in loops:
        copy = sch.handle(next(b for b in child_blocks(sch.resolve(part)) if b.block_name.data.startswith(name)))
        parts.append((copy, sch.get_loops(copy)[-below]))
    return loops, parts


def store_of(block: tir.BlockOp) -> tir.StoreOp:
    """Returns the first store directly in a block."""
    return next(op for op in block.body.block.ops if isinstance(op, tir.StoreOp))


def axis_along(block: tir.BlockOp, index: SSAValue | None) -> int | None:
    """Returns which of the block's axes alone an index is computed of."""
    if index is None:
        return None
    analyzer = Analyzer()
    used = free_vars(analyzer.expr(index))
    places = [k for k, axis in enumerate(block.iter_vars) if analyzer.expr(axis).atom in used]
    return places[0] if len(places) == 1 else None


def attempt(sch: Schedule, block: tir.BlockOp) -> bool:
    """Inlines a block; False when that is not legal."""
    with tolerating("inlining", block):
        sch.compute_inline(sch.handle(block))
        return True
    return False


def extent_of(sch: Schedule, loop: LoopRV) -> int | None:
    """Returns a loop's extent, None where it is symbolic."""
    return const_int(sch.resolve(loop).extent)


def vectorize_loop(sch: Schedule, loop: LoopRV, lanes: int, *, even: bool = True) -> list[LoopRV]:
    """Splits a loop by the vector width and vectorizes the inner part; returns the outer loops.

    What is a little longer than some vectors is split in equal parts if `even`, which registers that hold whole vectors would have to be put
    together for.
    """
    extent = extent_of(sch, loop)
    if extent is not None and extent < 2:
        return []
    if extent is not None and extent <= lanes:
        sch.vectorize(loop)
        return []
    width = lanes
    if even and extent is not None and extent % lanes and extent < 4 * lanes:
        # A short row in equal parts rather than in whole vectors and a remainder.
        parts = -(-extent // lanes)
        width = next((w for w in range(-(-extent // parts), lanes + 1) if extent % w == 0), lanes)
    head, tail = sch.split(loop, [None, width])
    sch.vectorize(tail)
    return [head]


def parallelize(sch: Schedule, loops: list[LoopRV], work: int, target: Target) -> None:
    """Runs the outermost loops on threads where the work is worth it.

    As many are fused as leave each thread several iterations; of those of unknown length, which may be one, two. Loops of one iteration are
    not fused with these: an index that is a quotient by two unknown extents is not known to be in bounds.
    """
    if any(extent_of(sch, loop) is None for loop in loops):
        loops = [loop for loop in loops if extent_of(sch, loop) != 1]
    if target.cores < 2 or work < PARALLEL_WORK or not loops:
        return
    chosen = [loops[0]]
    extents = [extent_of(sch, loops[0])]
    for loop in loops[1:]:
        if extents.count(None) > 1 or prod(extent or 1 for extent in extents) >= 4 * target.cores:
            break
        chosen.append(loop)
        extents.append(extent_of(sch, loop))
    if None not in extents and prod(extent or 1 for extent in extents) == 1:
        return
    sch.parallel(sch.fuse(*chosen) if len(chosen) > 1 else chosen[0])
