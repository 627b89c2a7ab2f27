"""unsafe_set_dtype: the dtype in which a buffer is stored."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.tir.types import dtype_to_type
from ....support.diagnostics import MirError
from ....support.edit import builder_before, erase_op
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block
from .set_scope import retype, written_buffer


@primitive
def unsafe_set_dtype(state: State, block: tir.BlockOp, buffer_index: int | str, dtype: str) -> None:
    """Stores a buffer that a block writes in another dtype; what is written and read is cast.

    B = T.alloc_buffer((8,))                  B = T.alloc_buffer((8,), "float16")
    B[vi] = A[vi] * T.float32(2)       →      B[vi] = T.Cast("float16", A[vi] * T.float32(2))
    C[vi] = B[vi] + T.float32(1)              C[vi] = T.Cast("float32", B[vi]) + T.float32(1)

    Unsafe, as its name says: results change where the new dtype holds less.
    """
    block = require_block(block, "unsafe_set_dtype")
    buffer = written_buffer(block, buffer_index, "unsafe_set_dtype")
    name, old = tir.buffer_name(buffer), buffer.type
    assert isinstance(old, tir.BufferType)
    try:
        element = dtype_to_type(dtype)
    except (MirError, ValueError):
        raise refuse(block, f"unsafe_set_dtype: there is no dtype '{dtype}'") from None
    if not isinstance(buffer.owner, tir.AllocBufferOp):
        raise refuse(
            buffer,
            f"unsafe_set_dtype: buffer '{name}' is not an allocation of this function, so its dtype is its caller's",
            "cache_write it first",
        )
    if element == old.dtype:
        return
    for use in buffer.uses:
        op = use.operation
        plain = isinstance(op, tir.LoadOp | tir.StoreOp) and op.buffer is buffer
        if not plain and (not isinstance(op, tir.BufferRegionOp) or _is_matched(op)):
            raise refuse(op, f"unsafe_set_dtype: '{name}' is used otherwise than by its elements")
    new = retype(buffer, tir.BufferType(old.shape, element, old.scope))
    for use in list(new.uses):
        op = use.operation
        if isinstance(op, tir.StoreOp):
            stored = builder_before(op).insert(tir.CastOp(op.value, element)).result
            op.operands[len(op.operands) - 1] = stored  # an index may be the same value
        elif isinstance(op, tir.LoadOp):
            _recast(op, new)


def _recast(load: tir.LoadOp, buffer: SSAValue) -> None:
    """Replaces a load by one of the new dtype, cast to the dtype of its users."""
    builder = builder_before(load)
    fresh = builder.insert(tir.LoadOp(buffer, list(load.indices)))
    cast = builder.insert(tir.CastOp(fresh.result, load.result.type))
    load.result.replace_all_uses_with(cast.result)
    erase_op(load)


def _is_matched(region: tir.BufferRegionOp) -> bool:
    return any(isinstance(use.operation, tir.MatchBufferOp) for use in region.result.uses)
