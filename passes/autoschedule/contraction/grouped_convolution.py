"""Grouped convolutions: channels as groups and channels of a group; each group is a contraction.

What reads `data[channel // size * …]` knows the group as a division only. With an axis for the groups and one for the channels
inside, in the block, its output and its filters, it is one contraction after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import Kind
from ...schedule import BlockRV, Schedule
from ...schedule.analysis.structure import buffers_read, consumers
from ..block_shape import Shape, shape_of
from ..loop_nests import block_of, cached


def find_groups(shape: Shape) -> tuple[SSAValue, int] | None:
    """Returns the axis of channels and the size of a group, where the input is read by `channel // size`."""
    if not shape.reduction or len(shape.stores) != 1:
        return None
    found = _divided_axis(shape)
    # The output needs a dimension of channels that can become one of groups and one of those inside.
    return found if found is not None and found[0] in list(shape.stores[0].indices) else None


def _divided_axis(shape: Shape) -> tuple[SSAValue, int] | None:
    """Returns a spatial axis of which an index is a quotient, and the divisor."""
    analyzer = Analyzer()
    axes = {analyzer.expr(axis).atom: axis for axis in shape.spatial}
    for load in shape.loads:
        for index in load.indices:
            for atom, _ in index.terms:
                if atom.kind is not Kind.FLOORDIV:
                    continue
                axis, size = axes.get(atom.operands[0].atom), atom.operands[1].value
                extent = None if axis is None else shape.extent(axis)
                if axis is not None and size is not None and extent is not None and size > 1 and extent % size == 0:
                    return axis, size
    return None


def split_groups(sch: Schedule, block: BlockRV, axis: SSAValue, size: int) -> None:
    """Gives the block, its filters, its output and what reads that an axis of groups."""
    op = block_of(sch, block)
    shape = shape_of(op)
    assert shape is not None
    (store,) = shape.stores
    place = list(store.indices).index(axis)
    channel = Analyzer().expr(axis)
    filters = [
        (buffers_read(op).index(load.buffer), load.indices.index(channel))
        for load in shape.loads
        if load.buffer is not store.buffer and channel in load.indices
    ]

    def divided(place: int) -> Callable[..., list[Expr]]:
        def layout(*indices: Expr) -> list[Expr]:
            return [*indices[:place], indices[place] // size, indices[place] % size, *indices[place + 1 :]]

        return layout

    for number, where in filters:
        copy = cached(sch, block, number)
        sch.transform_layout(copy, ("write", 0), divided(where))
        # In the order of what it writes, it is packed as it is copied.
        sch.transform_block_layout(copy, divided(where))
    if not isinstance(store.buffer.owner, tir.AllocBufferOp):
        sch.cache_write(block, 0, "global")
    op = block_of(sch, block)
    readers = consumers(op)
    sch.transform_layout(block, ("write", 0), divided(place))
    sch.transform_block_layout(block, divided(list(op.iter_vars).index(axis)))
    for reader in readers:
        other = shape_of(reader)
        found = None if other is None or other.reduction else _divided_axis(other)
        if other is not None and found is not None and found[1] == size:
            sch.transform_block_layout(sch.handle(reader), divided(other.axes.index(found[0])))
