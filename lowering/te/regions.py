"""What a block reads and writes: the box of each buffer that covers its accesses, as exact as TVM computes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects import tir
from ...dialects.arith import Analyzer, Expr, Kind
from ...dialects.arith.expr import maximum, minimum
from ...support.edit import add_op, clone_op
from . import make

# Calls whose result an index may hold; of any other call's result nothing is known.
_INDEX_CALLS = frozenset(["shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "likely"])


@dataclass
class Access:
    """All that a block accesses of one buffer: the indices of each access, distinct."""

    buffer: SSAValue
    points: dict[tuple[SSAValue, ...], None] = field(default_factory=dict[tuple[SSAValue, ...], None])


class Accesses:
    """What a block accesses, by buffer in the order in which evaluating its values meets them."""

    def __init__(self) -> None:
        self.by_buffer: dict[SSAValue, Access] = {}

    def collect(self, values: Iterable[SSAValue], skip: Iterable[SSAValue] = ()) -> None:
        """Adds what evaluating `values` loads, the outer load before those in its indices; not from buffers in `skip`."""
        skipped = set(skip)
        seen: set[SSAValue] = set()
        pending = list(reversed(list(values)))
        while pending:
            value = pending.pop()
            op = value.owner
            if value in seen or isinstance(op, Block):
                continue
            seen.add(value)
            inner: list[SSAValue] = list(op.operands)
            if isinstance(op, tir.LoadOp):
                inner = list(op.indices)
                if op.buffer not in skipped:
                    self.add(op.buffer, inner)
            for region in op.regions:
                last = region.block.last_op
                if isinstance(last, tir.YieldOp):
                    inner += last.values
            pending += reversed(inner)

    def add(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> None:
        """Adds one access."""
        self.by_buffer.setdefault(buffer, Access(buffer)).points[tuple(indices)] = None


class RegionBuilder:
    """Emits `tir.buffer_region`s for the accesses of a block's body, with copies of the index expressions they need.

    The ops go to `block`, to stand before those of the body. `extent` gives the extents of a buffer, `domain` is the range
    (minimum, extent) of each axis of the body.
    """

    def __init__(
        self,
        extent: Callable[[SSAValue, int], SSAValue],
        domain: Mapping[SSAValue, tuple[SSAValue, SSAValue]],
    ):
        self.block = Block()
        self.extent = extent
        self.domain = domain
        self._copies: dict[SSAValue, SSAValue] = {}
        self._constants: dict[tuple[int, Attribute], SSAValue] = {}
        self._analyzer: Analyzer | None = None

    def regions(self, accesses: Accesses) -> list[SSAValue]:
        """A region for each buffer."""
        return [self.region(access) for access in accesses.by_buffer.values()]

    def full(self, buffer: SSAValue) -> SSAValue:
        """The whole buffer."""
        assert isinstance(buffer.type, tir.BufferType)
        extents = [self.extent(buffer, dim) for dim in range(buffer.type.rank)]
        return self._add(make.region(buffer, [self._constant(0, e.type) for e in extents], extents))

    def region(self, access: Access) -> SSAValue:
        """The box that covers all accesses."""
        mins: list[SSAValue] = []
        extents: list[SSAValue] = []
        assert isinstance(access.buffer.type, tir.BufferType)
        for dim in range(access.buffer.type.rank):
            indices = list(dict.fromkeys(point[dim] for point in access.points))
            low, length = self._interval(indices) or self._everything(access.buffer, dim)
            mins.append(low)
            extents.append(length)
        return self._add(make.region(access.buffer, mins, extents))

    def _everything(self, buffer: SSAValue, dim: int) -> tuple[SSAValue, SSAValue]:
        extent = self.extent(buffer, dim)
        return self._constant(0, extent.type), extent

    def _interval(self, indices: list[SSAValue]) -> tuple[SSAValue, SSAValue] | None:
        """Minimum and extent of what the indices cover; None where that is not known."""
        first = indices[0]
        if any(map(_is_opaque, indices)):
            return None
        if len(indices) == 1:
            return self._copy(first), self._constant(1, first.type)
        if any(_loads(i) or i.type != first.type for i in indices):
            return None
        analyzer = self._analyzer = self._analyzer or self._knowing_domain()
        points = [analyzer.expr(i) for i in indices]
        if not all(map(self._is_visible, points)):
            return None
        offsets = [(p - points[0]).value for p in points]
        known = [o for o in offsets if o is not None]
        if len(known) == len(points):
            low, length = points[0] + min(known), analyzer.expr(max(known) - min(known) + 1)
        else:
            low = analyzer.simplify(minimum(*points))
            length = analyzer.simplify(maximum(*points) - low + 1)
        builder = Builder(InsertPoint.at_end(self.block))
        return analyzer.to_ssa(low, builder, first.type), analyzer.to_ssa(length, builder, first.type)

    def _knowing_domain(self) -> Analyzer:
        analyzer = Analyzer()
        for axis, (low, extent) in self.domain.items():
            analyzer.bind(axis, low, extent)
        return analyzer

    def _is_visible(self, expr: Expr) -> bool:
        """Whether an expression is of axes and of what is defined outside of the block, so that it can be emitted here."""
        pending, seen = [expr], set[Expr]()
        while pending:
            part = pending.pop()
            if part in seen:
                continue
            seen.add(part)
            for atom, _ in part.terms:
                pending += atom.operands
                value = atom.payload
                if atom.kind is Kind.VAR and isinstance(value, SSAValue) and value not in self.domain:
                    owner = value.owner
                    if not isinstance(owner, Block) and not _is_outside(owner):
                        return False
        return True

    def _copy(self, root: SSAValue) -> SSAValue:
        """The expression again: what is shared with the block's body would be written as one value with two uses."""
        copies, pending = self._copies, [root]
        while pending:
            value = pending[-1]
            op = value.owner
            if value in copies:
                pending.pop()
                continue
            if isinstance(op, Block) or _is_outside(op):
                copies[value] = value
                continue
            missing = [v for v in op.operands if v not in copies]
            if missing:
                pending += missing
                continue
            pending.pop()
            copies[value] = self._add(clone_op(op, [copies[v] for v in op.operands]))
        return copies[root]

    def _constant(self, value: int, type: Attribute) -> SSAValue:
        found = self._constants.get((value, type))
        if found is None:
            found = self._constants[value, type] = self._add(tir.ConstOp.int(value, type))
        return found

    def _add(self, op: Operation) -> SSAValue:
        add_op(self.block, op)
        return op.results[0]


def _expression(value: SSAValue) -> Iterable[Operation]:
    """The ops that compute an index."""
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        part = pending.pop()
        if part in seen or isinstance(part.owner, Block):
            continue
        seen.add(part)
        yield part.owner
        pending += part.owner.operands


def _is_opaque(index: SSAValue) -> bool:
    """Whether TVM's interval analysis knows nothing of the index: it comes from a float, a choice or a call."""
    for op in _expression(index):
        match op:
            case tir.CastOp() if isinstance(op.value.type, AnyFloat):
                return True
            case tir.IfThenElseOp():
                return True
            case tir.CallOp() if op.intrinsic.data not in _INDEX_CALLS:
                return True
            case _:
                pass
    return False


def _is_outside(op: Operation) -> bool:
    """Whether an op stands at the function's level, in sight of all blocks."""
    return isinstance(op.parent_op(), tir.PrimFuncOp)


def _loads(index: SSAValue) -> bool:
    return any(isinstance(op, tir.LoadOp) for op in _expression(index))
