"""Computes the angle of points, which Relay has no operator for."""

from __future__ import annotations

from math import pi

from xdsl.ir import SSAValue

from .graph_builder import GraphBuilder


def angle(b: GraphBuilder, y: SSAValue, x: SSAValue) -> SSAValue:
    """Returns the arctangent of y / x, moved by π to the left of the y axis: `atan2`.

    The operands are floats of one dtype; 16-bit floats are computed in float32.
    """
    dtype = b.dtype(x)
    if dtype in ("float16", "bfloat16"):
        y, x = (b.call("cast", each, dtype="float32") for each in (y, x))
        return b.call("cast", angle(b, y, x), dtype=dtype)

    def number(value: float) -> SSAValue:
        return b.constant(value, dtype)

    # The sign of a zero is the sign of its inverse.
    def is_negative(value: SSAValue) -> SSAValue:
        inverse = b.call("less", b.call("divide", number(1), value), number(0))
        return b.call("where", b.call("equal", value, number(0)), inverse, b.call("less", value, number(0)))

    def signed(magnitude: SSAValue) -> SSAValue:
        return b.call("where", is_negative(y), b.call("negative", magnitude), magnitude)

    up, right = b.call("abs", y), b.call("abs", x)
    equal = b.call("equal", up, right)
    one = b.call("where", b.call("equal", up, number(0)), number(0), number(1))
    found = b.call("atan", b.call("where", equal, one, b.call("divide", up, right)))
    found = b.call("where", is_negative(x), b.call("subtract", number(pi), found), found)
    unordered = b.call("logical_or", b.call("isnan", x), b.call("isnan", y))
    return b.call("where", unordered, b.call("add", x, y), signed(found))
