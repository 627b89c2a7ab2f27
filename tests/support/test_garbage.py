"""The cycle collector while IR is built, and after."""

from __future__ import annotations

import gc
import weakref

import pytest
from mirstack.support import garbage
from mirstack.support.garbage import no_collection


class Node:
    """Part of a cycle."""

    def __init__(self) -> None:
        self.me = self


def test_nothing_is_collected_inside_and_all_is_in_the_end() -> None:
    assert gc.isenabled()
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
        nodes = [weakref.ref(Node()) for _ in range(2000)]
        assert all(node() is not None for node in nodes)
    assert gc.isenabled()
    gc.collect()
    assert not any(node() is not None for node in nodes)


def test_leaving_looks_at_nothing_until_much_was_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "SMALL", 3000)
    gc.collect()
    ran: list[int] = []
    thresholds = gc.get_threshold()
    # mir-opt, run in this process before, may have others.
    gc.set_threshold(700, 10, 10)

    def note(phase: str, info: dict[str, int]) -> None:
        ran.append(info["generation"])

    gc.callbacks.append(note)
    try:
        counts: list[int] = []
        for size in (500, 5000, 5000):
            with no_collection():
                kept = [Node() for _ in range(size)]
            kept.append(Node())
            counts.append(len(ran))
            del kept
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*thresholds)
    assert counts[0] == counts[1] == 0 < counts[2]
    gc.collect()


def test_what_the_program_froze_stays_frozen() -> None:
    gc.collect()
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        with no_collection():
            pass
        assert gc.get_freeze_count() >= frozen - 100
    finally:
        gc.unfreeze()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
