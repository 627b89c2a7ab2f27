"""How many threads the parallel loops of an executable run on."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..lowering.llvm.jit.load import CompiledModule

POOL = ctypes.c_int64(0)
"""How many threads the pool was set to here, 0 before that; in memory that compiled code reads, too."""


def thread_count(code: CompiledModule, asked: int | None) -> int | None:
    """The threads that the code runs on: what was asked for or all cores; None without parallel loops."""
    if "mirstack_parallel_for" not in code.imports:
        return None
    from ..lowering.runtime import default_threads

    return default_threads() if asked is None else asked


def use_threads(count: int | None) -> None:
    """Sets the pool to `count` threads, where the code that is called next needs it at all."""
    if count is not None and count != POOL.value:
        from ..lowering.runtime import set_threads

        set_threads(count)
        POOL.value = count
