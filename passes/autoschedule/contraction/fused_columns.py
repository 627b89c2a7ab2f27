"""Rows that are contiguous: the columns of a contraction along several axes as one.

A 1×1 convolution of a plane of 56×56 is a product with a matrix of 3136 columns, but says so by two axes, neither of which
fills vectors. What it writes, and what reads that, get one axis for both; so does the input, as a copy, which packing takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import substitute
from ....support.target import Target
from ...schedule import BlockRV, Schedule
from ...schedule.analysis.structure import buffers_read, const_int, consumers
from ..block_shape import Load, Shape, element_bytes, shape_of, static_extents
from ..loop_nests import block_of, cached
from ..sliding_windows.sliding_windows import THIN
from .tile import best_tile

COPY = 3.0
"""What copying a vector of the input costs, in multiply-adds."""
STORE, ACROSS = 4.0, 12.0
"""The costs of storing a vector of sums as it is, and across what is stored (`transposed_tile`). (Measured on Zen 4.)"""
FEW = 16
"""Products of a sum below which copying the input is not worth it."""


@dataclass(frozen=True)
class Run:
    """Axes that are contiguous, and where."""

    axes: tuple[SSAValue, ...]
    """The last dimensions of the output and of the input alike."""
    panel: Load
    """The input."""
    rows: int
    """How many rows the other input has."""
    units: tuple[SSAValue, ...]
    """Reduced axes of one iteration."""


def find_run(shape: Shape) -> Run | None:
    """Returns the columns of a sum of products along several axes; None where there are none.

    One axis counts, too, where the other has one iteration.
    """
    if len(shape.stores) != 1 or not shape.reduction or None in shape.extents:
        return None
    (store,) = shape.stores
    inputs = [load for load in shape.loads if load.buffer is not store.buffer]
    # An axis of one iteration may be written as 0.
    if len(inputs) != 2 or any(index not in shape.spatial and const_int(index) != 0 for index in store.indices):
        return None
    analyzer = Analyzer()
    units = tuple(axis for axis in shape.reduction if shape.extent(axis) == 1)
    zeros = {atom: Expr((), 0) for axis in units if (atom := analyzer.expr(axis).atom) is not None}
    for panel, other in (inputs, inputs[::-1]):
        extents = static_extents(panel.buffer)
        output = static_extents(store.buffer)
        if extents is None or output is None:
            continue
        indices = [substitute(index, zeros) for index in panel.indices]
        run: list[SSAValue] = []
        for index, extent, axis, size in zip(
            reversed(indices), reversed(extents), reversed(list(store.indices)), reversed(output), strict=False
        ):
            if axis not in shape.spatial or index != analyzer.expr(axis) or axis in other.axes:
                break
            if not extent == size == shape.extent(axis):
                break
            run.insert(0, axis)
        # One axis is worth it where only an axis of one iteration hides that the input's elements are contiguous.
        if len(run) > 1 or (run and indices[-1] != panel.indices[-1]):
            own = [shape.extent(a) or 1 for a in shape.spatial if a in other.axes and a not in panel.axes]
            return Run(tuple(run), panel, prod(own), units)
    return None


def merging_pays(shape: Shape, run: Run, target: Target) -> bool:
    """Returns whether vectors along the run, which is copied, beat vectors across it.

    Those are transposed when they are stored.
    """
    width, columns = shape.extent(run.axes[-1]) or 1, prod(shape.extent(axis) or 1 for axis in run.axes)
    depth = prod(shape.extent(axis) or 1 for axis in shape.reduction)
    element = element_bytes(shape.stores[0].buffer)
    lanes = target.lanes(element)
    if shape.stores[0].value.type != tir.types.F32 or depth < FEW or run.rows < 2:
        return False
    if depth < THIN and width % lanes == 0:
        # Windows along whole rows need no copy.
        return False

    def time(rows: int, columns: int) -> float:
        best, _ = best_tile(
            rows, columns, lanes, target.vector_registers, depth=depth * element, cache=target.l2,
            in_flight=target.independent_sums,
        )  # fmt: skip
        return best * depth

    along = time(run.rows, columns) + COPY * columns * depth / lanes
    across = time(width, run.rows) * columns / width
    return along + (STORE - ACROSS) * run.rows * columns / lanes < across


def merge_run(sch: Schedule, block: BlockRV, run: Run) -> None:
    """Merges the run into one axis of the block, and one dimension of its output and its input.

    Reduced axes of one iteration are dropped.
    """
    op = block_of(sch, block)
    shape = shape_of(op)
    assert shape is not None
    (store,) = shape.stores
    copy = cached(sch, block, buffers_read(op).index(run.panel.buffer))
    merged = _together(len(run.panel.indices), run, shape)
    sch.transform_layout(copy, ("write", 0), merged)
    sch.transform_block_layout(copy, merged)
    if not isinstance(store.buffer.owner, tir.AllocBufferOp):
        sch.cache_write(block, 0, "global")
    readers = consumers(block_of(sch, block))
    rank = len(store.indices)
    sch.transform_layout(block, ("write", 0), _together(rank, run, shape))
    axes = list(shape.axes)
    places = [axes.index(axis) for axis in run.axes]
    gone = {axes.index(axis) for axis in run.units}
    if len(gone) == len(shape.reduction):
        gone.pop()
    sizes = [shape.extent(axis) or 1 for axis in run.axes]

    def axes_of_block(*indices: Expr) -> list[Expr]:
        merged = _flat([indices[place] for place in places], sizes)
        return [
            merged if k == places[0] else index
            for k, index in enumerate(indices)
            if k not in gone and (k == places[0] or k not in places)
        ]

    sch.transform_block_layout(block, axes_of_block)
    for reader in readers:
        other = shape_of(reader)
        if other is not None and not other.reduction and len(other.axes) == rank:
            sch.transform_block_layout(sch.handle(reader), _together(rank, run, shape))


def _together(rank: int, run: Run, shape: Shape) -> Callable[..., list[Expr]]:
    """Returns the layout in which the last dimensions, those of the run, are one."""
    count = len(run.axes)
    sizes = [shape.extent(axis) or 1 for axis in run.axes]

    def layout(*indices: Expr) -> list[Expr]:
        return [*indices[: rank - count], _flat(indices[rank - count :], sizes)]

    return layout


def _flat(indices: Sequence[Expr], sizes: Sequence[int]) -> Expr:
    return sum((index.scaled(prod(sizes[k + 1 :])) for k, index in enumerate(indices)), Expr((), 0))
