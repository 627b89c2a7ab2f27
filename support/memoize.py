"""Caches functions of attributes by the identity of the attribute.

Attributes are compared, and hashed, by all their contents: that takes longer than most functions of them. The attributes of
a program are mostly the same few objects, so that they are found by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

from typing_extensions import TypeVarTuple
from xdsl.ir import Attribute

AttributeT = TypeVar("AttributeT", bound=Attribute)
ValueT = TypeVar("ValueT")
Rest = TypeVarTuple("Rest")

_MANY = 1 << 10
"""Answers that are kept: programs of all sorts may pass through one process."""


def memoized(function: Callable[[AttributeT, *Rest], ValueT]) -> Callable[[AttributeT, *Rest], ValueT]:
    """Caches a function by its attribute's identity and the numbers that follow, but no exceptions."""
    # With the attribute, so that no other comes to have its identity.
    known: dict[Hashable, tuple[AttributeT, ValueT]] = {}

    @wraps(function)
    def ask(attribute: AttributeT, *rest: *Rest) -> ValueT:
        key = (id(attribute), *rest) if rest else id(attribute)
        found = known.get(key)
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[key] = attribute, function(attribute, *rest)
        return found[1]

    return ask
