"""Python's limit of recursion, and the size of its threads' stacks, are as before when deep work is done, however it ends."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable

import pytest
from mirstack.support import deep_stack
from mirstack.support.deep_stack import RECURSION_LIMIT, in_deep_stack, start_with_stack


def depth(n: int) -> int:
    return 0 if n == 0 else 1 + depth(n - 1)


@pytest.fixture
def unchanged() -> Callable[[], None]:
    """Checks that both are as when the test began."""
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    before = set(threading.enumerate())

    def check() -> None:
        for thread in set(threading.enumerate()) - before:
            thread.join()
        assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, size)

    return check


def test_deep_calls(unchanged: Callable[[], None]) -> None:
    assert in_deep_stack(lambda: in_deep_stack(lambda: depth(50_000))) == 50_000
    unchanged()


def test_an_exception(unchanged: Callable[[], None]) -> None:
    with pytest.raises(ZeroDivisionError):
        in_deep_stack(lambda: 1 // 0)
    unchanged()


def test_threads_that_overlap(unchanged: Callable[[], None]) -> None:
    """The first to end must not take the limit from the second, which must not leave it raised."""
    both, first_done = threading.Barrier(2), threading.Event()
    results: list[int] = []

    def first() -> None:
        in_deep_stack(both.wait)
        first_done.set()

    def second() -> None:
        def body() -> int:
            both.wait()
            first_done.wait()
            return depth(20_000)

        results.append(in_deep_stack(body))

    threads = [threading.Thread(target=each) for each in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [20_000]
    unchanged()


@pytest.mark.skipif(not hasattr(signal, "raise_signal") or sys.platform == "win32", reason="sends itself a signal")
def test_an_interrupt_leaves_it_to_the_thread(unchanged: Callable[[], None]) -> None:
    go = threading.Event()
    results: list[int] = []

    def body() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        go.wait()
        results.append(depth(20_000))

    # Shells have what they run in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_deep_stack(body)
    finally:
        signal.signal(signal.SIGINT, before)
    go.set()
    unchanged()
    assert results == [20_000]


def test_a_limit_that_is_set_meanwhile_stays(unchanged: Callable[[], None]) -> None:
    before = sys.getrecursionlimit()
    in_deep_stack(lambda: sys.setrecursionlimit(before + 7))
    assert sys.getrecursionlimit() == before + 7
    sys.setrecursionlimit(before)
    unchanged()


def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch, unchanged: Callable[[], None]) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(MemoryError, match="no thread with a stack of 1024 MiB can be started: can't start new thread"):
        in_deep_stack(lambda: 1)
    monkeypatch.undo()
    unchanged()


def test_sizes_of_stacks_do_not_mix(unchanged: Callable[[], None]) -> None:
    def start_some() -> None:
        for _ in range(20):
            thread = threading.Thread(target=lambda: None)
            start_with_stack(thread, 1 << 24)
            thread.join()

    threads = [threading.Thread(target=start_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert deep_stack._inside == 0 and sys.getrecursionlimit() < RECURSION_LIMIT
    unchanged()
