"""Finds a value that a list of patterns does not match, for the verifier of `match`.

Cons(_, Nil)  beside  Nil  leaves out  Cons(_, Cons(_, _))

It is the usefulness of the wildcard in Maranget, "Warnings for pattern matching", JFP 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from .patterns import ConstructorPattern, TuplePattern
from .text import tuple_text

Row: TypeAlias = "tuple[Attribute, ...]"
Constructors: TypeAlias = "Callable[[str], Mapping[str, Sequence[Attribute]] | None]"

_MAX_STEPS = 20_000


def missing_case(patterns: Sequence[Attribute], constructors: Constructors) -> str | None:
    """Returns the text of a case that no pattern matches, such as `Cons(_, Nil)`; None if all are matched.

    `constructors` returns a data type's constructors with their fields by its name (None when that cannot be known: then
    the patterns of that type count as complete). Raises VerifyException when the patterns are too many to decide.
    """
    witness = _Search(constructors).witness([(pattern,) for pattern in patterns], 1)
    return None if witness is None else witness[0]


class _Search:
    def __init__(self, constructors: Constructors):
        self._constructors = constructors
        self._steps = 0

    def witness(self, rows: Sequence[Row], width: int) -> list[str] | None:
        """Texts of `width` values that no row matches, or None."""
        self._steps += 1 + len(rows)
        if self._steps > _MAX_STEPS:
            raise VerifyException(
                "the patterns of this match are too intricate to see that none is left out; write match?"
            )
        if width == 0:
            return None if rows else []
        heads = [row[0] for row in rows]
        made = next((head for head in heads if isinstance(head, ConstructorPattern)), None)
        fields = next((head for head in heads if isinstance(head, TuplePattern)), None)
        if fields is not None:
            count = len(fields.fields.data)
            found = self.witness(_specialize(rows, None, count), count + width - 1)
            return None if found is None else [tuple_text(found[:count]), *found[count:]]
        if made is None:
            found = self.witness([row[1:] for row in rows], width - 1)
            return None if found is None else ["_", *found]
        return self._witness_of_data(rows, width, made.type_name.data)

    def _witness_of_data(self, rows: Sequence[Row], width: int, type_name: str) -> list[str] | None:
        constructors = self._constructors(type_name)
        if constructors is None:
            return None
        present = {row[0].constructor.data for row in rows if isinstance(row[0], ConstructorPattern)}
        default = [row[1:] for row in rows if not isinstance(row[0], ConstructorPattern)]
        for name, fields in constructors.items():
            if name not in present:
                # Only rows that take anything match it, whatever constructor it is: one search serves all.
                found = self.witness(default, width - 1)
                if found is not None:
                    return [_applied(name, ["_"] * len(fields)), *found]
                break
        matching = _by_constructor(rows, present)
        for name, fields in constructors.items():
            if name in present:
                count = len(fields)
                found = self.witness(_specialize(matching[name], name, count), count + width - 1)
                if found is not None:
                    return [_applied(name, found[:count]), *found[count:]]
        return None


def _applied(name: str, fields: Sequence[str]) -> str:
    return f"{name}({', '.join(fields)})" if fields else name


def _by_constructor(rows: Sequence[Row], names: Iterable[str]) -> dict[str, list[Row]]:
    """Returns for each constructor the rows that may match its values, in their order.

    These are the rows whose pattern names the constructor, and those with a wildcard or a variable.
    """
    found: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        head = row[0]
        for places in (found[head.constructor.data],) if isinstance(head, ConstructorPattern) else found.values():
            places.append(row)
    return found


def _specialize(rows: Sequence[Row], constructor: str | None, count: int) -> list[Row]:
    """Returns the rows that match values of a constructor (None: tuples), the head replaced by its fields."""
    result: list[Row] = []
    for head, *rest in rows:
        match head:
            case ConstructorPattern():
                if head.constructor.data == constructor and len(head.fields.data) == count:
                    result.append((*head.fields.data, *rest))
            case TuplePattern():
                if constructor is None and len(head.fields.data) == count:
                    result.append((*head.fields.data, *rest))
            case _:
                # A wildcard or a variable matches any fields.
                result.append((*[head] * count, *rest))
    return result
