"""What is remembered of attributes is what the function gives, for each object once."""

from __future__ import annotations

import pytest
from mirstack.support.memoize import memoized
from xdsl.dialects.builtin import IntAttr, IntegerType
from xdsl.ir import Attribute


def test_asked_once_for_each_object() -> None:
    asked: list[tuple[Attribute, int]] = []

    @memoized
    def plus(attribute: IntAttr, other: int) -> int:
        asked.append((attribute, other))
        return attribute.data + other

    three = IntAttr(3)
    assert [plus(three, 1), plus(three, 2), plus(three, 1)] == [4, 5, 4]
    assert plus(IntAttr(3), 1) == 4 and len(asked) == 3
    assert plus.__name__ == "plus"


def test_what_is_kept_stays_with_its_attribute() -> None:
    @memoized
    def width(type_: IntegerType) -> int:
        return type_.width.data

    # Each of these would take the place, in memory, of the one before.
    assert [width(IntegerType(bits)) for bits in range(1, 200)] == list(range(1, 200))


def test_what_is_raised_is_not_kept() -> None:
    calls: list[int] = []

    @memoized
    def fails_once(attribute: IntAttr) -> int:
        calls.append(attribute.data)
        if len(calls) == 1:
            raise ValueError("first")
        return attribute.data

    one = IntAttr(1)
    with pytest.raises(ValueError, match="first"):
        fails_once(one)
    assert fails_once(one) == 1 and calls == [1, 1]
