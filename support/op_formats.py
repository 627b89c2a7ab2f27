"""Declarative formats of ops are read when an op is first parsed or printed by its format.

xDSL reads a format when its op's class is made, which takes a quarter of the time of importing its dialects; most programs neither
parse nor print those ops. The module that does so is found here, so that it reads later; it is otherwise xDSL's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

FORMATS = "xdsl.irdl.declarative_assembly_format"
"""xDSL's module that holds `FormatProgram`."""


def spec_of_formats(path: Any) -> ModuleSpec | None:
    """The spec of xDSL's module `FORMATS`, in which `FormatProgram.from_str` reads later."""
    spec = PathFinder.find_spec(FORMATS, path)
    if spec is not None and spec.loader is not None:
        spec.loader = _Loader(spec.loader)
    return spec


class FormatReadLater:
    """Stands for a `FormatProgram`, which is read when it is first needed."""

    def __init__(self, read: Callable[[], Any]):
        self._read = read

    @cached_property
    def _program(self) -> Any:
        return self._read()

    def parse(self, parser: Any, op_type: Any) -> Any:
        """Parses an op."""
        return self._program.parse(parser, op_type)

    def print(self, printer: Any, op: Any) -> None:
        """Prints an op."""
        self._program.print(printer, op)


class _Loader(Loader):
    """Loads the module by the loader that it has, then has it read formats later."""

    def __init__(self, loader: Loader):
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        program: Any = module.FormatProgram
        read: Callable[[str, Any], Any] = program.from_str
        program.from_str = staticmethod(lambda text, op_def: FormatReadLater(lambda: read(text, op_def)))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    def __getattr__(self, name: str) -> Any:
        # Where the source is, and all else that may be asked of the loader of a file.
        return getattr(self._loader, name)
