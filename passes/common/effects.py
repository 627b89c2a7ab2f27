"""Effects of ops besides their results, found bottom-up in one walk.

xDSL's `get_effects` descends into the regions of an op each time it is asked, which is quadratic in the nesting when it
is asked of every op. An `Effects` object answers from what it found for the ops inside.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.traits import MemoryEffect, MemoryEffectKind, NoMemoryEffect, RecursiveMemoryEffect, SymbolOpInterface

from ...support.walk import post_order


class Effect:
    """The effects of an op that matter to removing, merging and reordering it: flags, joined by `|`."""

    NONE = 0
    READ = 1
    ALLOCATE_RESULT = 2  # Memory that only the op's own results (or ops inside it) name.
    CHANGE = 4  # Writes, frees, other allocations, and anything unknown.


class Effects:
    """The effects of every op inside `root`. Ops may be erased afterwards; new ops are not known."""

    def __init__(self, root: Operation):
        self._of_op: dict[Operation, int] = {}
        # Most classes are pure by a single trait; their ops need no entry each.
        self._pure_classes: set[type[Operation]] = set()
        for op in post_order(root):
            if type(op) in self._pure_classes:
                continue
            effect = self._find(op)
            if effect == Effect.NONE and not op.regions:
                traits = op.get_traits_of_type(MemoryEffect)
                if traits and all(isinstance(trait, NoMemoryEffect) for trait in traits):
                    self._pure_classes.add(type(op))
            self._of_op[op] = effect

    def __getitem__(self, op: Operation) -> int:
        return self._of_op.get(op, Effect.NONE)

    def is_removable(self, op: Operation) -> bool:
        """Returns whether the op can be erased when nothing uses its results, terminators aside."""
        if self[op] & Effect.CHANGE:
            return False
        return not op.has_trait(SymbolOpInterface, value_if_unregistered=False)

    def _find(self, op: Operation) -> int:
        traits = op.get_traits_of_type(MemoryEffect)
        if not traits:
            return Effect.CHANGE
        found = Effect.NONE
        for trait in traits:
            if isinstance(trait, RecursiveMemoryEffect):
                for region in op.regions:
                    for block in region.blocks:
                        for child in block.ops:
                            found |= self[child]
                continue
            effects = trait.get_effects(op)
            if effects is None:
                return Effect.CHANGE
            for effect in effects:
                if effect.kind is MemoryEffectKind.READ:
                    found |= Effect.READ
                elif effect.kind is MemoryEffectKind.ALLOC and _is_within(op, effect.value):
                    found |= Effect.ALLOCATE_RESULT
                else:
                    found |= Effect.CHANGE
        return found


def _is_within(op: Operation, value: object) -> bool:
    return isinstance(value, SSAValue) and value.owner is op
