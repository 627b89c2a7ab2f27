"""Compiled programs loaded into this process, ready to be called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lowering.driver.program import Program, RelayProgram
from ..support.allocator import keep_freed_memory
from ..support.stopwatch import timed
from .executable import Executable
from .threads import thread_count

if TYPE_CHECKING:
    from ..lowering.pipeline import Options


def load_program(program: Program, options: Options) -> Executable:
    """The program's code linked into this process, ready to be called."""
    from ..lowering.llvm.jit.load import link_objects

    with timed("link"):
        code = link_objects(program.objects)
    if "aligned_alloc" in code.imports:
        keep_freed_memory()
    threads = thread_count(code, options.threads)
    if isinstance(program, RelayProgram):
        from .native_relay import RelayExecutable

        with timed("prepare constants"):
            return RelayExecutable(program, code, threads)
    from .native_kernel import KernelExecutable

    return KernelExecutable(program, code, threads)
