"""The epilogue: what follows a contraction is applied to a tile while it is in registers."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....support.target import Target
from ....support.walk import walk_ops
from ...schedule import BlockRV, LoopRV, Schedule
from ...schedule.analysis.structure import buffers_written, consumers
from ...tir.vectors.lower_transposed_loads import ELEMENT_BYTES, TILE
from ..block_shape import element_bytes, is_copy, shape_of
from ..loop_nests import attempt, axis_along, block_of, extent_of, loop_of_axis, own_loops, store_of, vectorize_loop
from .match import Contraction


def take_out(sch: Schedule, block: BlockRV, scope: str = "local") -> BlockRV:
    """Returns the block that takes the tile out of the registers, or of another scope.

    It is the one elementwise reader, otherwise a copy.
    """
    op = block_of(sch, block)
    while True:
        output = buffers_written(op)[0]
        readers = consumers(op)
        if not isinstance(output.owner, tir.AllocBufferOp) or len(readers) != 1 or not _follows(readers[0], output):
            copy: BlockRV = sch.cache_write(block, 0, scope)
            return copy
        reader = readers[0]
        # A crop of the padded output is computed where it is read, when something reads it.
        if is_copy(reader) and isinstance(buffers_written(reader)[0].owner, tir.AllocBufferOp):
            after = consumers(reader)
            if len(after) == 1 and _follows(after[0], buffers_written(reader)[0]) and attempt(sch, reader):
                continue
        if scope != "global":
            sch.set_scope(block, 0, scope)
        return sch.handle(reader)


def take_sums(sch: Schedule, block: BlockRV, match: Contraction) -> BlockRV | None:
    """Returns the block that reads the finished sums; None where they are made in the output itself."""
    op = block_of(sch, block)
    if not isinstance(buffers_written(op)[0].owner, tir.AllocBufferOp) and store_of(op).indices[-1] is match.columns:
        return None
    return take_out(sch, block, "global")


def _along_output(sch: Schedule, epilogue: BlockRV) -> tuple[LoopRV | None, list[LoopRV]]:
    """Returns the loop along the last dimension of what a block stores, and the block's other loops.

    None for the first where no loop runs there.
    """
    op = block_of(sch, epilogue)
    loops, store = own_loops(sch, epilogue), store_of(op)
    axis = axis_along(op, store.indices[-1] if store.indices else None)
    inner = None if axis is None or not loops else loop_of_axis(sch, epilogue, axis)
    return inner, [loop for loop in loops if loop is not inner]


def store_sums(sch: Schedule, epilogue: BlockRV, target: Target) -> None:
    """Stores what follows a panel of sums along the output's last dimension.

    Squares of vectors are transposed where the sums are across it.
    """
    store = store_of(block_of(sch, epilogue))
    inner, rest = _along_output(sch, epilogue)
    if inner is None:
        return
    lanes = target.lanes(element_bytes(store.buffer))
    across = _across(sch, epilogue, inner, "global")
    if across is None or element_bytes(store.buffer) != ELEMENT_BYTES:
        if rest:
            sch.reorder(*rest, inner)
        vectorize_loop(sch, inner, lanes)
        return
    rest = [loop for loop in rest if loop is not across]
    if (extent_of(sch, across) or lanes) > lanes:
        head, across = sch.split(across, [None, lanes])
        rest.append(head)
    extent = extent_of(sch, inner) or 1
    if extent > lanes:
        size = max((n for n in range(lanes // 2, lanes + 1) if extent % n == 0), default=lanes)
        head, inner = sch.split(inner, [None, size])
        rest.append(head)
    sch.reorder(*rest, across, inner)
    sch.vectorize(inner)
    sch.annotate(across, TILE, 1)


def _follows(block: tir.BlockOp, buffer: SSAValue) -> bool:
    """Returns whether a block is elementwise in the buffer: it reads each element once, at its own axes."""
    shape = shape_of(block)
    if shape is None or shape.reduction or len(shape.stores) != 1:
        return False
    analyzer = Analyzer()
    # An axis of one iteration may be written as 0.
    axes = [analyzer.expr(a) for a in shape.axes if shape.extent(a) != 1]
    units = [analyzer.expr(a) for a in shape.axes if shape.extent(a) == 1]
    for load in shape.loads:
        indices = [i for i in load.indices if i not in units and i.value != 0]
        if load.buffer is buffer and (
            len(indices) != len(axes)
            or sorted(map(repr, indices)) != sorted(map(repr, axes))
            or not all(i in axes for i in indices)
        ):
            return False
    return True


def store_tile(sch: Schedule, epilogue: BlockRV, target: Target, *, unroll: bool = True) -> None:
    """Stores the tile along the output's last dimension, in straight-line code with `unroll`."""
    store = store_of(block_of(sch, epilogue))
    inner, rest = _along_output(sch, epilogue)
    if inner is None:
        return
    if rest:
        sch.reorder(*rest, inner)
    # Smaller elements are stored as many at a time as a vector of sums has.
    lanes = target.lanes(max(element_bytes(store.buffer), ELEMENT_BYTES))
    across = _across(sch, epilogue, inner)
    if across is not None and unroll:
        # Sums are transposed before they become smaller elements.
        _store_across(sch, [loop for loop in rest if loop is not across], across, inner, target.lanes(ELEMENT_BYTES))
        return
    extent = extent_of(sch, inner) or lanes
    if unroll and extent > lanes and extent % lanes and not target.has_masked_stores:
        # What fills no vector is a shorter one.
        inner, short = sch.loop_partition(inner, [extent - extent % lanes])
        vectorize_loop(sch, short, lanes)
    heads = vectorize_loop(sch, inner, lanes, even=not unroll)
    for loop in (*rest, *heads) if unroll else ():
        sch.unroll(loop)


def _across(sch: Schedule, epilogue: BlockRV, inner: LoopRV, scope: str = "local") -> LoopRV | None:
    """Returns the loop along which the tile's vectors run, where they are not stored as they are.

    Elements have `ELEMENT_BYTES`.
    """
    op = block_of(sch, epilogue)
    for load in walk_ops(op):
        if isinstance(load, tir.LoadOp) and isinstance(load.buffer.type, tir.BufferType):
            is_tile = load.buffer.type.scope.data == scope and element_bytes(load.buffer) == ELEMENT_BYTES
            axis = axis_along(op, load.indices[-1]) if is_tile else None
            loop = None if axis is None else loop_of_axis(sch, epilogue, axis)
            if loop is not None and loop is not inner:
                return loop
    return None


def _store_across(sch: Schedule, rest: list[LoopRV], across: LoopRV, inner: LoopRV, lanes: int) -> None:
    """Transposes the tile's vectors in registers, so that what is stored is contiguous."""
    heads = rest
    extent = extent_of(sch, across) or lanes
    if extent > lanes:
        head, across = sch.split(across, [None, lanes])
        heads = [*rest, head]
    sch.reorder(*heads, across, inner)
    sch.vectorize(inner)
    sch.annotate(across, TILE, 1)
    for loop in heads:
        sch.unroll(loop)
