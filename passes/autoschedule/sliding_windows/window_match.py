"""Reductions over windows along the output's last axis, and the axes that slide along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.expr import Expr, free_vars
from ..block_shape import Load, Shape, static_extents

MAX_STRIDE = 4
"""Inputs further apart than these are not worth loading whole vectors for."""


@dataclass(frozen=True)
class Window:
    """A reduction over windows along the output's last axis."""

    shape: Shape
    inputs: tuple[Load, ...]
    """Loads along the axis."""
    filters: tuple[Load, ...]
    """Loads that are the same along the axis."""
    axis: SSAValue
    stride: int
    rows: SSAValue | None
    """An axis of filters that read the same inputs, otherwise that of the rows of the output; None where there is none."""
    shares_inputs: bool
    """Whether `rows` is an axis of filters."""
    turning: SSAValue | None = None
    """A reduced axis along which windows do not slide with `rows`, where each plane of inputs has a filter of its own."""
    row_step: int = 1
    """How many rows of inputs are between two of `rows`."""


def match_window(shape: Shape) -> Window | None:
    """Returns the block as a reduction over windows; None when it is none."""
    if not shape.reduction or len(shape.stores) != 1 or None in shape.extents:
        return None
    store = shape.stores[0]
    if not store.indices or store.indices[-1] not in shape.spatial:
        return None
    axis = store.indices[-1]
    atom = Analyzer().expr(axis).atom
    output = store.buffer
    inputs: list[Load] = []
    filters: list[Load] = []
    strides: set[int] = set()
    for load in shape.loads:
        if load.buffer is output:
            continue
        uses = [k for k, index in enumerate(load.indices) if atom in free_vars(index)]
        if not uses:
            filters.append(load)
            continue
        last = load.indices[uses[-1]]
        factor = last.coefficient(atom) if atom is not None else 0
        nested = atom in free_vars(Expr(tuple(t for t in last.terms if t[0] is not atom), last.const))
        if len(uses) != 1 or not _is_last(load, uses[0]) or nested or not 1 <= factor <= MAX_STRIDE:
            return None
        strides.add(factor)
        inputs.append(load)
    if not inputs or len(strides) != 1 or any(isinstance(op, tir.IfThenElseOp) for op in shape.block.walk()):
        return None
    order = list(store.indices)
    if any(v not in order and shape.extent(v) != 1 for v in shape.spatial):
        return None
    own = [
        v
        for v in shape.spatial
        if (shape.extent(v) or 0) > 1
        and all(v not in load.axes for load in inputs)
        and any(v in load.axes for load in filters)
    ]
    lines = [v for v in shape.spatial if v is not axis and (shape.extent(v) or 0) > 1 and overlaps(shape, inputs, v)]
    rows = max(own or lines, key=order.index, default=None)
    found = Window(shape, tuple(inputs), tuple(filters), axis, strides.pop(), rows, bool(own))
    if rows is None or own or len(inputs) + len(filters) != 2:
        return found
    return replace(found, turning=_turning(shape, inputs, rows), row_step=_row_step(inputs, rows))


def _is_last(load: Load, place: int) -> bool:
    """Returns whether a dimension is the last, those of one element left out."""
    extents = static_extents(load.buffer)
    return place == len(load.indices) - 1 or (extents is not None and all(size == 1 for size in extents[place + 1 :]))


def _turning(shape: Shape, inputs: Sequence[Load], rows: SSAValue) -> SSAValue | None:
    """Returns the outermost reduced axis along which the input does not slide as it does along rows."""
    analyzer = Analyzer()
    atom = analyzer.expr(rows).atom
    along = {used for load in inputs for index in load.indices if atom in free_vars(index) for used in free_vars(index)}
    axes = [v for v in shape.reduction if (shape.extent(v) or 0) > 1]
    found = [v for v in axes if analyzer.expr(v).atom not in along]
    return found[-1] if found and len(found) < len(axes) else None


def _row_step(inputs: Sequence[Load], rows: SSAValue) -> int:
    atom = Analyzer().expr(rows).atom
    return max(index.coefficient(atom) for load in inputs for index in load.indices) if atom is not None else 1


def overlaps(shape: Shape, inputs: Sequence[Load], axis: SSAValue) -> bool:
    """Returns whether windows that are neighbours along an axis read some of the same inputs."""
    analyzer = Analyzer()
    atom = analyzer.expr(axis).atom
    taps = {analyzer.expr(v).atom for v in shape.reduction if (shape.extent(v) or 0) > 1}
    return any(
        atom in used and taps & used for load in inputs for index in load.indices for used in [set(free_vars(index))]
    )
