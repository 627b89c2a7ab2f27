"""`topi.image`: the operators of images on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers
from mirstack.dialects.te.tensor import Tensor as _Tensor
from typing import Any as _Any

def affine_grid(data: _Tensor, target_shape: _Ints) -> _Tensor: ...
def crop_and_resize(
    data: _Tensor,
    boxes: _Tensor,
    box_indices: _Tensor,
    crop_size: _Ints,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Tensor: ...
def dilation2d(
    data: _Tensor,
    weight: _Tensor,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilations: _Ints = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str | None = None,
) -> _Tensor: ...
def dilation2d_nchw(
    input: _Tensor, filter: _Tensor, stride: _Any, padding: _Any, dilations: _Any, out_dtype: str | None = None
) -> _Tensor: ...
def dilation2d_nhwc(
    input: _Tensor, filter: _Tensor, stride: _Any, padding: _Any, dilations: _Any, out_dtype: str | None = None
) -> _Tensor: ...
def grid_sample(
    data: _Tensor,
    grid: _Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> _Tensor: ...
def resize1d(
    data: _Tensor,
    roi: _Numbers | None,
    size: _Ints,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Tensor: ...
def resize2d(
    data: _Tensor,
    roi: _Numbers | _Tensor | None,
    size: _Ints | _Tensor,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Tensor: ...
def resize3d(
    data: _Tensor,
    roi: _Numbers | None,
    size: _Ints,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.5,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Tensor: ...
