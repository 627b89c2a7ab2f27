"""Verifies loads and stores against the buffer's shape, their block's regions, and earlier writes."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr, VectorType
from xdsl.ir import Operation, SSAValue

from ....support.diagnostics import source_position
from ...arith import Expr
from ...arith.bounds import ConstIntBound
from ..buffer import AllocBufferOp, BufferOp, BufferRegionOp, DeclBufferOp, LoadOp, StoreOp, buffer_name, tells_region
from ..expr import CallOp, RampOp, SelectOp
from ..stmt import BlockOp, ReadsOp, RegionsOp, WritesOp
from ..types import BufferType, lanes_of
from .context import Context


@dataclass
class DeclaredBox:
    """One declared box: (min, extent) in each dimension."""

    ranges: list[tuple[Expr, Expr]]


@dataclass
class BlockScope:
    """The innermost block around an op, with its declared regions (None if it declares none)."""

    op: BlockOp
    reads: dict[SSAValue, list[DeclaredBox]] | None
    writes: dict[SSAValue, list[DeclaredBox]] | None
    # Axes of the block that broke a rule: consequences are not reported again.
    broken: bool = False


@dataclass
class Hull:
    """The boxes around all writes (at most) and around reads that are sure to happen."""

    writes: list[ConstIntBound] = field(default_factory=list[ConstIntBound])
    reads: list[ConstIntBound] = field(default_factory=list[ConstIntBound])
    reader: Operation | None = None

    def dimension(self) -> int | None:
        """Returns the first dimension in which reads pass writes."""
        if not self.writes:
            return None
        for number, (read, written) in enumerate(zip(self.reads, self.writes, strict=False)):
            if read.min_value < written.min_value or read.max_value > written.max_value:
                return number
        return None


@dataclass(frozen=True)
class HullEvent:
    """An access that widens the hull of a buffer by a box; without an access, the buffer's allocation."""

    buffer: SSAValue
    op: LoadOp | StoreOp | None
    box: list[ConstIntBound]


@dataclass
class AccessRules:
    """Verifies bounds, declared regions, and reads of memory that nothing wrote."""

    context: Context
    runs: bool
    blocks: list[BlockScope] = field(default_factory=list[BlockScope])
    # Allocated buffers whose accesses are all loads and stores.
    hulls: dict[SSAValue, Hull] = field(default_factory=dict[SSAValue, Hull])
    events: list[HullEvent] = field(default_factory=list[HullEvent])
    """All that made the hulls, in order."""

    def unwritten(self) -> set[SSAValue]:
        """Returns the allocated buffers that are read where nothing writes."""
        return {buffer for buffer, hull in self.hulls.items() if hull.dimension() is not None}

    def report_unwritten(self, buffers: set[SSAValue]) -> None:
        """Reads of elements that nothing wrote."""
        for buffer, hull in self.hulls.items():
            number = hull.dimension()
            if buffer not in buffers or number is None or hull.reader is None:
                continue
            read, written = hull.reads[number], hull.writes[number]
            self.context.report(
                hull.reader,
                f"'{buffer_name(buffer)}' is read from {read.min_value} to {read.max_value} in dimension {number}, but written only from {written.min_value} to {written.max_value}",
                (f"'{buffer_name(buffer)}' is allocated here", buffer),
                severity="warning",
            )

    def declared(self, op: Operation | None) -> dict[SSAValue, list[DeclaredBox]] | None:
        """Returns the boxes by buffer."""
        if not isinstance(op, RegionsOp):
            return None
        boxes: dict[SSAValue, list[DeclaredBox]] = {}
        for value in op.regions_:
            region = value.owner
            if isinstance(region, BufferRegionOp):
                ranges = [
                    (self.context.analyzer.simplify(low), self.context.analyzer.simplify(extent))
                    for low, extent in zip(region.mins, region.extents, strict=True)
                ]
                boxes.setdefault(region.buffer, []).append(DeclaredBox(ranges))
        return boxes

    def allocation(self, op: AllocBufferOp) -> None:
        """Verifies that a buffer that is read is written."""
        reads: list[LoadOp] = []
        written = None
        for use in op.result.uses:
            user = use.operation
            if isinstance(user, LoadOp):
                reads.append(user)
            elif isinstance(user, StoreOp):
                written = user
            elif not isinstance(user, BufferRegionOp) or _is_matched(user):
                return
        if written is not None:
            self.happen(HullEvent(op.result, None, []))
        elif reads:
            self.context.report(
                # The order of uses is not that of the text.
                min(reads, key=lambda read: (source_position(read.location) or ("", 0, 0))[1:]),
                f"buffer '{op.var_name.data}' is read here, but nothing writes it",
                (f"'{op.var_name.data}' is allocated here", op),
                severity="warning",
            )

    def note_hull(self, op: LoadOp | StoreOp, indices: list[Expr]) -> None:
        """Widens the box of an allocated buffer that is known to be read, or may be written."""
        if not isinstance(op.buffer.owner, AllocBufferOp):
            return
        ends = [(e, self.last_lane(i)) for e, i in zip(indices, op.indices, strict=True)]
        surely = op.predicate is None and all(
            self.context.is_attained(a) and self.context.is_attained(b) for a, b in ends
        )
        if surely or isinstance(op, StoreOp):
            self.happen(HullEvent(op.buffer, op, self.box(ends)))

    def box(self, ends: list[tuple[Expr, Expr]]) -> list[ConstIntBound]:
        """Returns the box around all values of the first and last lanes of indices."""
        bound = self.context.analyzer.const_int_bound
        return [bound(first).union(bound(last)) for first, last in ends]

    def happen(self, event: HullEvent) -> None:
        """Begins or widens the hull of a buffer."""
        self.events.append(event)
        if event.op is None:
            self.hulls[event.buffer] = Hull()
            return
        hull = self.hulls.get(event.buffer)
        if hull is None:
            return
        if isinstance(event.op, StoreOp):
            hull.writes = _joined(hull.writes, event.box)
        else:
            hull.reads = _joined(hull.reads, event.box)
            hull.reader = event.op

    def check(self, op: LoadOp | StoreOp) -> None:
        """Verifies one load or store."""
        type = op.buffer.type
        assert isinstance(type, BufferType)
        if (self.blocks and self.blocks[-1].broken) or (isinstance(op, LoadOp) and tells_region(op)):
            return
        indices = [self.index(i) for i in op.indices]
        self.note_hull(op, indices)
        stands = isinstance(op, StoreOp) or not _may_be_discarded(op)
        if op.predicate is None and stands and not self.in_bounds(op, type, indices):
            return
        self.in_declared(op, indices)

    def index(self, value: SSAValue) -> Expr:
        """Returns an index; of a vector, its first lane (`last_lane` is the last)."""
        owner = value.owner
        if isinstance(value.type, VectorType) and isinstance(owner, RampOp):
            return self.context.analyzer.simplify(owner.base)
        return self.context.analyzer.simplify(value)

    def last_lane(self, value: SSAValue) -> Expr:
        owner = value.owner
        if isinstance(value.type, VectorType) and isinstance(owner, RampOp):
            steps = lanes_of(value.type) - 1
            return self.context.analyzer.simplify(
                self.context.analyzer.expr(owner.base) + self.context.analyzer.expr(owner.stride) * steps
            )
        return self.context.analyzer.simplify(value)

    def in_bounds(self, op: LoadOp | StoreOp, type: BufferType, indices: list[Expr]) -> bool:
        maker = op.buffer.owner
        if isinstance(maker, DeclBufferOp) and maker.source is not None:
            # A view's shape is not that of its memory.
            return True
        for number, (dim, index) in enumerate(zip(type.shape.data, indices, strict=True)):
            if not isinstance(dim, IntegerAttr):
                continue
            extent = dim.value.data
            for e in (index, self.last_lane(op.indices[number])):
                bound = self.context.analyzer.const_int_bound(e)
                if not self.context.is_attained(e) or (bound.min_value >= 0 and bound.max_value < extent):
                    continue
                worst = bound.min_value if bound.min_value < 0 else bound.max_value
                name = buffer_name(op.buffer)
                verb = "writes" if isinstance(op, StoreOp) else "reads"
                where = "" if len(indices) == 1 else f" of dimension {number}"
                self.context.report(
                    op,
                    f"this {verb} '{name}' out of bounds: index {e!r}{where} takes the value {worst}, outside [0, {extent})",
                    *self.context.loop_notes(self.context.loops_of(e)),
                    f"guard the access with T.if_then_else or a condition, or make '{name}' large enough",
                    severity="error" if self.runs else "warning",
                )
                return False
        return True

    def in_declared(self, op: LoadOp | StoreOp, indices: list[Expr]) -> None:
        """Verifies an access against the declared regions of the innermost block."""
        if not self.blocks:
            return
        scope = self.blocks[-1]
        writes = isinstance(op, StoreOp)
        declared = scope.writes if writes else scope.reads
        if declared is None or not declared:
            return
        if _is_made_in(op.buffer, scope.op):
            return
        boxes = declared.get(op.buffer)
        if not writes and boxes is None:
            return
        name, block = buffer_name(op.buffer), scope.op.block_name.data
        if boxes is None:
            self.context.report(
                op,
                f"block '{block}' stores to '{name}', which its T.writes does not name",
                f"T.writes lists all that a block writes: add '{name}' to it, or leave T.writes out to have it found",
            )
            return
        outside = [d for d in (self.outside(box, op, indices) for box in boxes) if d is not None]
        if len(outside) == len(boxes):
            dimension, shown = outside[0]
            kind = "T.writes" if writes else "T.reads"
            self.context.report(
                op,
                f"block '{block}' {'writes' if writes else 'reads'} '{name}' outside of its {kind}: index {indices[dimension]!r} of dimension {dimension} leaves {shown}",
                f"declare in {kind} all that the block accesses, or leave it out to have it found",
                severity="error" if writes else "warning",
            )

    def outside(self, box: DeclaredBox, op: LoadOp | StoreOp, indices: list[Expr]) -> tuple[int, str] | None:
        """Returns (dimension, declared range) that the access provably leaves; None if it may be in the box."""
        for number, ((low, extent), index) in enumerate(zip(box.ranges, indices, strict=True)):
            distance = self.context.analyzer.simplify(index - low)
            size = extent.value
            if size is None:
                continue
            bound: ConstIntBound = self.context.analyzer.const_int_bound(distance)
            always = bound.max_value < 0 or bound.min_value >= size
            sometimes = self.context.is_attained(distance) and (bound.min_value < 0 or bound.max_value >= size)
            if always or sometimes:
                end = self.context.analyzer.simplify(low + extent)
                return number, f"[{low!r}, {end!r})"
        return None


def _is_matched(region: BufferRegionOp) -> bool:
    return any(not isinstance(use.operation, ReadsOp | WritesOp) for use in region.result.uses)


def _may_be_discarded(load: LoadOp) -> bool:
    """Returns True if the value of a load may be discarded: it is an operand of a select."""
    pending: list[tuple[SSAValue, int]] = [(load.result, 0)]
    while pending:
        value, depth = pending.pop()
        for use in value.uses:
            user = use.operation
            if isinstance(user, SelectOp) or depth > 6:
                return True
            if isinstance(user, CallOp) and user.intrinsic.data in ("address_of", "likely"):
                return True
            if not user.regions and not isinstance(user, StoreOp):
                pending += [(r, depth + 1) for r in user.results]
    return False


def _is_made_in(buffer: SSAValue, block: BlockOp) -> bool:
    """Returns True if the buffer is the block's own: defined directly in the block, or matched in it."""
    maker = buffer.owner
    return isinstance(maker, BufferOp) and maker.parent is block.body.block


def _joined(box: list[ConstIntBound], other: list[ConstIntBound]) -> list[ConstIntBound]:
    """Returns the least box around two; an empty list means no box."""
    return [a.union(b) for a, b in zip(box, other, strict=True)] if box else other
