"""Compiles programs of open dimensions for the sizes of many calls, while the open code serves.

    net = mirstack.compile("any.mir")       # x: Tensor[(?, 8), float32]
    net(x)                                  # some calls of (3, 8): the open code; a process beside compiles for x=3,8
    net(x)                                  # from then on (3, 8) runs code of its own, (5, 8) the open code

The process is forked, so that it has the program and shares no lock of the interpreter with the calls. It writes to the cache of compiled
code, or to a folder of its own where that is off; the first call of the open code after its end loads what it wrote. No thread is used:
calls look whether the process has ended. Its errors change nothing: the open code goes on serving.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...support.settings import choice
from ...support.stages import inform
from ...support.stopwatch import current_span, timed
from .workers import can_fork, forking

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from .cache.programs import CachedProgram
    from .loading.executable import Param
    from .loading.relay_executable import RelayExecutable

Sizes = tuple[tuple[int, ...], ...]
"""The shapes of the arguments that have open dimensions, in order."""

WORTH_SECONDS = 0.1
"""A size gets code of its own when its calls of the open code have taken this long …"""
WORTH_CALLS = 32
"""… or are this many."""
LOOKED_UP = 2
"""A size's call of this number looks whether an earlier process left code for it: loading takes too long for sizes that are met once."""
MOST_VARIANTS = 8
"""Sizes that have code of their own at a time; the one called the longest ago is dropped."""
MOST_BYTES = 1 << 30
"""Bytes of weights that all variants hold at most, besides the newest."""
FREE_SECONDS = 20.0
"""Time of compiling for sizes that is never too much; beyond it no more is spent than calls of the open code have taken."""
PATIENCE = 300.0
"""Seconds after which a process that compiles is ended."""
MOST_SIZES = 4096
"""Sizes that are counted at a time."""


def is_wanted() -> bool:
    """Returns whether `MIRSTACK_SPECIALIZE` allows code for sizes: it does unless it is `off`."""
    return choice("MIRSTACK_SPECIALIZE", "on", "off") != "off"


@dataclass
class Variants:
    """The code for sizes of one open program.

    `compile_for` writes a program for shapes to its place in a cache, in another process; `place_of` is that place, `load` makes an executable
    of it.
    """

    params: Sequence[Param]
    place_of: Callable[[dict[str, tuple[int, ...]], Path | None], CachedProgram | None]
    compile_for: Callable[[dict[str, tuple[int, ...]], CachedProgram], None]
    load: Callable[[CachedProgram], RelayExecutable | None]
    is_kept: Callable[[dict[str, tuple[int, ...]]], bool] = field(default=lambda _: False)
    """Whether the cache seems to have code for shapes, asked once for sizes that are met again."""
    ready: dict[Sizes, RelayExecutable] = field(default_factory=dict[Sizes, "RelayExecutable"])
    """By sizes, those called last at the end."""
    _met: dict[Sizes, list[float]] = field(default_factory=dict[Sizes, "list[float]"])
    """Calls of the open code and their seconds by sizes; infinitely negative for sizes that are not to be asked for again."""
    _open_seconds: float = 0.0
    _spent: float = 0.0
    _work: _Work | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._open = [k for k, param in enumerate(self.params) if "?" in param.shape]

    def sizes_of(self, args: Sequence[Any]) -> Sizes | None:
        """Returns the sizes of a call; None for arguments that do not tell their shape."""
        try:
            return tuple([tuple(args[k].shape) for k in self._open])
        except (AttributeError, IndexError, TypeError):
            return None

    def find(self, sizes: Sizes) -> RelayExecutable | None:
        """Returns the code for sizes, once it is compiled."""
        found = self.ready.get(sizes)
        if found is not None and len(self.ready) > 1 and self._lock.acquire(blocking=False):
            try:
                if self.ready.pop(sizes, None) is not None:
                    self.ready[sizes] = found
            finally:
                self._lock.release()
        return found

    def met(self, sizes: Sizes, seconds: float) -> None:
        """Notes a call of the open code; begins or ends a compilation where it is time."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._open_seconds += seconds
            if len(self._met) >= MOST_SIZES:
                self._met.clear()
            counted = self._met.setdefault(sizes, [0, 0.0])
            counted[0] += 1
            counted[1] += seconds
            if counted[0] == LOOKED_UP and self._find_kept(sizes):
                return
            if self._work is not None:
                self._look(self._work)
            elif counted[0] >= WORTH_CALLS or counted[1] >= WORTH_SECONDS:
                self._begin(sizes)
        finally:
            self._lock.release()

    def wait(self) -> None:
        """Waits for the process that compiles, if there is one, and loads what it made."""
        with self._lock:
            if self._work is not None:
                self._work.process.join()
                self._look(self._work)

    def _find_kept(self, sizes: Sizes) -> bool:
        """Loads the code for sizes that the cache has; returns whether there is any."""
        shapes = self._shapes(sizes)
        place = self.place_of(shapes, None) if self.is_kept(shapes) else None
        return place is not None and self._load(sizes, place)

    def _shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        return {self.params[k].name: shape for k, shape in zip(self._open, sizes, strict=True)}

    def _described(self, sizes: Sizes) -> str:
        return " ".join(f"{name}={','.join(map(str, shape))}" for name, shape in self._shapes(sizes).items())

    def _begin(self, sizes: Sizes) -> None:
        """Starts a process that compiles for sizes, unless it is there in the cache, or too much was spent."""
        if self._spent > FREE_SECONDS + self._open_seconds or not can_fork():
            return
        folder = None
        shapes = self._shapes(sizes)
        place = self.place_of(shapes, None)
        if place is None:
            folder = tempfile.TemporaryDirectory(prefix="mirstack-")
            place = self.place_of(shapes, Path(folder.name))
        if place is None:
            # Code from outside, which no cache holds.
            self._met[sizes] = [float("-inf"), float("-inf")]
            return
        if folder is None and self._load(sizes, place):
            return
        process = _forked(lambda: self.compile_for(shapes, place))
        if process is not None:
            self._work = _Work(process, sizes, place, folder)
            inform("compiling for %s beside the calls", self._described(sizes))

    def _look(self, work: _Work) -> None:
        """Loads what a process made that has ended; ends one that takes too long."""
        taken = time.perf_counter() - work.start
        if work.pid != os.getpid():
            # A fork of the process that started it.
            self._work = None
            return
        if work.process.is_alive():
            if taken > PATIENCE:
                work.process.kill()
            return
        self._work = None
        self._spent += taken
        loaded = self._load(work.sizes, work.place)
        if work.folder is not None:
            work.folder.cleanup()
        described = self._described(work.sizes)
        inform("code for %s is %s after %.1f s", described, "ready" if loaded else "not to be had", taken)
        span = current_span()
        if span is not None:
            beside = span.child(f"compile for {described}{'' if loaded else ' (failed)'}, beside")
            beside.background, beside.count, beside.seconds = True, 1, taken
        if not loaded:
            self._met[work.sizes] = [float("-inf"), float("-inf")]

    def _load(self, sizes: Sizes, place: CachedProgram) -> bool:
        with timed("load code for sizes"):
            variant = self.load(place)
        if variant is None:
            return False
        self._met.pop(sizes, None)
        self.ready[sizes] = variant
        held = sum(each.constant_bytes + each.prepared_bytes for each in self.ready.values())
        for old in list(self.ready)[:-1]:
            if len(self.ready) <= MOST_VARIANTS and held <= MOST_BYTES:
                break
            left = self.ready.pop(old)
            held -= left.constant_bytes + left.prepared_bytes
        return True


@dataclass
class _Work:
    """A process that compiles for sizes, and the place where it writes."""

    process: ForkProcess
    sizes: Sizes
    place: CachedProgram
    folder: tempfile.TemporaryDirectory[str] | None
    start: float = field(default_factory=time.perf_counter)
    pid: int = field(default_factory=os.getpid)


def _forked(work: Callable[[], None]) -> ForkProcess | None:
    """Returns a process of low priority that does the work; None where the system starts none."""
    from multiprocessing import get_context

    def body() -> None:
        # Who interrupts the first process means the calls; this one ends with it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(OSError):
            os.nice(10)
        # What is wrong here changes nothing for who calls.
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            work()
        except BaseException:
            sys.exit(1)

    process = get_context("fork").Process(target=body, name="mirstack-specialize", daemon=True)
    try:
        with forking():
            process.start()
    except OSError:
        return None
    return process
