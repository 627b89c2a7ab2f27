"""reorder: the order of nested loops changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import floordiv, floormod, free_vars
from ....dialects.tir.open_reductions import mixed_with_elements
from ....support.edit import builder_before, erase_op, move_before
from ....support.effects import is_side_effect_free
from ...tir.rewriting import is_dead
from ..analysis.block_kind import driving_variables, simplify_blocks_under, why_init_repeats, why_order_matters
from ..analysis.dependence import why_order_carries
from ..analysis.structure import child_blocks, const_int, is_inside
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import const_before, name_value, nest, require_countable, require_loop, require_plain


def only_child_loop(loop: tir.ForOp) -> tir.ForOp | None:
    """Returns the loop that is alone in `loop`, apart from values; None when it is not alone."""
    found: tir.ForOp | None = None
    for op in loop.body.block.ops:
        if found is None and type(op) is tir.ForOp:
            found = op
        elif not _is_value(op):
            return None
    return found


def _is_value(op: Operation) -> bool:
    """Returns whether the op only computes, so that it may move to an outer loop."""
    return bool(op.results) and type(op) is not tir.LoadOp and is_side_effect_free(op)


def clear_between(chain: Sequence[tir.ForOp]) -> None:
    """Leaves nothing but the next loop in each loop of `chain` (nested, the last excepted).

    Values that use a loop of the chain go into the innermost, all others before the outermost.
    """
    variables: set[SSAValue] = {loop.loop_var for loop in chain}
    sunk: list[Operation] = []
    for loop in chain[:-1]:
        for op in list(loop.body.block.ops):
            if isinstance(op, tir.ForOp):
                continue
            if is_dead(op):
                erase_op(op)
            elif any(operand in variables for operand in op.operands):
                op.detach()
                sunk.append(op)
                variables.update(op.results)
            else:
                move_before([op], chain[0])
    body = chain[-1].body.block
    first = body.first_op
    for op in sunk:
        if first is None:
            body.add_op(op)
        else:
            body.insert_op_before(op, first)


@primitive
def reorder(state: State, *ordered_loops: tir.ForOp) -> None:
    """Orders loops of one nest as they are listed; other loops between them stay at their places.

    for i, j, k in T.grid(8, 8, 8): …   →   for k, j, i in T.grid(8, 8, 8): …      sch.reorder(k, i)
    """
    loops = [require_loop(loop, "reorder") for loop in ordered_loops]
    if not loops:
        raise refuse(None, "reorder: no loop given", "give loops of one nest in their new order")
    seen: set[Operation] = set()
    for loop in loops:
        if loop in seen:
            raise refuse(loop, f"reorder: loop '{loop.var_name.data}' is given twice", "name each loop once")
        seen.add(loop)
    chain = _chain(loops)
    order = iter(loops)
    target = [next(order) if loop in seen else loop for loop in chain]
    if target == chain:
        return
    _check_bounds(chain, target)
    _check_blocks(chain, target)
    carried = why_order_carries(chain, target)
    if carried is not None:
        block, reason = carried
        raise refuse(
            block,
            f"reorder: iterations of loop '{chain[0].var_name.data}' may not run in another order: {reason}",
            "compute the blocks in loops of their own, or keep the order of the loops",
        )
    clear_between(chain)
    rebuild(chain, target)


def _chain(loops: Sequence[tir.ForOp]) -> list[tir.ForOp]:
    """Returns the loops from the outermost of `loops` to the innermost; raises unless they are one chain."""
    wanted = set(loops)
    top = loops[0]
    for loop in loops[1:]:
        if is_inside(top, loop):
            top = loop
        elif not is_inside(loop, top):
            raise refuse(
                loop,
                f"reorder: loops '{top.var_name.data}' and '{loop.var_name.data}' are not nested in each other",
                "reorder takes loops of one nest",
            )
    chain: list[tir.ForOp] = []
    current: tir.ForOp | None = top
    missing = len(wanted)
    while current is not None:  # pyright: ignore[reportUnnecessaryComparison]
        chain.append(current)
        if current in wanted:
            missing -= 1
        if not missing:
            return chain
        following = only_child_loop(current)
        if following is None:
            inner = next(loop for loop in loops if loop not in chain)
            raise refuse(
                current,
                f"reorder: loop '{inner.var_name.data}' is not alone in loop '{current.var_name.data}'",
                "only loops with nothing else between them can change places",
            )
        current = following


def _check_bounds(chain: Sequence[tir.ForOp], target: Sequence[tir.ForOp]) -> None:
    """Raises where a loop would get outside of one that its bounds depend on."""

    place = {loop: k for k, loop in enumerate(target)}
    for k, inner in enumerate(chain):
        if const_int(inner.min) is not None and const_int(inner.extent) is not None:
            continue
        for outer in chain[:k]:
            if depends_on(inner, outer):
                names = inner.var_name.data, outer.var_name.data
                note = (
                    f"keep '{names[0]}' inside of '{names[1]}'"
                    if place[inner] < place[outer]
                    else "reorder loops that form a box"
                )
                raise refuse(inner, f"reorder: the bounds of loop '{names[0]}' depend on loop '{names[1]}'", note)


def _check_blocks(chain: Sequence[tir.ForOp], target: Sequence[tir.ForOp]) -> None:
    """Raises unless every block inside has affine bindings of spatial and reduction axes only.

    Its instances can then run in any order.
    """
    top = chain[0]
    for block in child_blocks(top):
        name = block.block_name.data
        for variable, axis, kind in zip(block.iter_vars, block.iter_names.data, block.iter_types.data, strict=True):
            if kind.data not in ("S", "R"):
                raise refuse(
                    variable,
                    f"reorder: axis '{axis.data}' of block '{name}' is neither spatial nor a reduction axis, so that order matters",
                    f"reorder only loops inside of which block '{name}' is not",
                )
        reason = why_order_matters(block, top)
        if reason is not None:
            raise refuse(
                block,
                f"reorder: the bindings of block '{name}' are not affine in its loops: {reason}",
                "each axis must take its values independently of the others",
            )
        reason = (
            None if block.find(tir.InitOp) is None else why_init_repeats(block) or _why_init_late(block, chain, target)
        )
        if reason is not None:
            raise refuse(
                block,
                f"reorder: T.init() of block '{name}' cannot run in another order: {reason}",
                "each instance of the spatial axes must have an element of its own, and begin with the first of its reduction",
            )


def _why_init_late(block: tir.BlockOp, chain: Sequence[tir.ForOp], target: Sequence[tir.ForOp]) -> str | None:
    """Returns why another instance of a reduction may run before its first one; None where it cannot.

    Of a loop that was fused from a spatial axis and a reduction axis, and split again, no part begins both.
    """
    spatial, reduced = driving_variables(block, "S"), driving_variables(block, "R")
    both = [loop for loop in chain if loop.loop_var in spatial & reduced]
    ordered = [loop for loop in chain if loop.loop_var in reduced]
    if not both or ordered == [loop for loop in target if loop.loop_var in reduced]:
        return None
    return f"loop '{both[0].var_name.data}' drives both its elements and its reduction"


def rebuild(chain: Sequence[tir.ForOp], target: Sequence[tir.ForOp]) -> None:
    """Nests the loops of `chain` (each alone in the one before) in the order `target`."""
    anchor_block = chain[0].parent
    assert anchor_block is not None
    following = chain[0].next_op
    content = list(chain[-1].body.block.ops)
    for loop in reversed(chain):
        loop.detach()
    for op in content:
        op.detach()
    for outer, inner in pairwise(target):
        outer.body.block.add_op(inner)
    target[-1].body.block.add_ops(content)
    if following is None:
        anchor_block.add_op(target[0])
    else:
        anchor_block.insert_op_before(target[0], following)


@primitive
def fuse(state: State, *loops: tir.ForOp, preserve_unit_iters: bool = True) -> Operation:
    """Fuses loops, each the only op in the one before, into one over all of their iterations.

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
    require_countable(outermost, "fuse", "the iterations of the fused loop", extent.value, type_)
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
            # There are no iterations, but a loop still drives what `empty` did: a reduction may be over it.
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
    """Returns whether the bounds of one loop are computed from the variable of another."""
    analyzer = Analyzer()
    bounds = (analyzer.expr(inner.min), analyzer.expr(inner.extent))
    return any(atom.payload is outer.loop_var for atom in free_vars(*bounds))
