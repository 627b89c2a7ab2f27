"""Reductions over axes, by the body that combines two elements."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from xdsl.ir import Block, SSAValue

from ....dialects.array import numpy_dtype
from ...common.refusal import Refused
from ..node import HloNode
from ..registry import operator
from .bodies import body_text

COMBINES = {
    "add": "add",
    "multiply": "multiply",
    "maximum": "maximum",
    "minimum": "minimum",
    "and": "logical_and",
    "or": "logical_or",
}
"""Relay's operator of two operands for each body."""

_REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "and": "all", "or": "any"}
"""Relay's reduction for each body."""

_OF_BOOL = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}
"""The body of truth values that computes the same."""


def combination(node: HloNode, block: Block, dtype: str) -> str:
    """Returns the operator that a body combines two elements by. Raises Refused for another body."""
    found = body_text(node, block)
    for name in COMBINES:
        if found in ([f"{name}(a0,a1)"], [f"{name}(a1,a0)"]):
            if dtype == "bool":
                return _OF_BOOL.get(name, name)
            if name in ("and", "or"):
                raise Refused("bits of integers cannot be combined along an axis here")
            return name
    raise Refused(
        f"it combines elements by {', '.join(found)}; only sums, products, extremes, and, or, argmax and argmin"
    )


def neutral(name: str, dtype: str) -> Any:
    """Returns the element that changes no other one."""
    if dtype == "bool":
        return name == "and"
    if name in ("add", "multiply"):
        return 0 if name == "add" else 1
    if "float" in dtype:
        return -inf if name == "maximum" else inf
    limits = np.iinfo(dtype)
    return limits.min if name == "maximum" else limits.max


def combined(node: HloNode, name: str, value: SSAValue, start: SSAValue) -> SSAValue:
    """Combines a result with the element that a reduction begins with, if that is not neutral."""
    dtype = node.builder.dtype(value)
    known = node.builder.array(node.frame.narrow(start))
    if known is not None and known.size == 1:
        number = known.reshape(-1)[0]
        if number == np.asarray(neutral(name, dtype)).astype(numpy_dtype(dtype)):
            return value
    return node.call(COMBINES[name], value, start)


def _over_axes(node: HloNode, name: str, x: SSAValue, axes: list[int]) -> SSAValue:
    """Reduces over axes, which are removed."""
    return node.call(_REDUCTIONS[name], x, axis=axes) if axes else x


@operator("reduce")
def reduce(node: HloNode) -> list[SSAValue]:
    """Reduces over axes: by one operator, or to the extreme and its place."""
    operands = node.operands
    axes = sorted(node.ints("dimensions"))
    block = node.op.regions[0].block
    if len(operands) == 2:
        x, start = operands
        name = combination(node, block, node.builder.dtype(x))
        return [combined(node, name, _over_axes(node, name, x, axes), start)]
    if len(operands) == 4:
        found = _extreme_with_place(node, operands[0], operands[1], axes, body_text(node, block))
        if found is not None:
            return found
    if len(operands) % 2 == 0:
        parts = _apart(node, operands, axes, block)
        if parts is not None:
            return parts
    raise Refused("it reduces several tensors at once, and is not argmax or argmin")


def _extreme_with_place(
    node: HloNode, x: SSAValue, places: SSAValue, axes: list[int], body: list[str]
) -> list[SSAValue] | None:
    """Returns the extreme along an axis and its place, of equal ones the first; None for another body."""
    if len(axes) != 1 or node.frame.importer.iotas.get(places) != axes[0]:
        return None
    for direction, name in (("GT", "max"), ("LT", "min")):
        better = f"or({direction}(a0,a2),NE(a0,a0))"
        first = f"or({better},and(EQ(a0,a2),LT(a1,a3)))"
        if body == [f"select({better},a0,a2)", f"select({first},a1,a3)"]:
            if node.builder.dtype(x) == "bool":
                x = node.cast(x, "int8")
            return [node.call(name, x, axis=axes), node.call(f"arg{name}", x, axis=axes)]
    return None


def _apart(node: HloNode, operands: list[SSAValue], axes: list[int], block: Block) -> list[SSAValue] | None:
    """Reduces tensors whose bodies do not depend on each other; returns None where they do."""
    count = len(operands) // 2
    found: list[SSAValue] = []
    for place, text in enumerate(body_text(node, block)):
        name = next((each for each in COMBINES if text == f"{each}(a{place},a{count + place})"), None)
        if name is None or node.builder.dtype(operands[place]) == "bool" or name in ("and", "or"):
            return None
        found.append(combined(node, name, _over_axes(node, name, operands[place], axes), operands[count + place]))
    return found
