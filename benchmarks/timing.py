"""Times things interleaved, so that a machine's slow moments hit all alike; measures growth."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Mapping

TRIES = 5
"""How often `ratio` measures at most."""

TICK = 0.002
"""Seconds below which no time counts in what `ratio` divides by."""

FULL_COLLECTION = 20
"""Every so many measurements all garbage is collected, that of their preparations among it."""
_measured = itertools.count(1)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Returns the processor time of one call, of all threads, without collections of garbage."""
    if next(_measured) % FULL_COLLECTION == 0:
        gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    # What is there already is left out of the collection afterwards: else it would take longer than most work, in a process that
    # ran many tests ten times as long.
    thawed = gc.get_freeze_count() == 0
    if thawed:
        gc.freeze()
    try:
        start = time.process_time()
        work()
        return time.process_time() - start
    finally:
        gc.collect()
        if thawed:
            gc.unfreeze()
        if enabled:
            gc.enable()


def ratio(seconds: Callable[[], float], of_other: Callable[[], float], *, below: float) -> float:
    """Returns the ratio of two times, each the least of several that were measured interleaved.

    Other work on the machine only adds to a time: where the ratio is not `below` what is wanted, both are measured again,
    `TRIES` times at most. A test says `assert ratio(reading, building, below=2) < 2`.
    """
    least = least_of_other = float("inf")
    for _ in range(TRIES):
        least_of_other = min(least_of_other, of_other())
        least = min(least, seconds())
        if least < below * max(least_of_other, TICK):
            break
    return least / max(least_of_other, TICK)


def growth(seconds: Callable[[int], float], small: int, large: int, *, below: float) -> float:
    """Returns the time of the large size over that of the small one: their `ratio`.

    A test says `assert growth(seconds, 500, 4_000, below=24) < 24`.
    """
    return ratio(lambda: seconds(large), lambda: seconds(small), below=below)


def side_by_side(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int = 15, calls: int = 1, warmup: int = 2
) -> dict[str, float]:
    """Returns each candidate's median seconds of one call, over `rounds` interleaved rounds of `calls`."""
    for run in candidates.values():
        for _ in range(warmup):
            run()
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            start = time.perf_counter()
            for _ in range(calls):
                run()
            seconds[name].append((time.perf_counter() - start) / calls)
    return {name: statistics.median(times) for name, times in seconds.items()}


def report(medians: Mapping[str, float], *, scale: float = 1e3, unit: str = "ms") -> None:
    """Prints each median and its ratio to the last candidate, which is what one compares with."""
    reference = list(medians.values())[-1]
    for name, seconds in medians.items():
        print(f"  {name:<34}{seconds * scale:>12.3f} {unit}{seconds / reference:>9.2f} x")
