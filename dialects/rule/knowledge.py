"""Facts about values that are not constants, which the conditions and attributes of rules may use.

A pass that applies rules declares its knowledge by `knowing`: it answers questions such as `%x >= 0` and `divides(4, %x)`, and
has the elements of values that it computed, such as `shape_of(%y)`. A rule that asks for anything else does not apply, whether the
question stands under `not` or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from xdsl.ir import SSAValue

from .functions import NoMatch

QUESTIONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne", "divides"])
"""The functions that may be asked of values that are not constants."""


class Knowledge(Protocol):
    """Knowledge about values at one point of a program."""

    def holds(self, question: str, arguments: Sequence[Any]) -> bool:
        """Returns whether a question is known to be true of values of the program and numbers."""
        ...


_known: list[knowing] = []


class knowing:
    """Answers the questions of rules that are applied inside, and returns the elements of values to them.

    `elements` holds numpy arrays (of a tuple, a tuple of them) by value.
    """

    def __init__(self, knowledge: Knowledge | None = None, elements: Mapping[SSAValue, Any] = MappingProxyType({})):
        self.knowledge, self.elements = knowledge, elements

    def __enter__(self) -> None:
        _known.append(self)

    def __exit__(self, *_: object) -> None:
        _known.pop()


def ask(question: str, arguments: Sequence[Any]) -> bool:
    """Returns True where a question is known to be true. Raises NoMatch otherwise."""
    knowledge = _known[-1].knowledge if _known else None
    if knowledge is not None and knowledge.holds(question, arguments):
        return True
    raise NoMatch


def known_elements(value: SSAValue) -> Any:
    """Returns the elements of a value that is not a constant op; None where they are not known."""
    return _known[-1].elements.get(value) if _known else None
