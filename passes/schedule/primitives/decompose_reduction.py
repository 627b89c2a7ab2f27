"""decompose_reduction: a reduction's initialization becomes a block of its own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.expr import (
    ONE,
    TRUE,
    Atom,
    Kind,
    conjuncts,
    free_vars,
    ge,
    logical_and,
    logical_or,
    lt,
    number,
    substitute,
)
from ....dialects.tir.open_reductions import reducing_loops
from ....dialects.tir.types import I1
from ....support.edit import builder_at_end, erase_op, move_before, move_to_end
from ....support.walk import walk_ops
from ..analysis.access import declare_access
from ..analysis.block_kind import analyzer_for, axis_kinds, driving_variables, why_not_reduction, why_order_matters
from ..analysis.region_cover import why_reads_others
from ..analysis.structure import (
    all_loops_above,
    buffers_written,
    is_inside,
    loops_above,
    readers,
    runs_before,
    scope_of,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.clone_expression import clone_value
from .common.loops import copy_loops, require_block, require_loop, require_own_values


@primitive
def decompose_reduction(state: State, block: tir.BlockOp, loop: tir.ForOp) -> Operation:
    """Moves the init of a reduction block to a block of its own, right before `loop`; returns that block.

    for i, k in T.grid(8, 64):                     for i in range(8):
        with T.block("B"):                             with T.block("B_init"):
            with T.init(): B[vi] = 0            →          B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]                  for k in range(64):
                                                           with T.block("B_update"):
    sch.decompose_reduction(B, k)                              B[vi] = B[vi] + A[vi, vk]
    """
    block, loop = require_block(block, "decompose_reduction"), require_loop(loop, "decompose_reduction")
    name, under = block.block_name.data, loop.var_name.data
    if not is_inside(block, loop):
        raise refuse(
            loop,
            f"decompose_reduction: loop '{under}' is not around block '{name}'",
            f"give a loop that get_loops returned for block '{name}'",
        )
    reason = why_order_matters(block, loop)
    if reason is not None:
        raise refuse(
            block,
            f"decompose_reduction: the bindings of block '{name}' are not affine in its loops: {reason}",
            "no two iterations may run the same instance: bind each axis to loops of its own",
        )
    reason = why_not_reduction(block)
    if reason is not None:
        raise refuse(
            block,
            f"decompose_reduction: block '{name}' is not a reduction block: {reason}",
            "the block must set with T.init() what it then updates",
        )
    require_own_values(block, "decompose_reduction")
    analyzer = Analyzer()
    loops = loops_above(block)
    place = loops.index(loop)
    driving = driving_variables(block, "R")
    for outer in loops[:place]:
        if outer.loop_var in driving:
            raise refuse(
                outer,
                f"decompose_reduction: loop '{outer.var_name.data}' drives a reduction axis of block '{name}' and is around loop '{under}'",
                f"initialize before all reduction loops: decompose at '{outer.var_name.data}' or a loop around it",
            )
    _check_predicate(block, loops, place, analyzer)
    _check_others(block, loop)
    init = block.find(tir.InitOp)
    assert isinstance(init, tir.InitOp)
    _check_values(block, init)
    new = _init_block(state, block, init, loop, loops[place:], analyzer)
    erase_op(init)
    state.rename(block, state.fresh_block_name(block, f"{name}_update"))
    declare_access(new)
    state.added(new)
    declare_update(block)
    return new


def _check_predicate(block: tir.BlockOp, loops: Sequence[tir.ForOp], place: int, analyzer: Analyzer) -> None:
    """Raises where the init would run in iterations of a loop around it in which no update does.

    for a in range(2):                       for a in range(2):
        for b in range(2):                       B_init
            with T.block("B"):           →       for b in range(2):
                T.where(a * 2 + b < 1)               B_update where a * 2 + b < 1
    """
    if block.predicate is None:
        return
    spatial = driving_variables(block, "S")
    free = {loop.loop_var: loop for loop in loops[:place] if loop.loop_var not in spatial}
    below = {loop.loop_var for loop in loops[place:] if loop.loop_var not in spatial}
    for part in conjuncts(analyzer.expr(block.predicate)):
        used = {atom.payload for atom in free_vars(part)}
        outer = next((loop for variable, loop in free.items() if variable in used), None)
        if outer is not None and used & below:
            raise refuse(
                outer,
                f"decompose_reduction: block '{block.block_name.data}' does not run in all iterations of loop '{outer.var_name.data}':"
                " its T.where decides that together with a loop further in",
                f"decompose at '{outer.var_name.data}' or a loop around it",
            )


def _check_others(block: tir.BlockOp, loop: tir.ForOp) -> None:
    """Raises where another block in `loop` may read the outputs' values from before the reduction.

    The init is moved before all iterations of the loop. Readers after the block do not matter, of buffers that no other block
    writes.
    """
    name, scope = block.block_name.data, scope_of(block)
    for buffer in dict.fromkeys(buffers_written(block)):
        inner = isinstance(buffer.owner, tir.AllocBufferOp) and scope_of(buffer.owner) is scope
        for other in readers(buffer, scope):
            if other is block or not is_inside(other, loop):
                continue
            after = runs_before(block, other)
            if not after or not (inner or why_reads_others(other, block) is None):
                raise refuse(
                    other,
                    f"decompose_reduction: block '{other.block_name.data}' in loop '{loop.var_name.data}' reads '{tir.buffer_name(buffer)}', which block '{name}' would initialize before the loop",
                    f"decompose at a loop further in, which holds block '{name}' alone",
                )


def _check_values(block: tir.BlockOp, init: tir.InitOp) -> None:
    """Raises where the init uses an axis of the reduction, which the new block has not."""
    axes = {
        variable: name.data
        for variable, name, kind in zip(block.iter_vars, block.iter_names.data, axis_kinds(block), strict=True)
        if kind == "R"
    }
    pending = [operand for op in walk_ops(init) for operand in op.operands]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in axes:
            raise refuse(
                block,
                f"decompose_reduction: T.init() of block '{block.block_name.data}' uses '{axes[value]}', an axis of the reduction",
                "the block of the init has the spatial axes alone",
            )
        if value not in seen and isinstance(value.owner, Operation) and is_inside(value.owner, block):
            pending += value.owner.operands
        seen.add(value)


def declare_update(block: tir.BlockOp) -> None:
    """Declares the update's read of its output like any other read."""
    reads = block.find(tir.ReadsOp)
    writes = block.find(tir.WritesOp)
    if not isinstance(reads, tir.ReadsOp) or not isinstance(writes, tir.WritesOp):
        declare_access(block)
        return
    buffers = {r.owner.buffer for r in reads.operands if isinstance(r.owner, tir.BufferRegionOp)}
    own = [r for r in writes.operands if isinstance(r.owner, tir.BufferRegionOp) and r.owner.buffer not in buffers]
    # The regions of the writes may be after the reads: the reads are put after all regions.
    last: Operation = reads
    for value in own:
        owner = value.owner
        assert isinstance(owner, tir.BufferRegionOp)
        if not _precedes(owner, reads):
            last = writes
    new = tir.ReadsOp(*own, *reads.operands)
    new.location = reads.location
    body = block.body.block
    if last is writes:
        body.insert_op_before(new, writes)
    else:
        body.insert_op_before(new, reads)
    erase_op(reads)


def _precedes(a: Operation, b: Operation) -> bool:
    current = a.next_op
    while current is not None:
        if current is b:
            return True
        current = current.next_op
    return False


def _init_block(
    state: State,
    block: tir.BlockOp,
    init: tir.InitOp,
    loop: tir.ForOp,
    inner: list[tir.ForOp],
    analyzer: Analyzer,
) -> tir.BlockOp:
    """Creates the block of the init before `loop`, in copies of the `inner` loops of spatial axes."""
    location = init.location
    spatial = driving_variables(block, "S")
    holder = Block()
    renamed, builder = copy_loops(
        [old for old in inner if old.loop_var in spatial],
        builder_at_end(holder, location),
        analyzer,
        location,
        suffix="_init",
        is_init=True,
    )
    chosen = [k for k, kind in enumerate(axis_kinds(block)) if kind == "S"]
    bindings: list[SSAValue] = []
    for k in chosen:
        e = substitute(analyzer.expr(block.bindings[k]), renamed)
        bindings.append(analyzer.to_ssa(e, builder, block.bindings[k].type))
    reducing = [loop for loop in inner if loop.loop_var not in spatial]
    guard = substitute(_runs_first(block, reducing, analyzer), renamed)
    mins = [analyzer.to_ssa(analyzer.expr(block.dom_mins[k]), builder, block.iter_vars[k].type) for k in chosen]
    extents = [analyzer.to_ssa(analyzer.expr(block.dom_extents[k]), builder, block.iter_vars[k].type) for k in chosen]
    predicate = None if guard == TRUE else analyzer.to_ssa(guard, builder, I1)
    body = Region(Block(arg_types=[block.iter_vars[k].type for k in chosen]))
    new = tir.BlockOp(
        state.fresh_block_name(block, f"{block.block_name.data}_init"),
        [block.iter_names.data[k].data for k in chosen],
        ["S"] * len(chosen),
        mins,
        extents,
        bindings,
        predicate=predicate,
        annotations=block.annotations,
        body=body,
    )
    builder.insert(new)
    for argument, k in zip(body.block.args, chosen, strict=True):
        old_axis = block.iter_vars[k]
        argument.name_hint = old_axis.name_hint
        old_axis.replace_uses_with_if(argument, lambda use: is_inside(use.operation, init))
    _take_values(init, block, loop, body.block)
    move_to_end(init.body.block.ops, body.block)
    move_before(holder.ops, loop)
    return new


def _runs_first(block: tir.BlockOp, reducing: Sequence[tir.ForOp], analyzer: Analyzer) -> Expr:
    """Returns the condition for a block to run in its reduction's first iterations, where T.init() does.

    T.where(i * 4 + j < n and k * 4 + l < m), k and l over the reduction, k of (m + 3) // 4 iterations  →  i * 4 + j < n
    T.where(i + k < n), k over the reduction  →  i < n

    Where a loop of a reduction over nothing has no iteration, T.init() runs as well.
    """
    firsts: dict[Atom, Expr] = {}
    for loop in reducing:
        firsts[analyzer.variable(loop.loop_var)] = analyzer.expr(loop.min)
    prover = analyzer_for(loop for loop in all_loops_above(block) if loop not in reducing)
    open_loops = reducing_loops(block)
    empty: list[Expr] = []
    kept: list[Expr] = []
    for loop in reducing:
        extent = analyzer.expr(loop.extent)
        if not prover.can_prove(ge(extent, ONE)):
            if loop in open_loops:
                empty.append(lt(extent, ONE))
            else:
                kept.append(ge(extent, ONE))
            _know_at_least(prover, extent, 1)
    parts: Sequence[Expr] = () if block.predicate is None else conjuncts(analyzer.expr(block.predicate))
    for part in parts:
        first = analyzer.simplify(substitute(part, firsts))
        if first == part:
            kept.append(part)
        elif not prover.can_prove(first):
            kept.append(logical_or(first, *empty))
    return logical_and(*kept)


def _know_at_least(prover: Analyzer, value: Expr, least: int) -> None:
    """Tells an analyzer a lower bound of a value, which may be a quotient: (n + 3) // 4 >= 1 if n >= 1."""
    while True:
        prover.constraint(ge(value, number(least)))
        atom = value.atom
        divisor = atom.operands[1].value if atom is not None and atom.kind is Kind.FLOORDIV else None
        if atom is None or divisor is None or divisor < 1:
            return
        value, least = atom.operands[0], least * divisor


def _take_values(init: tir.InitOp, block: tir.BlockOp, loop: tir.ForOp, into: Block) -> None:
    """Copies what the init uses of the block's body, and of the loops that it leaves, to the new block."""
    for op in list(walk_ops(init)):
        for index, operand in enumerate(op.operands):
            owner = operand.owner
            if isinstance(owner, Operation) and is_inside(owner, loop) and not is_inside(owner, init):
                builder = builder_at_end(into, op.location)
                axes = dict(
                    zip(
                        [v for v, t in zip(block.iter_vars, axis_kinds(block), strict=True) if t == "S"],
                        into.args,
                        strict=True,
                    )
                )
                op.operands[index] = clone_value(operand, axes, builder, loop)
