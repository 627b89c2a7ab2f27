"""Object files made beside this thread, while Python goes on lowering what comes next.

Each thread of the pool hands texts to a process of its own (`codegen_process`); where there is none, LLVM works in the thread, without
holding Python's interpreter lock.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future
from queue import PriorityQueue
from types import TracebackType

from ....support.deep_stack import start_with_stack
from ....support.stopwatch import current_span, in_background
from .codegen import STACK_BYTES
from .load import Target, emit_object

_Job = tuple[int, int, str, "Future[bytes] | None"]
"""What orders jobs (the longest text first, to end together), a number, the text; without a future the sign to end."""


class ObjectPool:
    """Threads that compile LLVM IR.

    Leaving the `with` block ends them, and drops what has not begun when the block is left by an exception. A thread starts when
    there is something to do and all others are at work. One of the `threads` is left to whoever submits, until `hurry` says that
    all is submitted: all wait for Python at work on the next module.
    """

    def __init__(self, target: Target, threads: int):
        self._target = target
        self._threads_in_all = max(1, threads)
        self._most = max(1, threads - 1)
        self._jobs: PriorityQueue[_Job] = PriorityQueue()
        self._numbers = itertools.count()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._dropped = False
        self._span = current_span()

    def submit(self, text: str) -> Future[bytes]:
        """Starts compiling LLVM IR text; `result()` returns or raises as `emit_object` does."""
        future: Future[bytes] = Future()
        self._jobs.put((-len(text), next(self._numbers), text, future))
        self._start()
        return future

    def hurry(self) -> None:
        """Notes that the submitter waits, and leaves its processor to one more thread."""
        self._most = self._threads_in_all
        self._start()

    def _start(self) -> None:
        """Starts a thread if there is work for one."""
        if self._jobs.qsize() > self._idle and len(self._threads) < self._most:
            thread = threading.Thread(target=self._work, name=f"mirstack-llvm-{len(self._threads)}", daemon=True)
            start_with_stack(thread, STACK_BYTES)
            self._threads.append(thread)

    def _work(self) -> None:
        with in_background(self._span, "LLVM, beside"):
            self._compile_all()

    def _compile_all(self) -> None:
        while True:
            self._idle += 1
            _, _, text, future = self._jobs.get()
            self._idle -= 1
            if future is None:
                return
            if self._dropped:
                future.cancel()
                continue
            try:
                future.set_result(emit_object(text, self._target))
            except BaseException as error:  # handed to whoever asks for the result
                future.set_exception(error)

    def __enter__(self) -> ObjectPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dropped = kind is not None
        for _ in self._threads:
            self._jobs.put((1, next(self._numbers), "", None))
        for thread in self._threads:
            thread.join()
