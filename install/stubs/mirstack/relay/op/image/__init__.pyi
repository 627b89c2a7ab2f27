"""The operators `image.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers

def affine_grid(data: _RelayExpr, target_shape: _Ints) -> _Call: ...
def crop_and_resize(
    data: _RelayExpr,
    boxes: _RelayExpr,
    box_indices: _RelayExpr,
    crop_size: _Ints,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Call: ...
def dilation2d(
    data: _RelayExpr,
    weight: _RelayExpr,
    strides: _Ints = (1, 1),
    padding: _Ints = (0, 0),
    dilations: _Ints = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: str | None = None,
) -> _Call: ...
def grid_sample(
    data: _RelayExpr,
    grid: _RelayExpr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> _Call: ...
def resize1d(
    data: _RelayExpr,
    size: _Ints,
    roi: _Numbers | None = None,
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Call: ...
def resize2d(
    data: _RelayExpr,
    size: _Ints | _RelayExpr,
    roi: _Numbers | _RelayExpr | None = None,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Call: ...
def resize3d(
    data: _RelayExpr,
    size: _Ints,
    roi: _Numbers | None = None,
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Call: ...
