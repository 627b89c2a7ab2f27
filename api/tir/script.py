"""Prints statement nodes in TVMScript."""

from __future__ import annotations

import textwrap

from ...dialects.te.on_buffers import on_buffers
from ...dialects.tir.node.stmt import Stmt
from ...support.deep_stack import in_deep_stack
from ...support.public_names import public_names


def script_of(stmt: Stmt) -> str:
    """Returns a statement as text; what it uses and does not define is declared before it."""
    from ..ir.prim_func import PrimFunc

    stmt = on_buffers(stmt)
    lines = in_deep_stack(lambda: PrimFunc([], stmt, attrs={"global_symbol": "main"}).script()).split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("def "))
    body = [line for line in lines[start + 1 :] if not line.strip().startswith("# with T.block")]
    return textwrap.dedent("\n".join(body)).rstrip("\n")


__dir__ = public_names(__name__)
