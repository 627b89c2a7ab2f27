"""A network whose blocks convolve by several sizes at once.

Source: Szegedy et al., Rethinking the Inception Architecture for Computer Vision (2016).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, RelayExpr
from ..graph import free_vars
from ..op import find
from . import layers
from .init import create_workload
from .layers import nn

Branch = Sequence[tuple[int, tuple[int, int], int, tuple[int, int]]]
"""Convolutions one after the other: channels, size, stride, padding."""


def _conv(
    data: RelayExpr, channels: int, size: tuple[int, int], stride: int, padding: tuple[int, int], name: str
) -> RelayExpr:
    value = layers.conv2d(
        data, channels=channels, kernel_size=size, strides=(stride, stride), padding=padding, name=f"{name}_conv1"
    )
    return nn().relu(layers.batch_norm_infer(value, epsilon=2e-5, scale=False, name=f"{name}_bn"))


def _branch(data: RelayExpr, steps: Branch, name: str) -> RelayExpr:
    for number, step in enumerate(steps):
        data = _conv(data, *step, f"{name}_{number}")
    return data


def _pool(data: RelayExpr, kind: str, stride: int = 1) -> RelayExpr:
    padding = (1, 1) if stride == 1 else (0, 0)
    sizes = {"pool_size": (3, 3), "strides": (stride, stride), "padding": padding}
    return nn().avg_pool2d(data, count_include_pad=True, **sizes) if kind == "avg" else nn().max_pool2d(data, **sizes)


def _join(*parts: RelayExpr) -> RelayExpr:
    return find("concatenate")(parts, axis=1)


def _same(channels: int, size: int = 1) -> tuple[int, tuple[int, int], int, tuple[int, int]]:
    return channels, (size, size), 1, (size // 2, size // 2)


def _small(data: RelayExpr, projected: int, name: str) -> RelayExpr:
    """A block on images of 35 by 35."""
    return _join(
        _branch(data, [_same(64)], f"{name}_conv"),
        _branch(data, [_same(48), _same(64, 5)], f"{name}_tower"),
        _branch(data, [_same(64), _same(96, 3), _same(96, 3)], f"{name}_tower_1"),
        _branch(_pool(data, "avg"), [_same(projected)], f"{name}_tower_2"),
    )


def _lines(data: RelayExpr, inner: int, name: str) -> RelayExpr:
    """A block on images of 17 by 17, with convolutions along rows and columns."""

    def row(channels: int) -> tuple[int, tuple[int, int], int, tuple[int, int]]:
        return channels, (1, 7), 1, (0, 3)

    def column(channels: int) -> tuple[int, tuple[int, int], int, tuple[int, int]]:
        return channels, (7, 1), 1, (3, 0)

    return _join(
        _branch(data, [_same(192)], f"{name}_conv"),
        _branch(data, [_same(inner), row(inner), column(192)], f"{name}_tower"),
        _branch(data, [_same(inner), column(inner), row(inner), column(inner), row(192)], f"{name}_tower_1"),
        _branch(_pool(data, "avg"), [_same(192)], f"{name}_tower_2"),
    )


def _wide(data: RelayExpr, pool: str, name: str) -> RelayExpr:
    """A block on images of 8 by 8, whose branches split once more."""

    def split(value: RelayExpr, branch: str) -> list[RelayExpr]:
        return [
            _conv(value, 384, (1, 3), 1, (0, 1), f"{branch}_row"),
            _conv(value, 384, (3, 1), 1, (1, 0), f"{branch}_column"),
        ]

    return _join(
        _branch(data, [_same(320)], f"{name}_conv"),
        *split(_branch(data, [_same(384)], f"{name}_tower"), f"{name}_tower"),
        *split(_branch(data, [_same(448), _same(384, 3)], f"{name}_tower_1"), f"{name}_tower_1"),
        _branch(_pool(data, pool), [_same(192)], f"{name}_tower_2"),
    )


def get_net(batch_size: int, num_classes: int, image_shape: tuple[int, ...], dtype: str) -> Function:
    """Returns the network. (N,3,299,299) → (N,num_classes)"""
    value: RelayExpr = layers.data((batch_size, *image_shape), dtype)
    value = _branch(value, [(32, (3, 3), 2, (0, 0)), (32, (3, 3), 1, (0, 0)), (64, (3, 3), 1, (1, 1))], "conv")
    value = _branch(_pool(value, "max", 2), [_same(80), (192, (3, 3), 1, (0, 0))], "conv_3")
    value = _pool(value, "max", 2)
    for number, projected in enumerate((32, 64, 64)):
        value = _small(value, projected, f"mixed_{number}")
    value = _join(
        _branch(value, [(384, (3, 3), 2, (0, 0))], "mixed_3_conv"),
        _branch(value, [_same(64), _same(96, 3), (96, (3, 3), 2, (0, 0))], "mixed_3_tower"),
        _pool(value, "max", 2),
    )
    for number, inner in enumerate((128, 160, 160, 192), 4):
        value = _lines(value, inner, f"mixed_{number}")
    value = _join(
        _branch(value, [_same(192), (320, (3, 3), 2, (0, 0))], "mixed_8_tower"),
        _branch(
            value,
            [_same(192), (192, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)), (192, (3, 3), 2, (0, 0))],
            "mixed_8_tower_1",
        ),
        _pool(value, "max", 2),
    )
    value = _wide(_wide(value, "avg", "mixed_9"), "max", "mixed_10")
    value = nn().batch_flatten(nn().global_avg_pool2d(value))
    value = nn().softmax(layers.dense_add_bias(value, units=num_classes, name="fc1"))
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: tuple[int, ...] = (3, 299, 299),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the network as a module, and weights for it."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
