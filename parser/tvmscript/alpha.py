"""The text of a function with its values numbered: the same for functions that differ in names only."""

from __future__ import annotations

import re

from xdsl.ir import SSAValue

from ...dialects.tir.stmt import PrimFuncOp
from ...support.deep import in_deep_stack
from .names import Names
from .printer import FunctionPrinter

_BLOCK = re.compile(r'T\.block\("[^"]*"\)')
_HEAD = re.compile(r"^def [^(]*")


class _Numbers(Names):
    """Names that say only how many were given before."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def define(self, value: SSAValue | None, hint: str) -> str:
        self._count += 1
        return super().define(value, f"v{self._count}")


def alpha_text(op: PrimFuncOp) -> str:
    """The function as text in which neither its own name nor those of variables, buffers and blocks stand.

    Two functions are structurally equal, as TVM's `structural_equal` has it, when their texts are the same.
    """

    def text() -> str:
        lines = FunctionPrinter(op, {}, _Numbers()).print("").splitlines()
        kept = (_HEAD.sub("def ", line) for line in lines if not line.lstrip().startswith("#"))
        return _BLOCK.sub("T.block()", "\n".join(kept))

    return in_deep_stack(text)


__all__ = ["alpha_text"]
