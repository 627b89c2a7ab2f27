"""Blocks whose neighbours read neighbours, but not in order.

Copies that repeat, reverse, reflect or enlarge, and reductions of rows.
"""

from __future__ import annotations

from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from ..block_shape import Shape, element_bytes, lanes_of_block
from ..loop_nests import parallelize
from .segments import Piece, pieces_of, repeated_row
from .shuffles import Shuffles, shuffles_of


def schedule_disordered(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules a copy by how its rows are read; False where nothing is known of that."""
    return _is_copy(shape) and (
        schedule_shuffled(sch, block, shape, target) or schedule_pieces(sch, block, shape, target)
    )


def split_repeated_row(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Splits the last axis of a copy that repeats a row by the row's length; False where it repeats none."""
    row = repeated_row(shape, target.lanes(element_bytes(shape.stores[0].buffer))) if _is_copy(shape) else 0
    if row:
        sch.transform_block_layout(block, lambda *i: (*i[:-1], i[-1] // row, i[-1] % row))
    return row > 0


def _is_copy(shape: Shape) -> bool:
    return not shape.reduction and len(shape.stores) == 1 and len(shape.spatial) > 0


def schedule_shuffled(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules a block whose vectors are permuted out of contiguous ones; False where they are not."""
    if len(shape.stores) != 1:
        return False
    shuffles = shuffles_of(shape, target.lanes(element_bytes(shape.stores[0].buffer)))
    if shuffles is not None:
        _schedule_shuffles(sch, block, shuffles, shape.points * shape.cost, target)
    return shuffles is not None


def _schedule_shuffles(sch: Schedule, block: BlockRV, shuffles: Shuffles, work: int, target: Target) -> None:
    """Vectorizes the innermost axes, whose elements are permuted out of contiguous vectors."""
    loops, parts = sch.get_loops(block), shuffles.parts
    outer: list[LoopRV] = loops[: len(loops) - shuffles.axes]
    inner: LoopRV = sch.fuse(*loops[-shuffles.axes :]) if shuffles.axes > 1 else loops[-1]
    pieces: list[LoopRV] = sch.loop_partition(inner, [turns for turns, _ in parts]) if len(parts) > 1 else [inner]
    heads: list[LoopRV] = []
    for piece, (turns, width) in zip(pieces, parts, strict=True):
        lane = piece
        if turns != width:
            head, lane = sch.split(piece, [None, width])
            heads.append(head)
        sch.vectorize(lane)
    # Loops in parts are shared among threads where there is nothing else.
    parallelize(sch, [*outer, *heads] if len(parts) == 1 else outer or heads[:1], work, target)


def schedule_pieces(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules each piece of the rows in a loop of its own; False where there are none.

    Pieces that read everything in order get vectors.
    """
    lanes = lanes_of_block(shape, target)
    pieces = pieces_of(shape, lanes if _masks(shape, target) else max(lanes // 4, 1))
    if not pieces:
        return False
    parts = [part for piece in pieces for part in _vectors_of(piece, lanes)]
    *outer, inner = sch.get_loops(block)
    loops: list[LoopRV] = sch.loop_partition(inner, [turns for turns, _ in parts])
    for loop, (turns, width) in zip(loops, parts, strict=True):
        if width > 1:
            sch.vectorize(loop if turns == width else sch.split(loop, [None, width])[1])
    parallelize(sch, outer, shape.points * shape.cost, target)
    return True


def _masks(shape: Shape, target: Target) -> bool:
    """Returns whether lanes can be loaded under masks: otherwise each lane is a branch.

    Short pieces pay then, too.
    """
    narrowest = min((element_bytes(load.buffer) for load in shape.loads), default=4)
    return target.has_masks and (target.has_masked_stores or narrowest >= 4)


def _vectors_of(piece: Piece, lanes: int) -> list[tuple[int, int]]:
    """Returns (trip count, vector width) of loops: whole vectors, and what is left as a shorter one."""
    if not piece.in_order:
        return [(piece.turns, 1)]
    rest = piece.turns % lanes
    return [(turns, min(turns, lanes)) for turns in (piece.turns - rest, rest) if turns]
