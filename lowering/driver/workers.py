"""Other processes that work on a list of tasks beside this one.

Python's interpreter lock lets one thread at a time lower kernels, which takes most of the time of compiling. So this process is forked:
each worker has all that was built before, does one task at a time, and sends back an answer, as JSON and bytes. All take from one
list, whose first tasks should be the longest, so that all end together.

A forked process has only the thread that forked it, and locks that others held stay locked for ever: a process in which other threads of
Python run is not forked, and who waits for a worker for far too long does its task himself.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from ...support.settings import whole_number
from ...support.stages import silence
from ...support.stopwatch import current_span, timed, timing
from ...support.target import processors

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

Answer = tuple[Any, bytes]
"""Plain data of JSON, and bytes."""
Task = Callable[[], Answer | None]
"""What a worker does; None where it has no answer."""

MOST = 3
"""Workers at most."""
PATIENCE = 3.0
"""How many times as long as this process worked it waits for workers then; never less than as many seconds."""

_CRASHES = tuple(-getattr(signal, name) for name in ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL") if hasattr(signal, name))
"""Exit codes of a process that native code ended."""


def workers_wanted() -> int:
    """Returns the number of workers: `MIRSTACK_WORKERS`, or one for each processor except one."""
    return whole_number("MIRSTACK_WORKERS", min(processors() - 1, MOST), most=64)


def can_fork() -> bool:
    """Returns whether the process may fork: on Linux, if other threads only wait for this one."""
    if sys.platform != "linux":
        return False
    waiting = threading.current_thread() is not threading.main_thread()
    # A process that multiprocessing started has imported it.
    processes = sys.modules.get("multiprocessing.process")
    return threading.active_count() <= 1 + waiting and not (processes and processes.current_process().daemon)


@contextmanager
def forking() -> Generator[None]:
    """Silences warnings of threads that are not Python's: those of libraries, which wait for work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        # JAX has a warning of its own.
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        yield


@dataclass
class _Worker:
    process: ForkProcess
    pipe: Connection
    task: int | None = None
    """The number of the task that it does."""
    thread: threading.Thread | None = None
    """Sends its tasks and receives its answers."""


class Workers:
    """Workers for these tasks; leaving the `with` block ends them."""

    def __init__(self, count: int, tasks: Sequence[Task]):
        self._tasks = tasks
        self._queue = deque(range(len(tasks)))
        self._changed = threading.Condition()
        self._answers: dict[int, Answer] = {}
        self._crashed: list[int] = []
        self._workers: list[_Worker] = []
        self._span = current_span()
        self._start = time.perf_counter()
        if count > 0 and can_fork():
            # All of them before this process has another thread.
            for _ in range(count):
                self._fork()
        for worker in self._workers:
            worker.thread = threading.Thread(target=self._talk, args=(worker,), name="mirstack-worker", daemon=True)
            worker.thread.start()

    def own_part(self) -> Iterator[int]:
        """Yields the numbers of tasks that are left to this process, until no task is left."""
        while (task := self._take(None)) is not None:
            yield task

    def answers(self) -> dict[int, Answer]:
        """Returns the answers of the workers, by the numbers of the tasks; waits for them."""
        patience = PATIENCE * max(1.0, time.perf_counter() - self._start)
        with timed("wait for workers"), self._changed:
            self._changed.wait_for(lambda: all(worker.task is None for worker in self._workers), patience)
            return dict(self._answers)

    def crashed(self) -> list[int]:
        """Returns the numbers of tasks during which native code ended a worker."""
        with self._changed:
            return sorted(self._crashed)

    def _fork(self) -> None:
        from multiprocessing import get_context

        context = get_context("fork")
        here, there = cast("tuple[Connection, Connection]", context.Pipe())
        process = context.Process(target=self._work, args=(there, here), name="mirstack-worker", daemon=True)
        try:
            with forking():
                process.start()
        except OSError:
            # The system starts no process: this one works alone.
            here.close()
        else:
            self._workers.append(_Worker(process, here))
        there.close()

    def _work(self, pipe: Connection, other_end: Connection) -> None:
        """Runs in a worker: does tasks until no more requests come."""
        # Who interrupts the first process means this one, too: it ends with its requests.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        silence()
        # Held open here, they would not end when the first process closes them.
        for end in (other_end, *(worker.pipe for worker in self._workers)):
            end.close()
        with suppress(EOFError, OSError):
            while True:
                head, data = self._do(int.from_bytes(pipe.recv_bytes(), "little"))
                pipe.send_bytes(head)
                pipe.send_bytes(data)

    def _do(self, task: int) -> tuple[bytes, bytes]:
        with timing() as times:
            try:
                answer = self._tasks[task]()
            except Exception:
                # The first process meets the same error, and reports it in the program's order.
                answer = None
        value, data = answer or (None, b"")
        return json.dumps([answer is not None, value, times.to_json()]).encode(), data

    def _talk(self, worker: _Worker) -> None:
        """Sends tasks to a worker and receives its answers, until there are no tasks left, or the worker ends."""
        with worker.pipe:
            while (task := self._take(worker)) is not None:
                try:
                    worker.pipe.send_bytes(task.to_bytes(8, "little"))
                    head, data = worker.pipe.recv_bytes(), worker.pipe.recv_bytes()
                except (EOFError, OSError):
                    worker.process.join()
                    with self._changed:
                        if worker.process.exitcode in _CRASHES:
                            self._crashed.append(task)
                        worker.task = None
                        self._changed.notify_all()
                    return
                answered, value, times = json.loads(head)
                with self._changed:
                    if answered:
                        self._answers[task] = value, data
                    if self._span is not None:
                        self._span.child("workers, beside").add_beside(times)

    def _take(self, worker: _Worker | None) -> int | None:
        """Returns the next task, which the worker then does."""
        with self._changed:
            task = self._queue.popleft() if self._queue else None
            if worker is not None:
                worker.task = task
                self._changed.notify_all()
            return task

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._changed:
            self._queue.clear()
            busy = [worker for worker in self._workers if worker.task is not None]
        for worker in busy:
            worker.process.kill()
        for worker in self._workers:
            # Two threads that wait for one process at the same time: for one of them it seems to run on.
            if worker.thread is not None:
                worker.thread.join()
            worker.process.join()
