"""Legality of moving a reduction under a loop of its producers: each instance once, first ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind, symbol
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import ONE, free_vars, ge, logical_and, lt
from ....dialects.arith.int_set import Ends
from ....dialects.arith.iter_map import IterMapLevel
from ..analysis.access import reads_of
from ..analysis.structure import const_int, consumers, is_inside, loops_above
from ..engine.errors import refuse

FROM_DTYPE = 1 << 16
"""A bound from here on may say only of what dtype a symbolic size is, or a part of one: a loop must not run so far."""


def const_count(ends: Ends, analyzer: Analyzer) -> Expr:
    """Returns the number of values of a range: a constant where there is an upper bound of it."""
    count = analyzer.simplify(ends[1] - ends[0] + 1)
    if count.value is None:
        bound = analyzer.const_int_bound(count)
        if 0 < bound.max_value < FROM_DTYPE:
            return Expr((), bound.max_value)
    return count


def check_moved_reduction(
    block: tir.BlockOp,
    loop: tir.ForOp,
    made: set[SSAValue],
    domains: Mapping[SSAValue, Ends],
    analyzer: Analyzer,
) -> None:
    """Raises unless a reduction that moves under `loop` still adds up the same values, in a valid order.

    In each iteration of `loop` and its outer loops the block runs over `domains`, or over its whole other axes: these must partition
    its instances, and come in an order that begins each sum where `T.init` does.
    """
    name, under = block.block_name.data, loop.var_name.data
    loops = [*loops_above(loop), loop]
    for read in reads_of(block, analyzer):
        if read.buffer in made and any(not analyzer.can_prove_equal(low, high) for low, high in read.dims):
            raise refuse(
                block,
                f"reverse_compute_at: reduction block '{name}' reads several elements of '{tir.buffer_name(read.buffer)}' in one instance, which different iterations of loop '{under}' make",
                "choose a loop that makes all of them in one iteration",
            )
    iters: dict[Value, tuple[Value, Value]] = {each.loop_var: (each.min, each.extent) for each in loops}
    places: list[Expr] = []
    bounds: list[Expr] = []
    whole: list[int | None] = []
    for axis, first, extent in zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True):
        start = analyzer.expr(first)
        end = start + analyzer.expr(extent)
        low, high = domains.get(axis, (start, end - 1))
        # The last iteration may be a partial one, which ends with the axis.
        size = const_count((low, high), analyzer)
        inner = symbol("ax")
        analyzer.bind(inner, 0, size)
        iters[inner] = (0, size)
        places.append(low if size == ONE else low + inner)
        bounds += [b for b in (ge(places[-1], start), lt(places[-1], end)) if not analyzer.can_prove(b)]
        whole.append(const_int(extent))
    found = analyzer.detect_iter_map(places, iters, logical_and(*bounds), IterMapLevel.BIJECTIVE)
    instances = [split.extent.value for index in found.indices for split in index.args] if found else []
    counted = prod(s for s in instances if s is not None) == prod(s for s in whole if s is not None)
    if not found or None in instances or None in whole or not counted:
        reason = found.errors[0] if not found else "how many there are is not known"
        raise refuse(
            block,
            f"reverse_compute_at: the iterations of loop '{under}' are not known to run each instance of reduction block '{name}' once: {reason}",
            "choose a loop outside of those that drive the reduction, or split without a rest",
        )
    _check_order(block, loops, places, analyzer)
    _check_readers(block, loops, places, analyzer)


def _check_readers(block: tir.BlockOp, loops: Sequence[tir.ForOp], places: Sequence[Expr], analyzer: Analyzer) -> None:
    """Raises where a reader of the sums is inside of a loop that drives the reduction."""
    reduced = (place for kind, place in zip(block.iter_types.data, places, strict=True) if kind.data == "R")
    driving = {atom for place in reduced for atom in free_vars(place)}
    first = next((each for each in loops if analyzer.expr(each.loop_var).atom in driving), None)
    for reader in consumers(block) if first is not None else ():
        if first is not None and is_inside(reader, first):
            raise refuse(
                reader,
                f"reverse_compute_at: block '{reader.block_name.data}', which reads the sums of block '{block.block_name.data}', is in loop '{first.var_name.data}', which would drive the reduction: they would be unfinished",
                "choose a loop that shares none but those of other axes with the readers",
            )


def _check_order(block: tir.BlockOp, loops: Sequence[tir.ForOp], places: Sequence[Expr], analyzer: Analyzer) -> None:
    """Raises unless reduction axes count up with serial loops: the least instance is the first."""
    variables = {analyzer.expr(each.loop_var).atom: each for each in loops}
    for axis, kind, place in zip(block.iter_names.data, block.iter_types.data, places, strict=True):
        if kind.data != "R":
            continue
        for atom in free_vars(place):
            driver = variables.get(atom)
            if driver is None:
                continue
            # Threads of one block add up together, as bind lets them; lowering takes care of that.
            together = driver.thread is not None and driver.thread.data.startswith("threadIdx")
            if driver.kind.data not in ("serial", "unrolled") and not together:
                raise refuse(
                    driver,
                    f"reverse_compute_at: loop '{driver.var_name.data}' is {driver.kind.data}, and would drive reduction axis '{axis.data}' of block '{block.block_name.data}'",
                    "rfactor it, or choose an outer loop",
                )
            if atom.kind is not Kind.VAR or place.coefficient(atom) <= 0:
                raise refuse(
                    block,
                    f"reverse_compute_at: reduction axis '{axis.data}' of block '{block.block_name.data}' would not begin with its first value, for which T.init stands",
                    "decompose_reduction it first, or choose an outer loop",
                )
