"""Elementwise operators that need more than an expression: conversions, rounding modes, choices."""

from __future__ import annotations

from math import inf
from typing import Any

from xdsl.ir import SSAValue

from ...common.angles import angle
from ..node import FxNode
from ..registry import operator
from .indexing import places_of


@operator("_to_copy", "to", "convert_element_type")
def to_copy(node: FxNode, x: SSAValue, *_rest: Any) -> SSAValue:
    """Converts to another dtype; memory formats and devices do not count."""
    return node.cast(x, node.dtype())


@operator("copy")
def copy(node: FxNode, x: SSAValue, source: SSAValue, *_: Any) -> SSAValue:
    """Broadcasts the source to the shape of the target."""
    return node.builder.broadcast_to(node.cast(source, node.dtype()), node.builder.shape_tensor(x))


@operator("div")
def div(node: FxNode, x: Any, y: Any, mode: str | None = None) -> SSAValue:
    """Divides; `mode` rounds the quotient toward zero or down."""
    dtype = node.dtype()
    x, y = node.tensor(x, dtype), node.tensor(y, dtype)
    if mode == "floor":
        return node.call("floor_divide", x, y)
    return node.call("trunc_divide" if mode == "trunc" else "divide", x, y)


@operator("logical_and", "logical_or", "logical_xor")
def logical(node: FxNode, x: SSAValue, y: SSAValue) -> SSAValue:
    """Combines truth values; a number is true if it is not 0."""
    return node.call(node.name, node.cast(x, "bool"), node.cast(y, "bool"))


@operator("logical_not")
def logical_not(node: FxNode, x: SSAValue) -> SSAValue:
    """Negates truth values."""
    return node.call("logical_not", node.cast(x, "bool"))


@operator("isnan", "isinf")
def is_special(node: FxNode, x: SSAValue) -> SSAValue:
    """Returns False for each integer."""
    return node.call("not_equal", x, x)


@operator("where")
def where(node: FxNode, condition: SSAValue, x: Any = None, y: Any = None) -> SSAValue | list[SSAValue]:
    """Chooses by element; of a condition alone returns the places where it holds, a vector for each axis."""
    if not node.overload:
        return places_of(node, condition)
    dtype = node.dtype()
    return node.call("where", node.cast(condition, "bool"), node.tensor(x, dtype), node.tensor(y, dtype))


@operator("clamp", "clamp_min", "clamp_max")
def clamp(node: FxNode, x: SSAValue, low: Any = None, high: Any = None) -> SSAValue:
    """Limits elements by numbers or by tensors; where the limits cross, the upper one counts."""
    if node.name == "clamp_max":
        low, high = None, low
    dtype = node.dtype()
    x = node.cast(x, dtype)
    if not isinstance(low, SSAValue) and not isinstance(high, SSAValue) and dtype in ("float32", "float64"):
        least = -inf if low is None else float(low)
        most = inf if high is None else float(high)
        if least <= most:
            return node.call("clip", x, a_min=least, a_max=most)
    if low is not None:
        x = node.call("maximum", x, node.tensor(low, dtype))
    return x if high is None else node.call("minimum", x, node.tensor(high, dtype))


@operator("hardtanh")
def hardtanh(node: FxNode, x: SSAValue, low: Any, high: Any) -> SSAValue:
    """Limits integers."""
    return clamp(node, x, low, high)


@operator("atan2")
def atan2(node: FxNode, y: Any, x: Any, _out: Any = None) -> SSAValue:
    """Returns the angle of points."""
    dtype = node.dtype()
    return angle(node.builder, node.tensor(y, dtype), node.tensor(x, dtype))


@operator("native_dropout")
def native_dropout(node: FxNode, x: SSAValue, _p: float, train: bool | None) -> list[SSAValue]:
    """Returns the data and a mask that is all true. Raises Refused in training."""
    if train is not False:
        raise node.draws()
    return [x, node.call("ones_like", node.cast(x, "bool"))]


@operator("dropout")
def dropout(node: FxNode, x: SSAValue, _p: float, train: bool) -> SSAValue:
    """Returns the data. Raises Refused in training, which draws random numbers."""
    if train:
        raise node.draws()
    return x


@operator("_local_scalar_dense")
def local_scalar_dense(node: FxNode, x: SSAValue) -> SSAValue:
    """Returns the only element as a tensor of rank 0, which numbers are here."""
    return node.call("reshape", x, newshape=[])
