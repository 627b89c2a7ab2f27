"""Object files made in a background thread, while Python goes on lowering what comes next.

A module is optimized and coded by LLVM without holding Python's interpreter lock, in an LLVM context of its own.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType

from ...support.stopwatch import current_span, in_background
from .jit import Target, emit_object

STACK_BYTES = 1 << 28
"""LLVM recurses over expressions and dominator trees: chains of thousands need more than a thread's usual stack."""

_Job = tuple[str, "Future[bytes]"]


class ObjectPool:
    """A thread that compiles LLVM IR; leaving the `with` block ends it, and drops what has not begun when the block is left by
    an exception. It starts when there is something to do.

    There is one thread because llvmlite lets one at a time into LLVM, and because LLVM takes less time for a kernel than
    lowering it does, so that one keeps up.
    """

    def __init__(self, target: Target):
        self._target = target
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._dropped = False
        self._span = current_span()

    def submit(self, text: str) -> Future[bytes]:
        """The object file of this LLVM IR text, in time. Its `result()` raises what `emit_object` raises."""
        future: Future[bytes] = Future()
        self._jobs.put((text, future))
        if self._thread is None:
            size = threading.stack_size(STACK_BYTES)
            try:
                self._thread = threading.Thread(target=self._work, name="mirstack-llvm", daemon=True)
                self._thread.start()
            finally:
                threading.stack_size(size)
        return future

    def _work(self) -> None:
        with in_background(self._span, "LLVM, beside"):
            self._compile_all()

    def _compile_all(self) -> None:
        while (job := self._jobs.get()) is not None:
            text, future = job
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
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
