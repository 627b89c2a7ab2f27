"""Builds Fourier transforms of pairs of real tensors, along any axis, and halves of spectra."""

from __future__ import annotations

from xdsl.ir import SSAValue

from .graph_builder import GraphBuilder
from .slices import sliced


def transformed(
    b: GraphBuilder, real: SSAValue, imaginary: SSAValue, axis: int, inverse: bool
) -> tuple[SSAValue, SSAValue]:
    """Returns real and imaginary part of the transform along an axis; the inverse is divided by its size."""
    rank = b.rank(real)
    order = [at for at in range(rank) if at != axis] + [axis]
    back = [order.index(at) for at in range(rank)]
    moved = order != back or axis != rank - 1
    parts = [b.call("transpose", each, axes=order) if moved else each for each in (real, imaginary)]
    found = b.tuple_parts(b.call("dft", *parts, inverse=inverse))
    first, second = (b.call("transpose", each, axes=back) if moved else each for each in found)
    return first, second


def first_half(b: GraphBuilder, x: SSAValue, axis: int) -> SSAValue:
    """Returns the first n // 2 + 1 of n elements along an axis.

    Of a real signal's spectrum the rest is their mirror image, conjugated.
    """
    half = b.call("add", b.call("floor_divide", b.size(x, axis), b.integers(2)), b.integers(1))
    return sliced(b, x, [axis], b.integers([0]), b.reshape(half, [1]), b.integers([1]))


def mirrored(
    b: GraphBuilder, real: SSAValue, imaginary: SSAValue, axis: int, whole: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Returns all `whole` numbers of the spectrum of a real signal from the first half of them."""
    # The numbers after the half are those from (whole - 1) // 2 down to 1.
    begin = b.reshape(b.call("floor_divide", b.call("subtract", whole, b.integers(1)), b.integers(2)), [1])
    halves = [sliced(b, each, [axis], begin, b.integers([0]), b.integers([-1])) for each in (real, imaginary)]
    halves[1] = b.call("negative", halves[1])
    first, second = (
        b.call("concatenate", b.tuple([each, half]), axis=axis)
        for each, half in zip((real, imaginary), halves, strict=True)
    )
    return first, second
