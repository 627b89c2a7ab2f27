"""The operators `random.…` on TE tensors.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import Constant as _Constant
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers
from mirstack.dialects.te.tensor import Tensor as _Tensor

def multinomial(key: _Tensor, probs: _Tensor, num_samples: int = 1) -> list[_Tensor]: ...
def normal(
    gen: _Tensor, mean: _Tensor | _Numbers, scale: _Tensor | _Numbers, out_shape: _Ints, out_dtype: str | None = None
) -> list[_Tensor]: ...
def threefry_generate(key: _Tensor, shape: _Ints) -> list[_Tensor]: ...
def threefry_key(seed: int) -> _Constant: ...
def threefry_split(key: _Tensor) -> list[_Tensor]: ...
def uniform(
    gen: _Tensor, low: _Tensor | _Numbers, high: _Tensor | _Numbers, out_shape: _Ints, out_dtype: str | None = None
) -> list[_Tensor]: ...
