"""Reads the declarative format of an op when the op is first parsed or printed by it.

xDSL reads a format when its op's class is made, which takes a quarter of the time of importing its dialects; most programs neither
parse nor print those ops. Classes that were made before the patch have read theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from . import Patch


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


def read_later() -> None:
    """Makes `FormatProgram.from_str` return a program that is read when it is first used."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    read: Callable[[str, Any], Any] = FormatProgram.from_str

    def later(text: str, op_def: Any) -> FormatReadLater:
        return FormatReadLater(lambda: read(text, op_def))

    FormatProgram.from_str = staticmethod(later)  # pyright: ignore[reportAttributeAccessIssue]


PATCH = Patch(
    reason="every format is parsed when its op's class is made, though most programs use few ops in MLIR's form",
    gain="0.02 of 0.06 s for importing arith, math, scf, memref, vector, llvm, cf and func",
    apply=read_later,
)
