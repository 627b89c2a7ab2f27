"""Blocks whose neighbours read neighbours, but not in order: copies that repeat, turn around, reflect, enlarge, or reduce rows."""

from __future__ import annotations

from ....support.target import Target
from ...schedule import BlockRV, LoopRV, Schedule
from .pieces import Piece, pieces_of, repeated_row
from .shape import Shape, element_bytes
from .shuffles import Shuffles, shuffles_of


def schedule_disordered(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules a block by how its rows are read; False where nothing is known of that."""
    from .elementwise import schedule_elementwise

    if shape.reduction or len(shape.stores) != 1 or not shape.spatial:
        return False
    lanes, work = target.lanes(element_bytes(shape.stores[0].buffer)), shape.points * shape.cost
    row = repeated_row(shape, lanes)
    if row:
        sch.transform_block_layout(block, lambda *i: (*i[:-1], i[-1] // row, i[-1] % row))
        schedule_elementwise(sch, block, target)
        return True
    if schedule_shuffled(sch, block, shape, target):
        return True
    pieces = pieces_of(shape, lanes)
    if pieces:
        _schedule_pieces(sch, block, pieces, lanes, work, target)
    return bool(pieces)


def schedule_shuffled(sch: Schedule, block: BlockRV, shape: Shape, target: Target) -> bool:
    """Schedules a block whose vectors are picked out of what lies together; False where they are not."""
    if len(shape.stores) != 1:
        return False
    shuffles = shuffles_of(shape, target.lanes(element_bytes(shape.stores[0].buffer)))
    if shuffles is not None:
        _schedule_shuffles(sch, block, shuffles, shape.points * shape.cost, target)
    return shuffles is not None


def _schedule_shuffles(sch: Schedule, block: BlockRV, shuffles: Shuffles, work: int, target: Target) -> None:
    """Vectors of elements of the innermost axes, which are picked out of what lies together."""
    from .elementwise import parallelize

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


def _schedule_pieces(sch: Schedule, block: BlockRV, pieces: list[Piece], lanes: int, work: int, target: Target) -> None:
    """Each piece of the rows in a loop of its own, with vectors where everything is read in order."""
    from .elementwise import parallelize, vectorize_loop

    *outer, inner = sch.get_loops(block)
    parts: list[LoopRV] = sch.loop_partition(inner, [piece.turns for piece in pieces])
    for part, piece in zip(parts, pieces, strict=True):
        if piece.in_order and piece.turns > 1:
            vectorize_loop(sch, part, lanes)
    parallelize(sch, outer, work, target)
