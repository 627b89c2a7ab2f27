"""Other processes that help: who does what is told by the answers, and nothing that happens to a worker is lost or waited for."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from mirstack.lowering.driver import workers
from mirstack.lowering.driver.workers import Answer, Workers, can_fork, workers_wanted
from mirstack.support.stopwatch import timed, timing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")


@pytest.fixture(autouse=True)
def forking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets this process be forked, whatever threads the test runner has; and sees that no worker is left."""
    monkeypatch.setattr(workers, "can_fork", lambda: True)
    yield
    assert not [child for child in multiprocessing.active_children() if child.name == "mirstack-worker"]


def sleeps() -> None:
    time.sleep(60)


def waits_for_worker(work: Workers) -> None:
    """Until a worker has done something."""
    end = time.monotonic() + 20
    while not (work._answers or work._crashed) and time.monotonic() < end:  # pyright: ignore[reportPrivateUsage]
        time.sleep(0.001)


def test_every_task_is_done_once() -> None:
    def task(number: int) -> Answer:
        time.sleep(0.002)
        return [number, os.getpid()], bytes([number])

    with Workers(2, [lambda number=number: task(number) for number in range(40)]) as work:
        own: list[int] = []
        for number in work.own_part():
            if not own:
                waits_for_worker(work)
            own.append(number)
            time.sleep(0.002)
        answers = work.answers()
    assert sorted([*own, *answers]) == list(range(40))
    # How many each gets is a matter of who else is at work on the machine.
    assert own and answers
    processes = {process for (_, process), _ in answers.values()}
    assert len(processes) <= 2 and os.getpid() not in processes
    assert all(answer == ([number, answer[0][1]], bytes([number])) for number, answer in answers.items())


def test_without_workers_all_is_done_here() -> None:
    with Workers(0, [lambda: (1, b"")] * 3) as work:
        assert list(work.own_part()) == [0, 1, 2]
        assert work.answers() == {} and work.crashed() == []


def test_large_answers_arrive_whole() -> None:
    data = os.urandom(1 << 22)
    with Workers(1, [lambda: ({"text": "ö" * 100_000}, data)]) as work:
        waits_for_worker(work)
        assert work.answers() == {0: ({"text": "ö" * 100_000}, data)}


def test_what_a_worker_cannot_do_is_left() -> None:
    def fails() -> Answer:
        raise ValueError("no")

    with Workers(1, [fails, lambda: None, lambda: (3, b"")]) as work:
        waits_for_worker(work)
        assert work.answers() == {2: (3, b"")}
        assert work.crashed() == []


@pytest.mark.parametrize("crash", [signal.SIGABRT, signal.SIGSEGV])
def test_crashes_are_told(crash: signal.Signals) -> None:
    def dies() -> Answer:
        faulthandler.disable()
        os.kill(os.getpid(), crash)
        time.sleep(10)
        return 1, b""

    with Workers(1, [dies]) as work:
        waits_for_worker(work)
        assert work.answers() == {}
        assert work.crashed() == [0]


def test_a_worker_that_the_system_ends_has_not_crashed() -> None:
    def killed() -> Answer:
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)
        return 1, b""

    done = threading.Event()
    with Workers(1, [killed]) as work:
        threading.Timer(0.3, done.set).start()
        done.wait()
        assert work.answers() == {} and work.crashed() == []


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "PATIENCE", 0.2)
    start = time.monotonic()
    with Workers(1, [sleeps]) as work:
        while work._queue:  # pyright: ignore[reportPrivateUsage]
            time.sleep(0.001)
        assert work.answers() == {}
    assert time.monotonic() - start < 30


def test_an_error_ends_the_workers() -> None:
    with pytest.raises(KeyError), Workers(2, [sleeps] * 4):
        raise KeyError


def test_times_of_workers_stand_beside() -> None:
    def task() -> Answer:
        with timed("inner"):
            time.sleep(0.01)
        return 1, b""

    with timing() as times, timed("outer"), Workers(1, [task, task]) as work:
        while work._queue or len(work._answers) < 2:  # pyright: ignore[reportPrivateUsage]
            time.sleep(0.001)
        work.answers()
    beside = times.find("outer", "workers, beside")
    assert beside is not None and beside.background and beside.count == 2
    inner = beside.children["inner"]
    assert inner.count == 2 and 0.02 <= inner.seconds == beside.seconds


def test_a_process_with_threads_is_not_forked() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert not can_fork()
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize(("given", "wanted"), [("0", 0), ("3", 3), ("64", 64)])
def test_the_number_can_be_told(monkeypatch: pytest.MonkeyPatch, given: str, wanted: int) -> None:
    monkeypatch.setenv("MIRSTACK_WORKERS", given)
    assert workers_wanted() == wanted


@pytest.mark.parametrize(("processors", "wanted"), [(1, 0), (2, 1), (4, 3), (64, 3)])
def test_one_processor_is_left(monkeypatch: pytest.MonkeyPatch, processors: int, wanted: int) -> None:
    monkeypatch.delenv("MIRSTACK_WORKERS", raising=False)
    monkeypatch.setattr(workers, "processors", lambda: processors)
    assert workers_wanted() == wanted
