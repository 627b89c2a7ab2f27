"""`EnvFunc`: a function by name, which is saved as its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialects.relay.operator import all_operators
from ..global_func import get_global_func
from .node import ContentNode

_RELATIONS = "tvm.relay.type_relation."
_SHARED = ("Broadcast", "BroadcastComp", "Identity")


class EnvFunc(ContentNode):
    """A function that is registered under a name, or the type relation of an operator; equal by name."""

    __slots__ = ("_function", "name")

    def __init__(self, name: str, function: Any):
        self.span = None
        self.name = name
        self._function = function

    @staticmethod
    def get(name: str) -> EnvFunc:
        """Returns the function of a name. Raises MirValueError where there is none."""
        if name.startswith(_RELATIONS):
            word = name.removeprefix(_RELATIONS)
            if word in _SHARED or word.lower() in all_operators():
                return EnvFunc(name, None)
        return EnvFunc(name, get_global_func(name))

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            raise TypeError(f"the relation {self.name} is called by type inference alone")
        return self._function(*args)

    @property
    def func(self) -> Any:
        """The function itself."""
        return self._function

    def content(self) -> Sequence[object]:
        return [self.name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvFunc) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"EnvFunc({self.name!r})"
