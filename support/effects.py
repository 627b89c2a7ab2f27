"""Tells whether ops have effects, cached by class where possible: passes ask it often."""

from __future__ import annotations

from functools import cache

from xdsl import traits
from xdsl.ir import Operation


def is_side_effect_free(op: Operation) -> bool:
    """Tells whether the op surely has no effect except its results; as xDSL's function of this name."""
    known = _by_class(type(op))
    return traits.is_side_effect_free(op) if known is None else known


@cache
def _by_class(kind: type[Operation]) -> bool | None:
    """Returns the answer that holds for all ops of a class; None where it depends on the op."""
    effects = {type(trait) for trait in kind.get_traits_of_type(traits.MemoryEffect)}
    if effects & _ALWAYS:
        return False
    return bool(effects) if all(issubclass(effect, traits.NoMemoryEffect) for effect in effects) else None


_ALWAYS: set[type] = {
    traits.MemoryReadEffect,
    traits.MemoryWriteEffect,
    traits.MemoryAllocEffect,
    traits.MemoryFreeEffect,
}
