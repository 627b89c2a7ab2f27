"""Converts ONNX operators on signals, and products by Einstein's notation."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.ir import SSAValue

from ...common.fourier import first_half, mirrored, transformed
from ...common.graph_builder import GraphBuilder
from ...common.open_sizes import Extent
from ...common.slices import sliced
from ..node import Node
from ..registry import operator
from .shape import counted_from_first, padded

# Fourier transforms --------------------------------------------------------------------------------------------------


@operator("DFT", since=17)
def dft_17(node: Node) -> SSAValue:
    """Converts `DFT` of opsets 17 to 19, whose axis is an attribute."""
    return _dft(node, node[0], node.axis(node.rank(0), 1))


@operator("DFT", since=20)
def dft(node: Node) -> SSAValue:
    """Converts `DFT`, whose axis is an input.

    For an axis that is computed, the axes before it and those after it are merged: (…,n,…,2) -> (before,n,after,2).
    """
    builder, x, rank = node.builder, node[0], node.rank(0)
    if not node.has(2) or builder.array(node[2]) is not None:
        axes = node.integers(2, "the axis") or [-2]
        if not -rank <= axes[0] < rank:
            raise node.refuse(f"axis {axes[0]} is outside of a tensor of rank {rank}")
        return _dft(node, x, axes[0] % rank)
    axis = counted_from_first(node, builder.reshape(node[2], [1]), rank)
    places, one = builder.integers(list(range(rank - 1))), builder.integers(1)
    sizes = builder.call("strided_slice", builder.shape_tensor(x), begin=[0], end=[rank - 1])
    before, after = (
        builder.call("prod", builder.call("where", builder.call(name, places, axis), sizes, one))
        for name in ("less", "greater")
    )
    parts = builder.extents(x)[-1]
    if not isinstance(parts, int):
        raise node.refuse("with an axis that is computed the last dimension must be known, not open")
    shape = builder.sizes_tensor([before, builder.reshape(builder.call("take", sizes, axis, axis=0), []), after, parts])
    found = _dft(node, builder.call("dyn.reshape", x, shape), 1, parts)
    new = builder.call("where", builder.call("equal", places, axis), builder.size(found, 1), sizes)
    last = builder.call(
        "concatenate",
        builder.tuple([new, builder.integers([1 if node.attr("inverse", 0) and node.attr("onesided", 0) else 2])]),
        axis=0,
    )
    return builder.call("dyn.reshape", found, last, allowzero=True)


def _dft(node: Node, x: SSAValue, axis: int, parts: Extent | None = None) -> SSAValue:
    """Transforms signals (…,n,…,1 or 2), real or complex; with `onesided` to half of the spectrum.

    The inverse of half a spectrum is real: the other half is its mirror image, conjugated.
    """
    builder, rank = node.builder, node.builder.rank(x)
    parts = builder.extents(x)[-1] if parts is None else parts
    if parts not in (1, 2) or axis == rank - 1:
        raise node.refuse("the last dimension must be 1 (real) or 2 (complex), and not be the axis that is transformed")
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    number = builder.reshape(builder.call("cast", node[1], dtype="int64"), []) if node.has(1) else None
    whole = number
    if inverse and onesided:
        # Half a spectrum of n numbers has n // 2 + 1.
        if whole is None:
            whole = builder.call(
                "multiply", builder.call("subtract", builder.size(x, axis), builder.integers(1)), builder.integers(2)
            )
        number = builder.call("add", builder.call("floor_divide", whole, builder.integers(2)), builder.integers(1))
    if number is not None:
        x = _of_length(node, x, axis, number)
    real = _part(builder, x, 0)
    imaginary = _part(builder, x, 1) if parts == 2 else builder.call("multiply", real, node.scalar(0, real))
    if inverse and onesided:
        assert whole is not None
        real, imaginary = mirrored(builder, real, imaginary, axis, whole)
    found = transformed(builder, real, imaginary, axis, inverse)
    if inverse and onesided:
        found = found[:1]
    elif onesided:
        found = tuple(first_half(builder, each, axis) for each in found)
    return builder.call("stack", builder.tuple(found), axis=rank - 1)


def _part(builder: GraphBuilder, x: SSAValue, part: int) -> SSAValue:
    """Returns the real or the imaginary part, without the last axis."""
    rank = builder.rank(x)
    found = builder.call("strided_slice", x, begin=[part], end=[part + 1], strides=[1], axes=[rank - 1])
    return builder.call("squeeze", found, axis=[rank - 1])


def _of_length(node: Node, x: SSAValue, axis: int, number: SSAValue) -> SSAValue:
    """Cuts a signal, or fills it up with zeros, to a number of elements."""
    builder = node.builder
    if builder.elements(number) == [builder.extents(x)[axis]]:
        return x
    one = builder.integers([1])
    x = sliced(node.builder, x, [axis], builder.integers([0]), builder.reshape(number, [1]), one)
    missing = builder.call("subtract", number, builder.size(x, axis))
    pads = builder.sizes_tensor([0, missing])
    return padded(node, x, [axis], pads, node.scalar(0, x))


@operator("STFT", since=17)
def stft(node: Node) -> SSAValue:
    """Converts `STFT`: transforms of frames that are `frame_step` apart, each times a window.

    signal (N,length,1 or 2), window (n) -> (N,frames,n // 2 + 1 or n,2). With constant sizes the transform is a product with two matrices.
    """
    builder, x = node.builder, node[0]
    onesided = bool(node.attr("onesided", 1))
    rank = node.rank(0)
    if rank == 2:
        x = builder.call("expand_dims", x, axis=2)
    parts = builder.extents(x)[2]
    if parts not in (1, 2) or (parts == 2 and onesided):
        raise node.refuse("the signal must be real, or complex with onesided=0")
    dtype = builder.dtype(x)
    step = builder.reshape(builder.call("cast", node[1], dtype="int64"), [])
    if node.has(3):
        count = builder.reshape(builder.call("cast", node[3], dtype="int64"), [])
    elif node.has(2):
        count = builder.size(node[2], 0)
    else:
        raise node.refuse("it needs one of the inputs window and frame_length")
    zero, one = builder.integers(0), builder.integers(1)

    def numbers(end: SSAValue) -> SSAValue:
        return builder.call("arange", zero, end, one, dtype="int64")

    left = builder.call("subtract", builder.size(x, 1), count)
    frames = builder.call("add", builder.call("floor_divide", left, step), one)
    starts = builder.call("expand_dims", builder.call("multiply", numbers(frames), step), axis=1)
    places = builder.call("add", starts, builder.call("expand_dims", numbers(count), axis=0))
    half = builder.call("add", builder.call("floor_divide", count, builder.integers(2)), one) if onesided else count
    phase = builder.call(
        "floor_mod",
        builder.call(
            "multiply",
            builder.call("expand_dims", numbers(half), axis=1),
            builder.call("expand_dims", numbers(count), axis=0),
        ),
        count,
    )
    turn = builder.call("divide", builder.constant(2 * np.pi, "float64"), builder.call("cast", count, dtype="float64"))
    angle = builder.call("multiply", builder.call("cast", phase, dtype="float64"), turn)
    cosine, sine = (builder.call("cast", builder.call(name, angle), dtype=dtype) for name in ("cos", "sin"))
    if node.has(2):
        cosine, sine = (builder.call("multiply", wave, node[2]) for wave in (cosine, sine))

    def times(part: int, wave: SSAValue) -> SSAValue:
        found = builder.call("strided_slice", x, begin=[part], end=[part + 1], strides=[1], axes=[2])
        taken = builder.call("take", builder.call("squeeze", found, axis=[2]), places, axis=1)
        return builder.call("nn.dense", taken, wave)

    real, imaginary = times(0, cosine), builder.call("negative", times(0, sine))
    if parts == 2:
        real = builder.call("add", real, times(1, sine))
        imaginary = builder.call("add", imaginary, times(1, cosine))
    return builder.call("stack", builder.tuple([real, imaginary]), axis=3)


# Windows and filters -------------------------------------------------------------------------------------------------


@operator("MelWeightMatrix", since=17)
def mel_weight_matrix(node: Node) -> SSAValue:
    """Converts `MelWeightMatrix`: triangles of equal width on the mel scale, a column for each.

    num_mel_bins=8, dft_length=16 -> (9,8)
    """
    from ..protos import element_dtype

    builder = node.builder
    number = int(node.attr("output_datatype", 1))
    dtype = element_dtype(number)
    if dtype is None:
        raise node.refuse(f"output_datatype is {number}, which tensors cannot have")
    count, length = (builder.reshape(builder.call("cast", node[at], dtype="int64"), []) for at in (0, 1))
    rate, low, high = (builder.call("cast", builder.reshape(node[at], []), dtype="float64") for at in (2, 3, 4))

    def real(value: float) -> SSAValue:
        return builder.constant(value, "float64")

    def mel(hertz: SSAValue) -> SSAValue:
        ratio = builder.call("add", builder.call("divide", hertz, real(700.0)), real(1.0))
        return builder.call("multiply", builder.call("log10", ratio), real(2595.0))

    two, one, zero = (builder.integers(value) for value in (2, 1, 0))
    edges = builder.call("add", count, two)
    step = builder.call(
        "divide", builder.call("subtract", mel(high), mel(low)), builder.call("cast", edges, dtype="float64")
    )
    places = builder.call("cast", builder.call("arange", zero, edges, one, dtype="int64"), dtype="float64")
    mels = builder.call("add", builder.call("multiply", places, step), mel(low))
    powers = builder.call("power", real(10.0), builder.call("divide", mels, real(2595.0)))
    hertz = builder.call("multiply", builder.call("subtract", powers, real(1.0)), real(700.0))
    bins = builder.call("multiply", hertz, builder.call("cast", builder.call("add", length, one), dtype="float64"))
    bins = builder.call("floor", builder.call("divide", bins, rate))
    shape = builder.call("expand_dims", builder.call("arange", zero, count, one, dtype="int64"), axis=0)
    left, center, right = (
        builder.call("take", bins, builder.call("add", shape, builder.integers(at)), axis=0) for at in (0, 1, 2)
    )
    half = builder.call("add", builder.call("floor_divide", length, two), one)
    row = builder.call(
        "expand_dims",
        builder.call("cast", builder.call("arange", zero, half, one, dtype="int64"), dtype="float64"),
        axis=1,
    )

    def part(above: SSAValue, below: SSAValue) -> SSAValue:
        width = builder.call("subtract", above, below)
        is_empty = builder.call("equal", width, real(0.0))
        found = builder.call(
            "divide", builder.call("subtract", row, below), builder.call("where", is_empty, real(1.0), width)
        )
        return builder.call("where", is_empty, real(0.0), found)

    rising, falling = part(center, left), part(center, right)
    found = builder.call(
        "maximum", builder.call("where", builder.call("less_equal", row, center), rising, falling), real(0.0)
    )
    found = builder.call("where", builder.call("equal", row, center), real(1.0), found)
    return builder.call("cast", found, dtype=dtype)


# Einstein's notation -------------------------------------------------------------------------------------------------


@operator("Einsum", since=12)
def einsum(node: Node) -> SSAValue:
    """Converts `Einsum`: a product of two matrices or of batches of them to `nn.batch_matmul`."""
    equation = str(node.attr("equation", "")).replace(" ", "")
    return _product(node, equation) or node.call("einsum", node.builder.tuple(node.tensors()), equation=equation)


def _product(node: Node, equation: str) -> SSAValue | None:
    """Multiplies two tensors as batches of matrices; None where the equation says something else.

    bhqd,bkhd->bhqk: batch b,h, rows q, columns k, summed d.
    """
    builder = node.builder
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != 2 or "." in equation or len(node.inputs) != 2:
        return None
    a, b = terms
    if any(len(set(term)) < len(term) for term in (a, b, result)) or node.rank(0) != len(a) or node.rank(1) != len(b):
        return None
    batch = [c for c in result if c in a and c in b]
    rows = [c for c in result if c in a and c not in b]
    columns = [c for c in result if c in b and c not in a]
    summed = [c for c in a if c in b and c not in result]
    if (
        set(a) != {*batch, *rows, *summed}
        or set(b) != {*batch, *columns, *summed}
        or not summed
        or not (rows or columns)
    ):
        return None
    sizes = dict(zip(a, builder.extents(node[0]), strict=True))
    if any(sizes.get(c, size) != size for c, size in zip(b, builder.extents(node[1]), strict=True)):
        return None
    sizes |= dict(zip(b, builder.extents(node[1]), strict=True))

    def matrices(value: SSAValue, term: str, outer: list[str]) -> SSAValue:
        value = builder.call("transpose", value, axes=[term.index(c) for c in (*batch, *outer, *summed)])
        return _grouped(builder, value, [len(batch), len(outer), len(summed)])

    first, second = matrices(node[0], a, rows), matrices(node[1], b, columns)
    found = builder.call("nn.batch_matmul", first, second, transpose_b=True)
    order = [*batch, *rows, *columns]
    found = _ungrouped(node, found, order, a, b)
    return builder.call("transpose", found, axes=[order.index(c) for c in result])


def _grouped(builder: GraphBuilder, value: SSAValue, counts: list[int]) -> SSAValue:
    """Merges runs of axes: counts [2,1,0] of (b,h,q) -> (b*h,q,1)."""
    sizes = builder.extents(value)
    runs = [range(sum(counts[:at]), sum(counts[: at + 1])) for at in range(len(counts))]
    target: list[SSAValue | int] = []
    for run in runs:
        size: SSAValue | int = 1
        known = [sizes[axis] for axis in run]
        if all(isinstance(each, int) for each in known):
            size = int(np.prod(cast("list[int]", known), dtype=np.int64))
        else:
            for axis in run:
                size = builder.call(
                    "multiply", builder.size(value, axis), builder.integers(size) if isinstance(size, int) else size
                )
        target.append(size)
    return builder.reshape(value, builder.sizes_tensor(target))


def _ungrouped(node: Node, value: SSAValue, order: list[str], a: str, b: str) -> SSAValue:
    builder = node.builder
    sizes = [builder.size(node[0], a.index(c)) if c in a else builder.size(node[1], b.index(c)) for c in order]
    return builder.reshape(value, builder.sizes_tensor(sizes)) if sizes else builder.reshape(value, [])
