"""The facts that the rules look at: the axes of a fresh block, its reads by axis, its work."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import OpResult, SSAValue

from ...dialects import tir
from ...dialects.arith import Analyzer, Expr
from ...dialects.arith.expr import free_vars
from ...dialects.tir.scalar_ops import INTRINSICS
from ...support.op_kinds import Kinds
from ...support.operands import operands_of
from ...support.target import Target
from ...support.walk import all_ops
from ..schedule.analysis.block_kind import axis_kinds, why_neither
from ..schedule.analysis.structure import child_blocks, const_int, loops_above

if TYPE_CHECKING:
    from ..schedule import Schedule

COSTLY = frozenset(row.name for row in INTRINSICS.values() if row.cost >= 16)
"""Calls that cost many times an addition."""

_SIMPLE = Kinds(tir.BinaryOp, tir.LoadOp, tir.StoreOp, tir.SelectOp, tir.CastOp)
"""What counts as one operation."""
_STATEMENTS = Kinds(
    tir.ForOp, tir.BlockOp, tir.WhileOp, tir.BufferOp, tir.AllocateOp, tir.EvaluateOp, tir.AssertOp
)  # fmt: skip
"""Statements that no rule looks into."""


@dataclass(frozen=True)
class Load:
    """One load of a block: the buffer and its indices in terms of the block's axes."""

    op: tir.LoadOp
    buffer: SSAValue
    indices: tuple[Expr, ...]
    axes: frozenset[SSAValue]
    """The axes that the indices use."""


@dataclass(frozen=True)
class Shape:
    """A block with each axis on a loop of its own."""

    block: tir.BlockOp
    axes: tuple[SSAValue, ...]
    kinds: tuple[str, ...]
    extents: tuple[int | None, ...]
    """None where symbolic."""
    loads: tuple[Load, ...]
    stores: tuple[tir.StoreOp, ...]
    """Without those of the init."""

    @property
    def spatial(self) -> list[SSAValue]:
        return [a for a, kind in zip(self.axes, self.kinds, strict=True) if kind == "S"]

    @property
    def reduction(self) -> list[SSAValue]:
        return [a for a, kind in zip(self.axes, self.kinds, strict=True) if kind == "R"]

    def extent(self, axis: SSAValue) -> int | None:
        """Returns the extent of an axis."""
        return self.extents[self.axes.index(axis)]

    @property
    def points(self) -> int:
        """Returns the number of instances of the block; symbolic extents count as 1024."""
        return prod(1024 if e is None else e for e in self.extents)

    @property
    def cost(self) -> int:
        """Returns roughly the number of simple operations of one instance."""
        total = 0
        for op in all_ops(self.block):
            if type(op) is tir.CallOp:
                total += 20 if op.intrinsic.data in COSTLY else 2
            elif _SIMPLE[type(op)]:
                total += 1
        return max(total, 1)

    @property
    def is_costly(self) -> bool:
        """Returns whether an instance computes a function that costs many times an addition."""
        return any(type(op) is tir.CallOp and op.intrinsic.data in COSTLY for op in all_ops(self.block))


class _Memory:
    """The shapes that were asked for while a schedule was at work."""

    def __init__(self) -> None:
        self.changes = 0
        """How many primitives changed the program."""
        self.shapes: dict[tir.BlockOp, _Known] = {}

    def count(self) -> None:
        """Notes that a primitive is about to change the program."""
        self.changes += 1


class _Known(NamedTuple):
    """A shape, all that it was made of, and the count of edits at which that was last looked at."""

    shape: Shape | None
    parts: list[object]
    changes: int


_MEMORY: ContextVar[_Memory | None] = ContextVar("shapes", default=None)


@contextmanager
def remembering_shapes(sch: Schedule) -> Generator[None]:
    """Caches the shapes of blocks while the program changes by primitives of this schedule only.

    A shape is computed again only when a primitive changed what it is made of: rule after rule asks for it.
    """
    memory = _Memory()
    sch.before_change.append(memory.count)
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)
        sch.before_change.remove(memory.count)


def shape_of(block: tir.BlockOp) -> Shape | None:
    """Returns the shape of a block as a person or TE wrote it.

    None when it is scheduled already, or does more than loads and stores.
    """
    memory = _MEMORY.get()
    if memory is None:
        return _fresh_shape(block)
    known = memory.shapes.get(block)
    if known is not None and known.changes == memory.changes:
        return known.shape
    parts = _parts_of(block)
    shape = known.shape if known is not None and known.parts == parts else _fresh_shape(block)
    memory.shapes[block] = _Known(shape, parts, memory.changes)
    return shape


def _parts_of(block: tir.BlockOp) -> list[object]:
    """Returns all that the shape of a block is made of.

    These are the loops around it, the ops in it in order, their operands, and what those are computed from.
    """
    parts: list[object] = [block.iter_types, block.annotations, *block.iter_vars]
    for loop in loops_above(block):
        parts += (loop, loop.kind, loop.annotations, loop.loop_var, *operands_of(loop))
    # By identity: the hash of an op is computed in Python. All are among the parts, and stay.
    inside: set[int] = set()
    for op in all_ops(block):
        inside.add(id(op))
        parts.append(op)
        parts += operands_of(op)
    # What is computed around the block is part of it, too. Mostly it is constants, which are what they are.
    pending = [v for v in parts if type(v) is OpResult and type(v.op) is not tir.ConstOp and id(v.op) not in inside]
    while pending:
        for op in all_ops(pending.pop().op):
            if id(op) not in inside:
                inside.add(id(op))
                parts += (op, *operands_of(op))
                pending += [v for v in operands_of(op) if type(v) is OpResult]
    return parts


def _fresh_shape(block: tir.BlockOp) -> Shape | None:
    loops = loops_above(block)
    if block.predicate is not None or len(loops) != len(block.bindings) or block.annotations.data:
        return None
    analyzer = Analyzer()
    for loop, binding, low, extent in zip(loops, block.bindings, block.dom_mins, block.dom_extents, strict=True):
        plain = loop.loop_var is binding and loop.kind.data == "serial" and not loop.annotations.data
        if not plain or const_int(loop.min) != 0 or const_int(low) != 0:
            return None
        if loop.extent is not extent and analyzer.expr(loop.extent) != analyzer.expr(extent):
            return None
    return block_shape(block)


def block_shape(block: tir.BlockOp) -> Shape | None:
    """Returns the shape of a block wherever its loops are; None when it is more than loads and stores."""
    kinds = tuple(axis_kinds(block))
    if any(kind not in ("S", "R") for kind in kinds):
        return None
    analyzer = Analyzer()
    axes = {analyzer.expr(v).atom: v for v in block.iter_vars}
    # Channels in blocks are written by their number, (outer * 16 + inner) // 16: what is left of it are the axes. An axis of
    # one iteration stays one, too.
    for axis, extent in zip(block.iter_vars, block.dom_extents, strict=True):
        if const_int(extent) != 1:
            analyzer.bind(axis, 0, extent)
    loads: list[Load] = []
    stores: list[tir.StoreOp] = []
    for op in all_ops(block):
        if op is block or type(op) is tir.InitOp:
            continue
        if type(op) is tir.LoadOp:
            indices = tuple(analyzer.simplify(i) for i in op.indices)
            used = frozenset(axes[a] for a in free_vars(*indices) if a in axes)
            loads.append(Load(op, op.buffer, indices, used))
        elif type(op) is tir.StoreOp:
            if type(op.parent_op()) is not tir.InitOp:
                stores.append(op)
        elif _STATEMENTS[type(op)]:
            return None
    extents = tuple(const_int(e) for e in block.dom_extents)
    return Shape(block, tuple(block.iter_vars), kinds, extents, tuple(loads), tuple(stores))


def is_copy(block: tir.BlockOp) -> bool:
    """Returns whether a block stores what it loads, and does no more."""
    shape = shape_of(block)
    return shape is not None and len(shape.stores) == 1 and isinstance(shape.stores[0].value.owner, tir.LoadOp)


def is_cast(block: tir.BlockOp) -> bool:
    """Returns whether a block stores what it loads in another dtype, and does no more."""
    shape = shape_of(block)
    if shape is None or len(shape.stores) != 1:
        return False
    cast = shape.stores[0].value.owner
    return isinstance(cast, tir.CastOp) and isinstance(cast.value.owner, tir.LoadOp)


def fresh_blocks(function: tir.PrimFuncOp) -> list[tir.BlockOp] | None:
    """Returns the blocks of a function that nobody has scheduled.

    None when someone has, or when it does more than compute blocks.
    """
    for op in function.body.block.ops:
        if isinstance(
            op, tir.StoreOp | tir.WhileOp | tir.IfOp | tir.LaunchThreadOp | tir.AttrOp | tir.AssertOp | tir.ScopeOp
        ):
            return None
        if isinstance(op, tir.CallOp | tir.AllocateOp):
            return None
    blocks = child_blocks(function)
    if not blocks:
        return None
    for block in blocks:
        loops = loops_above(block)
        if not loops and block.predicate is None and not block.annotations.data:
            # One value, as the quotient of a mean of everything: nothing to schedule, and nothing that somebody scheduled.
            continue
        if shape_of(block) is None or any(_shares(loop) for loop in loops) or why_neither(block) is not None:
            return None
        if len({loop.loop_var.type for loop in loops}) > 1:
            return None
    return blocks


def _shares(loop: tir.ForOp) -> bool:
    """Returns whether a loop holds more than one loop or block."""
    return sum(isinstance(op, tir.ForOp | tir.BlockOp | tir.IfOp | tir.StoreOp) for op in loop.body.block.ops) != 1


def element_bytes(buffer: SSAValue) -> int:
    """Bytes of an element."""
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    dtype = type_.dtype
    if isinstance(dtype, tir.types.IntegerType):
        return (dtype.width.data + 7) // 8
    return getattr(dtype, "bitwidth", 32) // 8


def static_extents(buffer: SSAValue) -> tuple[int, ...] | None:
    """Returns a buffer's extents as numbers."""
    assert isinstance(buffer.type, tir.BufferType)
    return buffer.type.static_shape


MANY = 1024
"""What an unknown extent counts as."""


def lanes_of_block(shape: Shape, target: Target) -> int:
    """Lanes of a vector of the widest element that a block stores."""
    return target.lanes(max((element_bytes(s.buffer) for s in shape.stores), default=4))
