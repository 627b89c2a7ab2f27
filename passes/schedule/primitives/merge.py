"""merge: replaces consecutive loop nests by one nest with both bodies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.ir import Operation

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....support.edit import builder_before, move_to_end
from ..analysis.dependence import why_turns_conflict
from ..analysis.structure import path_to, scope_of
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import const_before, name_value, nest, require_loop, require_plain
from .reorder import clear_between, only_child_loop


@primitive
def merge(state: State, *loops: tir.ForOp) -> Operation:
    """Interleaves the bodies of loops in one; their outer loops, up to a common ancestor, merge too.

    for i in range(8):                     for i_m in range(8):
        with T.block("B"): …       →           with T.block("B"): …
    for i in range(8):                         with T.block("C"): …
        with T.block("C"): …

    The nests have the same extents and are consecutive. No iteration of a nest may need what a later iteration
    of a nest before it computes. Returns the innermost merged loop.
    """
    if len(loops) < 2:
        raise refuse(loops[0] if loops else None, "merge: there must be at least two loops")
    for loop in loops:
        require_plain(require_loop(loop, "merge"), "merge")
    holder = _common(loops)
    nests = [_nest(loop, holder) for loop in loops]
    for one, other in pairwise(nests):
        _check_shape(one, other)
        _check_neighbours(one[0], other[0])
    for k, later in enumerate(nests):
        for earlier in nests[:k]:
            reason = why_turns_conflict(earlier, later)
            if reason is not None:
                names = earlier[-1].var_name.data, later[-1].var_name.data
                raise refuse(
                    later[-1],
                    f"merge: the iterations of loops '{names[0]}' and '{names[1]}' cannot alternate: {reason}",
                    "compute_at or reverse_compute_at move a block to where its values are needed",
                )
    merged = _build(nests)
    for each in nests:
        state.erase(each[0], f"it was merged into loop '{merged[-1].var_name.data}'")
    return merged[-1]


def _common(loops: Sequence[tir.ForOp]) -> Operation:
    """Returns the innermost op around all loops; raises for loops of different scopes, or in each other."""
    scope = scope_of(loops[0])
    for loop in loops[1:]:
        if scope_of(loop) is not scope:
            raise refuse(
                loop,
                f"merge: loops '{loops[0].var_name.data}' and '{loop.var_name.data}' are not in the same scope",
                "give loops around which the same blocks are",
            )
    paths = [[*path_to(loop, scope)] for loop in loops]
    holder: Operation = scope
    for level in zip(*paths, strict=False):
        if any(op is not level[0] for op in level):
            break
        holder = level[0]
    for loop in loops:
        if loop is holder:
            raise refuse(loop, f"merge: loop '{loop.var_name.data}' holds another of the loops, or is given twice")
    return holder


def _nest(loop: tir.ForOp, holder: Operation) -> list[tir.ForOp]:
    """Returns the loops from `holder` down to `loop`; raises unless each is alone in the one before."""
    found: list[tir.ForOp] = []
    for op in path_to(loop, holder):
        if not isinstance(op, tir.ForOp):
            raise refuse(loop, f"merge: loop '{loop.var_name.data}' stands under a branch")
        require_plain(op, "merge")
        if found and only_child_loop(found[-1]) is not op:
            raise refuse(
                op,
                f"merge: loop '{op.var_name.data}' is not the only thing directly in loop '{found[-1].var_name.data}'",
            )
        found.append(op)
    return found


def _check_shape(one: Sequence[tir.ForOp], other: Sequence[tir.ForOp]) -> None:
    """Raises unless both nests are as deep, and loop by loop of one kind and extent."""
    if len(one) != len(other):
        raise refuse(
            other[-1],
            f"merge: loop '{one[-1].var_name.data}' is loop number {len(one)} of its nest, '{other[-1].var_name.data}' number {len(other)}",
            "give loops of the same depth",
        )
    analyzer = Analyzer()
    for a, b in zip(one, other, strict=True):
        names = f"'{a.var_name.data}' and '{b.var_name.data}'"
        if not analyzer.can_prove_equal(analyzer.expr(a.extent), analyzer.expr(b.extent)):
            raise refuse(
                b,
                f"merge: loops {names} have the extents {analyzer.expr(a.extent)} and {analyzer.expr(b.extent)}",
                "merged loops run the same number of iterations; split one of them first",
            )
        if a.kind.data != b.kind.data:
            raise refuse(b, f"merge: loops {names} are {a.kind.data} and {b.kind.data}")


def _check_neighbours(one: tir.ForOp, other: tir.ForOp) -> None:
    """Raises where anything except values is between two nests."""
    following = one.next_op
    while following is not None and following is not other:
        if not following.results or following.regions:
            break
        following = following.next_op
    if following is not other:
        raise refuse(
            other,
            f"merge: loop '{other.var_name.data}' does not stand directly after loop '{one.var_name.data}'",
            "give the loops in the order of the program; what stands between them must be moved away first",
        )


def _build(nests: Sequence[Sequence[tir.ForOp]]) -> list[tir.ForOp]:
    """Returns the merged nest, in the place of the last of the nests, whose bodies move into it."""
    anchor = nests[-1][0]
    for chain in nests:
        clear_between(chain)
    builder = builder_before(anchor)
    analyzer = Analyzer()
    merged: list[tir.ForOp] = []
    for loop in nests[-1]:
        extent = analyzer.to_ssa(analyzer.expr(loop.extent), builder, loop.loop_var.type)
        model = nests[0][len(merged)]
        new = tir.ForOp(f"{model.var_name.data}_m", const_before(anchor, 0, loop.extent), extent, kind=loop.kind.data)
        new.location = model.location
        name_value(new)
        merged.append(new)
    bodies = [op for chain in nests for op in chain[-1].body.block.ops]
    nest(merged, anchor, [])
    for chain in nests:
        for old, new in zip(chain, merged, strict=True):
            old.loop_var.replace_all_uses_with(new.loop_var)
    move_to_end(bodies, merged[-1].body.block)
    return merged
