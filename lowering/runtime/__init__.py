"""The compiled runtime: the thread pool that parallel loops run on (`runtime.ll`).

It is compiled when code that needs it is loaded, once per process, and lives until the process ends.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ...support.settings import choice, whole_number
from ...support.target import processors

if TYPE_CHECKING:
    from ..llvm.jit.load import CompiledModule

SPINS = 20_000
"""How often a worker looks for work before it sleeps: some 200 to 1000 microseconds. Waking it costs as much as a kernel of
a small model takes, so it stays awake from one call of a model to the next."""

SPINS_CROWDED = 50
"""The same where there are more threads than processors: whom it waits for may need the one that it spins on."""

# Arm's are `yield`. Of other processors than this one's LLVM here reads no assembly.
PAUSES = {
    "x86_64": 'call void asm sideeffect "pause", "~{memory}"()',
    "aarch64": "call void @llvm.aarch64.hint(i32 1)",
    "arm64": "call void @llvm.aarch64.hint(i32 1)",
    "arm": "call void @llvm.arm.hint(i32 1)",
}

EXPORTS = (
    "mirstack_parallel_for", "mirstack_set_threads", "mirstack_set_spins", "mirstack_set_pinning",
    "mirstack_get_threads", "mirstack_reset", "mirstack_shutdown",
)  # fmt: skip

POOL = ctypes.c_int64(0)
"""How many threads the pool was set to here, 0 before that; in memory that compiled code reads, too."""

_LOCK = threading.RLock()


def runtime_ir(machine: str, system: str) -> str:
    """Returns the runtime as LLVM IR for a processor family (`x86_64`, `aarch64`, …) and a `sys.platform`."""
    folder = files(__package__ or "mirstack.lowering.runtime")
    placement = folder.joinpath("placement_linux.ll" if system == "linux" else "placement_none.ll").read_text()
    header, _, code = folder.joinpath("runtime.ll").read_text().partition("\n\n")
    return "\n\n".join((header, code.replace("PAUSE", PAUSES.get(machine, "")), placement))


@lru_cache(maxsize=1)
def _load() -> CompiledModule:
    import platform

    from ..llvm.jit.load import compile_shipped

    # The code is written as it must run: optimizing it would only take time.
    module = compile_shipped(runtime_ir(platform.machine(), sys.platform))
    reset = ctypes.CFUNCTYPE(None)(module.address("mirstack_reset"))
    shutdown = ctypes.CFUNCTYPE(None)(module.address("mirstack_shutdown"))
    reset()
    _set(module, default_threads())
    if not pinning_wanted():
        ctypes.CFUNCTYPE(None, ctypes.c_int)(module.address("mirstack_set_pinning"))(0)
    # Workers must be gone before their code is, and none survives in a forked child.
    atexit.register(shutdown)
    os.register_at_fork(after_in_child=reset)
    return module


def runtime() -> CompiledModule:
    """Returns the runtime, loaded into this process when first asked for."""
    with _LOCK:
        return _load()


def runtime_symbols() -> dict[str, int]:
    """Addresses of the runtime's functions by name."""
    module = runtime()
    return {name: module.address(name) for name in EXPORTS}


def pinning_wanted() -> bool:
    """Returns whether workers stay off the calling thread's processor: unless `MIRSTACK_PINNING=off`."""
    return choice("MIRSTACK_PINNING", "off", "on") != "off"


def default_threads() -> int:
    """Returns a region's threads by default: `MIRSTACK_THREADS`, or the usable processors."""
    return whole_number("MIRSTACK_THREADS", processors(), least=1, most=256)


def set_threads(count: int) -> None:
    """Parallel loops use up to `count` threads (1 to 256) from now on, the calling thread among them."""
    _set(runtime(), count)


def thread_count(code: CompiledModule, asked: int | None) -> int | None:
    """Returns the threads for the code: `asked` or all cores; None without parallel loops."""
    if "mirstack_parallel_for" not in code.imports:
        return None
    return default_threads() if asked is None else asked


def use_threads(count: int | None) -> None:
    """Sets the pool to `count` threads, where the code that is called next needs it at all."""
    if count is not None and count != POOL.value:
        set_threads(count)
        POOL.value = count


def _set(module: CompiledModule, count: int) -> None:
    spins = SPINS if count <= processors() else SPINS_CROWDED
    for name, value in (("mirstack_set_spins", spins), ("mirstack_set_threads", count)):
        ctypes.CFUNCTYPE(None, ctypes.c_int)(module.address(name))(value)


def set_pinning(on: bool) -> None:
    """Sets whether workers stay off the processor of the calling thread (`placement_linux.ll`).

    They do unless the environment says `MIRSTACK_PINNING=off`; elsewhere than on Linux threads cannot be placed.
    """
    ctypes.CFUNCTYPE(None, ctypes.c_int)(runtime().address("mirstack_set_pinning"))(on)


def get_threads() -> int:
    """Returns the most threads that a parallel loop uses."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(runtime().address("mirstack_get_threads"))())
