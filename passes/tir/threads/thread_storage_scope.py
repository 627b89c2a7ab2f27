"""Decides which threads share the memory of a storage scope, as TVM's thread_storage_scope.h."""

from __future__ import annotations

from ....dialects import tir

_RANKS = {"global": 0, "shared": 1, "warp": 2}
"""How near to a thread a storage scope is; others are as "local"."""


def share_memory(loop: tir.ForOp, scope: str) -> bool:
    """Returns whether a loop is bound to threads that see each other's writes to memory of a scope.

    T.thread_binding(8, thread="threadIdx.x") shares "shared" and "global", not "local"; "blockIdx.x" shares "global" alone.
    """
    if loop.kind.data != "thread_binding":
        return False
    thread = "" if loop.thread is None else loop.thread.data
    memory = scope.partition(".")[0]
    if memory == "warp":
        return thread == "threadIdx.x"
    return _RANKS.get(memory, 3) <= (0 if thread.startswith("blockIdx") else 1)
