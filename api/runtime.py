"""`mirstack.runtime`: compiled modules from files, by TVM's names."""

from __future__ import annotations

from os import PathLike

from ..lowering.driver.loading.executable import Executable
from .build import Module, PackedFunc

__all__ = ["Module", "PackedFunc", "load_module"]


def load_module(path: str | PathLike[str], *, threads: int | None = None) -> Module:
    """Returns the module in a package that `Module.export_library` or `mir-build` wrote.

    Raises MirError for a file that is not a whole package, and where none of its code runs on this machine.
    """
    executable = Executable.load(path, threads=threads)
    return Module({executable.name: PackedFunc(executable)}, executable.name)
