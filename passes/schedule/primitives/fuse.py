"""fuse: nested loops become one."""

from __future__ import annotations

from itertools import pairwise

from xdsl.ir import Operation

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import floordiv, floormod
from ....dialects.tir.open_reductions import mixed_with_elements
from ....support.edit import builder_before
from ..analysis.block_kind import simplify_blocks_under
from ..analysis.structure import const_int
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import const_before, name_value, nest, require_countable, require_loop, require_plain
from .reorder import clear_between, only_child_loop


@primitive
def fuse(state: State, *loops: tir.ForOp, preserve_unit_iters: bool = True) -> Operation:
    """Fuses loops, each the only thing in the one before, into one that runs over all their turns.

    for i, j in T.grid(8, 4):                    for i_j_fused in range(32):
        with T.block("B"):                →          with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])          vi = T.axis.spatial(8, i_j_fused // 4)
                                                         vj = T.axis.spatial(4, i_j_fused % 4)

    Raises ScheduleError where a loop of them is over a reduction that may be over nothing, and another one is not.
    """
    if not loops:
        raise refuse(None, "fuse: no loop given", "give the loops from the outermost to the innermost")
    for loop in loops:
        require_plain(require_loop(loop, "fuse"), "fuse")
    for outer, inner in pairwise(loops):
        names = outer.var_name.data, inner.var_name.data
        if only_child_loop(outer) is not inner:
            raise refuse(
                inner,
                f"fuse: loop '{names[1]}' is not the only thing directly in loop '{names[0]}'",
                "give the loops from the outermost to the innermost, with nothing between them",
            )
        if depends_on(inner, outer):
            raise refuse(
                inner,
                f"fuse: the extent of loop '{names[1]}' depends on loop '{names[0]}'",
                "fuse loops that form a box",
            )
    if len(loops) == 1:
        return loops[0]
    outermost, innermost = loops[0], loops[-1]
    block = mixed_with_elements(loops)
    if block is not None:
        raise refuse(
            block,
            f"fuse: a loop over {' and '.join(loop.var_name.data for loop in loops)} would run over elements of block"
            f" '{block.block_name.data}' and over its reduction, which may be over nothing",
            "no iteration would store what a reduction over nothing is; fuse spatial loops with each other only",
        )
    analyzer = Analyzer()
    type_ = outermost.loop_var.type
    extent = Expr((), 1)
    for loop in loops:
        extent = extent * analyzer.expr(loop.extent)
    require_countable(outermost, "fuse", "the turns of the fused loop", extent.value, type_)
    clear_between(loops)
    builder = builder_before(outermost)
    zero = const_before(outermost, 0, outermost.extent)
    fused = tir.ForOp(
        "_".join(loop.var_name.data for loop in loops) + "_fused",
        zero,
        analyzer.to_ssa(analyzer.simplify(extent), builder, type_),
    )
    fused.location = outermost.location
    name_value(fused)
    nest([fused], outermost, innermost.body.block.ops)
    first = fused.body.block.first_op
    if first is not None:
        at = builder_before(first, outermost.location)
        fresh = Analyzer()
        rest = fresh.expr(fused.loop_var)
        empty = next((loop for loop in loops if const_int(loop.extent) == 0), None)
        if empty is not None:
            # There is no iteration, but still a loop that drives what `empty` did: a reduction may be over it.
            for loop in loops:
                value = fresh.expr(loop.min) if loop is not empty else rest
                loop.loop_var.replace_all_uses_with(fresh.to_ssa(value, at, loop.loop_var.type))
        else:
            for loop in reversed(loops[1:]):
                size = analyzer.expr(loop.extent)
                loop.loop_var.replace_all_uses_with(fresh.to_ssa(floormod(rest, size), at, loop.loop_var.type))
                rest = floordiv(rest, size)
            outermost.loop_var.replace_all_uses_with(fresh.to_ssa(rest, at, type_))
    simplify_blocks_under(fused, keep_units=preserve_unit_iters)
    why = f"it was fused into loop '{fused.var_name.data}'"
    state.erase(outermost, why)
    return fused


def depends_on(inner: tir.ForOp, outer: tir.ForOp) -> bool:
    """Whether the bounds of one loop are computed from the variable of another."""
    from ....dialects.arith.expr import free_vars

    analyzer = Analyzer()
    bounds = (analyzer.expr(inner.min), analyzer.expr(inner.extent))
    return any(atom.payload is outer.loop_var for atom in free_vars(*bounds))
