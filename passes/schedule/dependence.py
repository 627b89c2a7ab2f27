"""Whether two loop nests that ran one after the other may run turn by turn.

The first nest ends before the second begins. Interleaved, turn p of the second runs before every later turn q > p of the
first. That changes nothing when no later turn of the first touches what turn p of the second touches, unless both only read.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects import tir
from ...dialects.tir.analysis import Analyzer, Expr, symbol
from ...dialects.tir.analysis.expr import Atom
from ...dialects.tir.analysis.substitution import substitute
from ...support.walk import walk_ops
from .access import Box, reads_of, relaxed, whole, writes_of
from .blocks import bind_axes
from .structure import all_loops_above, child_blocks, is_inside, loops_above

Nest = Sequence[tir.ForOp]


def why_turns_conflict(first: Nest, second: Nest) -> str | None:
    """Why turn k of the loops `second` may not run before turn k + 1 of the loops `first`; None when it may.

    The nests have the same extents, each loop directly around the next; their bodies may hold any blocks.
    """
    touched = [_touched(nest) for nest in (first, second)]
    for one, other in zip(touched, ("first", "second"), strict=True):
        if isinstance(one, str):
            return f"{one} in the {other} nest"
    (reads, writes), (later_reads, later_writes) = (each for each in touched if not isinstance(each, str))
    for mine, theirs in ((writes, later_reads + later_writes), (reads, later_writes)):
        for a in mine:
            for b in theirs:
                if a.buffer is b.buffer and not _apart(a, first, b, second):
                    name = tir.buffer_name(a.buffer)
                    return f"a later turn of the first nest may touch the element of '{name}' that the second touches"
    return None


def _touched(nest: Nest) -> tuple[list[Box], list[Box]] | str:
    """(reads, writes) of the blocks in a nest in terms of its loops, or what is there besides blocks."""
    innermost = nest[-1]
    for op in walk_ops(innermost):
        if isinstance(op, tir.StoreOp | tir.EvaluateOp) and not _in_block(op, innermost):
            return "a statement stands outside of blocks"
    analyzer = Analyzer()
    for loop in all_loops_above(nest[0]):
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    for loop in nest:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    reads: list[Box] = []
    writes: list[Box] = []
    for block in child_blocks(innermost):
        inner = [loop for loop in loops_above(block) if is_inside(loop, innermost) and loop is not innermost]
        for loop in inner:
            analyzer.bind(loop.loop_var, loop.min, loop.extent)
        bind_axes(analyzer, block)
        for boxes, target in ((reads_of(block, analyzer), reads), (writes_of(block, analyzer), writes)):
            for box in boxes:
                target.append(relaxed(box, block, inner, analyzer) or whole(box.buffer, analyzer))
    return reads, writes


def _in_block(op: tir.StoreOp | tir.EvaluateOp, root: tir.ForOp) -> bool:
    parent = op.parent_op()
    while parent is not None and parent is not root:
        if isinstance(parent, tir.BlockOp):
            return True
        parent = parent.parent_op()
    return False


def _apart(a: Box, first: Nest, b: Box, second: Nest) -> bool:
    """Whether box `a` of every later turn of the first nest is apart from box `b` of a turn of the second."""
    for level in range(len(first)):
        # The turns agree in the loops further out; in this one the first nest is 1 + t ahead; further in, any turns.
        analyzer = Analyzer()
        mine: dict[Atom, Expr] = {}
        theirs: dict[Atom, Expr] = {}
        for depth, (loop, other) in enumerate(zip(first, second, strict=True)):
            extent = analyzer.expr(loop.extent)
            turn = symbol("p")
            if depth == level:
                ahead = symbol("t")
                analyzer.bind(turn, 0, extent - 1)
                analyzer.bind(ahead, 0, extent - 1 - turn)
                later = turn + ahead + 1
            else:
                analyzer.bind(turn, 0, extent)
                later = turn
                if depth > level:
                    later = symbol("q")
                    analyzer.bind(later, 0, extent)
            mine[_atom(analyzer, loop.loop_var)] = later
            theirs[_atom(analyzer, other.loop_var)] = turn
        if not any(
            analyzer.can_prove_ge0(substitute(low, mine) - substitute(top, theirs) - 1)
            or analyzer.can_prove_ge0(substitute(bottom, theirs) - substitute(high, mine) - 1)
            for (low, high), (bottom, top) in zip(a.dims, b.dims, strict=True)
        ):
            return False
    return True


def _atom(analyzer: Analyzer, variable: SSAValue) -> Atom:
    atom = analyzer.expr(variable).atom
    assert atom is not None
    return atom
