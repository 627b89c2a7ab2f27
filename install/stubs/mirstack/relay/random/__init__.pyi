"""The operators `random.…`, as functions.

Written by `python install/generate_stubs.py`, not by hand.
"""

from mirstack.api.relay.expr import RelayExpr as _RelayExpr
from mirstack.api.relay.expr import TupleWrapper as _TupleWrapper
from mirstack.api.relay.op.composite import threefry_key as threefry_key
from mirstack.api.relay.op.make import Ints as _Ints
from mirstack.api.relay.op.make import Numbers as _Numbers

def multinomial(key: _RelayExpr, probs: _RelayExpr, num_samples: int = 1) -> _TupleWrapper: ...
def normal(
    key: _RelayExpr,
    shape: _Ints,
    dtype: str | None = "float32",
    mean: _RelayExpr | _Numbers = 0.0,
    scale: _RelayExpr | _Numbers = 1.0,
) -> _TupleWrapper: ...
def threefry_generate(key: _RelayExpr, shape: _Ints) -> _TupleWrapper: ...
def threefry_split(key: _RelayExpr) -> _TupleWrapper: ...
def uniform(
    key: _RelayExpr,
    shape: _Ints,
    dtype: str | None = "float32",
    low: _RelayExpr | _Numbers = 0.0,
    high: _RelayExpr | _Numbers = 1.0,
) -> _TupleWrapper: ...
