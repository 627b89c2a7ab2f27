"""cache_read, cache_write: a block works on a copy of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.tir.analysis import Analyzer
from ....support.walk import walk_ops
from ..access import Box, extents_of, index_type, reads_of, relaxed, united, whole, writes_of
from ..blocks import analyzer_for, bind_axes, why_not_dominant
from ..build import elementwise_block
from ..errors import refuse
from ..primitive import primitive
from ..state import State
from ..structure import Scope, all_loops_above, child_under, in_order, loops_above, readers, scope_of, writers
from .loops import require_block
from .set_scope import read_buffer, written_buffer


@primitive
def cache_read(
    state: State,
    block: tir.BlockOp,
    read_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[tir.BlockOp | str] | None = None,
) -> Operation:
    """Copies a buffer that a block reads, whole, to a new one in `storage_scope`; the readers read the copy.

                                             for ax0, ax1 in T.grid(8, 8):
                                                 with T.block("A_local"): A_local[v0, v1] = A[v0, v1]
    for i, j in T.grid(8, 8):         →      for i, j in T.grid(8, 8):
        with T.block("B"): B = f(A[vi, vj])      with T.block("B"): B = f(A_local[vi, vj])
    """
    block = require_block(block, "cache_read")
    buffer = read_buffer(block, read_buffer_index, "cache_read")
    scope = scope_of(block)
    chosen = [state.named_block(scope, b, "cache_read") if isinstance(b, str) else b for b in consumer_blocks or ()]
    users = in_order(chosen or readers(buffer, scope), scope)
    makers = writers(buffer, scope)
    if len(makers) > 1:
        raise refuse(
            block,
            f"cache_read: '{tir.buffer_name(buffer)}' is written by {len(makers)} blocks, so no one copy holds its final value",
        )
    users = [u for u in users if u not in makers]
    if not users:
        raise refuse(block, f"cache_read: no block but its writer reads '{tir.buffer_name(buffer)}'")
    analyzer, box = _covered(users, buffer, reads=True)
    copy = _new_buffer(state, scope, buffer, storage_scope)
    if makers:
        made = child_under(scope, makers[0])
        anchor = made.next_op
    else:
        anchor = next((op for op in scope.body.block.ops if isinstance(op, tir.ForOp | tir.BlockOp)), None)
    cached = _copy_block(state, scope, anchor, buffer, copy, box, analyzer, f"{tir.buffer_name(copy)}")
    for user in users:
        retarget(user, buffer, copy)
    return cached


@primitive
def cache_write(
    state: State,
    block: tir.BlockOp,
    write_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[tir.BlockOp | str] | None = None,
) -> Operation:
    """A block writes a new buffer in `storage_scope`, which is then copied, whole, to the old one.

    for i, j in T.grid(8, 8):               for i, j in T.grid(8, 8):
        with T.block("B"): B[vi, vj] = …  →     with T.block("B"): B_local[vi, vj] = …
                                            for ax0, ax1 in T.grid(8, 8):
                                                with T.block("B_local"): B[v0, v1] = B_local[v0, v1]
    """
    block = require_block(block, "cache_write")
    buffer = written_buffer(block, write_buffer_index, "cache_write")
    scope = scope_of(block)
    reason = why_not_dominant(block)
    if reason is not None:
        raise refuse(
            block, f"cache_write: block '{block.block_name.data}' is not alone in writing its output: {reason}"
        )
    chosen = [state.named_block(scope, b, "cache_write") if isinstance(b, str) else b for b in consumer_blocks or ()]
    analyzer, box = _covered([block], buffer, reads=False)
    copy = _new_buffer(state, scope, buffer, storage_scope)
    anchor = child_under(scope, block).next_op
    retarget(block, buffer, copy)
    for user in chosen:
        retarget(user, buffer, copy)
    return _copy_block(state, scope, anchor, copy, buffer, box, analyzer, tir.buffer_name(copy))


def _covered(blocks: Sequence[tir.BlockOp], buffer: SSAValue, reads: bool) -> tuple[Analyzer, Box]:
    """The box of `buffer` that blocks touch in all their turns; all of it where that is not known."""
    analyzer = analyzer_for(dict.fromkeys(loop for block in blocks for loop in all_loops_above(block)))
    total: Box | None = None
    for block in blocks:
        bind_axes(analyzer, block)
        for box in reads_of(block, analyzer) if reads else writes_of(block, analyzer):
            if box.buffer is not buffer:
                continue
            covered = relaxed(box, block, loops_above(block), analyzer)
            if covered is None or not all(_fits(covered, analyzer)):
                return analyzer, whole(buffer, analyzer)
            total = covered if total is None else united(total, covered, analyzer)
    return analyzer, total or whole(buffer, analyzer)


def _fits(box: Box, analyzer: Analyzer) -> list[bool]:
    """For each dimension, whether the box is known to lie inside the buffer."""
    return [
        analyzer.can_prove_ge0(low) and analyzer.can_prove_ge0(extent - 1 - high)
        for (low, high), extent in zip(box.dims, extents_of(box.buffer, analyzer), strict=True)
    ]


def _new_buffer(state: State, scope: Scope, buffer: SSAValue, storage_scope: str) -> SSAValue:
    """A buffer like another in a different scope, allocated in the block scope."""
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    name = state.fresh_buffer_name(scope, f"{tir.buffer_name(buffer)}_{storage_scope.replace('.', '_')}")
    owner = buffer.owner
    shape = list(owner.shape) if isinstance(owner, tir.BufferOp) else []
    new_type = tir.BufferType(type_.shape, type_.dtype, StringAttr(storage_scope))
    return state.allocate(scope, tir.AllocBufferOp(name, new_type, shape=shape))


def _copy_block(
    state: State,
    scope: Scope,
    anchor: Operation | None,
    source: SSAValue,
    target: SSAValue,
    box: Box,
    analyzer: Analyzer,
    name: str,
) -> tir.BlockOp:
    """Loops and a block that copy a box, before `anchor` (None: at the end of the scope)."""

    def value(builder: Builder, axes: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(tir.LoadOp(source, axes)).result

    type_ = index_type(source)
    lows = [low for low, _ in box.dims]
    extents = [analyzer.simplify(high - low + 1) for low, high in box.dims]
    return elementwise_block(
        state, scope, anchor, name, target, extents, value, analyzer=analyzer, starts=lows, type_=type_
    )


def retarget(block: tir.BlockOp, old: SSAValue, new: SSAValue) -> None:
    """Has everything inside a block use another buffer."""
    for op in walk_ops(block):
        for index, operand in enumerate(op.operands):
            if operand is old:
                op.operands[index] = new


__all__ = ["cache_read", "cache_write", "retarget"]
