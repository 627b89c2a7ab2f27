"""Residual networks with activations before the convolutions.

Source: He et al., Identity Mappings in Deep Residual Networks (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, RelayExpr
from ..graph import free_vars
from . import layers
from .init import create_workload
from .layers import nn

UNITS = {
    18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3], 200: [3, 24, 36, 3], 269: [3, 30, 48, 8],
}  # fmt: skip
"""Units of each stage, by the number of layers."""


class Shape:
    """The rank of a network's images, and its layouts."""

    def __init__(self, layout: str):
        self.layout = layout
        self.rank = len(layout) - 2
        self.axis = layout.index("C")
        spatial = layout.replace("N", "").replace("C", "")
        self.kernel = f"OI{spatial}" if self.axis == 1 else f"{spatial}IO"

    def conv(self, data: RelayExpr, channels: int, size: int, stride: int, padding: int, name: str) -> RelayExpr:
        """A convolution of equal sizes along all axes."""
        function = getattr(layers, f"conv{self.rank}d")
        sizes = {"strides": stride, "padding": padding, "kernel_size": size}
        axes = {key: (value,) * self.rank for key, value in sizes.items()}
        layouts = {"data_layout": self.layout, "kernel_layout": self.kernel}
        found: RelayExpr = function(data, channels=channels, name=name, **axes, **layouts)
        return found

    def norm(self, data: RelayExpr, name: str, *, scale: bool = True) -> RelayExpr:
        """A normalization of the channels."""
        return layers.batch_norm_infer(data, epsilon=2e-5, scale=scale, axis=self.axis, name=name)


def residual_unit(
    data: RelayExpr, channels: int, stride: int, same_size: bool, name: str, bottle_neck: bool, shape: Shape
) -> RelayExpr:
    """One unit: convolutions, in a bottleneck through a quarter of the channels, added to the data."""
    active = nn().relu(shape.norm(data, f"{name}_bn1"))
    steps = [(channels // 4, 1, 1), (channels // 4, 3, stride), (channels, 1, 1)]
    value = active
    for number, (width, size, step) in enumerate(
        steps if bottle_neck else [(channels, 3, stride), (channels, 3, 1)], 1
    ):
        if number > 1:
            value = nn().relu(shape.norm(value, f"{name}_bn{number}"))
        value = shape.conv(value, width, size, step, size // 2, f"{name}_conv{number}")
    shortcut = data if same_size else shape.conv(active, channels, 1, stride, 0, f"{name}_sc")
    return value + shortcut


def plan(num_layers: int, height: int) -> tuple[list[int], list[int], bool]:
    """Returns the units of each stage, the channels of each, and whether units are bottlenecks.

    The first channels are those before all stages.

    Raises ValueError for a number of layers that is not one of the paper's.
    """
    if height <= 28:
        if num_layers >= 164 and (num_layers - 2) % 9 == 0:
            return [(num_layers - 2) // 9] * 3, [16, 64, 128, 256], True
        if num_layers < 164 and (num_layers - 2) % 6 == 0:
            return [(num_layers - 2) // 6] * 3, [16, 16, 32, 64], False
    elif num_layers in UNITS:
        wide = num_layers >= 50
        return UNITS[num_layers], [64, 256, 512, 1024, 2048] if wide else [64, 64, 128, 256, 512], wide
    raise ValueError(
        f"there is no residual network of {num_layers} layers for images of height {height}: {sorted(UNITS)}"
    )


def build(
    units: Sequence[int],
    filters: Sequence[int],
    num_classes: int,
    data_shape: tuple[int, ...],
    bottle_neck: bool,
    shape: Shape,
    dtype: str,
) -> Function:
    """Returns the network. Images of height 32 or less are not made smaller before the first stage."""
    data = layers.data(data_shape, dtype)
    value = shape.norm(data, "bn_data", scale=False)
    if data_shape[shape.layout.index("H")] <= 32:
        value = shape.conv(value, filters[0], 3, 1, 1, "conv0")
    else:
        value = nn().relu(shape.norm(shape.conv(value, filters[0], 7, 2, 3, "conv0"), "bn0"))
        pool = getattr(nn(), f"max_pool{shape.rank}d")
        sizes = {"pool_size": (3,) * shape.rank, "strides": (2,) * shape.rank, "padding": (1,) * shape.rank}
        value = pool(value, layout=shape.layout, **sizes)
    for stage, count in enumerate(units):
        for unit in range(count):
            stride = 2 if unit == 0 and stage > 0 else 1
            name = f"stage{stage + 1}_unit{unit + 1}"
            value = residual_unit(value, filters[stage + 1], stride, unit > 0, name, bottle_neck, shape)
    value = nn().relu(shape.norm(value, "bn1"))
    value = nn().batch_flatten(getattr(nn(), f"global_avg_pool{shape.rank}d")(value, layout=shape.layout))
    value = nn().softmax(layers.dense_add_bias(value, units=num_classes, name="fc1"))
    return Function(free_vars(value), value)


def batched(batch_size: int, image_shape: tuple[int, ...], layout: str) -> tuple[int, ...]:
    """Returns the shape of the data: images are given with their channels first."""
    channels, *spatial = image_shape
    return (batch_size, channels, *spatial) if layout.index("C") == 1 else (batch_size, *spatial, channels)


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Function:
    """Returns the network of so many layers. (N,C,H,W) → (N,num_classes)

    Raises ValueError for a number of layers that is not one of the paper's.
    """
    units, filters, bottle_neck = plan(num_layers, image_shape[1])
    shape = batched(batch_size, image_shape, layout)
    return build(units, filters, num_classes, shape, bottle_neck, Shape(layout), dtype)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
