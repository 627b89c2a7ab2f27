"""A reduction that moves under a loop of its producers: each instance once, the first of each sum first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.tir.analysis import Analyzer, Expr, Kind, symbol
from ....dialects.tir.analysis.analyzer import Value
from ....dialects.tir.analysis.expr import ONE, TRUE, free_vars
from ....dialects.tir.analysis.iter_map import IterMapLevel
from ...tir.regions import Ends
from ..access import reads_of
from ..errors import refuse
from ..structure import const_int, consumers, is_inside, loops_above


def check_moved_reduction(
    block: tir.BlockOp,
    loop: tir.ForOp,
    made: set[SSAValue],
    domains: Mapping[SSAValue, Ends],
    analyzer: Analyzer,
) -> None:
    """Raises unless a reduction block that runs over `domains` (its whole axes else) in each turn of `loop` and of those
    around it adds up the same as before: the turns partition its instances, and come in an order that begins each sum
    where `T.init` does.
    """
    name, under = block.block_name.data, loop.var_name.data
    loops = [*loops_above(loop), loop]
    for read in reads_of(block, analyzer):
        if read.buffer in made and any(not analyzer.can_prove_equal(low, high) for low, high in read.dims):
            raise refuse(
                block,
                f"reverse_compute_at: reduction block '{name}' reads several elements of '{tir.buffer_name(read.buffer)}' in one instance, which different turns of loop '{under}' make",
                "choose a loop that makes all of them in one turn",
            )
    iters: dict[Value, tuple[Value, Value]] = {each.loop_var: (each.min, each.extent) for each in loops}
    places: list[Expr] = []
    sizes: list[int | None] = [const_int(each.extent) for each in loops]
    whole: list[int | None] = []
    for axis, first, extent in zip(block.iter_vars, block.dom_mins, block.dom_extents, strict=True):
        low = analyzer.expr(first)
        low, high = domains.get(axis, (low, low + analyzer.expr(extent) - 1))
        size = analyzer.simplify(high - low + 1)
        inner = symbol("ax")
        iters[inner] = (0, size)
        places.append(low if size == ONE else low + inner)
        sizes.append(size.value)
        whole.append(const_int(extent))
    found = analyzer.detect_iter_map(places, iters, TRUE, IterMapLevel.BIJECTIVE)
    counted = prod(s for s in sizes if s is not None) == prod(s for s in whole if s is not None)
    if not found or None in sizes or None in whole or not counted:
        reason = found.errors[0] if not found else "some would run twice, or under a condition"
        raise refuse(
            block,
            f"reverse_compute_at: the turns of loop '{under}' are not known to run each instance of reduction block '{name}' once: {reason}",
            "choose a loop outside of those that drive the reduction, or split without a rest",
        )
    _check_order(block, loops, places, analyzer)
    _check_readers(block, loops, places, analyzer)


def _check_readers(block: tir.BlockOp, loops: Sequence[tir.ForOp], places: Sequence[Expr], analyzer: Analyzer) -> None:
    """What reads the sums is outside of the loops that drive the reduction."""
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
    """Reduction axes count up with serial loops, so that the instance where all are least comes first."""
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
