"""Runs cases in processes, so that a crash, a hang or exhausted memory does not end the campaign.

A process is forked from this one, runs many cases and is replaced after some hundred, and when it dies or does not answer. It sends
each case before it checks it, so that the case which ended it is known.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import IO, Any, cast

from .case import Case, Failure, Fuzzer, Verdict, failure_of

RECYCLE = 400
"""After so many cases a process is replaced: what they leave in memory goes with it."""
WALL_FACTOR = 8
"""A process that waits may take so many times the limit of computing: others may keep the machine busy."""

Outcome = tuple[int, Case | None, Verdict]


@dataclass(frozen=True)
class Limits:
    """The limits of one case: seconds of computing, and bytes of memory."""

    seconds: float = 10.0
    memory: int = 12 << 30


@dataclass
class Worker:
    """A process at work."""

    fuzzer: Fuzzer
    limits: Limits
    process: BaseProcess = field(init=False)
    connection: Connection[Any, Any] = field(init=False)
    log: IO[bytes] = field(init=False)
    task: tuple[int, int] | Case | None = None
    drawn: Case | None = None
    done: int = 0
    began: float = 0.0
    computed: float = 0.0

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Starts a process."""
        context = get_context("fork")
        ours, theirs = context.Pipe()
        self.connection = cast("Connection[Any, Any]", ours)
        self.log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = context.Process(
            target=_serve, args=(theirs, self.connection, self.fuzzer, self.limits, self.log.fileno()), daemon=True
        )
        sys.stdout.flush()
        self.process.start()
        theirs.close()
        self.done = 0
        self.task = self.drawn = None

    def give(self, task: tuple[int, int] | Case) -> None:
        """Begins a task: (seed, number) to draw and check, or a case to check."""
        if self.done >= RECYCLE:
            self.stop()
            self.start()
        self.task, self.drawn = task, task if isinstance(task, Case) else None
        self.began, self.computed = time.monotonic(), self._seconds()
        self.connection.send(task)

    def answer(self) -> Outcome | None:
        """Returns the outcome, once the connection has something; None where the task goes on."""
        assert self.task is not None
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._gone()
        if isinstance(message, Case):
            self.drawn = message
            return None
        return self._over(message)

    def late(self) -> Outcome | None:
        """Returns the failure of a task that takes too long; its process is ended."""
        if self.task is None:
            return None
        computed = self._seconds() - self.computed
        wall = time.monotonic() - self.began
        if computed <= self.limits.seconds and wall <= WALL_FACTOR * self.limits.seconds:
            return None
        with suppress(ProcessLookupError):
            os.kill(self.process.pid or 0, signal.SIGUSR1)
        time.sleep(0.3)
        told = self._stack()
        self.stop()
        verdict = Verdict()
        verdict.fail(
            "hang", _innermost(told), f"no answer after {computed:.0f} s of computing, {wall:.0f} s in all\n{told}"
        )
        outcome = self._over(verdict)
        self.start()
        return outcome

    def _over(self, verdict: Verdict) -> Outcome:
        number = self.task[0 + 1] if isinstance(self.task, tuple) else -1
        case, self.task, self.drawn = self.drawn, None, None
        self.done += 1
        return number, case, verdict

    def _gone(self) -> Outcome:
        self.process.join(5)
        code = self.process.exitcode or 0
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        told = self._told()
        verdict = Verdict()
        verdict.fail("death", f"{how} {_innermost(told)}", f"the process ended by {how}\n{told}")
        outcome = self._over(verdict)
        self.stop()
        self.start()
        return outcome

    def _told(self, length: int = 3000) -> str:
        """Returns the end of what the process wrote to standard error."""
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - length))
        return self.log.read().decode(errors="replace").strip()

    def _stack(self) -> str:
        """Returns the innermost frames of the stacks that faulthandler wrote last."""
        stacks = re.split(r"^(?:Current t|T)hread 0x.*\n", self._told(100_000), flags=re.MULTILINE)[1:]
        # A thread that waits for another one is not what takes long.
        stacks = [stack for stack in stacks if "threading.py" not in (stack.splitlines() or [""])[0]] or stacks
        return "\n".join(stacks[-1].strip("\n").splitlines()[:16]) if stacks else ""

    def _seconds(self) -> float:
        """Returns the seconds that the process has computed, where the system tells."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """Ends the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        self.log.close()


def _innermost(told: str) -> str:
    """Returns the innermost function of the package in a stack that faulthandler wrote."""
    for line in told.splitlines():
        if (line.startswith("  File ") and "mirstack" in line) or "/passes/" in line or "/lowering/" in line:
            return line.rpartition("/")[2].replace('"', "")
    return ""


def _serve(connection: Connection, other: Connection, fuzzer: Fuzzer, limits: Limits, log: int) -> None:
    """Runs cases in a process until the connection closes."""
    other.close()
    os.dup2(log, 2)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    faulthandler.enable(file=2)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    # Every case is compiled again.
    os.environ["MIRSTACK_CACHE_LIMIT"] = "0"
    os.environ["MIRSTACK_SPECIALIZE"] = "off"
    # What code leaves unwritten shows, in results and on the heap.
    os.environ["MIRSTACK_POISON"] = "1"
    _fill_what_malloc_returns()
    warnings.simplefilter("ignore")
    with suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            task = connection.recv()
            connection.send(_work(task, fuzzer, connection.send))


M_PERTURB = -6
"""What glibc's <malloc.h> calls the filling of memory: each byte is the complement of the one that is given."""


def _fill_what_malloc_returns() -> None:
    """Makes glibc fill memory that it allocates and frees; other C libraries stay as they are."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_PERTURB, 0x80)


def _work(task: Any, fuzzer: Fuzzer, tell: Callable[[Case], None]) -> Verdict:
    verdict = Verdict()
    try:
        if isinstance(task, Case):
            return fuzzer.check(task)
        case = fuzzer.draw(*task)
        tell(case)
    except Exception as error:
        verdict.failures.append(failure_of(error, "while the case was drawn"))
        return verdict
    try:
        return fuzzer.check(case)
    except Exception as error:
        verdict.failures.append(failure_of(error, "while the case was checked"))
        return verdict


@dataclass
class Pool:
    """Some processes for one fuzzer."""

    fuzzer: Fuzzer
    jobs: int = 1
    limits: Limits = field(default_factory=Limits)
    workers: list[Worker] = field(init=False)

    def __post_init__(self) -> None:
        self.workers = [Worker(self.fuzzer, self.limits) for _ in range(self.jobs)]

    def run(self, tasks: Iterator[tuple[int, int]]) -> Iterator[Outcome]:
        """Yields the outcomes of the tasks, in the order in which they end."""
        more = True
        while True:
            for worker in self.workers:
                if more and worker.task is None:
                    task = next(tasks, None)
                    if task is None:
                        more = False
                    else:
                        worker.give(task)
            busy = [worker for worker in self.workers if worker.task is not None]
            if not busy:
                return
            yield from self._answers(busy)

    def check(self, case: Case) -> Verdict:
        """Checks one case."""
        worker = self.workers[0]
        worker.give(case)
        while True:
            for _, _, verdict in self._answers([worker]):
                return verdict

    def _answers(self, busy: list[Worker]) -> Iterator[Outcome]:
        ready = wait([worker.connection for worker in busy], 0.2)
        for worker in busy:
            outcome = worker.answer() if worker.connection in ready else worker.late()
            if outcome is not None:
                yield outcome

    def close(self) -> None:
        """Ends all processes."""
        for worker in self.workers:
            worker.stop()


def dead(failures: list[Failure]) -> bool:
    """Tells whether a process ended or had to be ended."""
    return any(failure.kind in ("death", "hang") for failure in failures)
