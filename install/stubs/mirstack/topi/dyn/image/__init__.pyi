"""The operators `dyn.image.…` on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.dialects.te.tensor import Tensor as _Tensor

def resize2d(
    data: _Tensor,
    size: _Tensor,
    roi: _Tensor,
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    cubic_alpha: float = -0.5,
    cubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
) -> _Tensor: ...
