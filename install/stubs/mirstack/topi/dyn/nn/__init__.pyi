"""The operators `dyn.nn.…` on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.dialects.te.tensor import Tensor as _Tensor

def pad(data: _Tensor, pad_width: _Tensor, pad_value: _Tensor, pad_mode: str = "constant") -> _Tensor: ...
def upsampling(
    data: _Tensor,
    scale_h: _Tensor,
    scale_w: _Tensor,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> _Tensor: ...
def upsampling3d(
    data: _Tensor,
    scale_d: _Tensor,
    scale_h: _Tensor,
    scale_w: _Tensor,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> _Tensor: ...
