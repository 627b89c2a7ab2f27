"""Products with weights of few bits: numbers are unpacked in registers, words fetched ahead.

`nn.matmul_nbits` is computed in stages:

words → sums of a group → product, as the operator's compute writes them: `sums` masks numbers out of words of 32 bits, `product` adds
them up over the groups of a column, times their scales. Both stay in registers for a panel of columns, whose words are read once, in the
order in which they are stored; words, scales and zero points that are constants are laid out once. Stages are known by what they read
and compute, not by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects import tir
from ...dialects.tir.stmt import PREFETCH
from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from ..schedule.analysis.structure import buffers_read, consumers, producers
from ..tir.rewriting import ops_of
from .block_shape import shape_of
from .elementwise import schedule_elementwise
from .loop_nests import block_of, cached, extent_of, loop_of_axis, own_loops, parallelize

AHEAD = 1024
"""Bytes between the words that are read and those that are fetched into the first cache; into the second, three times as many.

Measured on a Xeon with AVX-512: words of 4 bits then come from memory at 0.96 to 0.99 of the speed of adding them up, with one fetch 2,048 bytes
ahead at 0.7 to 0.9. The processor finds scales, which are few, by itself; fetching those, and with them the sums that another thread
may write, costs a quarter.
"""
IN_USE = 0.75
"""The part of the vector registers that hold sums of a group; others hold words, numbers and data."""


@dataclass(frozen=True)
class PackedProduct:
    """The blocks of a product with a packed weight."""

    sums: tir.BlockOp
    product: tir.BlockOp
    layouts: tuple[tir.BlockOp, ...]
    """The blocks that store words, scales and zero points in panels."""

    @property
    def blocks(self) -> tuple[tir.BlockOp, ...]:
        """Returns all of the stages."""
        return (*self.layouts, self.sums, self.product)


def find_packed_products(blocks: list[tir.BlockOp]) -> list[PackedProduct]:
    """Returns the products with packed weights among blocks."""
    found = (_packed_product(block) for block in blocks)
    return [each for each in found if each is not None]


def _packed_product(sums: tir.BlockOp) -> PackedProduct | None:
    shape = shape_of(sums)
    if shape is None or len(shape.reduction) != 2 or len(shape.spatial) != 5 or not _masks(sums):
        return None
    readers = consumers(sums)
    outer = None if len(readers) != 1 else shape_of(readers[0])
    if outer is None or len(outer.reduction) != 1 or len(outer.spatial) != 4:
        return None
    panel = shape.extent(shape.spatial[-1])
    layouts = [p for p in (*producers(sums), *producers(readers[0])) if _lays_out(p, panel)]
    return PackedProduct(sums, readers[0], tuple(dict.fromkeys(layouts)))


def _masks(block: tir.BlockOp) -> bool:
    """Returns whether a block masks bits out of words."""
    return any(op.intrinsic.data == "bitwise_and" for op in ops_of(block, tir.CallOp))


def _lays_out(block: tir.BlockOp, panel: int | None) -> bool:
    """Returns whether a block stores panels of so many columns, and reduces nothing."""
    shape = shape_of(block)
    return shape is not None and not shape.reduction and len(shape.axes) == 3 and shape.extents[-1] == panel


def schedule_packed_product(sch: Schedule, stages: PackedProduct, target: Target) -> None:
    """Computes panels of columns in parallel, the sums of a group in registers, words fetched ahead."""
    sums, product = sch.handle(stages.sums), sch.handle(stages.product)
    layouts = [sch.handle(block) for block in stages.layouts]
    shape = shape_of(stages.sums)
    work = 1 if shape is None else shape.points
    lanes = target.lanes(4)
    blocks, row, panel, column, group = sch.get_loops(product)
    rows, columns = extent_of(sch, row) or 1, extent_of(sch, column) or lanes
    fitting = int(target.vector_registers * IN_USE) // rows
    vectors = next(v for v in (columns // lanes, 4, 2, 1) if v <= max(fitting, 1) and columns % (v * lanes) == 0)
    part, vector, lane = sch.split(column, [None, vectors, lanes])
    sch.reorder(panel, blocks, part, group, row, vector, lane)
    sch.compute_at(sums, group, True)
    depth = _schedule_sums(sch, sums, lanes)
    sch.vectorize(lane)
    sch.unroll(vector)
    if rows > 1:
        sch.unroll(row)
    parallelize(sch, [panel, blocks], work, target)
    # Blocks are in parallel loops before they are divided.
    for block, loop in ((sums, depth), (product, group)):
        _write_out(sch, sch.decompose_reduction(block, loop))
    for layout in layouts:
        schedule_elementwise(sch, layout, target)


def _write_out(sch: Schedule, init: BlockRV) -> None:
    """Sets sums to zero in vectors, in straight-line code."""
    *others, last = own_loops(sch, init)
    sch.vectorize(last)
    for loop in others:
        sch.unroll(loop)


def _schedule_sums(sch: Schedule, sums: BlockRV, lanes: int) -> LoopRV:
    """Keeps the sums of a group in registers, and a row of words while its numbers are masked out.

    Returns the loop over the group's words.
    """
    sch.set_scope(sums, 0, "local")
    _, row, _, _, column, word, number = own_loops(sch, sums)
    vector, lane = sch.split(column, [None, lanes])
    sch.reorder(word, number, row, vector, lane)
    words = cached(sch, sums, _words_read(sch, sums))
    sch.set_scope(words, 0, "local")
    sch.compute_at(words, word)
    copied = loop_of_axis(sch, words, 2)
    assert copied is not None
    outer, inner = sch.split(copied, [None, lanes])
    sch.vectorize(inner)
    sch.unroll(outer)
    sch.annotate(outer, PREFETCH, AHEAD)
    sch.vectorize(lane)
    for loop in (vector, row, number):
        sch.unroll(loop)
    return word


def _words_read(sch: Schedule, sums: BlockRV) -> int:
    """Returns the number of the buffer of words among those that the sums read."""
    reads = buffers_read(block_of(sch, sums))
    types = [buffer.type for buffer in reads]
    return next(k for k, t in enumerate(types) if isinstance(t, tir.BufferType) and t.rank == WORDS_RANK)


WORDS_RANK = 3
"""Dimensions of the buffer of words: panels, words of a column, columns."""
