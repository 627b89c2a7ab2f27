"""Blocks without reduction: the contiguous axes become vectors, the others threads."""

from __future__ import annotations

from math import prod

from xdsl.ir import OpResult, SSAValue

from ...dialects import tir
from ...support.target import Target
from ...support.walk import walk_ops
from ..schedule import BlockRV, LoopRV, Schedule
from .block_shape import MANY, Shape, lanes_of_block, shape_of
from .copies.permuted import schedule_disordered, schedule_pieces, schedule_shuffled, split_repeated_row
from .copies.transpose import schedule_transposed, transposed_axis
from .loop_nests import block_of, extent_of, parallelize, vectorize_loop
from .vector_axes import column_block, contiguous_suffix

UNROLL = 4
"""Vectors per iteration of the inner loop, to keep several loads in flight."""

LONG_CHAIN = 20
"""Operations of an element, a function such as exp counting as many, from which two vectors are computed together: their operations take
long, and two chains of them fill each other's gaps."""

LONGER_CHAIN = 24
"""The same where there are few registers: more than one function alone, whose constants fill them."""


def schedule_elementwise(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Fuses and vectorizes the innermost contiguous axes; fuses and parallelizes the rest."""
    op = block_of(sch, block)
    shape = shape_of(op)
    if shape is None or not shape.axes:
        return
    work = shape.points * shape.cost
    loops = sch.get_loops(block)
    across = transposed_axis(shape, target)
    if across is not None:
        schedule_transposed(sch, block, shape, across, target)
        return
    suffix = contiguous_suffix(shape)
    columns = None if suffix else column_block(shape)
    if columns is not None and shape.extent(shape.spatial[-1]) is None:
        # A vector of such a row: the quotient is the loop around it.
        head, tail = sch.split(loops[-1], [None, columns])
        sch.vectorize(tail)
        parallelize(sch, [*loops[:-1], head], work, target)
        return
    if not suffix and split_repeated_row(sch, block, shape, target):
        schedule_elementwise(sch, block, target)
        return
    if schedule_pieces(sch, block, shape, target) if suffix else schedule_disordered(sch, block, shape, target):
        return
    if _is_short(shape, suffix, target) and schedule_shuffled(sch, block, shape, target):
        return
    if suffix and not shape.is_costly and gathers(shape, shape.spatial[-1]):
        parallelize(sch, loops, work, target)
        return
    lanes = lanes_of_block(shape, target)
    count = _fused_count(shape, suffix, lanes)
    if count > 1 and _in_whole_turns(shape, lanes) and _branches(op):
        count = 1
    inner: LoopRV = sch.fuse(*loops[-count:]) if count > 1 else loops[-1]
    outer: list[LoopRV] = loops[: len(loops) - max(count, 1)]
    if count and _is_long(shape, target):
        lanes = _paired(sch, inner, lanes)
    heads = vectorize_loop(sch, inner, lanes) if count else [inner]
    parallelize(sch, [*outer, *heads], work, target)


def gathers(shape: Shape, axis: SSAValue) -> bool:
    """Returns whether what the block reads is at places that other loads along the axis compute.

    To gather the lanes of a vector takes as many loads as without vectors, and more to take the places apart and to put the lanes together.
    Only functions such as exp are worth that. LLVM makes vectors of such loops by itself where the processor gathers quickly, and of
    the arithmetic on the places.
    """
    moving = {load.op.result for load in shape.loads if axis in load.axes}
    pending = [index for load in shape.loads for index in load.op.indices]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in moving:
            return True
        if value not in seen and isinstance(value, OpResult):
            seen.add(value)
            pending += value.op.operands
    return False


def _is_short(shape: Shape, suffix: int, target: Target) -> bool:
    """Returns whether the contiguous axes are less than half of a vector, and others are not.

    The colours of a pixel are such an axis.
    """
    points = prod(shape.extent(axis) or MANY for axis in shape.spatial[len(shape.spatial) - suffix :])
    return 0 < suffix < len(shape.spatial) and 2 * points <= lanes_of_block(shape, target)


TURNS = 6
"""Turns of a loop over vectors from which the loop around it costs less than a division in each of them."""


def _in_whole_turns(shape: Shape, lanes: int) -> bool:
    """Returns whether the innermost axis is of whole vectors that only a division finds in a fused axis.

    They must not be few.
    """
    turns, rest = divmod(shape.extent(shape.spatial[-1]) or 0, lanes)
    return rest == 0 and turns >= TURNS and turns & (turns - 1) != 0


def _branches(block: tir.BlockOp) -> bool:
    """Returns whether the block reads only where a condition holds.

    LLVM does not see there that the quotient and the remainder of a fused axis are the axis itself, and divides in each iteration.
    """
    return any(isinstance(op, tir.IfThenElseOp) for op in walk_ops(block))


def _is_long(shape: Shape, target: Target) -> bool:
    """Returns whether two vectors are computed together."""
    least = LONG_CHAIN if target.vector_registers >= 32 else LONGER_CHAIN
    return shape.cost >= least and target.arch == "x86_64" and target.vector_bytes >= 32


def _paired(sch: Schedule, loop: LoopRV, lanes: int) -> int:
    """Returns the lanes of two vectors as one, which LLVM computes alternately, op by op.

    Those of one where their number is odd.
    """
    extent = extent_of(sch, loop)
    return lanes if extent is None or extent < 4 * lanes or extent % (2 * lanes) else 2 * lanes


def _fused_count(shape: Shape, most: int, lanes: int) -> int:
    """Returns the number of innermost axes that are fused: up to two, then as many as fill vectors.

    The quotients of more than two fused axes are not recognized any more once the loop is split.
    """
    points = 1
    for count, axis in enumerate(reversed(shape.spatial[-most:] if most else []), 1):
        points *= shape.extent(axis) or MANY
        if count >= 2 and points >= UNROLL * lanes:
            return count
    return most
