"""Frees heap memory where checks fail: a function that ends early frees what it has allocated.

Each allocation that the function frees itself has a variable on the stack, null while nothing is allocated. Where a check
fails all of them are freed (`free` of null does nothing). LLVM makes phis of the variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.ir import Operation, SSAValue

from .builder import PTR, Builder

_ALIGNMENT = 8


@dataclass
class HeapMemory:
    """The heap allocations of one function."""

    freed: dict[SSAValue, list[Operation]] = field(default_factory=dict[SSAValue, list[Operation]])
    """Each allocation, with the calls of `free` that release it."""
    exits: int = 0
    """Checks that the function makes, those of its allocations among them."""

    def take(self, memory: SSAValue) -> None:
        """Notes memory that a call has just given."""
        self.freed[memory] = []

    def give_back(self, memory: SSAValue, call: Operation | None) -> None:
        """Notes the `call` that frees `memory`; other functions' memory is not freed on failure."""
        if call is not None and memory in self.freed:
            self.freed[memory].append(call)

    def variables(self, builder: Builder) -> list[SSAValue]:
        """Adds stores to the variables to free where a check fails; None for an allocation's own check."""
        slots: list[SSAValue] = []
        for memory, frees in self.freed.items() if self.exits > 1 else ():
            if not frees:
                continue
            slot, null = builder.pointer_slot(_ALIGNMENT)
            slots.append(slot)
            _behind(memory.owner, llvm.StoreOp(memory, slot, _ALIGNMENT))
            for call in frees:
                _behind(call, llvm.StoreOp(null, slot, _ALIGNMENT))
        return slots

    def free_all(self, builder: Builder, slots: list[SSAValue], free: str) -> None:
        """Frees what the variables hold, at the end of the builder's block."""
        for slot in slots:
            builder.call(free, (builder.load(slot, PTR, _ALIGNMENT),), None)


def _behind(place: object, store: llvm.StoreOp) -> None:
    assert isinstance(place, Operation) and place.parent is not None
    store.location = place.location
    place.parent.insert_op_after(store, place)
