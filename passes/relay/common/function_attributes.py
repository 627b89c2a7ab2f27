"""Attributes of functions that passes read."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from ....dialects.relay.ir import FnOp, FuncOp
from ....support.walk import walk_ops


def has_flag(function: FuncOp | FnOp, name: str) -> bool:
    """Returns whether the attribute is given and not zero: `Primitive=1` (a kernel), `Inline=1`."""
    value = function.attrs.data.get(name)
    return isinstance(value, IntegerAttr) and value.value.data != 0


def is_primitive(function: FuncOp | FnOp) -> bool:
    """Returns whether the function is a kernel.

    Its ops are grouped already, and passes on the graph see it as one operator.
    """
    return has_flag(function, "Primitive")


def open_ops(module: ModuleOp) -> Iterator[Operation]:
    """Every op of the module that is not inside a kernel, in program order."""
    closed: set[Operation | None] = set()
    for op in walk_ops(module):
        if op.parent_op() in closed:
            closed.add(op)
        else:
            if isinstance(op, FuncOp | FnOp) and is_primitive(op):
                closed.add(op)
            yield op
