"""Compiled programs loaded into this process, ready to be called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....support.memory import keep_freed_memory
from ....support.stopwatch import timed
from ...runtime import runtime_symbols, thread_count
from ..program import Program, RelayProgram
from .executable import Executable

if TYPE_CHECKING:
    from ...options import Options


def load_program(program: Program, options: Options) -> Executable:
    """Links the program's code into this process; returns it ready to be called."""
    from ...llvm.jit.load import link_objects

    with timed("link"):
        code = link_objects(program.objects, runtime=runtime_symbols)
    if "aligned_alloc" in code.imports:
        keep_freed_memory()
    threads = thread_count(code, options.threads)
    if isinstance(program, RelayProgram):
        from .relay_executable import RelayExecutable

        with timed("prepare constants"):
            return RelayExecutable(program, code, threads)
    from .kernel_executable import KernelExecutable

    return KernelExecutable(program, code, threads)
