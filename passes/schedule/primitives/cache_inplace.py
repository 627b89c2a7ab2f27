"""cache_inplace: a block that updates a buffer in place works on a copy of it."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.expr import TRUE, free_vars
from ....dialects.tir.types import I1
from ....support.edit import builder_before
from ..analysis.access import Box, extents_of, reads_of, relaxed, united, whole, writes_of
from ..analysis.block_kind import analyzer_for, bind_axes, set_block
from ..analysis.structure import all_loops_above, buffers_written, loops_above, scope_of
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .cache_read_write import copy_block, retarget
from .common.loops import require_block
from .common.new_blocks import shadow_buffer
from .set_scope import read_buffer, require_scope


@primitive
def cache_inplace(
    state: State, block: tir.BlockOp, read_buffer_index: int | str, storage_scope: str
) -> list[Operation]:
    """Copies the part of a buffer that a block accesses to another scope before it, and back after it.

                                                    for ax0 in range(64):
                                                        with T.block("A_local"): A_local[v0] = A[v0]
    with T.block("B"):                       →      with T.block("B"):
        T.call_extern("int32", "f", A.data)             T.call_extern("int32", "f", A_local.data)
                                                    for ax0 in range(64):
                                                        with T.block("A_local_1"): A[v0] = A_local[v0]

    The copy is in `storage_scope`. Returns the two blocks that copy.
    """
    block = require_block(block, "cache_inplace")
    buffer = read_buffer(block, read_buffer_index, "cache_inplace")
    require_scope(block, storage_scope, "cache_inplace")
    name, called = tir.buffer_name(buffer), block.block_name.data
    if buffer not in buffers_written(block):
        raise refuse(block, f"cache_inplace: block '{called}' does not write '{name}'", "cache_read it")
    for loop in loops_above(block):
        if loop.kind.data not in ("serial", "unrolled"):
            raise refuse(
                loop,
                f"cache_inplace: the copies of '{name}' would stand in loop '{loop.var_name.data}', which is {loop.kind.data}: its iterations would share the copy",
                "cache_inplace first",
            )
    holder = block.parent_op()
    if not isinstance(holder, tir.ForOp | tir.BlockOp | tir.PrimFuncOp):
        raise refuse(
            block,
            f"cache_inplace: block '{called}' stands in '{'' if holder is None else holder.name}', not in a loop or block",
        )
    analyzer = analyzer_for(all_loops_above(block))
    bind_axes(analyzer, block)
    condition = TRUE if block.predicate is None else analyzer.expr(block.predicate)
    analyzer.constraint(condition)
    written = _touched(block, writes_of(block, analyzer), buffer, analyzer)
    taken = None if written is None else _touched(block, reads_of(block, analyzer), buffer, analyzer)
    if written is None or taken is None or not _known(taken := united(taken, written, analyzer), analyzer):
        written = taken = whole(buffer, analyzer)
    copy = shadow_buffer(state, scope_of(block), buffer, storage_scope, analyzer)
    retarget(block, buffer, copy)
    made: list[Operation] = []
    for source, target, box, anchor in (
        (buffer, copy, taken, block),
        (copy, buffer, written, block.next_op),
    ):
        copies = copy_block(state, holder, anchor, source, target, box, analyzer, tir.buffer_name(copy), moving=True)
        if condition != TRUE:
            set_block(copies, predicate=analyzer.to_ssa(condition, builder_before(copies), I1))
        made.append(copies)
    return made


def _touched(block: tir.BlockOp, boxes: Sequence[Box], buffer: SSAValue, analyzer: Analyzer) -> Box | None:
    """Returns the box that one instance of a block touches, in terms of outer loops; None if unknown."""
    total: Box | None = None
    for box in boxes:
        if box.buffer is not buffer:
            continue
        here = relaxed(box, block, [], analyzer)
        if here is None:
            return None
        total = here if total is None else united(total, here, analyzer)
    return total


def _known(box: Box, analyzer: Analyzer) -> bool:
    """Returns whether a box is known to be inside its buffer and to have a constant extent."""
    loops = {atom for atom in free_vars(*(e for ends in box.dims for e in ends))}
    return all(
        analyzer.can_prove_ge0(low)
        and analyzer.can_prove_ge0(extent - 1 - high)
        and not loops & set(free_vars(analyzer.simplify(high - low)))
        for (low, high), extent in zip(box.dims, extents_of(box.buffer, analyzer), strict=True)
    )
