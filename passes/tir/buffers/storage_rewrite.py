"""The pass `storage-rewrite`: allocations that are not live at the same time share memory, as in TVM.

    A = T.allocate([64], "float32")           A = T.allocate([64], "float32")
    … A …                                     … A …
    B = T.allocate([64], "float32")    →
    … B …                                     … A …

Memory is allocated at the start of the function, or of the outermost loop whose iterations run at the same time. A statement
`dst[i] = f(src[i])` with the last use of `src` may write in place. Then memory that is accessed in whole vectors only is
declared as vectors (`pointer_value_type`).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from math import lcm

from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.arith.iter_map import IterMapLevel
from ....dialects.tir.types import HandleType, element_of
from ....support.walk import enclosing
from ..rewriting import PrimFuncPass, erase_dead
from .pointer_value_type import rewrite_pointer_value_types
from .storage_liveness import AccessFinder, Allocation, Attach, Place, Step, bits_of
from .storage_placement import Allocator

# Statements that write in place


def can_run_in_place(place: Place, dst: Allocation, src: Allocation, order: dict[Operation, int]) -> bool:
    """Returns whether `dst`, first accessed by a statement, may be in the memory of `src`, last accessed.

    There must be one store to `dst`, whose iterations reach different elements, and `src` be loaded only for it, at its indices.
    Stronger than TVM's `InplaceOpVerifier`, which assumes that no element is written twice.
    """
    if dst.is_opaque or src.is_opaque or len(dst.touches[place]) != 1:
        return False
    store = dst.touches[place][0]
    if not isinstance(store, tir.StoreOp) or store.predicate is not None:
        return False
    analyzer = Analyzer()
    for load in src.touches[place]:
        if not isinstance(load, tir.LoadOp) or load.predicate is not None or order[load] > order[store]:
            return False
        if load.result.type != store.value.type or _home(load) is not store.parent:
            return False
        if not _same_layout(load.buffer, store.buffer) or len(load.indices) != len(store.indices):
            return False
        if not all(map(lambda a, b: _same(analyzer, a, b), load.indices, store.indices)):
            return False
    return _writes_once(place, store)


def _home(op: Operation) -> object:
    """Returns the block of the statement that an op is part of."""
    while isinstance(parent := op.parent_op(), tir.IfThenElseOp):
        op = parent
    return op.parent


def _same_layout(a: SSAValue, b: SSAValue) -> bool:
    """Returns whether equal indices mean equal places, counted from the start of the memory."""
    makers = [a.owner, b.owner]
    for maker in makers:
        if not isinstance(maker, tir.DeclBufferOp) or maker.elem_offset is not None or maker.stride_dims.data:
            return False
    one, other = makers
    assert isinstance(one, tir.DeclBufferOp) and isinstance(other, tir.DeclBufferOp)
    if one.result.type.dtype != other.result.type.dtype:
        return False
    # The first extent does not matter.
    return one.result.type.rank == other.result.type.rank and one.extents()[1:] == other.extents()[1:]


def _same(analyzer: Analyzer, a: SSAValue, b: SSAValue) -> bool:
    if a.type != b.type:
        return False
    ramps = (a.owner, b.owner)
    if isinstance(ramps[0], tir.RampOp) and isinstance(ramps[1], tir.RampOp):
        return _same(analyzer, ramps[0].base, ramps[1].base) and _same(analyzer, ramps[0].stride, ramps[1].stride)
    return is_index_type(a.type) and analyzer.expr(a) == analyzer.expr(b)


def _writes_once(place: Place, store: tir.StoreOp) -> bool:
    """Returns whether the iterations of the loops between statement and store reach different elements."""
    if store is place.op:
        return True
    loops: list[tir.ForOp] = []
    for outer in enclosing(store):
        if isinstance(outer, tir.ForOp):
            loops.append(outer)
        elif not isinstance(outer, tir.IfOp | tir.ScopeOp):
            return False
        if outer is place.op:
            break
    else:
        return False
    if not loops:
        return True
    if not all(is_index_type(index.type) for index in store.indices):
        return False
    analyzer = Analyzer()
    for loop in reversed(loops):
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    domain: dict[object, tuple[SSAValue, SSAValue]] = {loop.loop_var: (loop.min, loop.extent) for loop in loops}
    found = analyzer.detect_iter_map(list(store.indices), domain, level=IterMapLevel.BIJECTIVE)  # pyright: ignore[reportArgumentType]
    return bool(found)


MATCH_RANGE = 16
"""Memory is used again for what takes at least this part of it, or at most this many times as much."""

SMALL_BITS = 32
"""Memory that is not larger is left to the code generator: it becomes a register."""

_RANKS = (
    "global",
    "shared",
    "warp",
    "local",
    "wmma.matrix_a",
    "wmma.matrix_b",
    "wmma.accumulator",
    "texture",
    "amx.tmm",
)
_PLAIN_TAGS = ("", ".dyn", ".barrier", ".workspace", ".vtcm")


def _rank_and_tag(memory: str) -> tuple[str, str]:
    """Splits `local.L0A` into `local` and `.L0A`."""
    for rank in _RANKS:
        if memory.startswith(rank):
            return rank, memory[len(rank) :]
    return "global", memory


@dataclass(eq=False)
class StorageEntry:
    """Memory that allocations share, one after the other."""

    attach: Attach
    memory: str
    dtype: Attribute
    bits: int
    """How large it must be; 0 when that is not a number."""
    allocations: list[Allocation] = field(default_factory=list[Allocation])

    @property
    def is_merged(self) -> bool:
        """Returns whether the memory is of a special kind, of which one allocation holds everything."""
        return _rank_and_tag(self.memory)[1] not in _PLAIN_TAGS and self.bits > 0


class _FreeList:
    """Free memory of known size, ordered by size, then by when it became free."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, StorageEntry]] = []

    def insert(self, number: int, entry: StorageEntry) -> None:
        """Adds one; `number` counts up."""
        insort(self.entries, (entry.bits, number, entry))

    def remove(self, place: tuple[int, int, StorageEntry]) -> None:
        """Takes one away."""
        self.entries.pop(bisect_left(self.entries, place[:2], key=lambda e: e[:2]))

    def at_least(self, bits: int) -> tuple[int, int, StorageEntry] | None:
        """Returns the smallest entry of at least `bits`, within the range."""
        at = bisect_left(self.entries, bits, key=lambda e: e[0])
        if at < len(self.entries) and self.entries[at][0] <= bits * MATCH_RANGE:
            return self.entries[at]
        return None

    def below(self, bits: int) -> tuple[int, int, StorageEntry] | None:
        """Returns the largest entry that is smaller, within the range."""
        at = bisect_left(self.entries, bits, key=lambda e: e[0])
        if at and self.entries[at - 1][0] >= bits // MATCH_RANGE:
            return self.entries[at - 1]
        return None


class StoragePlanner:
    """Decides which allocations share memory, in one walk over the statements."""

    def __init__(self, finder: AccessFinder, allocator: Allocator):
        self.finder = finder
        self.allocator = allocator
        self.entries: list[StorageEntry] = []
        self.entry_of: dict[Allocation, StorageEntry] = {}
        self.in_place: set[Allocation] = set()
        self.thread: Attach | None = None
        # Free memory, by where and what it is; and, for what it may be too small for, by its dtype too.
        self.free_any: dict[tuple[Attach, str], _FreeList] = {}
        self.free_same: dict[tuple[Attach, str, Attribute], _FreeList] = {}
        self.free_symbolic: dict[tuple[Attach, str, Attribute], deque[StorageEntry]] = {}
        self.freed = 0

    @property
    def attach(self) -> Attach:
        """Returns the place where memory is to be allocated now."""
        return self.finder.root if self.thread is None else self.thread

    def plan(self) -> list[StorageEntry]:
        """Plans the memory to allocate, in order."""
        for step, place in self.finder.sequence:
            if step is not Step.END:
                for allocation in place.comes:
                    self.come(place, allocation)
            if place.attach is not None:
                self.thread = place.attach if step is Step.BEGIN else None
            if step is not Step.BEGIN:
                for allocation in place.goes:
                    if allocation in self.entry_of and allocation not in self.in_place:
                        self.go(self.entry_of[allocation])
        return self.entries

    def come(self, place: Place, allocation: Allocation) -> None:
        """Gives memory to an allocation that comes into use."""
        if not self.allocator.can_move(allocation, self.attach):
            return
        bits, memory = self.allocator.constant_bits(allocation), allocation.memory
        entry = self.find_in_place(place, allocation, bits) or self.find(allocation, bits)
        if entry is None:
            entry = StorageEntry(self.attach, memory, element_of(allocation.dtype), bits)
            self.entries.append(entry)
        entry.bits = max(entry.bits, bits)
        entry.allocations.append(allocation)
        self.entry_of[allocation] = entry

    def find_in_place(self, place: Place, allocation: Allocation, bits: int) -> StorageEntry | None:
        """Finds memory that is read for the last time where an allocation is first written."""
        if len(place.comes) > 2:
            return None
        for source in place.goes:
            entry = self.entry_of.get(source)
            if (
                entry is not None
                and source not in self.in_place
                and entry.attach is self.attach
                and entry.memory == allocation.memory
                and entry.dtype == element_of(allocation.dtype)
                and entry.bits == bits
                and can_run_in_place(place, allocation, source, self.finder.order)
            ):
                self.in_place.add(source)
                return entry
        return None

    def find(self, allocation: Allocation, bits: int) -> StorageEntry | None:
        """Finds free memory that fits."""
        memory, dtype = allocation.memory, element_of(allocation.dtype)
        if _is_register(memory, allocation.dtype, bits) or len(allocation.extents()) != 1:
            return None
        same = (self.attach, memory, dtype)
        if not bits:
            free = self.free_symbolic.get(same)
            return free.popleft() if free else None
        any_list, same_list = self.free_any.get(same[:2]), self.free_same.get(same)
        found = any_list.at_least(bits) if any_list is not None else None
        if found is None and same_list is not None:
            found = same_list.below(bits)
        if found is None:
            return None
        self.free_any[same[:2]].remove(found)
        self.free_same[(self.attach, memory, found[2].dtype)].remove(found)
        return found[2]

    def go(self, entry: StorageEntry) -> None:
        """Marks memory that nothing uses any more as free."""
        first = entry.allocations[0]
        if _is_register(entry.memory, first.dtype, entry.bits) or len(first.extents()) != 1:
            return
        same = (entry.attach, entry.memory, entry.dtype)
        if not entry.bits:
            self.free_symbolic.setdefault(same, deque()).append(entry)
            return
        self.freed += 1
        self.free_any.setdefault(same[:2], _FreeList()).insert(self.freed, entry)
        self.free_same.setdefault(same, _FreeList()).insert(self.freed, entry)


def _is_register(memory: str, dtype: Attribute, bits: int) -> bool:
    """Returns whether memory is left to the code generator."""
    rank, tag = _rank_and_tag(memory)
    far = rank in ("global", "shared")
    return not tag and (not far or isinstance(dtype, HandleType) or 0 < bits <= SMALL_BITS)


def rewrite_storage(func: tir.PrimFuncOp) -> None:
    """Shares memory among the allocations of one function."""
    finder = AccessFinder(func)
    allocator = Allocator(finder)
    entries = StoragePlanner(finder, allocator).plan()
    merged: dict[tuple[Attach, str], list[StorageEntry]] = {}
    groups: list[list[StorageEntry]] = []
    for entry in entries:
        key = (entry.attach, entry.memory)
        if entry.is_merged and all(map(allocator.can_shift, entry.allocations)):
            if key in merged:
                merged[key].append(entry)
                continue
            merged[key] = [entry]
            groups.append(merged[key])
        else:
            groups.append([entry])
    for group in groups:
        _allocate(allocator, group)
    for allocation in finder.allocations:
        if not allocation.touches and not allocation.is_pinned:
            allocator.remove(allocation)
    erase_dead(func)


def _allocate(allocator: Allocator, group: list[StorageEntry]) -> None:
    first = group[0]
    handle: SSAValue
    if len(group) == 1:
        handle = allocator.allocate(first.attach, first.allocations)
        for allocation in first.allocations:
            allocator.move_to(allocation, handle)
        return
    offsets: list[int] = []
    total = 0
    for entry in group:
        unit = lcm(SMALL_BITS, *(bits_of(allocation.dtype) for allocation in entry.allocations))
        total = -(-total // unit) * unit
        offsets.append(total)
        total += entry.bits
    total = -(-total // SMALL_BITS) * SMALL_BITS
    handle = allocator.allocate(first.attach, first.allocations, total)
    for entry, offset in zip(group, offsets, strict=True):
        for allocation in entry.allocations:
            allocator.move_to(allocation, handle, offset)


@dataclass(frozen=True)
class StorageRewrite(PrimFuncPass):
    """Shares memory among allocations that are not live at the same time, and hoists their allocation."""

    name = "storage-rewrite"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Rewrites the allocations of one prim_func."""
        rewrite_storage(func)
        rewrite_pointer_value_types(func)
