"""Region cover: what a block writes, and whether another one reads only that."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import TRUE, free_vars, substitute
from ....dialects.arith.iter_map import filled
from .access import Box, bindings_of, extents_of, made_in, reads_of, relaxed, same_box, whole, writes_of
from .block_kind import analyzer_for, axis_kinds, bind_axes
from .dependence import writes_apart
from .structure import (
    Scope,
    all_loops_above,
    blocks_above,
    buffers_read,
    buffers_written,
    const_int,
    consumers,
    is_inside,
    loops_above,
    producers,
    scope_of,
    write_regions,
)


def why_not_covered(producer: tir.BlockOp, consumer: tir.BlockOp) -> str | None:
    """Returns why a consumer reads elements of a producer's buffer that the producer does not write.

    Compared are the regions of both while the loops run that are not around both. None where it reads no more than is
    written, and where that is not known.
    """
    holder = common_holder(producer, consumer)
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


def common_holder(a: tir.BlockOp, b: Operation) -> Scope | tir.ForOp:
    """Returns the innermost loop around both a block and another op of its scope, otherwise the scope."""
    return next((loop for loop in reversed(loops_above(a)) if is_inside(b, loop)), scope_of(a))


def why_reads_others(reader: tir.BlockOp, writer: tir.BlockOp) -> str | None:
    """Returns why `reader` may read elements that `writer` does not write in the same iteration, or None.

    None where each element is known to be written before, in the same iteration.
    """
    holder = common_holder(writer, reader)
    analyzer = analyzer_for(dict.fromkeys((*all_loops_above(writer), *all_loops_above(reader))))
    for block in (writer, reader):
        for outer in blocks_above(block):
            bind_axes(analyzer, outer)
        bind_axes(analyzer, block)
    called, called_writer = reader.block_name.data, writer.block_name.data
    for buffer in dict.fromkeys(buffers_written(writer)):
        read = [box for box in reads_of(reader, analyzer) if box.buffer is buffer]
        if not read:
            continue
        written = written_box(writer, buffer, loops_between(writer, holder), analyzer)
        for box in read:
            reads = relaxed(box, reader, loops_between(reader, holder), analyzer)
            if isinstance(written, str) or reads is None or not _holds(written, reads, analyzer):
                turn = (
                    f" in the same iteration of loop '{holder.var_name.data}'" if isinstance(holder, tir.ForOp) else ""
                )
                return f"block '{called}' is not known to read only elements of '{tir.buffer_name(buffer)}' that block '{called_writer}' writes{turn}"
    return None


def why_not_apart(block: tir.BlockOp, place: Operation, with_readers: bool = True) -> str | None:
    """Returns why a block may not move to `place`, outside of loops shared with producers or readers.

    In such loops it reads, or others read of it, what this iteration has written; where that is not known, it may be what was
    there before a later iteration writes it, or after a later one has written another value.
    """
    pairs = [(maker, block) for maker in producers(block)]
    if with_readers:
        pairs += [(block, reader) for reader in consumers(block)]
    for maker, reader in pairs:
        shared = common_holder(maker, reader)
        if isinstance(shared, tir.ForOp) and place is not shared and not is_inside(place, shared):
            reason = why_reads_others(reader, maker)
            if reason is not None:
                return f"block '{block.block_name.data}' would leave loop '{shared.var_name.data}', and {reason}"
        for loop in loops_above(maker):
            if is_inside(reader, loop) and place is not loop and not is_inside(place, loop):
                reason = why_rewritten(maker, loop)
                if reason is not None:
                    return f"block '{block.block_name.data}' would leave loop '{loop.var_name.data}', and {reason}"
    return None


def why_rewritten(block: tir.BlockOp, loop: tir.ForOp, seen: frozenset[tir.BlockOp] = frozenset()) -> str | None:
    """Returns why an element may be rewritten with another value in a later iteration of `loop`, or None.

        for i in range(3):
            with T.block("A"): A[vi] = A[vi] + 1
            for j in range(3):
                with T.block("B"): B[vj] = A[vj]       # all of B in each iteration, of what A holds by then

    An element may be written again with the same value: by the same axes, of the same numbers.
    """
    if writes_apart(block, loop):
        return None
    called = block.block_name.data
    again = (
        f"block '{called}' may write elements again in later iterations of loop '{loop.var_name.data}', of other values"
    )
    axes = [
        axis
        for axis, kind, extent in zip(block.iter_vars, axis_kinds(block), block.dom_extents, strict=True)
        if kind == "S" and const_int(extent) != 1
    ]
    for region in write_regions(block):
        places = [low for low, size in zip(region.mins, region.extents, strict=True) if const_int(size) == 1]
        if not all(axis in places for axis in axes):
            return again
    if block in seen or (
        block.find(tir.InitOp) is None and any(b in buffers_read(block) for b in buffers_written(block))
    ):
        return again
    analyzer = Analyzer()
    for kind, binding in zip(axis_kinds(block), block.bindings, strict=True):
        if kind != "S" and any(atom.payload is loop.loop_var for atom in free_vars(analyzer.expr(binding))):
            return again
    for maker in producers(block):
        if is_inside(maker, loop) and (
            why_reads_others(block, maker) is not None or why_rewritten(maker, loop, seen | {block}) is not None
        ):
            return again
    return None


def repeated_with(a: Operation, b: Operation, place: Operation) -> bool:
    """Returns whether `a` and `b` alternate in a loop that `place` is outside of.

    An op that moves from `place` to `a` then runs after an earlier iteration of `b`, whichever of the two is written first.
    """
    return any(is_inside(b, loop) and not is_inside(place, loop) for loop in loops_above(a))


def _holds(outer: Box, inner: Box, analyzer: Analyzer) -> bool:
    """Returns whether a box is known to contain another one."""
    return all(
        analyzer.can_prove_ge0(low - least) and analyzer.can_prove_ge0(most - high)
        for (least, most), (low, high) in zip(outer.dims, inner.dims, strict=True)
    )


def written_box(
    block: tir.BlockOp, buffer: SSAValue, inner: Sequence[tir.ForOp], analyzer: Analyzer, with_predicate: bool = True
) -> Box | str:
    """Returns the box that a block fills exactly while the loops `inner` run, or why there is none.

    The box is in terms of the other loops, whose ranges `analyzer` knows. A text says why there is none. Without the predicate
    the block is taken to run in every iteration.
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
    dims = filled(starts, sizes, iters, analyzer, predicate)
    return dims if isinstance(dims, str) else Box(buffer, tuple(dims))


def reads_within(reader: tir.BlockOp, box: Box, holder: Operation, analyzer: Analyzer) -> bool:
    """Returns whether a block reads only elements of the box, of its buffer, in an iteration of `holder`."""
    inner = loops_between(reader, holder)
    for loop in inner:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    bind_axes(analyzer, reader)
    reached = [
        relaxed(read, reader, inner, analyzer) for read in reads_of(reader, analyzer) if read.buffer is box.buffer
    ]
    return all(each is not None and _holds(box, each, analyzer) for each in reached)


def why_not_all_written(block: tir.BlockOp, buffer: SSAValue) -> str | None:
    """Returns why a block is not known to write all of a buffer in its scope; None when it is."""
    analyzer = analyzer_for(all_loops_above(block))
    for outer in blocks_above(block):
        bind_axes(analyzer, outer)
    box = written_box(block, buffer, loops_above(block), analyzer)
    if isinstance(box, str):
        return box
    return None if same_box(box, whole(buffer, analyzer), analyzer) else "it leaves elements out"


def loops_between(block: tir.BlockOp, holder: Operation) -> list[tir.ForOp]:
    """Returns the loops around a block inside of `holder`, outermost first."""
    return [each for each in loops_above(block) if each is not holder and is_inside(each, holder)]


def bounds_an_axis(block: tir.BlockOp, condition: Expr, analyzer: Analyzer) -> bool:
    """Returns whether a condition on the loops only bounds the values of one axis of a block."""
    atom = condition.atom
    if atom is None or atom.kind is not Kind.GE:
        return False
    (e,) = atom.operands
    bindings = [analyzer.expr(b) for b in block.bindings]
    return any((e - b).value is not None or (e + b).value is not None for b in bindings)
