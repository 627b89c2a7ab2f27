"""Region cover: what a block writes, and whether another one reads only that."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects import tir
from ...dialects.tir.analysis import Analyzer, Expr, Kind
from ...dialects.tir.analysis.analyzer import Value
from ...dialects.tir.analysis.expr import TRUE, free_vars
from ...dialects.tir.analysis.iter_map import IterMapLevel
from ...dialects.tir.analysis.substitution import substitute
from ..tir.regions import Ends
from .access import Box, bindings_of, extents_of, made_in, reads_of, relaxed, writes_of
from .blocks import analyzer_for, bind_axes
from .structure import all_loops_above, is_inside, loops_above, scope_of, write_regions


def why_not_covered(producer: tir.BlockOp, consumer: tir.BlockOp) -> str | None:
    """What a consumer surely reads, of a buffer that the producer writes, without the producer having written it.

    Compared are the regions of both while the loops run that are not around both. None where it reads no more than is
    written, and where that is not known.
    """
    holder: Operation = scope_of(producer)
    for loop in reversed(loops_above(producer)):
        if is_inside(consumer, loop):
            holder = loop
            break
    analyzer = analyzer_for(dict.fromkeys((*all_loops_above(producer), *all_loops_above(consumer))))
    bind_axes(analyzer, producer)
    bind_axes(analyzer, consumer)
    for made in writes_of(producer, analyzer):
        for used in reads_of(consumer, analyzer):
            if used.buffer is not made.buffer:
                continue
            wrote = relaxed(made, producer, loops_between(producer, holder), analyzer)
            reads = relaxed(used, consumer, loops_between(consumer, holder), analyzer)
            if wrote is None or reads is None:
                continue
            ends = [extent - 1 for extent in extents_of(made.buffer, analyzer)]
            for number, ((low, high), (start, stop)) in enumerate(zip(wrote.dims, reads.dims, strict=True)):
                # Where the reads reach past the buffer, they are guarded: what they reach says nothing.
                inside = analyzer.can_prove_ge0(ends[number] - stop) and analyzer.can_prove_ge0(start)
                if inside and (analyzer.can_prove_ge0(stop - high - 1) or analyzer.can_prove_ge0(low - start - 1)):
                    return f"block '{consumer.block_name.data}' reads elements of '{tir.buffer_name(made.buffer)}' that block '{producer.block_name.data}' does not write (dimension {number})"
    return None


def written_box(
    block: tir.BlockOp, buffer: SSAValue, inner: Sequence[tir.ForOp], analyzer: Analyzer, with_predicate: bool = True
) -> Box | str:
    """The box of a buffer of which a block writes every element, and no other one, while the loops `inner` run.

    In terms of the other loops, whose ranges `analyzer` knows. A text says why there is none. Without the predicate
    the block is taken to run in every turn.
    """
    regions = [region for region in write_regions(block) if region.buffer is buffer]
    if len(regions) != 1:
        return f"block '{block.block_name.data}' writes '{tir.buffer_name(buffer)}' at {len(regions)} places"
    bound = bindings_of(block, analyzer)
    starts = [analyzer.simplify(substitute(analyzer.expr(low), bound)) for low in regions[0].mins]
    sizes = [analyzer.simplify(substitute(analyzer.expr(size), bound)) for size in regions[0].extents]
    if made_in(block, *starts, *sizes):
        return "an index is loaded, or computed in the block"
    iters: dict[Value, tuple[Value, Value]] = {loop.loop_var: (loop.min, loop.extent) for loop in inner}
    predicate = analyzer.expr(block.predicate) if with_predicate and block.predicate is not None else TRUE
    found = analyzer.detect_iter_map(starts, iters, predicate, IterMapLevel.SURJECTIVE)
    if not found:
        return found.errors[0]
    dims: list[Ends] = []
    variables = {analyzer.expr(loop.loop_var).atom for loop in inner}
    for number, (total, size) in enumerate(zip(found.indices, sizes, strict=True)):
        low, count = total.base, size
        if total.args:
            (split,) = total.args
            if split.scale != size:
                return f"the steps in dimension {number} leave elements out, or meet elements twice"
            count = analyzer.simplify(split.extent * size)
        if any(atom in variables for atom in free_vars(low, count)):
            return f"how far dimension {number} is written depends on the turn"
        low = analyzer.simplify(low)
        dims.append((low, analyzer.simplify(low + count - 1)))
    return Box(buffer, tuple(dims))


def loops_between(block: tir.BlockOp, holder: Operation) -> list[tir.ForOp]:
    """The loops around a block inside of `holder`, outermost first."""
    return [each for each in loops_above(block) if each is not holder and is_inside(each, holder)]


def bounds_an_axis(block: tir.BlockOp, condition: Expr, analyzer: Analyzer) -> bool:
    """Whether a condition on the loops only says from or up to which value of one axis the block runs."""
    atom = condition.atom
    if atom is None or atom.kind is not Kind.GE:
        return False
    (e,) = atom.operands
    bindings = [analyzer.expr(b) for b in block.bindings]
    return any((e - b).value is not None or (e + b).value is not None for b in bindings)
