"""Names for the printer: unique within the scopes around, free again where a scope ends.

The names are those of TVM's printer.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from keyword import iskeyword

from xdsl.ir import SSAValue

from ...support.diagnostics import MirError, error_at

_CONSTANTS = frozenset(["True", "False", "None"])


class Names:
    """The names of values."""

    def __init__(self) -> None:
        self.of: dict[SSAValue, str] = {}
        # TVMScript's prefix, then words of the language.
        self._used: set[str] = {"T", "tvm", "True", "False", "None", "range", "cls"}
        self._last: dict[str, int] = {}
        self._undo: list[tuple[SSAValue | None, str, str, int | None]] = []

    def reserve(self, name: str) -> None:
        """Keeps a name from being given to a value (a class that functions are called by)."""
        self._used.add(name)

    def define(self, value: SSAValue | None, hint: str) -> str:
        """Reserves the first free name of `hint`, `hint_1`, `hint_2`, … for a value (or for none)."""
        hint = hint if is_name(hint) else sanitized(hint)
        name, number = hint, self._last.get(hint)
        if name in self._used:
            number = number or 1
            while (name := f"{hint}_{number}") in self._used:
                number += 1
        before = self._last.get(hint)
        if number is not None:
            self._last[hint] = number + 1
        self._used.add(name)
        self._undo.append((value, name, hint, before))
        if value is not None:
            self.of[value] = name
        return name

    def alias(self, value: SSAValue, other: SSAValue) -> None:
        """Lets a value go by another one's name."""
        self.of[value] = self.name(other)

    def name(self, value: SSAValue) -> str:
        """Returns the name of a value. Raises MirError if it is used outside of the scope of its definition."""
        name = self.of.get(value)
        if name is None:
            raise unnamed(value)
        return name

    @contextmanager
    def scope(self) -> Generator[None]:
        """Frees the names defined inside when the context ends."""
        mark = len(self._undo)
        try:
            yield
        finally:
            while len(self._undo) > mark:
                value, name, hint, before = self._undo.pop()
                self._used.discard(name)
                if before is None:
                    self._last.pop(hint, None)
                else:
                    self._last[hint] = before
                if value is not None:
                    self.of.pop(value, None)


def is_name(text: str) -> bool:
    """Returns whether the grammar reads the text as one name. Dots are in TVM's names too (`B.rf`)."""
    return all(
        part.isidentifier() and (not iskeyword(part) or part in _CONSTANTS) for part in text.split(".")
    ) and not text.startswith("T.")


def sanitized(text: str) -> str:
    """A name made of a text that is none."""
    name = "".join(c if c.isalnum() or c == "_" else "_" for c in text) or "v"
    return name if is_name(name) else f"v_{name}"


def unnamed(value: SSAValue) -> MirError:
    """A value that is used where its definition is not visible."""
    return error_at(
        value,
        "a value is used where it is not visible, so the program has no text",
        "a value is visible from the statement that defines it to the end of the region around",
    )
