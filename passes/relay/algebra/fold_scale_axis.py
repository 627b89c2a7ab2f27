"""Folding of per-channel scales into weights, shared by forward- and backward-fold-scale-axis.

As TVM's FoldScaleAxis: `multiply(x, s)`, where `s` has one value for each channel of `x`, is left out, and the weights of the
preceding layers (backward) or following layers (forward) are multiplied instead, once, when the program is compiled. On its way
a scale passes relu, leaky_relu, add and subtract. A `Message` describes the scales that can pass at one tensor.

Only floating-point tensors are scaled: an integer product may wrap and a quotient is not exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, TensorType
from xdsl.ir import SSAValue

from ....dialects.relay import ir
from ....dialects.relay.emit import Emitter, dtype_of
from ....dialects.relay.operator import OperatorOp
from ....dialects.relay.operators.common.layout_strings import Layout, parse_layout
from ....support.edit import erase_op
from ....support.trace import Tracer
from ...changes import op_name
from ..common.rewriting import replace as replace_by

ACTIVATIONS = ("nn.relu", "nn.leaky_relu")
"""Operators f with f(s * x) == s * f(x) for every s >= 0."""
SUMS = ("add", "subtract")
_CONVOLUTIONS = ("nn.conv2d", "nn.conv3d")
MOST_OPERATORS = 16
"""How many operators `is_constant` looks at: each scale that is folded adds two."""
_SAME_ELEMENTS = ("expand_dims", "reshape", "transpose", "squeeze", "repeat")
"""Operators whose result has the values of their argument and no others."""


@dataclass(frozen=True)
class Message:
    """Describes the scales of a tensor that can be folded: one value for each channel.

    `axes` are the channel dimensions (C, or C and the inner block c). Scales may be required not to be negative, or to have an inverse.
    """

    axes: tuple[int, ...]
    non_negative: bool = False
    invertible: bool = False
    constant: bool = False
    """Only scales that are known when the program is compiled."""

    def behind_activation(self) -> Message:
        """The same, where the scale has to pass an activation."""
        return replace(self, non_negative=True)

    def behind_division(self) -> Message:
        """The same, where something has to be divided by the scale."""
        return replace(self, invertible=True)

    def joined(self, other: Message) -> Message | None:
        """Combines two messages; None if they name other dimensions."""
        if self.axes != other.axes:
            return None
        return Message(
            self.axes,
            self.non_negative or other.non_negative,
            self.invertible or other.invertible,
            self.constant or other.constant,
        )

    def accepts(self, scale: SSAValue) -> bool:
        """Returns whether the values of a scale meet the message's conditions, which only constants can."""
        if self.constant and not is_constant(scale):
            return False
        if not self.non_negative and not self.invertible:
            return True
        while isinstance(scale.owner, OperatorOp) and scale.owner.OPERATOR.name in _SAME_ELEMENTS:
            scale = scale.owner.args[0]
        if not isinstance(scale.owner, ir.ConstantOp):
            return False
        array = scale.owner.value.array
        values = array.astype(np.float64)
        if self.non_negative and not np.all(values >= 0):
            return False
        with np.errstate(all="ignore"):
            inverse = (1 / values).astype(array.dtype).astype(np.float64)
        return not self.invertible or bool(np.all(np.isfinite(values) & np.isfinite(inverse)))


def is_constant(value: SSAValue) -> bool:
    """Returns whether a value is computed from constants alone, by a few operators.

    Constant folding left such values, or this pass made them.
    """
    pending, seen = [value], 0
    while pending:
        owner = pending.pop().owner
        seen += 1
        if isinstance(owner, OperatorOp) and not owner.OPERATOR.stateful and owner.args and seen < MOST_OPERATORS:
            pending += owner.args
        elif not isinstance(owner, ir.ConstantOp):
            return False
    return True


@dataclass(frozen=True)
class Layer:
    """Describes how a layer takes a scale: the channel axes of the scaled tensor and of the weight."""

    axes: tuple[int, ...]
    weight_axes: tuple[int, ...]


def input_layer(op: OperatorOp) -> Layer | None:
    """Returns how an operator takes a scale of its input.

    None if it is not a layer or its layout is not handled.
    """
    if not _has_one_dtype(op):
        return None
    if op.OPERATOR.name == "nn.dense":
        return Layer((1,), (1,)) if len(dims_of(op.args[0]) or ()) == 2 else None
    if op.OPERATOR.name not in _CONVOLUTIONS:
        return None
    kernel = _kernel(op)
    return None if kernel is None else _layer(op.attrs().data_layout, kernel, "O" if _is_depthwise(op, kernel) else "I")


def layer_message(op: OperatorOp, layer: Layer, constants_only: bool) -> Message | None:
    """Returns the scales that a layer takes into its weight.

    None if only constant weights may be scaled and this one is not constant.
    """
    if constants_only and not is_constant(op.args[1]):
        return None
    return Message(layer.axes, constant=constants_only)


def output_layer(op: OperatorOp) -> Layer | None:
    """Returns how an operator takes a scale of its result; None as for `input_layer`."""
    if not _has_one_dtype(op):
        return None
    if op.OPERATOR.name == "nn.dense":
        return Layer((1,), (0,)) if len(dims_of(op.args[0]) or ()) == 2 else None
    if op.OPERATOR.name not in _CONVOLUTIONS:
        return None
    kernel, attrs = _kernel(op), op.attrs()
    return None if kernel is None else _layer(attrs.out_layout or attrs.data_layout, kernel, "O")


def _layer(text: str, kernel: Layout, axis: str) -> Layer | None:
    tensor = parse_layout(text)
    if tensor is None:
        return None
    channels, ins, outs = tensor.places("C"), kernel.places("I"), kernel.places("O")
    if not len(channels) == len(ins) == len(outs) or len(ins) > 2:
        return None  # All of them plain, or all in blocks of one level.
    return Layer(tuple(channels), tuple(outs if axis == "O" else ins))


def _kernel(op: OperatorOp) -> Layout | None:
    """Returns the layout of a convolution's weight if it has one group, or one for each channel."""
    kernel, shape = parse_layout(op.attrs().kernel_layout), dims_of(op.args[1])
    if kernel is None or shape is None or len(shape) != len(kernel.dims) or DYNAMIC_INDEX in shape:
        return None
    return kernel if op.attrs().groups == 1 or _is_depthwise(op, kernel) else None


def _is_depthwise(op: OperatorOp, kernel: Layout) -> bool:
    sizes = kernel.logical(dims_of(op.args[1]) or ())
    return sizes["O"] == op.attrs().groups and sizes["I"] == 1


def _has_one_dtype(op: OperatorOp) -> bool:
    return len({dtype_of(value) for value in (*op.args, op.result)}) == 1


def dims_of(value: SSAValue) -> tuple[int, ...] | None:
    """A tensor's dimensions, DYNAMIC_INDEX for those that are not known."""
    return tuple(value.type.get_shape()) if isinstance(value.type, TensorType) else None


def broadcasts_along(value: SSAValue, other: SSAValue, axes: Sequence[int]) -> bool:
    """Returns whether `other` has the sizes of `value` in `axes`, and 1 in all other dimensions."""
    shape, other_shape = dims_of(value), dims_of(other)
    if shape is None or other_shape is None or len(shape) < len(other_shape) or list(axes) != sorted(axes):
        return False
    missing = len(shape) - len(other_shape)
    if any(axis < missing or axis >= len(shape) or shape[axis] == DYNAMIC_INDEX for axis in axes):
        return False
    return all(size == (shape[d] if d in axes else 1) for d, size in enumerate(other_shape, missing))


def is_scale(multiply: OperatorOp, index: int, message: Message) -> bool:
    """Returns whether argument `index` of a `multiply` is a scale that `message` lets pass."""
    scale, value = multiply.args[index], multiply.args[1 - index]
    if not isinstance(dtype_of(value), AnyFloat) or not message.accepts(scale):
        return False
    shape = dims_of(value)
    if dims_of(scale) == () and shape is not None:
        return all(axis < len(shape) and shape[axis] != DYNAMIC_INDEX for axis in message.axes)
    return broadcasts_along(value, scale, message.axes)


def factors(make: Emitter, scale: SSAValue, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """A scale of `value` (`is_scale`) with the dimensions `axes` alone."""
    shape, own = dims_of(value), dims_of(scale)
    assert shape is not None and own is not None
    if not own:
        scale = make.call("expand_dims", scale, axis=0, num_newaxis=len(axes))
        for place, axis in enumerate(axes):
            scale = make.call("repeat", scale, repeats=shape[axis], axis=place)
        return scale
    missing = len(shape) - len(own)
    others = [d for d in range(len(own)) if d + missing not in axes]
    return make.call("squeeze", scale, axis=others) if others else scale


def spread(make: Emitter, scale: SSAValue, like: SSAValue, axes: Sequence[int]) -> SSAValue:
    """`factors` with a dimension of 1 for each of `like` but `axes`, so that they broadcast along these."""
    shape = dims_of(like)
    assert shape is not None
    scale = own(make, scale)
    if len(axes) > 1:
        return make.call("reshape", scale, newshape=[size if d in axes else 1 for d, size in enumerate(shape)])
    behind = len(shape) - axes[0] - 1
    return make.call("expand_dims", scale, axis=1, num_newaxis=behind) if behind else scale


def own(make: Emitter, value: SSAValue) -> SSAValue:
    """The value; of a constant a copy, as each user of a constant has its own."""
    if not isinstance(value.owner, ir.ConstantOp):
        return value
    copy = value.owner.clone()
    copy.location = value.owner.location
    return make.insert(copy)


def leave_out(multiply: OperatorOp, value: SSAValue) -> None:
    """Puts what was multiplied in the place of the product."""
    scales = [arg for arg in multiply.args if arg is not value]
    replace_by(multiply, value)
    for scale in scales:
        if isinstance(scale.owner, ir.ConstantOp) and scale.first_use is None:
            erase_op(scale.owner)


def tell_folded(trace: Tracer | None, multiply: OperatorOp, layer: OperatorOp) -> None:
    """Tells that a layer's weight takes the scale of a multiplication."""
    if trace is not None:
        trace(multiply, f"the scale goes into the weight of {op_name(layer)}", ("which is here", layer))


def scale_weight(make: Emitter, layer: OperatorOp, scale: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The layer's weight times a scale along its dimensions `axes`."""
    weight = layer.args[1]
    return make.call("multiply", weight, spread(make, scale, weight, axes))
