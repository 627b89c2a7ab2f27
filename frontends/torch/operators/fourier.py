"""Fourier transforms, of real and complex tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ...common.fourier import first_half, mirrored, transformed
from ..complex_tensor import ComplexTensor, complex_operator
from ..node import FxNode

BY_ROOT, BY_SIZE = 1, 2
"""Torch's numbers for results divided by the square root of the size, and by the size."""


@complex_operator("_fft_c2c")
def complex_to_complex(
    node: FxNode, x: ComplexTensor, dims: Sequence[int], normalization: int, forward: bool
) -> ComplexTensor:
    """Transforms complex numbers, there or back."""
    sizes = [node.size_of(x.real, axis) for axis in dims]
    for axis in dims:
        x = _transformed(node, x, axis, not forward)
    return _scaled(node, x, sizes, normalization, not forward)


@complex_operator("_fft_r2c")
def real_to_complex(
    node: FxNode, x: SSAValue, dims: Sequence[int], normalization: int, onesided: bool
) -> ComplexTensor:
    """Transforms real numbers; `onesided` to the first half of the last of the axes."""
    rank = node.rank(x)
    sizes = [node.size_of(x, axis) for axis in dims]
    *others, last = dims
    found = _transformed(node, ComplexTensor(x, node.call("zeros_like", x)), last, False)
    if onesided:
        found = ComplexTensor(*(first_half(node.builder, each, last % rank) for each in (found.real, found.imaginary)))
    for axis in others:
        found = _transformed(node, found, axis, False)
    return _scaled(node, found, sizes, normalization, False)


@complex_operator("_fft_c2r")
def complex_to_real(
    node: FxNode, x: ComplexTensor, dims: Sequence[int], normalization: int, last_dim_size: Any
) -> SSAValue:
    """Transforms the half of a spectrum back to real numbers, `last_dim_size` along the last of the axes."""
    *others, last = dims
    sizes = [*(node.size_of(x.real, axis) for axis in others), last_dim_size]
    for axis in others:
        x = _transformed(node, x, axis, True)
    axis = last % node.rank(x.real)
    whole = node.tensor(last_dim_size, "int64")
    found = ComplexTensor(*mirrored(node.builder, x.real, x.imaginary, axis, whole))
    found = _transformed(node, found, axis, True)
    return _scaled(node, found, sizes, normalization, True).real


def _transformed(node: FxNode, x: ComplexTensor, axis: int, inverse: bool) -> ComplexTensor:
    return ComplexTensor(*transformed(node.builder, x.real, x.imaginary, axis % node.rank(x.real), inverse))


def _scaled(node: FxNode, x: ComplexTensor, sizes: Sequence[Any], normalization: int, inverse: bool) -> ComplexTensor:
    """Scales a transform by its size: Relay's inverse is divided by it, and no other is."""
    power = {BY_ROOT: -0.5, BY_SIZE: -1.0}.get(normalization, 0.0) + inverse
    if not power or not sizes:
        return x
    dtype = node.dtype()
    size = node.tensor(sizes[0], "float64")
    for each in sizes[1:]:
        size = node.call("multiply", size, node.tensor(each, "float64"))
    factor = node.cast(node.call("power", size, node.builder.constant(power, "float64")), dtype)
    return ComplexTensor(*(node.call("multiply", each, factor) for each in (x.real, x.imaginary)))
