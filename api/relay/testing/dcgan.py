"""A generator of images by transposed convolutions.

Source: Radford et al., Unsupervised Representation Learning with DCGANs (2015).
"""

from __future__ import annotations

from ....support.public_names import public_names
from ...ir.module import IRModule
from ...nd import NDArray
from ..expr import Function, var
from ..graph import free_vars
from ..op import find
from . import layers
from .init import create_workload
from .layers import nn


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: tuple[int, ...] = (3, 64, 64),
    ngf: int = 128,
    code: str | None = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """Returns the generator of images of 64 by 64. (N,random_len) → (N,C,64,64)

    Raises ValueError for another size. `code` is the name of the input, "data" by default.
    """
    if tuple(oshape[-2:]) != (64, 64):
        raise ValueError(f"the generator makes images of 64 by 64, not of {tuple(oshape[-2:])}")
    axis, kernel = (1, "IOHW") if layout == "NCHW" else (3, "HWOI")
    data = var(code or "data", shape=(batch_size, random_len), dtype=dtype)
    first = nn().relu(nn().dense(data, var("dense_weight"), units=4 * 4 * ngf * 8))
    channels_first = find("reshape")(first, newshape=(-1, ngf * 8, 4, 4))
    value = channels_first if axis == 1 else find("transpose")(channels_first, axes=(0, 2, 3, 1))
    widths = [ngf * 4, ngf * 2, ngf, oshape[-3]]
    for number, width in enumerate(widths, 2):
        value = layers.conv2d_transpose(
            value, channels=width, kernel_size=(4, 4), strides=(2, 2), padding=(1, 1), data_layout=layout, kernel_layout=kernel,
            name=f"g{number}_deconv",
        )  # fmt: skip
        if number <= len(widths):
            value = nn().relu(
                layers.batch_norm_infer(value, epsilon=1e-5, scale=False, axis=axis, name=f"g{number}_bn")
            )
    value = find("tanh")(value)
    return Function(free_vars(value), value)


def get_workload(
    batch_size: int,
    oshape: tuple[int, ...] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """Returns the generator as a module, and weights for it."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, layout=layout, dtype=dtype))


__all__ = ["get_net", "get_workload"]


__dir__ = public_names(__name__)
