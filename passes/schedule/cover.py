"""Region cover: whether a block reads only what another one has written."""

from __future__ import annotations

from xdsl.ir import Operation

from ...dialects import tir
from .access import extents_of, reads_of, relaxed, writes_of
from .blocks import analyzer_for, bind_axes
from .structure import all_loops_above, is_inside, loops_above, scope_of


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
            wrote = relaxed(made, producer, _loops_in(producer, holder), analyzer)
            reads = relaxed(used, consumer, _loops_in(consumer, holder), analyzer)
            if wrote is None or reads is None:
                continue
            ends = [extent - 1 for extent in extents_of(made.buffer, analyzer)]
            for number, ((low, high), (start, stop)) in enumerate(zip(wrote.dims, reads.dims, strict=True)):
                # Where the reads reach past the buffer, they are guarded: what they reach says nothing.
                inside = analyzer.can_prove_ge0(ends[number] - stop) and analyzer.can_prove_ge0(start)
                if inside and (analyzer.can_prove_ge0(stop - high - 1) or analyzer.can_prove_ge0(low - start - 1)):
                    return f"block '{consumer.block_name.data}' reads elements of '{tir.buffer_name(made.buffer)}' that block '{producer.block_name.data}' does not write (dimension {number})"
    return None


def _loops_in(block: tir.BlockOp, holder: Operation) -> list[tir.ForOp]:
    return [each for each in loops_above(block) if each is not holder and is_inside(each, holder)]
