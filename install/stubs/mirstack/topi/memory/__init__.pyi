"""The operators `memory.…` on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.device import Device as _Device
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.dialects.te.tensor import Tensor as _Tensor

def alloc_storage(
    size: _Tensor,
    shape: _Tensor,
    alignment: _Tensor,
    dtype: str | None = None,
    virtual_device: _Device | str | None = None,
) -> _Tensor: ...
def alloc_tensor(
    storage: _Tensor,
    offset: _Tensor,
    shape: _Tensor,
    const_shape: object = None,
    assert_shape: _Ints | None = None,
    dtype: str | None = None,
) -> _Tensor: ...
def kill(data: _Tensor) -> _Tensor: ...
