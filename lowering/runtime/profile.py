"""Records when kernels of a program run, and chunks of their parallel loops (`profile.ll`).

Programs compiled with `Options.profile` call the clock before each kernel and the log after it. One thread at a time is recorded.
"""

from __future__ import annotations

import ctypes
import sys
import threading
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

    def call(self, run: Callable[[], object]) -> CallRecord | None:
        """Records one call of `run`; returns None where the log had no room for it, and makes it larger."""
        words = self._memory[-1]
        self._begin(ctypes.addressof(words), len(words))
        try:
            start = perf_counter_ns()
            run()
            end = perf_counter_ns()
        finally:
            used: int = self._end()
        if used <= len(words):
            return CallRecord(start, end, tuple(_events(words, used)))
        if used > MOST_ROOM:
            raise LogFullError
        self._memory.append((ctypes.c_int64 * (2 * used))())
        return None


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


def record_calls(run: Callable[[], object], calls: int) -> list[CallRecord]:
    """Runs so many times and returns what was recorded.

    Raises LogFullError where one call is too much for a log.
    """
    found: list[CallRecord] = []
    with _LOCK:
        log = _log()
        while len(found) < calls:
            record = log.call(run)
            if record is not None:
                found.append(record)
    return found
