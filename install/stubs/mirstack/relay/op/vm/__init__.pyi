"""The operators `vm.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Call as _Call
from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.op.make import Ints as _Ints

def reshape_tensor(data: _RelayExpr, shape: _RelayExpr, newshape: _Ints) -> _Call: ...
def shape_of(tensor: _RelayExpr, dtype: str | None = None) -> _Call: ...
