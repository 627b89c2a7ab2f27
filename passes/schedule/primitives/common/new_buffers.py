"""New buffers, of shapes that are expressions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from .....dialects import tir
from .....dialects.arith import Analyzer, Expr
from .....dialects.arith.expr import ZERO, maximum
from .....support.edit import builder_at_end, move_before
from ...analysis.structure import Scope
from ...engine.state import State


def new_buffer(
    state: State,
    scope: Scope,
    name: str,
    shape: Sequence[Expr],
    dtype: Attribute,
    storage_scope: str,
    index_type: tir.types.IntegerType,
) -> SSAValue:
    """A buffer allocated at the head of `scope`; extents that are no constants are computed there."""
    dims: list[Attribute] = []
    holder = Block()
    builder = builder_at_end(holder, scope.location)
    kept: list[SSAValue] = []
    for size in shape:
        if size.value is not None:
            dims.append(IntegerAttr(size.value, index_type))
        else:
            dims.append(tir.types.DYNAMIC)
            # 2 * n - 1 elements, as far as the last one is from the first, are none where n is 0.
            least = maximum(size, ZERO) if size.const < 0 else size
            kept.append(Analyzer().to_ssa(least, builder, index_type))
    type_ = tir.BufferType(ArrayAttr(dims), dtype, StringAttr(storage_scope))
    buffer = state.allocate(scope, tir.AllocBufferOp(name, type_, shape=kept))
    assert isinstance(buffer.owner, Operation)
    move_before(holder.ops, buffer.owner)
    return buffer
