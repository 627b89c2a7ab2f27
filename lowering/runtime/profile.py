"""Records when kernels of a program run, and chunks of their parallel loops (`profile.ll`).

Programs compiled with `Options.profile` call the clock before each kernel and the log after it. One thread at a time is recorded.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from . import runtime_symbols

if TYPE_CHECKING:
    from ..llvm.jit.load import CompiledModule

HOOKS = ("mirstack_profile_now", "mirstack_profile_record")
"""What programs that are profiled call: for the time, which is 0 on threads that are not recorded, and to record a kernel."""

CHUNK = -1
"""The call site of records of chunks."""

_CLOCKS = {"darwin": 8}
"""The clock of `time.perf_counter` by `sys.platform`: CLOCK_MONOTONIC, elsewhere 1."""

_HEAD = 5
"""Words of a record before its sizes: their number, call site, start, end, thread."""

_ROOM = 1 << 16
MOST_ROOM = 1 << 27
"""Words of a log, at first and at most (1 GiB)."""

_LOCK = threading.Lock()


@dataclass(frozen=True)
class Event:
    """A run of a call site's kernel, or of a `CHUNK` of its loop; times are those of `perf_counter_ns`."""

    site: int
    start: int
    end: int
    thread: int
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class CallRecord:
    """One call of a program, with the events in it."""

    start: int
    end: int
    events: tuple[Event, ...]


class LogFullError(Exception):
    """One call of a program runs more kernels than a log can hold."""


@lru_cache(maxsize=1)
def _module() -> CompiledModule:
    from ..llvm.jit.load import compile_shipped

    text = files(__package__ or "mirstack.lowering.runtime").joinpath("profile.ll").read_text()
    clock = str(_CLOCKS.get(sys.platform, 1))
    parallel_for = runtime_symbols()["mirstack_parallel_for"]
    return compile_shipped(text.replace("CLOCK,", f"{clock},"), symbols={"mirstack_parallel_for": parallel_for})


def profiled_symbols() -> dict[str, int]:
    """Returns the addresses of the runtime's functions by name for a program that is profiled."""
    module = _module()
    hooks = {name: module.address(name) for name in HOOKS}
    return {**runtime_symbols(), **hooks, "mirstack_parallel_for": module.address("mirstack_profile_parallel_for")}


def recorded(call: Callable[..., int], sizes: int) -> Callable[..., int]:
    """Returns a function that calls another as call site 0, and records it.

    The last `sizes` arguments are sizes.
    """
    module = _module()
    now = ctypes.CFUNCTYPE(ctypes.c_int64)(module.address(HOOKS[0]))
    signature = (ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    record = ctypes.CFUNCTYPE(None, *signature)(module.address(HOOKS[1]))
    words = ctypes.c_int64 * sizes

    def run(*passed: Any) -> int:
        given = words(*passed[len(passed) - sizes :])
        start = now()
        status = call(*passed)
        record(0, start, ctypes.addressof(given), sizes)
        return status

    return run


class _Log:
    """The memory of records.

    A log that was too small is kept, because a thread may still hold its address.
    """

    def __init__(self) -> None:
        self._memory = [(ctypes.c_int64 * _ROOM)()]
        begin = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        self._begin = begin(_module().address("mirstack_profile_begin"))
        self._end = ctypes.CFUNCTYPE(ctypes.c_int64)(_module().address("mirstack_profile_end"))

    @property
    def room(self) -> int:
        """Returns the words that the log has room for."""
        return len(self._memory[-1])

    def reserve(self, words: int) -> None:
        """Makes room for so many words, but no more than `MOST_ROOM`."""
        words = min(words, MOST_ROOM)
        if words > self.room:
            self._memory.append((ctypes.c_int64 * words)())

    def record(self, run: Callable[[], object], calls: int) -> tuple[list[CallRecord], int]:
        """Records so many calls of `run`, and returns them with the number of words recorded.

        Returns no calls where the words have no room. Nothing happens between two calls, so that caches stay as they are.
        """
        words = self._memory[-1]
        times: list[tuple[int, int]] = []
        self._begin(ctypes.addressof(words), len(words))
        try:
            for _ in range(calls):
                start = perf_counter_ns()
                run()
                times.append((start, perf_counter_ns()))
        finally:
            used: int = self._end()
        if used > len(words):
            return [], used
        # A record is written when its work ends.
        events = deque(sorted(_events(words, used), key=lambda event: event.end))
        found: list[CallRecord] = []
        for start, end in times:
            own: list[Event] = []
            while events and events[0].end <= end:
                own.append(events.popleft())
            found.append(CallRecord(start, end, tuple(own)))
        return found, used


@lru_cache(maxsize=1)
def _log() -> _Log:
    return _Log()


def _events(words: ctypes.Array[ctypes.c_int64], used: int) -> Iterator[Event]:
    at = 0
    taken = words[:used]
    while at < used:
        count, site, start, end, thread = taken[at : at + _HEAD]
        yield Event(site, start, end, thread, tuple(taken[at + _HEAD : at + count]))
        at += count


def record_calls(run: Callable[[], object], uncounted: int, calls: int) -> list[CallRecord]:
    """Runs so many times, after some calls that do not count, and returns what was recorded.

    Raises LogFullError where one call is too much for a log.
    """
    found: list[CallRecord] = []
    with _LOCK:
        log = _log()
        most = 0
        for _ in range(uncounted):
            _, used = log.record(run, 1)
            most = max(most, used)
        at_once = calls
        while len(found) < calls:
            at_once = min(at_once, calls - len(found))
            # Calls may differ.
            log.reserve(2 * most * at_once)
            records, used = log.record(run, at_once)
            found += records
            if not records:
                if log.room >= MOST_ROOM:
                    if at_once == 1:
                        raise LogFullError
                    at_once //= 2
                most = max(most, -(-used // at_once))
    return found
