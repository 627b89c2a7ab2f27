"""Which operators run in a narrow floating-point type; the table of `to-mixed-precision`.

The choice is TVM's, which follows TensorFlow's lists for automatic mixed precision: operators of many multiplications gain
most, sums of many terms and functions that grow fast lose digits or overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ....dialects.relay.operator import OperatorOp
from ....dialects.tir.types import FLOAT_LIMITS


class Category(Enum):
    """When an operator runs in the narrow type; TVM's MIXED_PRECISION_ALWAYS, _FOLLOW, _NEVER, and a stricter never."""

    ALWAYS = "always: its arguments are cast to the narrow type"
    FOLLOW = "where its arguments have the narrow type, or can have it at no cost"
    NEVER = "never: its arguments are cast to float32"
    KEEP = "its arguments have the types that they had, which its relation or its meaning fixes"


_NAMES: Mapping[Category, str] = {
    Category.ALWAYS: """
        nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.dense nn.batch_matmul
    """,
    Category.FOLLOW: """
        zeros full dyn.full copy cast cast_like shape_of take where argwhere scatter_elements scatter_nd
        concatenate split squeeze transpose expand_dims reshape dyn.reshape broadcast_to_like dyn.broadcast_to
        strided_slice dyn.strided_slice tile dyn.tile nn.pad nn.batch_flatten nn.depth_to_space
        add subtract multiply divide sqrt maximum minimum less greater less_equal greater_equal
        max min argmax argmin nn.bias_add nn.batch_norm nn.dropout
        nn.relu nn.leaky_relu nn.prelu sigmoid tanh fast_tanh fast_exp fast_erf clip
        nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.global_max_pool2d
        nn.adaptive_max_pool1d nn.adaptive_max_pool2d nn.adaptive_max_pool3d image.resize2d
    """,
    Category.NEVER: """
        exp power erf nn.softmax nn.cross_entropy nn.cross_entropy_with_logits nn.l2_normalize nn.layer_norm
        sum mean variance nn.global_avg_pool2d nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d
        arange
    """,
    # Scales of quantization are of float32; random numbers have the dtype of their limits, which `out_dtype` names; bits are
    # read as another dtype of the same width.
    Category.KEEP: """
        qnn.abs qnn.add qnn.avg_pool2d qnn.batch_matmul qnn.concatenate qnn.contrib_dense_pack qnn.conv2d
        qnn.conv2d_transpose qnn.dense qnn.dequantize qnn.erf qnn.exp qnn.hardswish qnn.leaky_relu qnn.log qnn.mul
        qnn.quantize qnn.requantize qnn.rsqrt qnn.sigmoid qnn.simulated_dequantize qnn.simulated_quantize qnn.softmax
        qnn.sqrt qnn.subtract qnn.tanh random.multinomial random.normal random.uniform reinterpret
    """,
}

CATEGORIES: Mapping[str, Category] = {name: category for category, names in _NAMES.items() for name in names.split()}
"""The category of each operator that has one, by name."""


def category_of(op: OperatorOp, dtype: str) -> Category | None:
    """When `op` runs in `dtype`; None where nobody said. A `clip` whose limits `dtype` does not hold never does."""
    if op.OPERATOR.name == "clip":
        attrs = op.attrs()
        if max(abs(attrs.a_min), abs(attrs.a_max)) > FLOAT_LIMITS[dtype]:
            return Category.NEVER
    return CATEGORIES.get(op.OPERATOR.name)


CREATED = frozenset({"zeros", "ones", "full", "dyn.zeros", "dyn.ones", "dyn.full"})
"""Operators whose attribute `dtype` is that of a tensor which they fill."""


def result_attribute(op: OperatorOp) -> str | None:
    """The attribute that says in which dtype an operator sums up, or which it fills a tensor with; None for most."""
    if op.OPERATOR.name in CREATED:
        return "dtype"
    return "out_dtype" if op.OPERATOR.name.startswith("nn.") and "out_dtype" in op.OPERATOR.specs else None
