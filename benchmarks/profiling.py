"""Measures what profiles cost and leave out: `python -m benchmarks.profiling net.mir`.

In one process, one call of each after the other: the program as it is, compiled with `profile=True`, and that one recorded. Of the recorded
calls it also reports where the time outside of kernels is.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import mirstack
import numpy as np
from mirstack.lowering.runtime.profile import CHUNK, CallRecord, record_calls

UNCOUNTED = 3
"""Calls before those that count."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    plain = mirstack.compile(options.model, threads=options.threads)
    profiled = mirstack.compile(options.model, threads=options.threads, profile=True)
    rng = np.random.default_rng(0)
    arguments = [_argument(rng, param) for param in plain.params]
    as_it_is: list[int] = []
    compiled: list[int] = []
    records: list[CallRecord] = []
    for _ in range(UNCOUNTED):
        plain(*arguments)
        profiled(*arguments)
    for _ in range(options.calls):
        # Each after a call of another program, so that none finds more in the caches.
        as_it_is.append(_nanoseconds(plain, arguments))
        compiled.append(_nanoseconds(profiled, arguments))
        as_it_is.append(_nanoseconds(plain, arguments))
        records += record_calls(lambda: profiled(*arguments), 0, 1)
    least = min(as_it_is)
    records.sort(key=_whole)
    faster = records[: (len(records) + 1) // 2]
    print(
        f"{options.model.name}, {options.threads} thread(s), minima of {options.calls} interleaved calls of each, as it is of twice as many"
    )
    print(f"  as it is                        {least / 1e3:10.1f} µs")
    print(f"  compiled for profiles           {min(compiled) / least:10.4f} x")
    print(f"  compiled for profiles, recorded {_whole(records[0]) / least:10.4f} x")
    print("shares of the faster half of the recorded calls")
    whole = sum(map(_whole, faster))
    parts = [sum(each) / whole for each in zip(*map(_outside, faster), strict=True)]
    for name, share in zip(("before the first kernel", "between kernels", "after the last kernel"), parts, strict=True):
        print(f"  {name:<32}{share:10.2%}")
    print(f"  outside of kernels              {sum(parts):10.2%}")


def _argument(rng: np.random.Generator, param: Any) -> np.ndarray:
    """Returns a random array for a parameter; zeros of integers, which may be indices."""
    if np.dtype(param.dtype).kind != "f":
        return np.zeros(param.shape, param.dtype)
    return rng.standard_normal(param.shape).astype(param.dtype)


def _nanoseconds(run: mirstack.Executable, arguments: list[np.ndarray]) -> int:
    start = perf_counter_ns()
    run(*arguments)
    return perf_counter_ns() - start


def _whole(record: CallRecord) -> int:
    return record.end - record.start


def _outside(record: CallRecord) -> tuple[int, int, int]:
    """Returns the nanoseconds of a call before its first kernel, between kernels, and after the last."""
    kernels = [event for event in record.events if event.site != CHUNK]
    inside = sum(event.end - event.start for event in kernels)
    before, after = kernels[0].start - record.start, record.end - kernels[-1].end
    return before, _whole(record) - inside - before - after, after


if __name__ == "__main__":
    main()
