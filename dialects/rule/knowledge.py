"""What conditions may ask of values that are not constants: `%x >= 0`, `divides(4, %x)`.

Who applies rules in places of which something is known, such as the range of a loop's variable, answers them: `knowing`. Where nobody
does, or it is not known, a rule with such a condition does not apply, whether the condition stands under `not` or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .functions import NoMatch

QUESTIONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne", "divides"])
"""The functions that may be asked of values that are not constants."""


class Knowledge(Protocol):
    """What is known of values at one place of a program."""

    def holds(self, question: str, arguments: Sequence[Any]) -> bool:
        """Returns whether a question is known to be true of values of the program and numbers."""
        ...


_known: list[Knowledge] = []


class knowing:
    """Answers the conditions of rules that are applied inside."""

    def __init__(self, knowledge: Knowledge):
        self.knowledge = knowledge

    def __enter__(self) -> None:
        _known.append(self.knowledge)

    def __exit__(self, *_: object) -> None:
        _known.pop()


def ask(question: str, arguments: Sequence[Any]) -> bool:
    """Returns True where a question is known to be true. Raises NoMatch otherwise."""
    if _known and _known[-1].holds(question, arguments):
        return True
    raise NoMatch
