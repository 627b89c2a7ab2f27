"""Compiled programs loaded into this process, ready to be called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ....support.memory import keep_freed_memory
from ....support.stopwatch import timed
from ...runtime import runtime_symbols, thread_count
from ..program import Program, RelayProgram
from .executable import Executable

if TYPE_CHECKING:
    from ...llvm.jit.load import CompiledModule
    from ...options import Options


def _runtime_of(program: Program) -> Callable[[], Mapping[str, int]]:
    """Returns what finds the runtime's functions for a program: those that record, if it is profiled."""
    if program.profile is None:
        return runtime_symbols
    from ...runtime.profile import profiled_symbols

    return profiled_symbols


def load_program(
    program: Program, options: Options, check: Callable[[CompiledModule], None] | None = None
) -> Executable:
    """Links the program's code into this process; returns it ready to be called.

    `check` is called with the code before anything else of the program is used.
    """
    from ...llvm.jit.load import link_objects

    with timed("link"):
        code = link_objects(program.objects, runtime=_runtime_of(program))
    if check is not None:
        with timed("check weights"):
            check(code)
    if "aligned_alloc" in code.imports:
        keep_freed_memory()
    threads = thread_count(code, options.threads)
    if isinstance(program, RelayProgram):
        from .relay_executable import RelayExecutable

        with timed("prepare constants"):
            return RelayExecutable(program, code, threads)
    from .kernel_executable import KernelExecutable

    return KernelExecutable(program, code, threads)
