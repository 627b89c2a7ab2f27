"""Windows over an unknown number of places, as depthwise convolutions and pooling with open sizes.

A vector of results is kept in registers while the window runs, whose places are unrolled:

    out[n, c, h, w] max= x[n, c, h*2 + kh, w*2 + kw]   ->   for n, c, h, w0: { local = -inf; for kh, kw: local max= …; out = local }

`sliding_windows` is better where sizes are known: its tiles of several rows have no remainder there.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from ...dialects.arith import Analyzer
from ...dialects.arith.expr import free_vars
from ...support.target import Target
from ..schedule import BlockRV, Schedule
from .block_shape import Shape, lanes_of_block, shape_of
from .loop_nests import block_of, extent_of, own_loops, parallelize, vectorize_loop

MOST_PLACES = 64
"""Places of a window at most."""
MOST_UNROLLED = 16
"""Places of a window that are unrolled at most."""


def schedule_open_window(sch: Schedule, block: BlockRV, target: Target) -> None:
    """Schedules a reduction of few terms for results of unknown number; leaves others alone."""
    shape = shape_of(block_of(sch, block))
    if shape is None or len(shape.stores) != 1 or not shape.reduction or None not in shape.extents:
        return
    places = [shape.extent(axis) for axis in shape.reduction]
    store = shape.stores[0]
    if None in places or not 1 < prod(place or 1 for place in places) <= MOST_PLACES or not store.indices:
        return
    axis = store.indices[-1]
    if axis not in shape.spatial or shape.extent(axis) == 1 or not _moves_along(shape, axis):
        return
    by_axis = dict(zip(shape.axes, sch.get_loops(block), strict=True))
    outer = [by_axis[each] for each in shape.spatial if each is not axis]
    column, lanes = by_axis[axis], lanes_of_block(shape, target)
    if (extent_of(sch, column) or lanes + 1) > lanes:
        strip, column = sch.split(column, [None, lanes])
        outer.append(strip)
    reducing = [by_axis[each] for each in shape.reduction]
    sch.reorder(*outer, *reducing, column)
    copy = sch.cache_write(block, 0, "local")
    sch.reverse_compute_at(copy, outer[-1])
    vectorize_loop(sch, own_loops(sch, copy)[-1], lanes)
    sch.vectorize(column)
    parallelize(sch, outer[:-1], shape.points * shape.cost, target)
    vectorize_loop(sch, own_loops(sch, sch.decompose_reduction(block, reducing[0]))[-1], lanes)
    if prod(place or 1 for place in places) <= MOST_UNROLLED:
        for loop in reducing:
            sch.unroll(loop)


def _moves_along(shape: Shape, axis: SSAValue) -> bool:
    """Returns whether the block reads along the last dimension of some input with its results."""
    analyzer = Analyzer()
    atom = analyzer.expr(axis).atom
    output = shape.stores[0].buffer
    return any(
        load.indices and atom in free_vars(load.indices[-1]) for load in shape.loads if load.buffer is not output
    )
