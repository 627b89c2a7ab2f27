"""Elementwise operators that need more than an expression."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...common.angles import angle
from ...common.refusal import Refused
from ..node import HloNode
from ..registry import operator


@operator("atan2")
def convert_atan2(node: HloNode) -> SSAValue:
    """Returns the angle of points."""
    y, x = node.operands
    return angle(node.builder, y, x)


@operator("clamp")
def clamp(node: HloNode) -> SSAValue:
    """Limits elements from below, then from above."""
    low, x, high = node.operands
    limits = [node.builder.array(each) for each in (low, high)]
    if node.builder.dtype(x) in ("float32", "float64"):
        numbers = [float(each.reshape(-1)[0]) for each in limits if each is not None and each.size == 1]
        if len(numbers) == 2 and numbers[0] <= numbers[1]:
            return node.call("clip", x, a_min=numbers[0], a_max=numbers[1])
    return node.call("minimum", node.call("maximum", x, low), high)


@operator("compare")
def compare(node: HloNode) -> SSAValue:
    """Compares truth values by their order, False below True; rules convert all other comparisons."""
    x, y = (node.cast(each, "int8") for each in node.operands)
    names = {"LT": "less", "LE": "less_equal", "GT": "greater", "GE": "greater_equal"}
    return node.call(names[node.word("comparison_direction")], x, y)


@operator("convert")
def convert(node: HloNode) -> SSAValue:
    """Converts to another dtype."""
    return node.cast(node.operands[0], node.dtype())


@operator("reduce_precision")
def reduce_precision(node: HloNode) -> SSAValue:
    """Rounds to the precision of a shorter dtype."""
    bits = node.int("exponent_bits"), node.int("mantissa_bits")
    shorter = {(5, 10): "float16", (8, 7): "bfloat16", (8, 23): "float32", (11, 52): "float64"}.get(bits)
    if shorter is None:
        raise Refused(f"floats of {bits[0]} bits of exponent and {bits[1]} of mantissa cannot be computed here")
    x = node.operands[0]
    own = node.builder.dtype(x)
    if shorter == "float64" or (shorter == "float32" and own != "float64"):
        return x
    return node.cast(node.cast(x, shorter), own)


@operator("select")
def select(node: HloNode) -> SSAValue:
    """Chooses by element, or one of two tensors."""
    condition, x, y = node.operands
    return node.call("where", condition, x, y)


@operator("shift_right_logical")
def shift_right_logical(node: HloNode) -> SSAValue:
    """Shifts signed integers right as if they had no sign."""
    x, y = node.operands
    dtype = node.dtype()
    x, y = (node.call("cast", each, dtype=f"u{dtype}") for each in (x, y))
    return node.call("cast", node.call("right_shift", x, y), dtype=dtype)
