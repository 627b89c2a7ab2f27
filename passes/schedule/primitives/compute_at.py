"""compute_at, reverse_compute_at: moves a block under a loop of its consumers or producers.

In each iteration of the loop the block then runs over just the instances that the iteration needs: its axes' ranges are solved
from the regions that the blocks under the loop touch (TVM's `compute_at.cc`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr, Kind
from ....dialects.arith.expr import TRUE, floordiv, free_vars, ge, logical_and, lt, minimum, substitute, symbol
from ....dialects.arith.int_set import Ends, join, relax
from ....dialects.tir.types import I1
from ....support.edit import builder_before, insert_op_before
from ..analysis.access import Box, extents_of, reads_of, relaxed, united, whole, writes_of
from ..analysis.block_kind import (
    analyzer_for,
    axis_kinds,
    bind_axes,
    set_block,
    why_not_affine,
    why_not_complete,
    why_not_reduction,
    why_partial,
)
from ..analysis.region_cover import common_holder, why_not_apart, why_reads_others
from ..analysis.structure import (
    all_loops_above,
    buffers_written,
    child_under,
    const_int,
    consumers,
    is_inside,
    loops_above,
    producers,
    runs_before,
    scope_of,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.random_variables import PlaceRV
from ..engine.state import State
from .common.loops import (
    carry_values,
    name_value,
    require_block,
    require_complete_or_reduction,
    require_loop,
    require_own_values,
)
from .compute_inline import compute_inline, remove_block, reverse_compute_inline
from .moved_reduction import FROM_DTYPE, check_moved_reduction, const_count


@primitive
def compute_at(
    state: State, block: tir.BlockOp, loop: tir.ForOp | PlaceRV, preserve_unit_loops: bool = False, index: int = -1
) -> None:
    """Moves a producer under a loop of its consumers, where it computes what each iteration reads.

    for i, j in T.grid(8, 8):              for i in range(8):
        with T.block("B"): …                   for ax0 in range(8):
    for i, j in T.grid(8, 8):         →            with T.block("B"): vi = i; vj = ax0; …
        with T.block("C"): …                   for j in range(8):
                                                   with T.block("C"): …

    `index` is the place among the loop's children: -1 right before the first reader, -2 as early as it may be.
    """
    if isinstance(loop, PlaceRV):
        if loop.place == "inline":
            compute_inline(state, block)
        return
    readers, anchor = check_compute_at(block, loop, index)
    _move(state, block, loop, readers, set(buffers_written(block)), preserve_unit_loops, anchor, providing=True)


def check_compute_at(
    block: tir.BlockOp, loop: tir.ForOp, index: int = -1
) -> tuple[list[tir.BlockOp], Operation | None]:
    """Returns a block's readers and the op of `loop` before which it goes, None for the end; or raises."""
    block, loop = require_block(block, "compute_at"), require_loop(loop, "compute_at")
    _check_places(block, loop, "compute_at")
    name, under = block.block_name.data, loop.var_name.data
    require_complete_or_reduction(block, "compute_at")
    _check_whole(block, "compute_at")
    for buffer in buffers_written(block):
        if not isinstance(buffer.owner, tir.AllocBufferOp):
            raise refuse(
                block,
                f"compute_at: block '{name}' writes '{tir.buffer_name(buffer)}', an output: it would be recomputed in each iteration",
                "compute_at moves producers of intermediate buffers; reverse_compute_at moves consumers",
            )
    readers = consumers(block)
    if not readers:
        raise refuse(
            block,
            f"compute_at: nothing reads what block '{name}' computes",
            "compute_at moves a block to its readers; one that has none stays where it is",
        )
    for reader in readers:
        if not is_inside(reader, loop):
            raise refuse(
                reader,
                f"compute_at: block '{reader.block_name.data}' reads the output of block '{name}', but is not in loop '{under}'",
                f"all readers of what block '{name}' computes must be in the loop",
            )
        if runs_before(reader, block):
            raise refuse(
                reader,
                f"compute_at: block '{reader.block_name.data}' reads the output of block '{name}' before that writes it",
                "the two must keep their order",
            )
    earlier = producers(block)
    _check_inputs_precede(block, earlier, "compute_at")
    _check_shared_loops(block, loop, "compute_at")
    # The loop is after the block, as its readers are, and so after all writers of what the block reads.
    first = min(_position(loop, child_under(loop, r)) for r in readers)
    return readers, _place(loop, -1, first, index, "compute_at")


@primitive
def reverse_compute_at(
    state: State, block: tir.BlockOp, loop: tir.ForOp | PlaceRV, preserve_unit_loops: bool = False, index: int = -1
) -> None:
    """Moves a consumer under a loop of its producers, where it uses what each iteration computes.

    for i, j in T.grid(8, 8):              for i in range(8):
        with T.block("B"): …                   for j in range(8):
    for i, j in T.grid(8, 8):         →            with T.block("B"): …
        with T.block("C"): …                   for ax0 in range(8):
                                                   with T.block("C"): vi = i; vj = ax0; …

    `index` is the place among the loop's children: -1 as late as it may be, -2 right after the last producer.
    """
    if isinstance(loop, PlaceRV):
        if loop.place == "inline":
            reverse_compute_inline(state, block)
        return
    block, loop = require_block(block, "reverse_compute_at"), require_loop(loop, "reverse_compute_at")
    _check_places(block, loop, "reverse_compute_at")
    name, under = block.block_name.data, loop.var_name.data
    reason = why_not_complete(block)
    reduction = None if reason is None else why_not_reduction(block)
    if reason is not None and reduction is not None:
        raise refuse(
            block,
            f"reverse_compute_at: block '{name}' is not a complete block: {reason}",
            f"nor is it a reduction block: {reduction}",
        )
    reason = why_not_affine(block)
    if reason is not None:
        raise refuse(
            block,
            f"reverse_compute_at: the bindings of block '{name}' are not affine in its loops: {reason}",
            "bind each axis to loops of its own",
        )
    _check_whole(block, "reverse_compute_at")
    makers = producers(block)
    if not makers:
        raise refuse(
            block,
            f"reverse_compute_at: no block makes what block '{name}' reads",
            "reverse_compute_at moves consumers; compute_at moves producers",
        )
    _check_inputs_precede(block, makers, "reverse_compute_at")
    _check_shared_loops(block, loop, "reverse_compute_at")
    inside = [m for m in makers if is_inside(m, loop)]
    for maker in makers:
        if maker in inside or runs_before(maker, loop):
            continue
        raise refuse(
            maker,
            f"reverse_compute_at: block '{maker.block_name.data}', whose output block '{name}' reads, is neither in loop '{under}' nor before it",
            "all producers must have run",
        )
    if not inside:
        makes = ", ".join(f"'{maker.block_name.data}'" for maker in makers)
        raise refuse(
            loop,
            f"reverse_compute_at: loop '{under}' holds no block that makes what block '{name}' reads",
            f"give a loop around {makes}",
        )
    # Of a maker in loops that the block comes into, too, only a part is there then.
    joined = [m for m in makers if m in inside or common_holder(m, loop) is not common_holder(m, block)]
    for maker in joined:
        _check_finished(maker, loop, name)
        _check_same_iterations(block, maker)
    for user in consumers(block):
        if runs_before(user, block) and not runs_before(user, loop):
            raise refuse(
                user,
                f"reverse_compute_at: block '{user.block_name.data}' reads what is in the output of block '{name}' before that writes it",
                "the two must keep their order",
            )
    # The block stays after the loop's producers, and so do the readers of what it writes.
    last = max(_position(loop, child_under(loop, m)) for m in inside)
    anchor = _place(loop, last, len(loop.body.block.ops), index, "reverse_compute_at")
    made = {b for m in joined for b in buffers_written(m)}
    _move(state, block, loop, joined, made, preserve_unit_loops, anchor, providing=False)


# Legality


def _check_places(block: tir.BlockOp, loop: tir.ForOp, name: str) -> None:
    called, under = block.block_name.data, loop.var_name.data
    if scope_of(block) is not scope_of(loop):
        raise refuse(
            loop,
            f"{name}: loop '{under}' and block '{called}' are not in the same scope",
            f"give a loop around which the same blocks are as around block '{called}'",
        )
    if is_inside(block, loop):
        raise refuse(loop, f"{name}: loop '{under}' is around block '{called}' already")
    require_own_values(block, name)


def _check_inputs_precede(block: tir.BlockOp, makers: Sequence[tir.BlockOp], name: str) -> None:
    """Raises where a writer of an input, which follows the block, would precede it."""
    for maker in makers:
        if not runs_before(maker, block):
            raise refuse(
                maker,
                f"{name}: block '{maker.block_name.data}' overwrites what block '{block.block_name.data}' reads, after it",
                "the two must keep their order",
            )


def _check_shared_loops(block: tir.BlockOp, loop: tir.ForOp, name: str) -> None:
    """Raises where the block leaves shared loops and readers may then see another iteration's values."""
    reason = why_not_apart(block, loop)
    if reason is not None:
        raise refuse(block, f"{name}: {reason}", "choose a loop inside of those that the blocks share")


def _check_whole(block: tir.BlockOp, name: str) -> None:
    """Raises where a predicate excludes values of the axes: the new loops run over all of them."""
    reason = why_partial(block)
    if reason is not None:
        raise refuse(
            block,
            f"{name}: block '{block.block_name.data}' does not run for every value of its axes: {reason}",
            "give its axes the domain for which it runs",
        )


def _check_finished(maker: tir.BlockOp, loop: tir.ForOp, consumer: str) -> None:
    """Raises where an iteration of `loop` does not finish a producer's values: a reduction crosses it."""
    analyzer = Analyzer()
    around = {loop.loop_var} | {outer.loop_var for outer in all_loops_above(loop)}
    for axis, kind, binding in zip(maker.iter_names.data, axis_kinds(maker), maker.bindings, strict=True):
        if kind == "S":
            continue
        for atom in free_vars(analyzer.expr(binding)):
            if atom.payload in around:
                raise refuse(
                    maker,
                    f"reverse_compute_at: block '{maker.block_name.data}' reduces axis '{axis.data}' over a loop around this place, so that block '{consumer}' would read unfinished sums",
                    "choose a loop outside of the reduction",
                )


def _check_same_iterations(block: tir.BlockOp, maker: tir.BlockOp) -> None:
    """Raises where a consumer would change its iterations of the loops that it shares with its producer."""
    shared = common_holder(maker, block)
    reason = why_reads_others(block, maker) if isinstance(shared, tir.ForOp) else None
    if isinstance(shared, tir.ForOp) and reason is not None:
        raise refuse(
            block,
            f"reverse_compute_at: block '{block.block_name.data}' would run in other iterations of loop '{shared.var_name.data}', as {reason}",
            "what it reads must be written in the same iteration of the loops that the two share",
        )


def _position(loop: tir.ForOp, child: Operation) -> int:
    for number, op in enumerate(loop.body.block.ops):
        if op is child:
            return number
    raise ValueError("the op is not in the loop")


def _place(loop: tir.ForOp, last: int, first: int, index: int, name: str) -> Operation | None:
    """Returns the op before which the block goes, after child `last` and up to `first`; None: the end."""
    ops = list(loop.body.block.ops)
    # Values that the reader's bindings need may stay after it: they do not depend on the moved block.
    if index == -1:
        return ops[first] if first < len(ops) else None
    if index == -2:
        return ops[last + 1] if last + 1 < len(ops) else None
    statements = [k for k, op in enumerate(ops) if isinstance(op, tir.ForOp | tir.BlockOp | tir.IfOp)]
    place = statements[index] if 0 <= index < len(statements) else len(ops)
    if not last < place <= min(first, len(ops)):
        raise refuse(
            loop,
            f"{name}: place {index} of loop '{loop.var_name.data}' is not between what is read and its readers",
            f"the loop has places 0 to {len(statements)}; -1 and -2 choose one that is right",
        )
    return ops[place] if place < len(ops) else None


# Moving


def _move(
    state: State,
    block: tir.BlockOp,
    loop: tir.ForOp,
    others: Sequence[tir.BlockOp],
    buffers: set[SSAValue],
    preserve_unit_loops: bool,
    anchor: Operation | None,
    providing: bool,
) -> None:
    """Moves a block under `loop`, with new loops for the axes that `others` in it need of `buffers`."""
    analyzer = analyzer_for([*all_loops_above(loop), loop])
    required: dict[SSAValue, Box] = {}
    for other in others:
        inner = [o for o in loops_above(other) if o is not loop and not is_inside(loop, o)]
        for each in inner:
            analyzer.bind(each.loop_var, each.min, each.extent)
        bind_axes(analyzer, other)
        for box in reads_of(other, analyzer) if providing else writes_of(other, analyzer):
            if box.buffer not in buffers:
                continue
            covered = relaxed(box, other, inner, analyzer) or whole(box.buffer, analyzer)
            known = required.get(box.buffer)
            required[box.buffer] = covered if known is None else united(known, covered, analyzer)
    bind_axes(analyzer, block)
    domains: dict[SSAValue, Ends] = {}
    unsolved: list[tuple[Box, int, Ends]] = []
    for box in writes_of(block, analyzer) if providing else reads_of(block, analyzer):
        need = required.get(box.buffer)
        if need is None:
            continue
        for number, (provided, wanted) in enumerate(zip(box.dims, need.dims, strict=True)):
            if not _solve_axis(block, provided, wanted, domains, analyzer):
                unsolved.append((box, number, wanted))
    if not providing:
        _check_all_instances(block, loop, domains, analyzer)
        _check_made(block, loop, unsolved, domains, analyzer)
        if why_not_complete(block) is not None:
            check_moved_reduction(block, loop, buffers, domains, analyzer)
    _rebuild(state, block, loop, domains, preserve_unit_loops, anchor, analyzer)


def _check_made(
    block: tir.BlockOp,
    loop: tir.ForOp,
    unsolved: Sequence[tuple[Box, int, Ends]],
    domains: Mapping[SSAValue, Ends],
    analyzer: Analyzer,
) -> None:
    """Raises where indices do not determine axes and a consumer reads more than an iteration computes.

    Elsewhere elements that are missing are recomputed in a later iteration.
    """
    # Each axis as its first value and what is beyond: divisions then divide the first value alone.
    placed: dict[Atom, Expr] = {}
    inner: set[Atom] = set()
    for axis, variable in zip(block.iter_names.data, block.iter_vars, strict=True):
        atom = analyzer.expr(variable).atom
        if atom is not None and variable in domains:
            first, last = domains[variable]
            beyond = symbol(axis.data)
            analyzer.bind(beyond, 0, last - first + 1)
            placed[atom], atom = first + beyond, beyond.atom
        if atom is not None:
            inner.add(atom)

    def end(e: Expr, which: int) -> Expr | None:
        """Returns the least (0) or the greatest (1) value of an index over the domains."""
        ends = relax(analyzer.simplify(substitute(e, placed)), inner, analyzer)
        return None if ends is None else ends[which]

    for box, number, (first, last) in unsolved:
        least, greatest = end(box.dims[number][0], 0), end(box.dims[number][1], 1)
        extent = extents_of(box.buffer, analyzer)[number]
        # What is outside of the buffer is guarded, and not read.
        starts = analyzer.can_prove_ge0(-first) or (least is not None and analyzer.can_prove_ge0(least - first))
        ends = analyzer.can_prove_ge0(last - extent + 1) or (
            greatest is not None and analyzer.can_prove_ge0(last - greatest)
        )
        if not (starts and ends):
            name = tir.buffer_name(box.buffer)
            raise refuse(
                block,
                f"reverse_compute_at: block '{block.block_name.data}' may read elements of '{name}' (dimension {number}) that other iterations of loop '{loop.var_name.data}' make",
                f"choose a loop outside of those that make '{name}' piece by piece",
            )


def _check_all_instances(
    block: tir.BlockOp, loop: tir.ForOp, domains: dict[SSAValue, Ends], analyzer: Analyzer
) -> None:
    """Raises unless all iterations together run a consumer for every value of its axes, padding included."""
    turns = {analyzer.expr(each.loop_var).atom for each in (*all_loops_above(loop), loop)}
    variables = {atom for atom in turns if atom is not None}
    for name, axis, first, extent in zip(
        block.iter_names.data, block.iter_vars, block.dom_mins, block.dom_extents, strict=True
    ):
        ends = domains.get(axis)
        if ends is None:
            continue
        least, greatest = (relax(end, variables, analyzer) for end in ends)
        low = analyzer.expr(first)
        high = low + analyzer.expr(extent) - 1
        if least is None or greatest is None:
            read = f"from where to where what loop '{loop.var_name.data}' makes is read is not known"
        elif not (analyzer.can_prove_ge0(low - least[0]) and analyzer.can_prove_ge0(greatest[1] - high)):
            ends = f"{analyzer.simplify(least[0])!r} to {analyzer.simplify(greatest[1])!r}"
            read = f"what loop '{loop.var_name.data}' makes is read from {ends} only"
        else:
            continue
        raise refuse(
            block,
            f"reverse_compute_at: axis '{name.data}' of block '{block.block_name.data}' runs from {low!r} to {analyzer.simplify(high)!r}, but {read}: the rest would not run",
            "compute_at what it reads at a loop of it instead",
        )


def _rebuild(
    state: State,
    block: tir.BlockOp,
    loop: tir.ForOp,
    domains: dict[SSAValue, Ends],
    preserve_unit_loops: bool,
    anchor: Operation | None,
    analyzer: Analyzer,
) -> None:
    domain_exprs = [
        (analyzer.expr(a), analyzer.expr(b)) for a, b in zip(block.dom_mins, block.dom_extents, strict=True)
    ]
    _detach(state, block)
    body = loop.body.block
    location = block.location
    if anchor is None:
        body.add_op(block)
    else:
        body.insert_op_before(block, anchor)
    outer_builder = builder_before(block, location)
    bindings: list[SSAValue] = []
    loops: list[tir.ForOp] = []
    conditions: list[Expr] = []
    starts: list[tuple[Expr, tir.ForOp | None]] = []
    zero: SSAValue | None = None
    for axis, (low, extent) in zip(block.iter_vars, domain_exprs, strict=True):
        domain = (low, analyzer.simplify(low + extent - 1))
        ends = domains.get(axis, domain)
        ends = _clipped(ends, domain, analyzer)
        count = const_count(ends, analyzer)
        if abs(count.const) >= FROM_DTYPE and not _is_at_most(count, extent):
            # What is known comes from a dtype: the whole domain is less.
            moves = count.value is not None and ends[1].value is None
            if moves and analyzer.can_prove_ge0(ends[0] - domain[0]):
                count = analyzer.simplify(minimum(count, extent))
            else:
                ends, count = domain, extent
        if count.value == 1 and not preserve_unit_loops:
            starts.append((ends[0], None))
        else:
            if zero is None or zero.type != axis.type:
                zero = outer_builder.insert(tir.ConstOp.int(0, axis.type)).result
            new = tir.ForOp(f"ax{len(loops)}", zero, analyzer.to_ssa(count, outer_builder, axis.type))
            new.location = location
            name_value(new)
            loops.append(new)
            starts.append((ends[0], new))
    # Nest the loops around the block.
    if loops:
        insert_op_before(loops[0], block)
        block.detach()
        for outer, inner in pairwise(loops):
            outer.body.block.add_op(inner)
        loops[-1].body.block.add_op(block)
        for new in loops:
            if const_int(new.extent) != 1:
                analyzer.bind(new.loop_var, new.min, new.extent)
    builder = builder_before(block, location)
    for (start, new), axis, (first, extent) in zip(starts, block.iter_vars, domain_exprs, strict=True):
        e = start if new is None else analyzer.simplify(start + analyzer.expr(new.loop_var))
        bindings.append(analyzer.to_ssa(e, builder, axis.type))
        if new is not None and const_int(new.extent) == 1:
            e = start
        for condition in (ge(e, first), lt(e, first + extent)):
            if not analyzer.can_prove(condition):
                conditions.append(analyzer.simplify(condition))
    guard = logical_and(*conditions)
    # The domains were written in the loops that the block has left.
    types = [axis.type for axis in block.iter_vars]
    mins = [analyzer.to_ssa(low, builder, t) for (low, _), t in zip(domain_exprs, types, strict=True)]
    extents = [analyzer.to_ssa(extent, builder, t) for (_, extent), t in zip(domain_exprs, types, strict=True)]
    predicate = None if guard == TRUE else analyzer.to_ssa(guard, builder, I1)
    set_block(
        block,
        dom_mins=mins,
        dom_extents=extents,
        bindings=bindings,
        predicate=predicate,
        drop_predicate=predicate is None,
    )


def _is_at_most(count: Expr, extent: Expr) -> bool:
    """Returns whether both are numbers, and the first is not the greater one."""
    return count.value is not None and extent.value is not None and count.value <= extent.value


def _clipped(ends: Ends, domain: Ends, analyzer: Analyzer) -> Ends:
    """Returns the range without the values that are provably outside of the axis' domain."""
    low, high = ends
    if analyzer.can_prove_ge0(domain[0] - low):
        low = domain[0]
    if analyzer.can_prove_ge0(high - domain[1]):
        high = domain[1]
    return low, high


def _detach(state: State, block: tir.BlockOp) -> None:
    """Takes a block out of its loops, which vanish when they hold nothing else."""
    carry_values(block)
    marker = tir.BlockOp("", [], [], [], [], [])
    insert_op_before(marker, block)
    block.detach()
    remove_block(state, marker, f"block '{block.block_name.data}' moved away")


# Solving for axes: linear bounds, one axis at a time


def _solve_axis(
    block: tir.BlockOp, provided: Ends, wanted: Ends, domains: dict[SSAValue, Ends], analyzer: Analyzer
) -> bool:
    """Solves `axis + low … axis + high` for an axis to meet `wanted`; returns whether there was an axis.

    Axes that are not alone in the ends stay free.
    """
    axes = {analyzer.expr(v).atom: v for v in block.iter_vars}
    low, high = provided
    found = [(atom, c) for atom, c in low.terms if atom in axes]
    if len(found) == 1 and found[0][1] == -1:
        # 9 - axis must meet the range: the axis meets it mirrored.
        return _solve_axis(block, (-high, -low), (-wanted[1], -wanted[0]), domains, analyzer)
    if len(found) != 1 or found[0][1] != 1:
        scaled = _solve_quotient(axes, low, high, wanted, analyzer)
        if scaled is not None:
            _restrict(domains, scaled[0], scaled[1], analyzer)
        return scaled is not None
    atom = found[0][0]
    axis = axes[atom]
    one = Expr(((atom, 1),), 0)
    below, above = low - one, high - one
    others = {a for a in axes if a is not None and a is not atom}
    if any(v in others or v is atom for v in free_vars(below, above)):
        return False
    # axis + above must reach wanted's low end, axis + below its high end.
    _restrict(domains, axis, (analyzer.simplify(wanted[0] - above), analyzer.simplify(wanted[1] - below)), analyzer)
    return True


def _solve_quotient(
    axes: dict[Atom | None, SSAValue], low: Expr, high: Expr, wanted: Ends, analyzer: Analyzer
) -> tuple[SSAValue, Ends] | None:
    """Solves `c * axis … c * axis + (c - 1)` for the axis by a division by c, `axis // c` by a product.

    `(axis * 8 + lane) // 16`, lane of 8, is `axis // 2`.
    """
    low, high = analyzer.simplify(low), analyzer.simplify(high)
    quotient = low.atom
    if quotient is not None and quotient.kind is Kind.FLOORDIV and low == high:
        dividend, divisor = quotient.operands
        if dividend.atom in axes and divisor.value is not None and divisor.value > 0:
            ends = wanted[0].scaled(divisor.value), wanted[1].scaled(divisor.value) + (divisor.value - 1)
            return axes[dividend.atom], (analyzer.simplify(ends[0]), analyzer.simplify(ends[1]))
    if len(low.terms) != 1 or low.const or low.terms[0][0] not in axes:
        return None
    atom, factor = low.terms[0]
    if factor <= 1 or analyzer.simplify(high - low).value != factor - 1:
        return None
    by = Expr((), factor)
    return axes[atom], (analyzer.simplify(floordiv(wanted[0], by)), analyzer.simplify(floordiv(wanted[1], by)))


def _restrict(domains: dict[SSAValue, Ends], axis: SSAValue, ends: Ends, analyzer: Analyzer) -> None:
    known = domains.get(axis)
    domains[axis] = ends if known is None else join(known, ends, analyzer)
