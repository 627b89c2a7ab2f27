"""What passes read of a function's attributes."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr

from ...dialects.relay.ir import FnOp, FuncOp


def has_flag(function: FuncOp | FnOp, name: str) -> bool:
    """Whether the attribute is given and is no zero: `Primitive=1` (a kernel), `Inline=1`."""
    value = function.attrs.data.get(name)
    return isinstance(value, IntegerAttr) and value.value.data != 0


def is_primitive(function: FuncOp | FnOp) -> bool:
    """Whether the function is a kernel: what it holds is grouped already, and passes on the graph see it as one operator."""
    return has_flag(function, "Primitive")
