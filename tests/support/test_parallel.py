"""`in_threads` returns results in the order of the items, and raises what the function raises."""

from __future__ import annotations

import threading

import pytest
from mirstack.support.parallel import in_threads


def test_results_have_the_order_of_the_items() -> None:
    assert in_threads(lambda number: number * number, range(100)) == [number * number for number in range(100)]
    assert in_threads(str, []) == []


def test_an_exception_is_raised_here_and_no_thread_is_left() -> None:
    def refuse(number: int) -> int:
        if number == 5:
            raise ValueError("five")
        return number

    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="five"):
        in_threads(refuse, range(20))
    assert set(threading.enumerate()) <= before
