"""The operators `vm.…` on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.dialects.te.tensor import Tensor as _Tensor

def reshape_tensor(data: _Tensor, shape: _Tensor, newshape: _Ints) -> _Tensor: ...
def shape_of(tensor: _Tensor, dtype: str | None = None) -> _Tensor: ...
