"""Reductions: vectors over the output where that is contiguous, otherwise over the reduced elements.

Several stages run row by row. Of rows shorter than half a vector, several are added as whole vectors, whose columns are added at the
end.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, prod

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute, SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer
from ...dialects.arith.expr import free_vars
from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.block_kind import axis_kinds
from ..schedule.analysis.structure import buffers_written, consumers, producers, read_regions, write_regions
from ..tir.blocks.convert_blocks_to_opaque import choice_of
from ..tir.vectors.lower_lane_reduction import LANES, MASKS, VECTORS
from .block_shape import MANY, Shape, block_shape, element_bytes, lanes_of_block, shape_of
from .column_reduction import reduce_columns, vector_axis
from .loop_nests import PARALLEL_WORK, block_of, driving_loop, extent_of, own_loops, parallelize, vectorize_loop
from .refusals import tolerating
from .vector_axes import contiguous_reduction, contiguous_suffix


def schedule_reduction(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedules a reduction block."""
    shape = shape_of(block_of(sch, block))
    if shape is None:
        return
    work = shape.points * shape.cost
    loops: list[LoopRV] = sch.get_loops(block)
    by_axis = dict(zip(shape.axes, loops, strict=True))
    if vector_axis(shape) is not None:
        group = _rows_of_vectors(shape, target)
        if group:
            _reduce_narrow(sch, block, loops, group, lanes_of_block(shape, target))
            return
        reduce_columns(sch, block, shape, by_axis, target, work)
        return
    spatial = [by_axis[v] for v in shape.spatial]
    reducing = [by_axis[v] for v in shape.reduction]
    if spatial:
        sch.reorder(*spatial, *reducing)
    parts = _parts(shape, work, target)
    if parts:
        _reduce_in_parts(sch, block, shape, reducing, parts, target)
        return
    far = _far(shape, target)
    if far and reduce_in_order(sch, block, shape, by_axis, far, work, target):
        return
    parallelize(sch, spatial, work, target)
    reduce_in_lanes(sch, block, shape, reducing, target)


def _far(shape: Shape, target: Target) -> int:
    """Returns how many of the outermost reduction axes are farther apart in memory than all results are.

    Results must stay in cache. A sum over the first and the last dimension of three reads memory in order if for each element of the first one a
    part of all results is made.
    """
    outputs = {s.buffer for s in shape.stores}
    loads = [load for load in shape.loads if load.buffer not in outputs]
    results = prod(shape.extent(v) or MANY for v in shape.spatial)
    if len(loads) != 1 or len(shape.stores) != 1 or not shape.spatial:
        return 0
    if results * element_bytes(shape.stores[0].buffer) > target.l1 // 2:
        return 0
    analyzer = Analyzer()
    place = {
        axis: min((k for k, i in enumerate(loads[0].indices) if analyzer.expr(axis).atom in free_vars(i)), default=None)
        for axis in shape.axes
    }
    nearest = min((p for v in shape.spatial if (p := place[v]) is not None), default=0)
    count = 0
    for axis in shape.reduction[: len(shape.reduction) - contiguous_reduction(shape)]:
        at = place[axis]
        if at is None or at >= nearest:
            break
        count += 1
    return count


def reduce_in_order(
    sch: Schedule,
    block: BlockRV,
    shape: Shape,
    by_axis: dict[SSAValue, LoopRV],
    far: int,
    work: int,
    target: Target,
) -> bool:
    """Moves the `far` outermost reduction axes around those of the results, shared out to threads.

    False, and nothing done, where there are no equal shares.
    """
    first, *others = (by_axis[v] for v in shape.spatial)
    shares: list[LoopRV] = []
    if target.cores > 1 and work >= PARALLEL_WORK:
        extent = extent_of(sch, first)
        if extent is None or extent % target.cores:
            return False
        share, first = sch.split(first, [target.cores, None])
        shares = [share]
    reducing = [by_axis[v] for v in shape.reduction]
    sch.reorder(*shares, *reducing[:far], first, *others, *reducing[far:])
    if shares:
        sch.parallel(shares[0])
    annotate_lanes(sch, block, shape, reducing, target)
    sch.decompose_reduction(block, reducing[0])
    return True


def _parts(shape: Shape, work: int, target: Target) -> int:
    """Returns into how many parts a reduction with fewer results than threads is cut; 0 for none."""
    results = prod(shape.extent(v) or MANY for v in shape.spatial)
    extent = shape.extent(shape.reduction[0])
    if target.cores < 2 or results >= target.cores or work < PARALLEL_WORK or len(shape.stores) != 1 or extent is None:
        return 0
    return next((p for p in range(4 * target.cores, target.cores - 1, -1) if extent % p == 0), 0)


def _reduce_in_parts(
    sch: Schedule, block: BlockRV, shape: Shape, reducing: list[LoopRV], parts: int, target: Target
) -> None:
    """Reduces some parts of the outermost reduced axis in each thread; the parts are reduced after."""
    number, _ = sch.split(reducing[0], [parts, None])
    partial: BlockRV = sch.rfactor(number, 0)
    inner = block_shape(block_of(sch, partial))
    loops: list[LoopRV] = sch.get_loops(partial)
    sch.reorder(loops[len(shape.spatial)], *loops[: len(shape.spatial)])
    sch.parallel(loops[len(shape.spatial)])
    if inner is not None:
        # What is contiguous stays so in each part, though two axes tell the place there.
        reduce_in_lanes(sch, partial, inner, loops[len(shape.spatial) + 1 :], target, contiguous_reduction(shape))
    sch.decompose_reduction(block, sch.get_loops(block)[len(shape.spatial)])


def reduce_in_lanes(
    sch: Schedule, block: BlockRV, shape: Shape, reducing: list[LoopRV], target: Target, count: int | None = None
) -> None:
    """Keeps partial results of a reduction over adjacent elements in the lanes of vectors.

    `reducing` drive the reduction axes of `shape`, in order, and hold nothing but the block; of the `count` innermost ones all elements
    are contiguous, where that is known.
    """
    first = annotate_lanes(sch, block, shape, reducing, target, count)
    sch.decompose_reduction(block, first)


def annotate_lanes(
    sch: Schedule, block: BlockRV, shape: Shape, reducing: list[LoopRV], target: Target, count: int | None = None
) -> LoopRV:
    """Annotates the loops of a reduction over adjacent elements as one of lanes.

    Returns the outermost of the loops that there are then.
    """
    count = contiguous_reduction(shape) if count is None else count
    first = reducing[0]
    kinds = {_is_lane_type(store.value.type) for store in shape.stores}
    if count and kinds == {True} and (len(shape.stores) == 1 or _chooses(sch, block)):
        lanes = lanes_of_block(shape, target)
        inner = reducing[-1]
        if count > 1:
            inner = sch.fuse(*reducing[-count:])
            first = inner if count == len(reducing) else first
        if (extent_of(sch, inner) or SHORTEST) >= SHORTEST:
            sch.annotate(inner, LANES, lanes)
            sch.annotate(inner, VECTORS, ACCUMULATORS)
            sch.annotate(inner, MASKS, int(target.has_masks))
    return first


def _chooses(sch: Schedule, block: BlockRV) -> bool:
    """Returns whether a block of several outputs chooses between old values and new terms, as argmax."""
    op = block_of(sch, block)
    stores = [s for s in op.body.block.ops if isinstance(s, tir.StoreOp)]
    return all(choice_of(store) is not None for store in stores)


# Several stages over the same rows: softmax, layer norm


def shared_rows(blocks: list[tir.BlockOp]) -> int:
    """Returns how many leading axes all blocks share, every buffer read at the reader's own row; 0: none."""
    shapes = [shape_of(b) for b in blocks]
    if any(s is None for s in shapes) or len(blocks) < 2:
        return 0
    known = [s for s in shapes if s is not None]
    count = min(_leading_spatial(s) for s in known)
    for s in known:
        # Reductions whose output's columns are contiguous add up whole rows: their columns are no rows of their own.
        axis = vector_axis(s) if s.reduction else None
        if axis is not None:
            count = min(count, s.axes.index(axis))
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


def few_rows(blocks: list[tir.BlockOp], target: Target) -> bool:
    """Returns whether there are fewer rows than threads, each of which is long enough for all.

    The stages then run one after the other, each on all threads.
    """
    rows = shared_rows(blocks)
    shapes = [shape for block in blocks if (shape := shape_of(block)) is not None]
    longest = max(((prod(e or 1 for e in s.extents), s) for s in shapes), key=lambda found: found[0])
    count = prod(e or MANY for e in longest[1].extents[:rows])
    return count < target.cores and longest[0] >= LONG_ROWS


LONG_ROWS = 1 << 16
"""Elements of all rows from which several regions of threads, a microsecond each, are worth it."""


def _leading_spatial(shape: Shape) -> int:
    count = 0
    for kind in shape.kinds:
        if kind != "S":
            break
        count += 1
    return count


def _row_prefix(reader: tir.BlockOp, buffer: SSAValue) -> int:
    """Returns how many leading dimensions of a buffer a block reads at its own leading axes."""
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


def schedule_rows(
    sch: Schedule,
    blocks: list[BlockRV],
    rows: int,
    target: Target,
    schedule_block: Callable[[Schedule, BlockRV, Target], None],
) -> bool:
    """Schedules all stages of a row before the next row, by `schedule_block` those that cannot move.

    Returns False, and changes nothing, when nothing is known of a block.
    """
    work = 0
    for block in blocks:
        shape = shape_of(block_of(sch, block))
        if shape is None:
            return False
        work += shape.points * shape.cost
    last = blocks[-1]
    loops: list[LoopRV] = sch.get_loops(last)
    row = loops[rows - 1]
    moved = [last]
    for block in reversed(blocks[:-1]):
        with tolerating("rows", block_of(sch, block)):
            sch.compute_at(block, row)
            moved.append(block)
            continue
        # What cannot move stays in front, a stage of its own.
        schedule_block(sch, block, target)
    parallelize(sch, loops[:rows], work, target)
    done: list[BlockRV] = []
    for block in moved:
        if block not in done:
            done += _reduce_as_made(sch, block, [m for m in moved if m not in done], target)
    for block in reversed(moved):
        if block not in done:
            schedule_row(sch, block, target)
    return True


def _reduce_as_made(sch: Schedule, block: BlockRV, stages: list[BlockRV], target: Target) -> list[BlockRV]:
    """Moves a reduction to where another stage of the row makes its terms, as the sum of exponentials.

    Both stages move, or none.
    """
    op = block_of(sch, block)
    shape = block_shape(op)
    if shape is None or len(shape.reduction) != 1 or len(shape.stores) != 1 or contiguous_reduction(shape) != 1:
        return []
    extent = shape.extent(shape.reduction[0])
    lanes = lanes_of_block(shape, target)
    if not _is_lane_type(shape.stores[0].value.type) or extent is None or extent <= lanes:
        return []
    if vector_axis(shape) is not None or (extent % lanes and not target.has_masks):
        return []
    makers = set(producers(op))
    maker = next((s for s in stages if sch.resolve(s) in makers and _makes_rows(block_of(sch, s), shape)), None)
    if maker is None or len(own_loops(sch, block)) != 1:
        return []
    (loop, *others) = own_loops(sch, maker)
    if others:
        return []
    with tolerating("rows", op):
        if len(consumers(block_of(sch, maker))) == 1:
            # Nothing else reads the terms, as in log_softmax: they need no place in memory.
            sch.compute_inline(maker)
            (loop,) = own_loops(sch, block)
        else:
            sch.reverse_compute_at(block, loop)
        sch.annotate(loop, LANES, lanes)
        sch.annotate(loop, VECTORS, COSTLY_ACCUMULATORS)
        sch.annotate(loop, MASKS, int(target.has_masks))
        sch.decompose_reduction(block, loop)
        return [block, maker]
    return []


def _makes_rows(maker: tir.BlockOp, reader: Shape) -> bool:
    """Returns whether a stage makes, one neighbour after the other, what a reduction reads."""
    shape = block_shape(maker)
    return (
        shape is not None
        and not shape.reduction
        and len(shape.stores) == 1
        and contiguous_suffix(shape) > 0
        and shape.stores[0].indices[-1] is shape.axes[-1]
        and shape.extents[-1] == reader.extent(reader.reduction[0])
    )


def schedule_row(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedules a stage inside of a row: a reduction, or an elementwise loop in vectors."""
    inner = own_loops(sch, block)
    if not inner:
        return
    op = block_of(sch, block)
    shape = block_shape(op)
    drives = {v: driving_loop(sch, inner, binding) for v, binding in zip(op.iter_vars, op.bindings, strict=True)}
    if shape is not None and shape.reduction:
        by_axis = {v: loop for v, loop in drives.items() if loop is not None}
        if all(v in by_axis for v in shape.reduction) and len(set(by_axis.values())) == len(inner):
            if vector_axis(shape) in by_axis:
                reduce_columns(sch, block, shape, by_axis, target, 0)
                return
            spatial = [by_axis[v] for v in shape.spatial if v in by_axis]
            reducing = [by_axis[v] for v in shape.reduction]
            if spatial:
                sch.reorder(*spatial, *reducing)
            reduce_in_lanes(sch, block, shape, reducing, target)
            return
    if "R" in axis_kinds(op):
        reducing = [drives[v] for v, kind in zip(op.iter_vars, axis_kinds(op), strict=True) if kind == "R"]
        sch.decompose_reduction(block, next((loop for loop in inner if loop in reducing), inner[0]))
        return
    store = next((s for s in op.body.block.ops if isinstance(s, tir.StoreOp)), None)
    if store is None or not store.indices:
        return
    vectorize_loop(sch, inner[-1], target.lanes(element_bytes(store.buffer)))


# Rows shorter than half a vector


SHORTEST = 4
"""Terms below which vectors are not worth their last step, in which the lanes meet."""
ACCUMULATORS = 4
"""Vectors of partial results: an addition takes about as many cycles, and each cycle has one to begin."""
COSTLY_ACCUMULATORS = 2
"""The same where terms are made in the loop, which takes longer than an addition and much code."""


def _is_lane_type(type_: Attribute) -> bool:
    """Returns whether partial results may be kept in lanes: others are summed in their order."""
    return isinstance(type_, Float32Type | Float64Type | IntegerType) and type_ != tir.types.I1


def _rows_of_vectors(shape: Shape, target: Target) -> int:
    """Returns the number of rows that are whole vectors, of long reductions over contiguous short rows.

    As many as additions wait for each other; 0 if it is not such a reduction.
    """
    if (
        len(shape.axes) != 2
        or len(shape.reduction) != 1
        or len(shape.stores) != 1
        or not _is_lane_type(shape.stores[0].value.type)
    ):
        return 0
    columns, rows = shape.extent(shape.spatial[0]), shape.extent(shape.reduction[0])
    lanes = lanes_of_block(shape, target)
    outputs = {s.buffer for s in shape.stores}
    loads = [load for load in shape.loads if load.buffer not in outputs]
    analyzer = Analyzer()
    wanted = [analyzer.expr(shape.reduction[0]), analyzer.expr(shape.spatial[0])]
    if columns is None or rows is None or 2 * columns > lanes or len(loads) != 1 or list(loads[0].indices) != wanted:
        return 0
    whole = lanes // gcd(columns, lanes)
    least = -(-ACCUMULATORS * lanes // (whole * columns)) * whole
    return next((g for g in range(least, 2 * least + 1, whole) if rows % g == 0 and rows >= 4 * g), 0)


def _reduce_narrow(sch: Schedule, block: BlockRV, loops: list[LoopRV], group: int, lanes: int) -> None:
    """Rows by the group: each adds to a row of partial results, so that a group is a run of whole vectors."""
    column, row = loops
    _, inner = sch.split(row, [None, group])
    partial: BlockRV = sch.rfactor(inner, 0)
    column, turn, inner = sch.get_loops(partial)
    sch.reorder(turn, inner, column)
    (vectors,) = vectorize_loop(sch, sch.fuse(inner, column), lanes)
    sch.unroll(vectors)
    sch.vectorize(own_loops(sch, sch.decompose_reduction(partial, turn))[-1])
    column, inner = sch.get_loops(block)
    sch.reorder(inner, column)
    sch.vectorize(column)
    sch.decompose_reduction(block, inner)
