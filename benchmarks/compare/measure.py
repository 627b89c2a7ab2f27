"""Takes medians of interleaved programs, so that a machine's slow moments hit all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Protocol

SAMPLE = 0.002
"""Seconds that a sample must take at least: quick programs are called several times for one."""
FEWEST, MOST = 5, 41
"""Samples of each program."""
SLOW = 8.0
"""A program that takes so many times as long as the quickest gets two samples: it must not take the time of the others."""


SETTLED = 0.012
"""Seconds of waiting in which a process does next to nothing once its threads are done: the system counts a running thread's time at each
tick of its clock, of up to 0.01."""
QUICK = 0.1
"""Seconds of a sample under which it is taken twice, and the second one counts: waiting cools caches and puts threads to sleep, for which some
engines take three times as long for a quick call."""
LONGEST = 0.1
"""Seconds to wait for them at most: those of onnxruntime spin for 0.03, and slow what runs beside them."""


def settle() -> None:
    """Waits until the threads that the last program left have finished.

    XLA, for one, releases a result's memory after the call: on one processor the next program's time would include the 3 ms
    that the system takes to free 64 MB.
    """
    end = time.perf_counter() + LONGEST
    while time.perf_counter() < end:
        spent = time.process_time()
        time.sleep(SETTLED)
        if time.process_time() - spent < SETTLED / 4:
            break


class Timed(Protocol):
    """A program to be called several times in a row, in any process; returns the seconds of one call."""

    def sample(self, calls: int) -> float: ...


class Here:
    """A program of this process."""

    def __init__(self, run: Callable[[], object]):
        self.run = run

    def sample(self, calls: int) -> float:
        run = self.run
        enabled = gc.isenabled()
        gc.disable()
        try:
            start = time.perf_counter()
            for _ in range(calls):
                run()
            return (time.perf_counter() - start) / calls
        finally:
            if enabled:
                gc.enable()


def calls_of(program: Timed) -> tuple[int, float]:
    """Returns the number of calls that a sample needs and the seconds of one; warms the program up."""
    calls = 1
    while True:
        spent = program.sample(calls)
        if spent * calls >= SAMPLE:
            return calls, spent
        calls = min(calls * 8, max(calls + 1, round(1.2 * SAMPLE / max(spent, 1e-8))))


def interleaved(
    programs: Mapping[str, Timed], budget: float, limits: Mapping[str, Timed] | None = None
) -> dict[str, float]:
    """Returns the median seconds of one call of each program, all measured within about `budget` seconds.

    Each is sampled at least `FEWEST` times. `limits` are interleaved with the programs, so that the clock rate is the same,
    but the programs are not compared with them.
    """
    every = {**(limits or {}), **programs}
    warm = {name: calls_of(program) for name, program in every.items()}
    quickest = min((warm[name][1] for name in programs), default=0.0)
    slow = {name for name in programs if warm[name][1] > SLOW * quickest}
    times: dict[str, list[float]] = {name: [] for name in every}
    gc.collect()
    end = time.perf_counter() + budget
    for turn in range(MOST):
        if turn >= FEWEST and time.perf_counter() > end:
            break
        for name, program in every.items():
            if turn < 2 or name not in slow:
                settle()
                calls, seconds = warm[name]
                if calls * seconds < QUICK:
                    program.sample(calls)
                times[name].append(program.sample(calls))
    return {name: statistics.median(each) for name, each in times.items()}
