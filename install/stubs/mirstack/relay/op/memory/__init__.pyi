"""The operators `memory.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.device import Device as _Device
from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.op.make import Ints as _Ints

def alloc_storage(
    size: _RelayExpr,
    shape: _RelayExpr,
    alignment: _RelayExpr,
    dtype: str | None = None,
    virtual_device: _Device | str | None = None,
) -> _Call: ...
def alloc_tensor(
    storage: _RelayExpr,
    offset: _RelayExpr,
    shape: _RelayExpr,
    const_shape: object = None,
    assert_shape: _Ints | None = None,
    dtype: str | None = None,
) -> _Call: ...
def kill(data: _RelayExpr) -> _Call: ...
