"""The operators `dyn.nn.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr

def pad(data: _RelayExpr, pad_width: _RelayExpr, pad_value: _RelayExpr, pad_mode: str = "constant") -> _Call: ...
def upsampling(
    data: _RelayExpr,
    scale_h: _RelayExpr,
    scale_w: _RelayExpr,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
) -> _Call: ...
def upsampling3d(
    data: _RelayExpr,
    scale_d: _RelayExpr,
    scale_h: _RelayExpr,
    scale_w: _RelayExpr,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
) -> _Call: ...
