"""cache_read, cache_write: a block works on a copy of a buffer."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.tir.buffer import AccessOp
from ....support.edit import builder_before
from ....support.walk import walk_ops
from ...tir.rewriting import set_indices, set_operands
from ..analysis.access import Box, extents_of, index_type, reads_of, relaxed, same_box, united, whole, writes_of
from ..analysis.block_kind import (
    analyzer_for,
    axis_kinds,
    bind_axes,
    why_not_dominant,
    why_not_reduction,
    why_not_started,
)
from ..analysis.region_cover import loops_between, why_not_all_written, why_reads_others, written_box
from ..analysis.structure import (
    Scope,
    all_loops_above,
    blocks_above,
    buffers_read,
    buffers_written,
    child_blocks,
    child_under,
    consumers,
    in_order,
    is_inside,
    loops_above,
    readers,
    runs_before,
    scope_of,
    writers,
)
from ..engine.errors import ScheduleError, refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block
from .common.new_blocks import elementwise_block
from .set_scope import read_buffer, require_scope, written_buffer


@primitive
def cache_read(
    state: State,
    block: tir.BlockOp,
    read_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[tir.BlockOp | str] | None = None,
) -> Operation:
    """Copies what is read of a buffer to one in `storage_scope`; all or the listed readers read the copy.

                                             for ax0, ax1 in T.grid(8, 8):
                                                 with T.block("A_local"): A_local[v0, v1] = A[v0, v1]
    for i, j in T.grid(8, 8):         →      for i, j in T.grid(8, 8):
        with T.block("B"): B = f(A[vi, vj])      with T.block("B"): B = f(A_local[vi, vj])
    """
    block = require_block(block, "cache_read")
    buffer = read_buffer(block, read_buffer_index, "cache_read")
    require_scope(block, storage_scope, "cache_read")
    scope = scope_of(block)
    name = tir.buffer_name(buffer)
    chosen = _listed(state, block, consumer_blocks, "cache_read")
    makers = writers(buffer, scope)
    if len(makers) > 1:
        raise refuse(
            block,
            f"cache_read: '{name}' is written by {len(makers)} blocks, so that no one copy holds its final value",
            "a buffer that one block writes, or none, can be copied",
        )
    # A block that also writes the buffer reads what it, or an earlier iteration of it, wrote: not a finished value.
    users = in_order(chosen or (u for u in readers(buffer, scope) if u not in makers), scope)
    if not users or any(u in makers for u in users):
        raise refuse(
            block,
            f"cache_read: no block but its writer reads '{name}'",
            "cache_inplace is for a block that reads what it writes",
        )
    holder = _common([*makers, *users], scope) if makers else scope
    if makers and all(runs_before(user, makers[0]) and _common([makers[0], user], scope) is scope for user in users):
        # What is read is what was there before.
        makers = []
    for user in users:
        if makers and not runs_before(makers[0], user):
            raise refuse(
                user,
                f"cache_read: block '{user.block_name.data}' reads '{name}' before block '{makers[0].block_name.data}' writes it: one copy cannot hold both values",
                "name the consumer blocks that read it after",
            )
        if makers and user is not makers[0] and is_inside(user, child_under(holder, makers[0])):
            raise _in_between(user, makers[0], name, "cache_read")
    box, analyzer = _covered(users, buffer, holder, reads=True)
    if makers:
        anchor = child_under(holder, makers[0]).next_op
    else:
        anchor = next((op for op in scope.body.block.ops if isinstance(op, tir.ForOp | tir.BlockOp)), None)
    # In a loop the box moves between iterations: the copy then has the buffer's own shape and indices.
    extent = whole(buffer, analyzer) if isinstance(holder, tir.ForOp) else box
    copy = _new_buffer(state, scope, buffer, storage_scope, extent, analyzer)
    cached = copy_block(
        state, holder, anchor, buffer, copy, box, analyzer, tir.buffer_name(copy), moving=isinstance(holder, tir.ForOp)
    )
    for user in users:
        retarget(user, buffer, copy, [low for low, _ in extent.dims])
    return cached


@primitive
def cache_write(
    state: State,
    block: tir.BlockOp,
    write_buffer_index: int | str,
    storage_scope: str,
    consumer_blocks: Sequence[tir.BlockOp | str] | None = None,
) -> Operation:
    """Lets a block write a new buffer in `storage_scope`, which is copied to the old one after it.

    for i, j in T.grid(8, 8):               for i, j in T.grid(8, 8):
        with T.block("B"): B[vi, vj] = …  →     with T.block("B"): B_local[vi, vj] = …
                                            for ax0, ax1 in T.grid(8, 8):
                                                with T.block("B_local"): B[v0, v1] = B_local[v0, v1]

    The readers in `consumer_blocks` read the new buffer.
    """
    block = require_block(block, "cache_write")
    buffer = written_buffer(block, write_buffer_index, "cache_write")
    require_scope(block, storage_scope, "cache_write")
    scope = scope_of(block)
    reason = why_not_dominant(block)
    if reason is not None:
        raise refuse(
            block,
            f"cache_write: block '{block.block_name.data}' is not alone in writing its output: {reason}",
            "one block must write the buffer",
        )
    if _reads_before_it_writes(block, buffer):
        raise refuse(
            block,
            f"cache_write: block '{block.block_name.data}' reads '{tir.buffer_name(buffer)}' before it writes it, and the new buffer would not hold what it reads",
            "cache_inplace it",
        )
    chosen = _listed(state, block, consumer_blocks, "cache_write")
    following = [b for b in consumers(block) if any(r is b for r in readers(buffer, scope))]
    chosen = [b for b in following if b in chosen]
    holder = _common([block, *following], scope) if following else scope
    for user in following:
        if user not in chosen and is_inside(user, child_under(holder, block)):
            raise _in_between(user, block, tir.buffer_name(buffer), "cache_write")
    box, analyzer = _covered([block], buffer, holder, reads=False)
    written = written_box(block, buffer, loops_between(block, holder), analyzer)
    if not isinstance(written, str) and all(_fits(written, analyzer)):
        # Elements that a predicate excludes are not part of it.
        box = written
    for user in chosen:
        _require_only_written(user, block, buffer)
    _require_whole(block, buffer, box, written, scope, analyzer)
    anchor = child_under(holder, block).next_op
    extent = whole(buffer, analyzer) if isinstance(holder, tir.ForOp) else box
    copy = _new_buffer(state, scope, buffer, storage_scope, extent, analyzer)
    lows = [low for low, _ in extent.dims]
    for each in (block, *chosen):
        retarget(each, buffer, copy, lows)
    return copy_block(
        state,
        holder,
        anchor,
        copy,
        buffer,
        box,
        analyzer,
        tir.buffer_name(copy),
        into_copy=False,
        moving=isinstance(holder, tir.ForOp),
    )


def _listed(
    state: State, block: tir.BlockOp, listed: Sequence[tir.BlockOp | str] | None, primitive_name: str
) -> list[tir.BlockOp]:
    """Returns the blocks given as `consumer_blocks`; raises for one that is in another scope than `block`."""
    scope = scope_of(block)
    found = [state.named_block(scope, b, primitive_name) if isinstance(b, str) else b for b in listed or ()]
    for each in found:
        if scope_of(each) is not scope:
            raise refuse(
                each,
                f"{primitive_name}: block '{each.block_name.data}' is listed as a consumer, but is not in the scope of block '{block.block_name.data}'",
                "list blocks that stand in the same block, or directly in the function, as it does",
            )
    return found


def _require_only_written(user: tir.BlockOp, block: tir.BlockOp, buffer: SSAValue) -> None:
    """Raises unless a listed reader comes after the block, and reads only elements that the block writes."""
    if not runs_before(block, user):
        raise refuse(
            user,
            f"cache_write: block '{user.block_name.data}' reads '{tir.buffer_name(buffer)}' before block '{block.block_name.data}' writes it: the new buffer would not hold what it reads",
            "list consumers that come after the block",
        )
    reason = why_reads_others(user, block)
    if reason is not None:
        raise refuse(user, f"cache_write: {reason}: the new buffer holds no others", "leave it out of consumer_blocks")


def _require_whole(
    block: tir.BlockOp, buffer: SSAValue, box: Box, written: Box | str, scope: Scope, analyzer: Analyzer
) -> None:
    """Raises where copying back would overwrite elements that the block does not write but others may."""
    owner = buffer.owner
    if isinstance(owner, tir.AllocBufferOp) and scope_of(owner) is scope:
        return  # Nobody else has: the block is alone in writing it.
    if not isinstance(written, str) and same_box(box, written, analyzer):
        return
    reason = why_not_all_written(block, buffer)
    if reason is not None:
        raise refuse(
            block,
            f"cache_write: block '{block.block_name.data}' is not known to write all of what would be copied back to '{tir.buffer_name(buffer)}': {reason}",
            "cache_write before its loops are split and fused",
        )


def _in_between(user: tir.BlockOp, maker: tir.BlockOp, name: str, primitive_name: str) -> ScheduleError:
    """Returns the refusal where only some readers share the writer's loops: no place is before them all."""
    return refuse(
        user,
        f"{primitive_name}: block '{user.block_name.data}' reads '{name}' in the loops of block '{maker.block_name.data}', and others read it outside: no one copy is made before all of them",
        "name the consumer blocks that are to use the new buffer",
    )


def _reads_before_it_writes(block: tir.BlockOp, buffer: SSAValue, declared: bool = True) -> bool:
    """Tells whether a block uses values of a buffer that it has not written itself.

    With `declared` False a block around it declares no reads of the buffer: only the reads that a reduction makes of its own output,
    which nobody declares, can be of older values.
    """
    inner = child_blocks(block)
    reduces = "R" in axis_kinds(block)
    reads = declared and buffer in buffers_read(block)
    if not reads and buffer not in buffers_written(block):
        return False
    if not inner:
        # A reduction's read of its output is its own only where the block starts the sum.
        loads = reduces and any(isinstance(op, tir.LoadOp) and op.buffer is buffer for op in walk_ops(block))
        return (loads or reads) and why_not_reduction(block) is not None
    init = block.find(tir.InitOp)
    if init is not None and why_not_started(block) is not None:
        inner = [b for b in inner if not is_inside(b, init)]
    makers = [b for b in inner if buffer in buffers_written(b)]
    return any(
        _reads_before_it_writes(b, buffer, reads or reduces)
        and not any(maker is not b and runs_before(maker, b) for maker in makers)
        for b in inner
    )


def _common(blocks: Sequence[tir.BlockOp], scope: Scope) -> Scope | tir.ForOp:
    """Returns the innermost loop around all blocks, otherwise their scope."""
    for loop in reversed(loops_above(blocks[0])):
        if all(is_inside(b, loop) for b in blocks):
            return loop
    return scope


def _covered(
    blocks: Sequence[tir.BlockOp], buffer: SSAValue, holder: Scope | tir.ForOp, reads: bool
) -> tuple[Box, Analyzer]:
    """Returns the box of `buffer` that blocks touch in the loops inside `holder`; all of it if unknown."""
    analyzer = analyzer_for(dict.fromkeys(loop for block in blocks for loop in all_loops_above(block)))
    for outer in reversed(blocks_above(blocks[0])):
        bind_axes(analyzer, outer)
    total: Box | None = None
    for block in blocks:
        bind_axes(analyzer, block)
        inner = [loop for loop in loops_above(block) if loop is not holder and is_inside(loop, holder)]
        for box in reads_of(block, analyzer) if reads else writes_of(block, analyzer):
            if box.buffer is not buffer:
                continue
            covered = relaxed(box, block, inner, analyzer)
            if covered is None:
                return whole(buffer, analyzer), analyzer
            total = covered if total is None else united(total, covered, analyzer)
    if total is None or not all(_fits(total, analyzer)):
        return whole(buffer, analyzer), analyzer
    return total, analyzer


def _fits(box: Box, analyzer: Analyzer) -> list[bool]:
    """Returns for each dimension whether the box is known to be inside the buffer, with a constant extent."""
    return [
        analyzer.can_prove_ge0(low)
        and analyzer.can_prove_ge0(extent - 1 - high)
        and (analyzer.simplify(high - low).value is not None or analyzer.can_prove_equal(high - low, extent - 1))
        for (low, high), extent in zip(box.dims, extents_of(box.buffer, analyzer), strict=True)
    ]


def _new_buffer(
    state: State, scope: Scope, buffer: SSAValue, storage_scope: str, box: Box, analyzer: Analyzer
) -> SSAValue:
    """Allocates a buffer for a box of another, in a different storage scope, in the blocks' scope."""
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    name = state.fresh_buffer_name(scope, f"{tir.buffer_name(buffer)}_{storage_scope.replace('.', '_')}")
    owner = buffer.owner
    symbolic = list(owner.shape) if isinstance(owner, tir.BufferOp) else []
    shape: list[Attribute] = []
    kept: list[SSAValue] = []
    for dim, (low, high) in zip(type_.shape.data, box.dims, strict=True):
        size = analyzer.simplify(high - low + 1).value
        value = None if isinstance(dim, IntegerAttr) else symbolic.pop(0)
        if size is not None:
            shape.append(IntegerAttr(size, index_type(buffer)))
        else:
            shape.append(dim)
            if value is not None:
                kept.append(value)
    new_type = tir.BufferType(ArrayAttr(shape), type_.dtype, StringAttr(storage_scope))
    return state.allocate(scope, tir.AllocBufferOp(name, new_type, shape=kept))


def copy_block(
    state: State,
    holder: Scope | tir.ForOp,
    anchor: Operation | None,
    source: SSAValue,
    target: SSAValue,
    box: Box,
    analyzer: Analyzer,
    name: str,
    *,
    into_copy: bool = True,
    moving: bool = False,
) -> tir.BlockOp:
    """Creates loops and a block that copy a box, before `anchor` (None: at the end of `holder`).

    The copy counts from the start of the box, over which the axes run. Where the box is `moving`, as its start depends on the
    iteration of a loop, it does not: axes are bound to the start plus a loop, and run over the whole dimension.
    """
    type_ = index_type(source)
    lows = [low for low, _ in box.dims]
    extents = [analyzer.simplify(high - low + 1) for low, high in box.dims]

    def place(builder: Builder, axes: Sequence[SSAValue], counts_from_start: bool) -> list[SSAValue]:
        if moving or counts_from_start:
            return list(axes)
        fresh = Analyzer()
        return [
            axis if low == Expr((), 0) else fresh.to_ssa(low + fresh.expr(axis), builder, axis.type)
            for axis, low in zip(axes, lows, strict=True)
        ]

    def value(builder: Builder, axes: Sequence[SSAValue]) -> SSAValue:
        return builder.insert(tir.LoadOp(source, place(builder, axes, not into_copy))).result

    return elementwise_block(
        state,
        holder,
        anchor,
        name,
        target,
        extents,
        value,
        analyzer=analyzer,
        starts=lows if moving else None,
        domains=extents_of(source, analyzer) if moving else extents,
        store_at=lambda builder, axes: place(builder, axes, into_copy),
        type_=type_,
    )


def retarget(block: tir.BlockOp, old: SSAValue, new: SSAValue, lows: Sequence[Expr] | None = None) -> None:
    """Replaces a buffer inside a block by another one, which begins at `lows` of the old one."""
    shift = lows is not None and any(low != Expr((), 0) for low in lows)
    for op in list(walk_ops(block)):
        if old not in op.operands:
            continue
        if shift and lows is not None and isinstance(op, AccessOp):
            set_indices(op, _shifted(op, list(op.indices), lows), new)
        elif shift and lows is not None and isinstance(op, tir.BufferRegionOp):
            set_operands(op, [new], _shifted(op, list(op.mins), lows), list(op.extents))
        else:
            for index, operand in enumerate(op.operands):
                if operand is old:
                    op.operands[index] = new


def _shifted(op: Operation, indices: Sequence[SSAValue], lows: Sequence[Expr]) -> list[SSAValue]:
    builder, analyzer = builder_before(op), Analyzer()
    return [
        i if low == Expr((), 0) else analyzer.to_ssa(analyzer.expr(i) - low, builder, i.type)
        for i, low in zip(indices, lows, strict=True)
    ]
