"""loop_partition: distributes the iterations of a loop over several consecutive loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....support.edit import builder_before, erase_op, insert_op_before
from ....support.text import counted
from ..analysis.access import declare_access, reads_of, replace_regions
from ..analysis.block_kind import simplify_blocks_under, why_init_repeats, why_not_started
from ..analysis.structure import buffers_read, buffers_written, child_blocks, const_int
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import name_value, require_loop, require_plain
from .decompose_reduction import declare_update


@primitive
def loop_partition(
    state: State, loop: tir.ForOp, factors: Sequence[int | None], preserve_unit_iters: bool = True
) -> list[Operation]:
    """Runs the first `factors[0]` iterations of a loop in one loop, the next `factors[1]` in another, etc.

    One factor may be None and takes what the others leave; without one, what is left is a further loop.

    for i in range(128):            with T.block("B_i_common"):
        with T.block("B"): …            with T.block("B_i0_partition"):
                                 →          for i0 in range(96):
                                                with T.block("B_i0"): …
                                        with T.block("B_i1_partition"):
                                            for i1 in range(96, 128):
                                                with T.block("B_i1"): …
    """
    loop = require_loop(loop, "loop_partition")
    require_plain(loop, "loop_partition")
    name = loop.var_name.data
    extent = const_int(loop.extent)
    if extent is None:
        raise refuse(loop, f"loop_partition: loop '{name}' has a symbolic extent", "split it by constant factors first")
    sizes = _sizes(loop, list(factors), extent)
    blocks = child_blocks(loop)
    if not blocks:
        raise refuse(loop, f"loop_partition: loop '{name}' holds no block", "its parts are named after a block in it")
    read_before = {buffer for block in blocks for buffer in buffers_read(block)}
    for block in blocks:
        if block.find(tir.InitOp) is not None and why_init_repeats(block) is not None:
            # Elements that T.init() does not begin keep what they held before.
            read_before.update(buffers_written(block))
    base = f"{blocks[0].block_name.data}_{name}"
    why = f"loop '{name}' was partitioned; its blocks are in the loops that loop_partition returned"
    common = _block(loop, state.fresh_block_name(loop, f"{base}_common"))
    insert_op_before(common, loop)
    state.added(common)
    made: list[Operation] = []
    start = 0
    for number, size in enumerate(sizes):
        part = _block(loop, state.fresh_block_name(loop, f"{base}{number}_partition"))
        common.body.block.add_op(part)
        state.added(part)
        made.append(_part(state, loop, part, f"{name}{number}", start, size))
        start += size
    # The common block has taken the loop's place; only now is the loop's own body let go.
    state.erase(loop, why)
    for new in made:
        simplify_blocks_under(new, keep_units=preserve_unit_iters)
        for block in child_blocks(new):
            # A later part adds to the sums that the first began.
            if block.find(tir.InitOp) is not None and why_not_started(block) is not None:
                declare_update(block)
    for part in (*child_blocks(common), common):
        declare_access(part)
    # What one part writes and a later one adds to is nothing that the parts together read.
    analyzer = Analyzer()
    reads = reads_of(common, analyzer)
    if any(box.buffer not in read_before for box in reads):
        replace_regions(common, tir.ReadsOp, [box for box in reads if box.buffer in read_before], analyzer)
    return made


def _sizes(loop: tir.ForOp, factors: list[int | None], extent: int) -> list[int]:
    """Returns the trip count of each part."""
    name = loop.var_name.data
    if not factors:
        raise refuse(loop, f"loop_partition: loop '{name}' needs at least one factor")
    if factors.count(None) > 1:
        raise refuse(
            loop, f"loop_partition: {factors.count(None)} factors of loop '{name}' are None", "leave one to be computed"
        )
    for factor in factors:
        if factor is not None and (type(factor) is not int or factor <= 0):
            raise refuse(
                loop,
                f"loop_partition: {factor!r} is not a number of iterations of loop '{name}'",
                "a factor is a positive number",
            )
    known = [factor for factor in factors if factor is not None]
    rest = extent - sum(known)
    least = 1 if None in factors else 0
    if rest < least:
        raise refuse(
            loop,
            f"loop_partition: the factors take {sum(known)} of the {counted(extent, 'turn')} of loop '{name}'",
            "their sum must leave an iteration for None" if least else "their sum is at most the loop's extent",
        )
    sizes = [rest if factor is None else factor for factor in factors]
    return sizes if None in factors or not rest else [*sizes, rest]


def _block(loop: tir.ForOp, name: str) -> tir.BlockOp:
    block = tir.BlockOp(name, [], [], [], [], [], body=Region(Block()))
    block.location = loop.location
    return block


def _part(state: State, loop: tir.ForOp, part: tir.BlockOp, name: str, start: int, size: int) -> tir.ForOp:
    """Returns the loop of one part, with a copy of the body whose blocks bear the part's name."""
    body = part.body.block
    anchor = tir.ScopeOp()
    body.add_op(anchor)
    builder = builder_before(anchor, loop.location)
    low, extent = (builder.insert(tir.ConstOp.int(value, loop.loop_var.type)).result for value in (start, size))
    new = tir.ForOp(name, low, extent)
    new.location = loop.location
    name_value(new)
    body.insert_op_before(new, anchor)
    erase_op(anchor)
    values: dict[SSAValue, SSAValue] = {loop.loop_var: new.loop_var}
    for op in loop.body.block.ops:
        new.body.block.add_op(op.clone(values))
    pending = child_blocks(new)
    while pending:
        block = pending.pop(0)
        pending += child_blocks(block)
        wanted = state.fresh_block_name(loop, f"{block.block_name.data}_{name}")
        block.properties["block_name"] = StringAttr(wanted)
        state.added(block)
    return new
