"""Reductions: vectors over the output where that is contiguous, else over the reduced elements; several stages row by row."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.tir.analysis import Analyzer
from ....dialects.tir.analysis.expr import free_vars
from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule, ScheduleError
from ...schedule.structure import buffers_written, consumers, read_regions, write_regions
from .contraction import own_loops
from .elementwise import lanes_of_block, parallelize, vectorize_loop
from .shape import Shape, element_bytes, shape_of
from .vector import contiguous_suffix


def vector_axis(shape: Shape) -> SSAValue | None:
    """The spatial axis along which all accesses are contiguous or repeated, if there is one."""
    if not shape.spatial or contiguous_suffix(shape) == 0:
        return None
    axis = shape.spatial[-1]
    extent = shape.extent(axis)
    # A vector that is mostly empty is no better than a scalar.
    return axis if extent is None or extent >= 4 else None


def schedule_reduction(sch: Schedule, block: BlockRV, target: Target) -> None:
    """One reduction on its own."""
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    shape = shape_of(op)
    if shape is None:
        return
    work = shape.points * shape.cost
    loops: list[LoopRV] = sch.get_loops(block)
    by_axis = dict(zip(shape.axes, loops, strict=True))
    reducing = [by_axis[v] for v in shape.reduction]
    axis = vector_axis(shape)
    if axis is None:
        spatial = [by_axis[v] for v in shape.spatial]
        if spatial:
            sch.reorder(*spatial, *reducing)
        parallelize(sch, spatial, work, target)
        sch.decompose_reduction(block, reducing[0])
        return
    outer = [by_axis[v] for v in shape.spatial if v is not axis]
    lanes = lanes_of_block(shape, target)
    extent = shape.extent(axis)
    if extent is not None and extent > lanes:
        inner = by_axis[axis]
        parts = next((u for u in (4, 2) if extent % (u * lanes) == 0), 1)
        head, middle, tail = sch.split(inner, [None, parts, lanes])
        sch.reorder(*outer, head, *reducing, middle, tail)
        sch.vectorize(tail)
        sch.unroll(middle)
        outer.append(head)
    else:
        tail = by_axis[axis]
        sch.reorder(*outer, *reducing, tail)
        sch.vectorize(tail)
    parallelize(sch, outer, work, target)
    head = own_loops(sch, sch.decompose_reduction(block, reducing[0]))
    if head:
        sch.vectorize(head[-1])
        for loop in head[-2:-1]:
            sch.unroll(loop)


# Several stages over the same rows: softmax, layer norm


def shared_rows(blocks: list[tir.BlockOp]) -> int:
    """How many leading axes all blocks have in common: every buffer between them is read at the reader's own row. 0: none."""
    shapes = [shape_of(b) for b in blocks]
    if any(s is None for s in shapes) or len(blocks) < 2:
        return 0
    known = [s for s in shapes if s is not None]
    count = min(_leading_spatial(s) for s in known)
    extents = known[0].extents
    for s in known[1:]:
        while count and s.extents[:count] != extents[:count]:
            count -= 1
    for block in blocks:
        for buffer in buffers_written(block):
            for reader in consumers(block):
                count = min(count, _row_prefix(reader, buffer))
        count = min(count, _written_prefix(block))
    return count


def _leading_spatial(shape: Shape) -> int:
    count = 0
    for kind in shape.kinds:
        if kind != "S":
            break
        count += 1
    return count


def _row_prefix(reader: tir.BlockOp, buffer: SSAValue) -> int:
    """How many leading dimensions of a buffer a block reads at its own leading axes."""
    best = 1 << 10
    for region in read_regions(reader):
        if region.buffer is not buffer:
            continue
        best = min(best, _matching(region, reader))
    return best


def _written_prefix(block: tir.BlockOp) -> int:
    return min((_matching(region, block) for region in write_regions(block)), default=0)


def _matching(region: tir.BufferRegionOp, block: tir.BlockOp) -> int:
    analyzer = Analyzer()
    count = 0
    for start, size, axis in zip(region.mins, region.extents, block.iter_vars, strict=False):
        if analyzer.expr(start) != analyzer.expr(axis) or analyzer.expr(size).value != 1:
            break
        count += 1
    return count


def schedule_rows(sch: Schedule, blocks: list[BlockRV], rows: int, target: Target) -> bool:
    """Computes all stages of a row before the next row; False when a stage cannot be moved (nothing is changed then)."""
    work = 0
    for block in blocks:
        op = sch.get(block)
        assert isinstance(op, tir.BlockOp)
        shape = shape_of(op)
        if shape is None:
            return False
        work += shape.points * shape.cost
    last = blocks[-1]
    loops: list[LoopRV] = sch.get_loops(last)
    row = loops[rows - 1]
    moved = [last]
    for block in reversed(blocks[:-1]):
        try:
            sch.compute_at(block, row)
        except ScheduleError:
            # What cannot move stays in front, a stage of its own.
            _schedule_alone(sch, block, target)
            continue
        moved.append(block)
    parallelize(sch, loops[:rows], work, target)
    for block in reversed(moved):
        _schedule_row(sch, block, target)
    return True


def _schedule_row(sch: Schedule, block: BlockRV, target: Target) -> None:
    """One stage inside of a row: a reduction with its init apart, or an elementwise loop in vectors."""
    inner = own_loops(sch, block)
    if not inner:
        return
    op = sch.get(block)
    assert isinstance(op, tir.BlockOp)
    kinds = [k.data for k in op.iter_types.data]
    if "R" in kinds:
        first = next((loop for loop in inner if _drives(sch, loop, op)), inner[0])
        sch.decompose_reduction(block, first)
        return
    store = next((s for s in op.body.block.ops if isinstance(s, tir.StoreOp)), None)
    if store is None or not store.indices:
        return
    vectorize_loop(sch, inner[-1], target.lanes(element_bytes(store.buffer)))


def _drives(sch: Schedule, loop: LoopRV, block: tir.BlockOp) -> bool:
    """Whether a reduction axis of the block is bound to the loop."""
    op = sch.get(loop)
    assert isinstance(op, tir.ForOp)
    analyzer = Analyzer()
    for kind, binding in zip(block.iter_types.data, block.bindings, strict=True):
        if kind.data == "R" and any(a.payload is op.loop_var for a in free_vars(analyzer.expr(binding))):
            return True
    return False


def _schedule_alone(sch: Schedule, block: BlockRV, target: Target) -> None:
    from ..default_schedule import schedule_block

    schedule_block(sch, block, target)
