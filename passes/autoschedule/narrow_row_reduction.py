"""Long reductions over rows shorter than half a vector: several rows are added as whole vectors.

Their columns are added at the end.
"""

from __future__ import annotations

from math import gcd

from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.ir import Attribute

from ...dialects import tir
from ...dialects.arith import Analyzer
from ...support.target import Target
from ..schedule import BlockRV, LoopRV, Schedule
from .block_shape import Shape, lanes_of_block
from .loop_nests import own_loops, vectorize_loop

SHORTEST = 4
"""Terms below which vectors are not worth their last step, in which the lanes meet."""
ACCUMULATORS = 4
"""Vectors of partial results: an addition takes about as many cycles, and each cycle has one to begin."""
COSTLY_ACCUMULATORS = 2
"""The same where terms are made in the loop, which takes longer than an addition and much code."""


def is_lane_type(type_: Attribute) -> bool:
    """Returns whether partial results may be kept in lanes: others are summed in their order."""
    return isinstance(type_, Float32Type | Float64Type | IntegerType) and type_ != tir.types.I1


def rows_of_vectors(shape: Shape, target: Target) -> int:
    """Returns the number of rows that are whole vectors, of long reductions over contiguous short rows.

    As many as additions wait for each other; 0 if it is not such a reduction.
    """
    if (
        len(shape.axes) != 2
        or len(shape.reduction) != 1
        or len(shape.stores) != 1
        or not is_lane_type(shape.stores[0].value.type)
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


def reduce_narrow(sch: Schedule, block: BlockRV, loops: list[LoopRV], group: int, lanes: int) -> None:
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
