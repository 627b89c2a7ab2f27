"""Operators that create tensors, change shapes, and move elements to known places."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.array import numpy_dtype
from ....dialects.relay.operator import OperatorOp
from ...common.open_sizes import Extent, computed
from ...common.refusal import Refused
from ..node import HloNode
from ..registry import operator


@operator("mirstack.constant")
def constant(node: HloNode) -> SSAValue:
    """Creates a constant; one whose elements are equal is broadcast."""
    array = node.frame.importer.read.arrays[node.int("index")]
    node.dtype()  # Raises Refused for one that tensors here do not have.
    if array.size > 1 and not any(array.strides):
        return node.frame.broadcast(node.builder.array_constant(array[(0,) * array.ndim]), array.shape)
    return node.builder.array_constant(np.ascontiguousarray(array) if array.ndim else array)


@operator("iota")
def iota(node: HloNode) -> SSAValue:
    """Creates a tensor whose elements are their places along an axis."""
    return _iota(node, node.shape(), None)


@operator("dynamic_iota")
def dynamic_iota(node: HloNode) -> SSAValue:
    """Creates a tensor, of a shape that is computed, whose elements are their places along an axis."""
    return _iota(node, node.sizes(node.operands[0]), node.operands[0])


def _iota(node: HloNode, extents: Sequence[Extent], shape: SSAValue | None) -> SSAValue:
    b, axis, dtype = node.builder, node.int("iota_dimension"), node.dtype()
    length = extents[axis]
    if isinstance(length, int):
        found = b.array_constant(np.arange(length).astype(numpy_dtype(dtype)))
    else:
        assert shape is not None
        found = node.cast(counted(node, shape, axis, length), dtype)
    found = node.reshaped(found, [length, *[1] * (len(extents) - 1 - axis)])
    found = node.frame.broadcast(found, extents, None if shape is None else node.cast(shape, "int64"))
    node.frame.importer.iotas[found] = axis
    return found


def counted(node: HloNode, shape: SSAValue, axis: int, length: Extent) -> SSAValue:
    """Returns 0, 1, 2, …, as many as an element of a shape says, in int64."""
    b = node.builder
    size = node.call("take", node.cast(shape, "int64"), b.integers(axis), axis=0)
    return b.sized(node.call("arange", b.integers(0), size, b.integers(1), dtype="int64"), [length])


@operator("broadcast_in_dim")
def broadcast_in_dim(node: HloNode) -> SSAValue:
    """Broadcasts a tensor whose axes become some of the result's."""
    return _broadcast(node, node.shape(), None)


@operator("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(node: HloNode) -> SSAValue:
    """Broadcasts to a shape that is computed."""
    shape = node.operands[1]
    return _broadcast(node, node.sizes(shape), node.cast(shape, "int64"))


def _broadcast(node: HloNode, extents: Sequence[Extent], shape: SSAValue | None) -> SSAValue:
    x = node.frame.narrow(node.operands[0])
    own = node.builder.extents(x)
    axes = node.ints("broadcast_dimensions")[node.builder.rank(node.operands[0]) - len(own) :]
    first = axes[0] if axes else len(extents)
    placed: list[Extent] = [1] * (len(extents) - first)
    for axis, size in zip(axes, own, strict=True):
        placed[axis - first] = size
    return node.frame.broadcast(node.reshaped(x, placed), extents, shape)


@operator("reshape")
def reshape(node: HloNode) -> SSAValue:
    """Reshapes; a tensor of one value that was broadcast stays one."""
    x = node.operands[0]
    narrow = node.frame.narrow(x)
    shape = node.shape()
    if -1 in shape:
        return node.builder.reshape(x, [each if each >= 0 else -1 for each in shape])
    if node.builder.rank(narrow) == 0 and narrow is not x:
        return node.frame.broadcast(narrow, shape)
    return node.reshaped(_unreshaped(x), shape)


def _unreshaped(x: SSAValue) -> SSAValue:
    """Returns what a tensor is a reshape of."""
    while isinstance(x.owner, OperatorOp) and x.owner.OPERATOR.name in ("reshape", "expand_dims", "squeeze"):
        x = x.owner.args[0]
    return x


@operator("dynamic_reshape")
def dynamic_reshape(node: HloNode) -> SSAValue:
    """Reshapes to a shape that is computed."""
    x, shape = node.operands
    node.sizes(shape)
    return node.builder.reshape(x, node.cast(shape, "int64"))


@operator("transpose")
def transpose(node: HloNode) -> SSAValue:
    """Orders the axes."""
    return node.transposed(node.operands[0], node.ints("permutation"))


@operator("reverse")
def reverse(node: HloNode) -> SSAValue:
    """Reverses the order along axes."""
    found = node.operands[0]
    for axis in node.ints("dimensions"):
        found = node.call("reverse", found, axis=axis)
    return found


@operator("concatenate")
def concatenate(node: HloNode) -> SSAValue:
    """Concatenates along an axis."""
    given = node.operands
    if len(given) == 1:
        return given[0]
    return node.call("concatenate", node.builder.tuple(given), axis=node.int("dimension"))


@operator("slice")
def cut(node: HloNode) -> SSAValue:
    """Returns the elements begin:end:step along each axis."""
    x = node.operands[0]
    begins, ends, steps = (node.ints(name) for name in ("start_indices", "limit_indices", "strides"))
    return sliced(node, x, begins, ends, steps)


def sliced(
    node: HloNode, x: SSAValue, begins: Sequence[int], ends: Sequence[int], steps: Sequence[int] | None = None
) -> SSAValue:
    """Returns the elements begin:end:step along each axis."""
    steps = steps or [1] * len(begins)
    own = node.builder.extents(x)
    axes = [axis for axis, size in enumerate(own) if (begins[axis], ends[axis], steps[axis]) != (0, size, 1)]
    if not axes:
        return x
    b, e, s = ([each[axis] for axis in axes] for each in (begins, ends, steps))
    return node.call("strided_slice", x, begin=b, end=e, strides=s, axes=axes)


@operator("real_dynamic_slice")
def real_dynamic_slice(node: HloNode) -> SSAValue:
    """Returns the elements begin:end:step along each axis, numbers that are computed from sizes."""
    x, *numbers = node.operands
    begins, ends, steps = (node.sizes(each) for each in numbers)
    own = node.builder.extents(x)
    if list(ends) == list(own) and not any(begins) and all(each == 1 for each in steps):
        return x
    found = node.call("dyn.strided_slice", x, *(node.cast(each, "int64") for each in numbers))
    sizes = [
        computed(lambda begin, end, step: max(0, -((begin - end) // step)), *each)
        for each in zip(begins, ends, steps, strict=True)
    ]
    return node.builder.sized(found, sizes)


@operator("pad")
def pad(node: HloNode) -> SSAValue:
    """Pads at the ends and between elements; a negative width cuts off."""
    x, value = node.operands
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, between = (node.ints(name) for name in names)
    return padded(node, x, value, low, high, between)


def padded(
    node: HloNode, x: SSAValue, value: SSAValue, low: Sequence[int], high: Sequence[int], between: Sequence[int]
) -> SSAValue:
    """Pads a tensor with a value: between elements first, then at the ends."""
    for axis, width in enumerate(between):
        if width:
            x = _padded_between(node, x, value, axis, width)
    widths = [[max(0, before), max(0, after)] for before, after in zip(low, high, strict=True)]
    if any(any(each) for each in widths):
        x = node.call("nn.pad", x, value, pad_width=widths)
    cut_axes = [axis for axis in range(len(low)) if low[axis] < 0 or high[axis] < 0]
    if cut_axes:
        begins = [max(0, -low[axis]) for axis in cut_axes]
        ends = [high[axis] if high[axis] < 0 else 2**63 - 1 for axis in cut_axes]
        x = node.call("strided_slice", x, begin=begins, end=ends, strides=[1] * len(cut_axes), axes=cut_axes)
    return x


def _padded_between(node: HloNode, x: SSAValue, value: SSAValue, axis: int, width: int) -> SSAValue:
    """Puts `width` values between the elements along an axis: [1, 2] is [[1, 0], [2, 0]], then [1, 0, 2]."""
    b = node.builder
    size = node.size(x, axis, "the size of an axis that is padded between its elements")
    if not size:
        return x
    wide = node.call("expand_dims", x, axis=axis + 1)
    widths = [[0, width if each == axis + 1 else 0] for each in range(b.rank(wide))]
    wide = node.call("nn.pad", wide, value, pad_width=widths)
    extents = list(b.extents(x))
    extents[axis] = size * (width + 1)
    x = node.reshaped(wide, extents)
    return node.call("strided_slice", x, begin=[0], end=[size * (width + 1) - width], strides=[1], axes=[axis])


@operator("get_dimension_size")
def get_dimension_size(node: HloNode) -> SSAValue:
    """Returns the size of an axis."""
    return node.builder.size(node.operands[0], node.int("dimension"), node.dtype())


@operator("bitcast_convert")
def bitcast_convert(node: HloNode) -> SSAValue:
    """Reads the bits of each element as another dtype of the same width."""
    x = node.operands[0]
    if node.dtype() == node.builder.dtype(x):
        return x
    widths = [numpy_dtype(each).itemsize for each in (node.dtype(), node.builder.dtype(x))]
    if widths[0] != widths[1]:
        raise Refused("bits are read as a dtype of another width")
    return node.call("reinterpret", x, dtype=node.dtype())


@operator("optimization_barrier")
def optimization_barrier(node: HloNode) -> list[SSAValue]:
    """Returns its operands."""
    return node.operands
