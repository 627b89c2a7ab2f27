"""The two long calls into LLVM, of which several threads may be in at a time.

llvmlite keeps a lock around each call of its library, so that one thread at a time uses LLVM. LLVM itself asks only that threads
share no context, module, target machine or pass manager (its Programmer's Manual, "Threads and LLVM"), and here each has its own. So
optimizing and code generation are called in the same library, but not through the lock; all that takes no time goes through it.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi


@cache
def _library() -> ctypes.CDLL:
    """llvmlite's library, which is loaded already."""
    library = ctypes.CDLL(ffi.lib._name)  # pyright: ignore[reportPrivateUsage]
    for name in ("LLVMPY_RunNewModulePassManager", "LLVMPY_TargetMachineEmitToMemory"):
        function, locked = getattr(library, name), getattr(ffi.lib, name)
        function.argtypes, function.restype = locked.argtypes, locked.restype
    return library


def run_passes(manager: Any, module: llvm.ModuleRef, builder: Any) -> None:
    """Runs a module pass manager."""
    _library().LLVMPY_RunNewModulePassManager(manager, module, builder)


def emit(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """The object file of a module. Raises RuntimeError with LLVM's reason where there is none."""
    with ffi.OutputString() as error:
        buffer = _library().LLVMPY_TargetMachineEmitToMemory(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(str(error))
    try:
        start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)
