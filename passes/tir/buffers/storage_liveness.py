"""Numbers the statements of a function and records at which of them each allocation is accessed.

A scope (a loop, a branch, what threads run) is one statement of the scope around it. An allocation of a scope lives,
there, from the first statement that accesses it to the last: as in TVM's `LinearAccessPatternFinder`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.tir.operators import as_const
from ....dialects.tir.types import HandleType, element_of, lanes_of
from ....support.walk import walk_ops
from ..analyzed_walk import Visit, run_visits
from ..rewriting import is_statement

AllocationOp: TypeAlias = "tir.AllocateOp | tir.DeclBufferOp"

_THREADS = ("thread_extent", "virtual_thread")
_OWN_MEMORY = ("parallel", "thread_binding", "vectorized")
"""Loops whose iterations may run at the same time: each needs memory of its own."""


@dataclass(eq=False)
class Attach:
    """A place where memory may be allocated: the start of a block, or after the op that launches threads."""

    block: Block
    after: Operation | None
    scope: Scope | None = None


@dataclass(eq=False)
class Scope:
    """Statements that run together; `path` are the scopes around, outermost first, and itself."""

    place: Place | None
    around: tuple[Scope, ...]

    @property
    def path(self) -> tuple[Scope, ...]:
        """Returns the scopes around, outermost first, and the scope itself."""
        return (*self.around, self)


@dataclass(eq=False)
class Place:
    """A statement, directly in `scope`: what comes into use with it, and what is used last."""

    op: Operation
    scope: Scope
    index: int
    attach: Attach | None = None
    """Where memory of the statements inside is to be allocated, if not where that of the statement is."""
    comes: list[Allocation] = field(default_factory=list["Allocation"])
    goes: list[Allocation] = field(default_factory=list["Allocation"])


class Step(Enum):
    """A statement as a whole, or one end of a scope."""

    LEAF = auto()
    BEGIN = auto()
    END = auto()


@dataclass(eq=False)
class Allocation:
    """Memory that the function allocates, and what reaches it."""

    op: AllocationOp
    home: Scope
    touches: dict[Place, list[Operation]] = field(default_factory=dict[Place, list[Operation]])
    """The accesses, by the statement of `home` that they are part of."""
    views: list[tir.DeclBufferOp] = field(default_factory=list[tir.DeclBufferOp])
    is_opaque: bool = False
    """Whether a pointer to it is given to a call."""
    is_pinned: bool = False
    """Whether it has to stay as it is: not all that reaches it can be seen."""

    @property
    def name(self) -> str:
        """Returns the name in the text."""
        return self.op.var_name.data

    @property
    def dtype(self) -> Attribute:
        """Returns the dtype of one element."""
        return self.op.dtype if isinstance(self.op, tir.AllocateOp) else self.op.result.type.dtype

    @property
    def memory(self) -> str:
        """Returns the kind of memory: `global`, `shared`, …"""
        return self.op.scope.data if isinstance(self.op, tir.AllocateOp) else self.op.result.type.scope.data

    def extents(self) -> list[int | SSAValue]:
        """Returns the number of elements in each dimension."""
        if isinstance(self.op, tir.DeclBufferOp):
            return self.op.extents()
        known = [as_const(e) for e in self.op.extents]
        return [e if k is None else int(k.value) for e, k in zip(self.op.extents, known, strict=True)]


class AccessFinder:
    """The statements of a function in one line, and its allocations."""

    def __init__(self, func: tir.PrimFuncOp):
        self.root = Attach(func.body.block, None)
        self.scope = self.root.scope = Scope(None, ())
        self.thread: Attach | None = None
        self.sequence: list[tuple[Step, Place]] = []
        self.place_of: dict[Operation, Place] = {}
        self.scope_of: dict[Operation, Scope] = {}
        self.order: dict[Operation, int] = {op: n for n, op in enumerate(walk_ops(func))}
        run_visits(self.block(func.body.block))
        self.allocations = [
            Allocation(op, self.scope_of[op])
            for op in self.order
            if isinstance(op, tir.AllocateOp) or (isinstance(op, tir.DeclBufferOp) and _is_memory(op))
        ]
        for allocation in self.allocations:
            self.follow(allocation)
            if allocation.touches and not allocation.is_pinned:
                places = sorted(allocation.touches, key=lambda place: place.index)
                places[0].comes.append(allocation)
                places[-1].goes.append(allocation)

    # The line of statements

    def block(self, block: Block) -> Visit:
        """Visits the statements of a block; an op between them belongs to the next one."""
        pending: list[Operation] = []
        opened: list[Place] = []
        outer = self.scope, self.thread
        for op in block.ops:
            self.scope_of[op] = self.scope
            pending.append(op)
            if not is_statement(op) or isinstance(op, tir.IfThenElseOp):
                continue
            place = Place(op, self.scope, len(self.sequence))
            self.place_of.update(dict.fromkeys(pending, place))
            pending.clear()
            if isinstance(op, tir.ScopeOp):
                yield self.block(op.body.block)
            elif op.regions:
                self.enter(place, isinstance(op, tir.ForOp) and op.kind.data in _OWN_MEMORY)
                for region in op.regions:
                    for inner in region.blocks:
                        yield self.block(inner)
                self.leave(place)
                self.scope, self.thread = place.scope, None if place.attach is not None else self.thread
            elif _launches(op):
                self.enter(place, True)
                opened.append(place)
            else:
                self.sequence.append((Step.LEAF, place))
        if pending:
            last = Place(pending[-1], self.scope, len(self.sequence))
            self.sequence.append((Step.LEAF, last))
            self.place_of.update(dict.fromkeys(pending, last))
        for place in reversed(opened):
            self.leave(place)
        self.scope, self.thread = outer

    def enter(self, place: Place, is_thread: bool) -> None:
        """Opens a scope."""
        self.sequence.append((Step.BEGIN, place))
        self.scope = Scope(place, place.scope.path)
        if is_thread and self.thread is None:
            op = place.op
            if isinstance(op, tir.ForOp):
                self.thread = Attach(op.body.block, None)
            else:
                assert op.parent is not None
                self.thread = Attach(op.parent, op)
            self.thread.scope = self.scope
            place.attach = self.thread

    def leave(self, place: Place) -> None:
        """Closes it."""
        self.sequence.append((Step.END, place))

    # What reaches memory

    def follow(self, allocation: Allocation) -> None:
        """Finds every access to an allocation, through views and pointers."""
        pending: deque[SSAValue] = deque([allocation.op.result])
        seen: set[SSAValue] = set()
        while pending:
            value = pending.popleft()
            if value in seen:
                continue
            seen.add(value)
            for op in sorted({use.operation for use in value.uses}, key=self.order.__getitem__):
                pending += self.reach(allocation, value, op)

    def reach(self, allocation: Allocation, value: SSAValue, op: Operation) -> list[SSAValue]:
        """Records an op that uses memory or a pointer to it; returns the pointers derived from it."""
        match op:
            case tir.LoadOp() if op.buffer is value:
                self.touch(allocation, op)
                # `T.address_of(A[i])` takes the address of what it seems to load.
                calls = [
                    u.operation
                    for u in op.result.uses
                    if isinstance(u.operation, tir.CallOp) and u.operation.intrinsic.data == "address_of"
                ]
                allocation.is_opaque = allocation.is_opaque or bool(calls)
                for call in sorted(calls, key=self.order.__getitem__):
                    self.touch(allocation, call)
                return [result for call in calls for result in call.results]
            case tir.StoreOp() if op.buffer is value and op.value is not value:
                self.touch(allocation, op)
            case tir.BufferGetOp():
                return [op.result] if op.field.data == "data" else []
            case tir.DeclBufferOp():
                allocation.views.append(op)
                return [op.result]
            case tir.AttrOp():
                allocation.is_pinned = allocation.is_pinned or op.key.data == "volatile_scope"
            case tir.EvaluateOp():
                self.touch(allocation, op)
            case tir.CallOp() | tir.LetOp() | tir.SelectOp() | tir.CastOp() if not op.regions:
                allocation.is_opaque = True
                self.touch(allocation, op)
                return [result for result in op.results if isinstance(result.type, HandleType)]
            case _:
                allocation.is_pinned = True
        return []

    def touch(self, allocation: Allocation, op: Operation) -> None:
        """Records an access of the memory at the statement around `op`."""
        inner: Operation = op
        while isinstance(parent := inner.parent_op(), tir.IfThenElseOp):
            inner = parent
        place = self.place_of[inner]
        path, depth = place.scope.path, len(allocation.home.around)
        if depth >= len(path) or path[depth] is not allocation.home:
            allocation.is_pinned = True
            return
        if place.scope is not allocation.home:
            child = path[depth + 1].place
            assert child is not None
            place = child
        allocation.touches.setdefault(place, []).append(op)


def _is_memory(op: tir.DeclBufferOp) -> bool:
    """Returns whether a declaration has memory of its own."""
    return op.source is None and not op.implicit.value.data


def _launches(op: Operation) -> bool:
    return isinstance(op, tir.LaunchThreadOp) or (isinstance(op, tir.AttrOp) and op.key.data in _THREADS)


def bits_of(dtype: Attribute) -> int:
    """Returns the bits of an element in memory, a multiple of 8; 0 where that is not known."""
    width = getattr(element_of(dtype), "bitwidth", None)
    return -(-width // 8) * 8 * lanes_of(dtype) if isinstance(width, int) else 0
