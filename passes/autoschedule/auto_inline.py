"""Blocks that are computed where they are read: the cheap ones, and those that one block reads once."""

from __future__ import annotations

from math import prod

from xdsl.ir import Operation, SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer
from ...dialects.arith.expr import free_vars
from ...support.walk import all_ops
from ..schedule import Schedule
from ..schedule.analysis.structure import buffers_written, consumers
from .block_shape import COSTLY, MANY, Shape, is_copy, shape_of
from .constant_matrices import selector_axes
from .contraction import match_contraction
from .elementwise import gathers
from .loop_nests import attempt
from .vector_axes import column_block

CHEAP = 4
"""An expression of so few operations is computed again for each reader rather than stored."""

TWICE = 16
"""One of so many is computed again for each of two readings, such as those of a stack of two, which keeps one of them."""

SPARED = 16
"""An expression of more operations is not computed in the order of a reader that reads it across its rows, nor, where it reads under
conditions, of one that reads its rows out of order: vectors have conditions on neighbours only."""

SAME_ELEMENT = 48
"""One reader that reads the same element several times may hold so many operations for it: copies must not pile up."""

LONGEST = 256
"""An expression of more operations is stored, whoever reads it: to store it and read it costs little beside it, and schedules and the
code generator take time by the square of how long a block is."""


def inline_blocks(sch: Schedule, blocks: list[tir.BlockOp]) -> list[tir.BlockOp]:
    """Inlines what pays, in order; the blocks that are left."""
    kept: list[tir.BlockOp] = []
    for block in blocks:
        if not _pays(block) or not attempt(sch, block):
            kept.append(block)
    return kept


def _pays(block: tir.BlockOp) -> bool:
    shape = shape_of(block)
    if shape is None or shape.reduction or len(shape.stores) != 1 or selector_axes(shape):
        return False
    if shape.cost > LONGEST:
        return False
    (buffer,) = buffers_written(block)[:1] or (None,)
    if buffer is None or not isinstance(buffer.owner, tir.AllocBufferOp):
        return False
    readers = consumers(block)
    if not readers:
        return False
    branches = any(isinstance(op, tir.IfThenElseOp) for op in all_ops(block))
    costly = any(
        isinstance(op, tir.DivOp) or (isinstance(op, tir.CallOp) and op.intrinsic.data in COSTLY)
        for op in all_ops(block)
    )
    # What is read anywhere in a table is read once.
    again = CHEAP if any(gathers(shape, axis) for axis in shape.spatial) else TWICE
    copies = again == TWICE and is_copy(block) and not branches and not _transposes(shape)
    # Where blocks of columns are read in rows, the quotient that finds a block becomes a loop.
    cost = _operations(shape) if column_block(shape) is not None else shape.cost
    dear = (costly or cost > CHEAP) and not copies
    if len(readers) > 1 and dear and not _shared_out(shape, buffer, readers):
        return False
    for reader in readers:
        inner = shape_of(reader)
        if inner is None:
            return False
        if match_contraction(inner) is not None:
            # A contraction reads each element many times, through packed tiles.
            return False
        times = _times_read(inner, buffer)
        if times > 1 and (costly or branches or shape.cost > (CHEAP if times > 2 else again)):
            return False
        if _transposes(shape) and any(isinstance(op, tir.IfThenElseOp) for op in all_ops(reader)):
            # Tiles are transposed in registers, which conditions are in the way of.
            return False
        if shape.cost > SPARED and (_across(inner, buffer) or (branches and _shuffled(inner, buffer))):
            return False
        reads = [load.indices for load in inner.loads if load.buffer is buffer]
        # Reads of one element at several places are computed once: the copies are equal, and the code generator sees it.
        limit = SAME_ELEMENT if len(set(reads)) == 1 else CHEAP
        if len(reads) > 1 and (costly or shape.cost * len(reads) > limit):
            return False
    return True


def _operations(shape: Shape) -> int:
    """Returns the number of a block's operations, loads and stores, without those on indices."""
    found: set[Operation] = set()
    pending = [shape.stores[0].value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op not in found and not isinstance(op, tir.ConstOp):
            found.add(op)
            pending += () if isinstance(op, tir.LoadOp) else op.operands
    return len(found) + 1


def _shared_out(shape: Shape, buffer: SSAValue, readers: list[tir.BlockOp]) -> bool:
    """Returns whether all readers together read no more elements than the block computes.

    So it is of the parts of a split.
    """
    read = 0
    for reader in readers:
        inner = shape_of(reader)
        if inner is None:
            return False
        read += inner.points * sum(load.buffer is buffer for load in inner.loads)
    return read <= shape.points


def _transposes(shape: Shape) -> bool:
    """Returns whether a block copies elements that are far apart to adjacent places."""
    last = shape.stores[0].indices[-1] if shape.stores[0].indices else None
    if last is None or last not in shape.axes or not is_copy(shape.block):
        return False
    return all(Analyzer().expr(last).atom not in free_vars(load.indices[-1]) for load in shape.loads if load.indices)


def _across(reader: Shape, buffer: SSAValue) -> bool:
    """Returns whether neighbours in the reader's result read elements of the buffer that are far apart."""
    if not reader.stores or not reader.stores[0].indices:
        return False
    last = reader.stores[0].indices[-1]
    return last in reader.axes and any(
        load.buffer is buffer and last in load.axes and Analyzer().expr(last).atom not in free_vars(load.indices[-1])
        for load in reader.loads
    )


def _shuffled(reader: Shape, buffer: SSAValue) -> bool:
    """Returns whether neighbours in the reader's result read elements nearby, but not in order."""
    last = reader.stores[0].indices[-1] if reader.stores and reader.stores[0].indices else None
    if last is None or last not in reader.axes:
        return False
    atom = Analyzer().expr(last).atom
    return any(
        load.buffer is buffer and atom is not None and atom in free_vars(index) and index.coefficient(atom) == 0
        for load in reader.loads
        for index in load.indices[-1:]
    )


def _times_read(reader: Shape, buffer: SSAValue) -> int:
    """Returns how often a reader reads an element of the buffer; `MANY` where that is not known.

    It is the product of the axes of the reader that are not in the index.
    """
    times = 1
    for load in reader.loads:
        if load.buffer is not buffer:
            continue
        if reader.reduction and any(len(index.terms) > 1 for index in load.indices):
            return MANY
        times = max(times, prod(reader.extent(a) or MANY for a in reader.axes if a not in load.axes))
    return times
