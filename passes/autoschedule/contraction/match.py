"""Contractions among blocks: sums of products of two loads, seen as matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ...schedule.analysis.structure import buffers_read, buffers_written, function_of, producers
from ...tir.buffers.constant_params import constant_params
from ..block_shape import Load, Shape, element_bytes, static_extents


@dataclass(frozen=True)
class Contraction:
    """A block that sums products of two loads."""

    shape: Shape
    broadcast: Load
    """The input whose elements are repeated in all lanes (A)."""
    panel: Load
    """The input that is loaded in vectors (B)."""
    rows: SSAValue | None
    """The axis of A that a tile runs over; None when A has none of its own."""
    columns: SSAValue
    """The axis of B that vectors run over."""

    @property
    def m(self) -> int:
        """Returns the number of rows; 1 where that is not known."""
        return 1 if self.rows is None else self.shape.extent(self.rows) or 1

    @property
    def n(self) -> int:
        """Returns the number of columns."""
        return self.shape.extent(self.columns) or 1

    @property
    def k(self) -> int:
        """Returns the number of products of a sum."""
        return prod(self.shape.extent(axis) or 1 for axis in self.shape.reduction)

    @property
    def uses(self) -> int:
        """Returns how often an element of B is used: by rows, and all other axes that only A has."""
        own = [a for a in self.shape.spatial if a not in self.panel.axes]
        return prod(self.shape.extent(axis) or 1 for axis in own)

    @property
    def element(self) -> int:
        """Bytes of an element of the sums."""
        return element_bytes(self.shape.stores[0].buffer)

    @property
    def widens(self) -> bool:
        """Returns whether the elements of B are stored in fewer bytes than sums, and widened when multiplied."""
        return element_bytes(self.panel.buffer) < self.element

    @property
    def column_place(self) -> int:
        """Returns the dimension of B along which columns run."""
        column = Analyzer().expr(self.columns)
        return next(k for k, index in enumerate(self.panel.indices) if index == column)

    def is_constant(self, load: Load) -> bool:
        """Returns whether an input is the same at every call of the function."""
        constants = constant_params(function_of(self.shape.block))
        # What is computed from constants alone, another order of one say, is constant, too.
        blocks: list[tir.BlockOp] = [self.shape.block]
        pending = [load.buffer]
        while pending:
            buffer = pending.pop()
            if buffer in constants:
                continue
            makers = [maker for block in blocks for maker in producers(block) if buffer in buffers_written(maker)]
            if len(makers) != 1 or makers[0] in blocks:
                return False
            blocks.append(makers[0])
            pending += buffers_read(makers[0])
        return True

    def turned(self) -> Contraction | None:
        """Returns a matrix times columns as rows times the matrix, whose rows become columns.

        None where the rows are not a dimension of their own.
        """
        if self.rows is None:
            return None
        atom = Analyzer().expr(self.rows)
        if atom not in self.broadcast.indices:
            return None
        return Contraction(self.shape, self.panel, self.broadcast, self.columns if self.n > 1 else None, self.rows)

    def row_bytes(self) -> int | None:
        """Bytes from a row of A to the next; None where that is not one number."""
        extents = static_extents(self.broadcast.buffer)
        if extents is None or self.rows is None:
            return None
        atom = Analyzer().expr(self.rows).atom
        step, total = element_bytes(self.broadcast.buffer), 0
        for index, extent in zip(reversed(self.broadcast.indices), reversed(extents), strict=True):
            total += 0 if atom is None else index.coefficient(atom) * step
            step *= extent
        return total


def match_contraction(shape: Shape) -> Contraction | None:
    """Returns the block as a contraction; None when it is none, or one that vectors do not help."""
    if not shape.reduction or len(shape.stores) != 1 or any(shape.extent(v) is None for v in shape.reduction):
        return None
    store = shape.stores[0]
    factors = _factors(store)
    if factors is None:
        return None
    loads = [next((x for x in shape.loads if x.op is op), None) for op in factors]
    if None in loads:
        return None
    found: list[tuple[bool, Contraction]] = []
    for a, b in ((loads[0], loads[1]), (loads[1], loads[0])):
        assert a is not None and b is not None
        match = _oriented(shape, store, a, b)
        if match is not None:
            found.append(match)
    # Vectors along the output's last dimension are stored whole.
    return max(found, key=lambda each: each[0], default=(False, None))[1]


def _factors(store: tir.StoreOp) -> tuple[tir.LoadOp, tir.LoadOp] | None:
    """Returns the loads of `C = C + A * B`, casts apart."""
    total = store.value.owner
    if not isinstance(total, tir.AddOp):
        return None
    sides = [total.lhs.owner, total.rhs.owner]
    old = [s for s in sides if isinstance(s, tir.LoadOp) and s.buffer is store.buffer]
    terms = [s for s in sides if isinstance(s, tir.MulOp)]
    analyzer = Analyzer()
    if len(old) != 1 or len(terms) != 1:
        return None
    if [analyzer.expr(i) for i in old[0].indices] != [analyzer.expr(i) for i in store.indices]:
        return None
    factors = [_behind_casts(terms[0].lhs), _behind_casts(terms[0].rhs)]
    if not all(isinstance(f, tir.LoadOp) and f.buffer is not store.buffer for f in factors):
        return None
    a, b = factors
    assert isinstance(a, tir.LoadOp) and isinstance(b, tir.LoadOp)
    return a, b


def _behind_casts(value: SSAValue) -> object:
    owner = value.owner
    while isinstance(owner, tir.CastOp):
        owner = owner.value.owner
    return owner


def _oriented(shape: Shape, store: tir.StoreOp, a: Load, b: Load) -> tuple[bool, Contraction] | None:
    """Returns the contraction with B in vectors, and whether these are stored whole."""
    if a.op is b.op or a.buffer is b.buffer:
        return None
    analyzer = Analyzer()
    own = [v for v in shape.spatial if v in b.axes and v not in a.axes]
    plain = {index.atom for index in b.indices}
    columns = [v for v in own if analyzer.expr(v).atom in plain and shape.extent(v) is not None]
    if not columns or not any(v in a.axes and v in b.axes for v in shape.reduction):
        return None
    order = {v: k for k, v in enumerate(store.indices)}
    # An axis of one iteration may be written as 0.
    if any(v not in order and shape.extent(v) != 1 for v in shape.spatial):
        return None
    last = max(columns, key=lambda v: order.get(v, -1))
    rows = [v for v in shape.spatial if v in a.axes and v not in b.axes and (shape.extent(v) or 0) > 1]
    row = max(rows, key=lambda v: order.get(v, -1), default=None)
    return order.get(last) == len(store.indices) - 1, Contraction(shape, a, b, row, last)
