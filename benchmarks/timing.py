"""Timing two or more things against each other: in turns, so that a machine's slow moments hit all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping


def side_by_side(
    candidates: Mapping[str, Callable[[], object]], *, rounds: int = 15, calls: int = 1, warmup: int = 2
) -> dict[str, float]:
    """The median seconds of one call of each candidate over `rounds` turns of `calls` calls each."""
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
