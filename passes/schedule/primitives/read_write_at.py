"""read_at, write_at: copies what each iteration of a loop reads, or writes, of a buffer, by one block.

The block bears the annotation `auto_copy`: later stages choose how it is done (by the threads of a block together, say).
After TVM's `read_write_at.cc`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import ZERO, free_vars, substitute
from ....dialects.tir.attribute_values import attribute_of
from ....dialects.tir.open_reductions import may_be_empty, reducing_loops
from ....support.edit import builder_at_end, builder_before, erase_op
from ...tir.threads.thread_storage_scope import share_memory
from ..analysis.access import Box, declare_access, extents_of, index_type, reads_of, relaxed, united
from ..analysis.block_kind import analyzer_for, bind_axes
from ..analysis.region_cover import loops_between, written_box
from ..analysis.structure import (
    Use,
    all_loops_above,
    body_of,
    buffers_written,
    child_under,
    is_inside,
    loops_above,
    scope_of,
    uses_in,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .cache_read_write import retarget
from .common.block_axes import axis_over, make_block
from .common.loops import name_value, require_block, require_complete_or_reduction, require_loop
from .common.new_blocks import shadow_buffer
from .set_scope import read_buffer, require_scope, rescope_matches, written_buffer


@primitive
def read_at(
    state: State, loop: tir.ForOp, block: tir.BlockOp, read_buffer_index: int | str, storage_scope: str
) -> Operation:
    """Copies what each iteration of a loop reads of a buffer to one in `storage_scope`, before its use.

                                              for i in range(8):
                                                  with T.block("A_shared"):
                                                      v0 = T.axis.spatial(8, i)
    for i in range(8):                                T.block_attr({"auto_copy": 1})
        for j in range(16):            →              for ax0 in range(16):
            with T.block("B"):                            A_shared[v0 * 16 + ax0] = A[v0 * 16 + ax0]
                B[v] = f(A[v])                    for j in range(16):
                                                      with T.block("B"): B[v] = f(A_shared[v])
    sch.read_at(i, B, 0, "shared")

    Where threads share the storage scope, the copy is of what all of them read. Returns the block that copies.
    """
    loop, block = _checked(loop, block, storage_scope, "read_at")
    source = read_buffer(block, read_buffer_index, "read_at")
    uses = _uses(block, loop, source, "read_at")
    name, under = tir.buffer_name(source), loop.var_name.data
    readers = list(dict.fromkeys(use.block for use in uses if use.reads and use.block is not None))
    place = _numbers(loop)
    first = min(place[child_under(loop, each)] for each in readers)
    for use in uses:
        if (
            use.writes
            and use.block is not None
            and source in buffers_written(use.block)
            and place[child_under(loop, use.block)] >= first
        ):
            raise refuse(
                use.block,
                f"read_at: block '{use.block.block_name.data}' writes '{name}' in loop '{under}' after a copy would have been made",
                "all writers must come before the first reader in the loop",
            )
    analyzer = analyzer_for(dict.fromkeys(each for reader in readers for each in all_loops_above(reader)))
    box: Box | None = None
    for reader in readers:
        bind_axes(analyzer, reader)
        inner = [*loops_between(reader, loop), *_shared_threads(loop, storage_scope)]
        for read in reads_of(reader, analyzer):
            if read.buffer is not source:
                continue
            reached = relaxed(read, reader, inner, analyzer)
            if reached is None:
                raise refuse(
                    reader,
                    f"read_at: what block '{reader.block_name.data}' reads of '{name}' in an iteration of loop '{under}' is not known",
                    "cache_read copies all of a buffer",
                )
            box = reached if box is None else united(box, reached, analyzer)
    assert box is not None
    for number, ((low, high), extent) in enumerate(zip(box.dims, extents_of(source, analyzer), strict=True)):
        if not (analyzer.can_prove_ge0(low) and analyzer.can_prove_ge0(extent - 1 - high)):
            raise refuse(
                block,
                f"read_at: a copy for loop '{under}' would read '{name}' outside of it: dimension {number} from {low!r} to {high!r} of {extent!r}",
                "split loops without a rest first, or cache_read and compute_at",
            )
    sizes = _sizes(block, box, analyzer, "read_at")
    target = shadow_buffer(state, scope_of(block), source, storage_scope, analyzer)
    anchor = next(op for op, number in place.items() if number == first)
    for reader in readers:
        retarget(reader, source, target)
    rescope_matches(target, storage_scope)
    return _copying_block(state, loop, anchor, source, target, target, box, sizes, analyzer)


@primitive
def write_at(
    state: State, loop: tir.ForOp, block: tir.BlockOp, write_buffer_index: int | str, storage_scope: str
) -> Operation:
    """Lets a block write a buffer in `storage_scope`, which each iteration of a loop copies back.

                                              for i in range(8):
                                                  for j in range(16):
                                                      with T.block("B"): B_shared[v] = f(A[v])
    for i in range(8):                            with T.block("B_shared"):
        for j in range(16):            →              v0 = T.axis.spatial(8, i)
            with T.block("B"):                        T.block_attr({"auto_copy": 1})
                B[v] = f(A[v])                        for ax0 in range(16):
                                                          B[v0 * 16 + ax0] = B_shared[v0 * 16 + ax0]
    sch.write_at(i, B, 0, "shared")

    Where threads share the storage scope, the copy is of what all of them wrote. Returns the block that copies.
    """
    loop, block = _checked(loop, block, storage_scope, "write_at")
    source = written_buffer(block, write_buffer_index, "write_at")
    _uses(block, loop, source, "write_at")
    name, under, called = tir.buffer_name(source), loop.var_name.data, block.block_name.data
    require_complete_or_reduction(block, "write_at")
    above = (*loops_above(loop), loop)
    empty = next((each for each in reducing_loops(block) if each in above and may_be_empty(each)), None)
    if empty is not None:
        raise refuse(
            block,
            f"write_at: loop '{empty.var_name.data}', over which block '{called}' reduces, may have no iteration: what T.init() sets is not copied then",
            "give a loop around those of the reduction",
        )
    threads = _shared_threads(loop, storage_scope)
    around = threads[0] if threads else child_under(loop, block)
    for use in uses_in(source, scope_of(block)):
        if use.block is not None and use.block is not block and is_inside(use.block, around):
            raise refuse(
                use.block,
                f"write_at: block '{use.block.block_name.data}' uses '{name}' before block '{called}' and the threads that run it are done",
                "only after the copy is what was written in its place",
            )
    analyzer = analyzer_for(all_loops_above(block))
    box = written_box(block, source, [*threads, *loops_between(block, loop)], analyzer)
    if isinstance(box, str):
        raise refuse(
            block,
            f"write_at: what block '{called}' writes of '{name}' in an iteration of loop '{under}' is not a full box: {box}",
            "the copy would overwrite elements that the block leaves alone",
        )
    sizes = _sizes(block, box, analyzer, "write_at")
    target = shadow_buffer(state, scope_of(block), source, storage_scope, analyzer)
    anchor = child_under(loop, block).next_op
    retarget(block, source, target)
    rescope_matches(target, storage_scope)
    return _copying_block(state, loop, anchor, target, source, target, box, sizes, analyzer)


# Legality


def _checked(loop: tir.ForOp, block: tir.BlockOp, storage_scope: str, name: str) -> tuple[tir.ForOp, tir.BlockOp]:
    """Returns the arguments as a loop and a block in it; raises where they are not."""
    loop, block = require_loop(loop, name), require_block(block, name)
    require_scope(block, storage_scope, name)
    called, under = block.block_name.data, loop.var_name.data
    if not is_inside(block, loop) or scope_of(block) is not scope_of(loop):
        raise refuse(loop, f"{name}: loop '{under}' is not around block '{called}'", "give a loop of get_loops(block)")
    for each in (*all_loops_above(loop), loop):
        if each.kind.data == "vectorized":
            raise refuse(
                each,
                f"{name}: loop '{each.var_name.data}' is vectorized: its iterations are lanes, which do not copy",
                "copy before vectorize",
            )
    return loop, block


def _uses(block: tir.BlockOp, loop: tir.ForOp, buffer: SSAValue, name: str) -> list[Use]:
    """Returns the uses of a buffer by blocks in a loop."""
    owner = buffer.owner
    if isinstance(owner, tir.BufferOp) and owner.stride_dims.data:
        raise refuse(block, f"{name}: buffer '{tir.buffer_name(buffer)}' has strides", "copy a compact buffer")
    uses = uses_in(buffer, scope_of(block))
    if any(use.block is None for use in uses):
        raise refuse(
            block, f"{name}: '{tir.buffer_name(buffer)}' is used outside of any block", "give the statement a block"
        )
    return [use for use in uses if use.block is not None and is_inside(use.block, loop)]


def _numbers(loop: tir.ForOp) -> dict[Operation, int]:
    return {op: number for number, op in enumerate(body_of(loop).ops)}


def _shared_threads(loop: tir.ForOp, storage_scope: str) -> list[tir.ForOp]:
    """Returns the loops of a scope, up to `loop`, bound to threads that share the memory, outermost first.

    The buffer is allocated in the scope's block: blocks around `loop` have one each.
    """
    return [each for each in (*loops_above(loop), loop) if share_memory(each, storage_scope)]


def _sizes(block: tir.BlockOp, box: Box, analyzer: Analyzer, name: str) -> list[Expr]:
    """Returns the extents of a box; raises where one is not the same in all iterations."""
    sizes = [analyzer.simplify(high - low + 1) for low, high in box.dims]
    turns = {analyzer.expr(each.loop_var).atom for each in all_loops_above(block)}
    for number, size in enumerate(sizes):
        if any(atom in turns for atom in free_vars(size)):
            raise refuse(
                block,
                f"{name}: how many elements of '{tir.buffer_name(box.buffer)}' an iteration copies in dimension {number} differs from iteration to iteration",
                "split loops without a rest first",
            )
    return sizes


# Application


def _copying_block(
    state: State,
    loop: tir.ForOp,
    anchor: Operation | None,
    source: SSAValue,
    target: SSAValue,
    named_after: SSAValue,
    box: Box,
    sizes: Sequence[Expr],
    analyzer: Analyzer,
) -> tir.BlockOp:
    """Creates the block that copies a box in each iteration of `loop`, before `anchor` (None: at its end).

    The loops that the start of the box depends on are its axes; the loops over the box are inside of it.
    """
    type_ = index_type(source)
    loops = {analyzer.variable(each.loop_var): each for each in (*loops_above(loop), loop)}
    driving = {atom: loops[atom] for atom in free_vars(*(low for low, _ in box.dims)) if atom in loops}
    axes = [axis_over(each, f"v{k}", "S", analyzer) for k, each in enumerate(driving.values())]
    body = body_of(loop)
    marker = tir.EvaluateOp(tir.ConstOp.int(0))
    if anchor is None:
        body.add_op(marker)
    else:
        body.insert_op_before(marker, anchor)
    name = state.fresh_block_name(loop, tir.buffer_name(named_after))
    annotations = DictionaryAttr({"auto_copy": attribute_of(1)})
    new, values = make_block(builder_before(marker, loop.location), name, axes, Analyzer(), annotations=annotations)
    erase_op(marker)
    moved = {atom: values[axis.atom] for atom, axis in zip(driving, axes, strict=True)}
    builder = builder_at_end(new.body.block, loop.location)
    places: list[Expr] = []
    fresh = Analyzer()
    for k, ((low, _), size) in enumerate(zip(box.dims, sizes, strict=True)):
        start, stop = fresh.to_ssa(ZERO, builder, type_), fresh.to_ssa(size, builder, type_)
        inner = tir.ForOp(f"ax{k}", start, stop)
        name_value(inner)
        builder.insert(inner)
        builder = builder_at_end(inner.body.block, loop.location)
        places.append(substitute(low, moved) + fresh.expr(inner.loop_var))
    value = builder.insert(tir.LoadOp(source, [fresh.to_ssa(e, builder, type_) for e in places])).result
    builder.insert(tir.StoreOp(value, target, [fresh.to_ssa(e, builder, type_) for e in places]))
    declare_access(new)
    state.added(new)
    return new
