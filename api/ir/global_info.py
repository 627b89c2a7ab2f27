"""Objects that a module holds beside its functions, by TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...support.arguments import check, integer
from .node import ContentNode


class GlobalInfo(ContentNode):
    """An object of a module, not a function; equal to one of the same content."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalInfo) and type(other) is type(self) and other.content() == self.content()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(str, self.content())))


class DummyGlobalInfo(GlobalInfo):
    """One without content."""

    __slots__ = ()

    def __init__(self) -> None:
        self.span = None


class VDevice(GlobalInfo):
    """A virtual device: a target, a number and a kind of memory."""

    __slots__ = ("memory_scope", "target", "vdevice_id")

    def __init__(self, target: Any = None, vdevice_id: int = 0, memory_scope: str = "global"):
        from ..target.target import Target

        self.span = None
        check(memory_scope, "memory_scope", "the name of a kind of memory, such as 'global'", str)
        self.target = Target("llvm" if target is None else target) if not isinstance(target, Target) else target
        self.vdevice_id = integer(vdevice_id, "vdevice_id", 0)
        self.memory_scope = memory_scope

    def content(self) -> Sequence[object]:
        return (str(self.target), self.vdevice_id, self.memory_scope)

    def __repr__(self) -> str:
        return f"VDevice({self.target}, {self.vdevice_id}, {self.memory_scope!r})"
