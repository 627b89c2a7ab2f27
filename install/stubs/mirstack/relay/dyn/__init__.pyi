"""The operators `dyn.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.relay.dyn import image as image
from mirstack.relay.dyn import nn as nn

def broadcast_to(data: _RelayExpr, shape: _RelayExpr, dtype: str | None = None) -> _Call: ...
def expand_dims(data: _RelayExpr, axis: _RelayExpr, num_newaxis: int = 1) -> _Call: ...
def full(fill_value: _RelayExpr, shape: _RelayExpr, dtype: str | None = None) -> _Call: ...
def one_hot(
    indices: _RelayExpr,
    on_value: _RelayExpr,
    off_value: _RelayExpr,
    depth: _RelayExpr,
    axis: int = -1,
    dtype: str | None = None,
) -> _Call: ...
def ones(shape: _RelayExpr, dtype: str | None = None) -> _Call: ...
def reshape(data: _RelayExpr, newshape: _RelayExpr, allowzero: bool = False) -> _Call: ...
def sparse_to_dense(
    sparse_indices: _RelayExpr, sparse_values: _RelayExpr, default_value: _RelayExpr, output_shape: _RelayExpr
) -> _Call: ...
def squeeze(data: _RelayExpr, axis: _RelayExpr) -> _Call: ...
def strided_slice(
    data: _RelayExpr,
    begin: _RelayExpr,
    end: _RelayExpr,
    strides: _RelayExpr,
    slice_mode: str = "end",
    axes: _Ints | None = None,
) -> _Call: ...
def tile(data: _RelayExpr, reps: _RelayExpr) -> _Call: ...
def topk(
    data: _RelayExpr,
    k: _RelayExpr,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str | None = None,
) -> _Call: ...
def zeros(shape: _RelayExpr, dtype: str | None = None) -> _Call: ...
