"""Names and types of what is emitted."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from ....dialects.arith.ordered import constant
from ....dialects.te.emit import type_of
from ....dialects.te.expr import Expr
from ....dialects.tir.types import DYNAMIC, BufferType


def buffer_type(shape: Sequence[Expr], dtype: str, scope: str = "global") -> BufferType:
    """The type of a buffer of this shape."""
    dims: list[Attribute] = []
    for extent in shape:
        value = constant(extent)
        dims.append(DYNAMIC if value is None else IntegerAttr(value, type_of(extent.dtype)))  # type: ignore[arg-type]
    return BufferType(ArrayAttr(dims), type_of(dtype), StringAttr(scope))


def param_names(given: Sequence[str]) -> list[str]:
    """The names of parameters; one that occurs again gets a number."""
    names: list[str] = []
    taken: set[str] = set()
    for wanted in given:
        base = name = clean(wanted)
        count = 0
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        taken.add(name)
        names.append(name)
    return names


def clean(name: str) -> str:
    """The name as TVMScript can write it: `i.outer` is i_outer."""
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in name) or "v"
    return f"_{text}" if text[0].isdigit() else text
