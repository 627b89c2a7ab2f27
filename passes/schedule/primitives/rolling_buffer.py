"""rolling_buffer: a buffer keeps only the window of one iteration; overlaps are not recomputed.

Iteration t of a loop computes and uses the window `[low(t), low(t) + extent)` of a dimension, where `low` grows by at most
`step`. Element x of the dimension then stays at `x % extent` from the first iteration that needs it to the last, and the first
`extent - step` elements of a window are in the window of the iteration before. After TVM's `rolling_buffer.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.expr import Atom, as_expr, floormod, free_vars, substitute
from ....dialects.tir.buffer import AccessOp
from ....support.edit import builder_before, erase_op
from ....support.walk import enclosing, walk_ops
from ...tir.rewriting import erase_if_dead, set_indices
from ..analysis.access import Box, accesses_of, bindings_of, declare_access, index_type
from ..analysis.block_kind import analyzer_for, conditions_of, set_block, why_neither
from ..analysis.region_cover import bounds_an_axis, loops_between, reads_within, written_box
from ..analysis.structure import (
    all_loops_above,
    buffers_read,
    buffers_written,
    child_under,
    const_int,
    is_inside,
    loops_above,
    readers,
    runs_before,
    scope_of,
    uses_in,
    write_regions,
    writers,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block, require_complete_or_reduction, require_own_values
from .set_scope import written_buffer


@primitive
def rolling_buffer(state: State, block: tir.BlockOp, write_buffer_index: int | str) -> None:
    """Shrinks a buffer to the window that one iteration of a loop uses, and computes only new elements.

    B = T.alloc_buffer((130,))                       B = T.alloc_buffer((18,))
    for i_0 in range(8):                             for i_0 in range(8):
        for ax0 in range(18):                            for ax0 in range(18):
            with T.block("B"):                →              with T.block("B"):
                v = i_0 * 16 + ax0                               v = i_0 * 16 + ax0
                                                                 T.where(i_0 < 1 or 2 <= ax0)
                B[v] = …                                         B[v % 18] = …
        for i_1 in range(16): …B[v]…B[v + 2]…            for i_1 in range(16): …B[v % 18]…B[(v + 2) % 18]…

    sch.rolling_buffer(B, 0)

    The dimension that the outermost loop moves along is the one that rolls. The block is computed at a loop of all its
    readers (compute_at), and the iterations of the loops run in order.
    """
    block = require_block(block, "rolling_buffer")
    buffer = written_buffer(block, write_buffer_index, "rolling_buffer")
    _apply(_planned(block, buffer))


@dataclass(frozen=True)
class _Window:
    """The window of a dimension in an iteration of `loop`: `extent` elements from `low`, up to `step` new."""

    dim: int
    loop: tir.ForOp
    low: Expr
    extent: int
    step: int

    @property
    def overlap(self) -> int:
        """Returns the number of elements at the beginning of a window that were in the one before."""
        return self.extent - self.step


@dataclass(frozen=True)
class _Plan:
    """The checked rewrite of rolling_buffer."""

    block: tir.BlockOp
    users: Sequence[tir.BlockOp]
    buffer: SSAValue
    accesses: Sequence[AccessOp]
    rolling: _Window
    windows: Sequence[_Window]
    """All dimensions whose windows overlap, `rolling` among them."""
    analyzer: Analyzer


def _planned(block: tir.BlockOp, buffer: SSAValue) -> _Plan:
    name, called = tir.buffer_name(buffer), block.block_name.data
    accesses = _accesses(block, buffer)
    require_complete_or_reduction(block, "rolling_buffer")
    if len(set(buffers_written(block))) > 1:
        raise refuse(
            block,
            f"rolling_buffer: block '{called}' writes other buffers besides '{name}', all of them whole",
            "give each buffer a block of its own",
        )
    scope = scope_of(block)
    users = [b for b in readers(buffer, scope) if b is not block]
    if not users:
        raise refuse(block, f"rolling_buffer: nothing reads '{name}'", "roll the buffer of a producer")
    for op in accesses:
        if not any(is_inside(op, each) for each in (block, *users)) or (
            isinstance(op, tir.StoreOp) and not is_inside(op, block)
        ):
            raise refuse(
                op,
                f"rolling_buffer: '{name}' is used outside of block '{called}' and the blocks that read it",
                "give every use a block",
            )
    around = next((loop for loop in reversed(loops_above(block)) if all(is_inside(u, loop) for u in users)), None)
    if around is None:
        raise refuse(
            block,
            f"rolling_buffer: no loop is around both block '{called}' and the blocks that read '{name}'",
            f"compute_at block '{called}' at a loop of its readers first",
        )
    _check_order(block, users, around, name)
    analyzer = analyzer_for(all_loops_above(block))
    inner = loops_between(block, around)
    box = written_box(block, buffer, inner, analyzer, with_predicate=False)
    if isinstance(box, str):
        raise refuse(
            block,
            f"rolling_buffer: what block '{called}' writes of '{name}' in an iteration of loop '{around.var_name.data}' is not a full box: {box}",
            "bind each axis that indexes it to loops that count by 1, as compute_at does",
        )
    if any(const_int(extent) != 1 for extent in write_regions(block)[0].extents):
        raise refuse(
            block,
            f"rolling_buffer: block '{called}' writes several elements of '{name}' in one instance",
            "roll before blockize or tensorize",
        )
    outer = [loop for loop in loops_above(block) if loop not in inner]
    windows = [w for w in (_window(k, *ends, outer, analyzer) for k, ends in enumerate(box.dims)) if w is not None]
    moving = [w for w in windows if w.overlap > 0]
    rolling = next((w for loop in outer for w in moving if w.loop is loop), None)
    if rolling is None:
        raise refuse(
            block,
            f"rolling_buffer: in no dimension of '{name}' do iterations of a loop around block '{called}' and its readers share elements",
            "the region of an iteration must have a constant extent, and begin at `i * step` or `i * step // divisor` for a loop i, step less than extent",
        )
    _check_turns(block, moving, box, around, analyzer)
    for user in users:
        _check_reads(user, box, around, name, analyzer)
    _check_predicate(block, moving, inner, analyzer)
    _check_values(block, rolling.loop, users, name)
    for each in (block, *users):
        _check_init(each, rolling.loop)
    return _Plan(block, users, buffer, accesses, rolling, moving, analyzer)


def _check_init(block: tir.BlockOp, loop: tir.ForOp) -> None:
    """Raises where the rolling loop drives a reduction: with opaque axes its T.init() would run each time."""
    analyzer = Analyzer()
    for axis, kind, binding in zip(block.iter_names.data, block.iter_types.data, block.bindings, strict=True):
        drives = kind.data == "R" and any(v.payload is loop.loop_var for v in free_vars(analyzer.expr(binding)))
        if drives and block.find(tir.InitOp) is not None:
            raise refuse(
                block,
                f"rolling_buffer: rolling loop '{loop.var_name.data}' drives reduction axis '{axis.data}' of block '{block.block_name.data}', which T.init() begins",
                f"decompose_reduction block '{block.block_name.data}' first",
            )


def _accesses(block: tir.BlockOp, buffer: SSAValue) -> list[AccessOp]:
    """Returns the loads and stores of a buffer; raises when it is a parameter, or used in another way."""
    name, owner = tir.buffer_name(buffer), buffer.owner
    if not isinstance(owner, tir.AllocBufferOp):
        raise refuse(
            block,
            f"rolling_buffer: '{name}' is not an allocation of this function: its caller needs all of it",
            "cache_write it first, and roll the copy",
        )
    if owner.stride_dims.data:
        raise refuse(block, f"rolling_buffer: buffer '{name}' has strides", "roll a compact buffer")
    return accesses_of(buffer, "rolling_buffer", "roll before its regions are matched or its address is taken")


def _check_order(block: tir.BlockOp, users: Sequence[tir.BlockOp], around: tir.ForOp, name: str) -> None:
    """Raises unless in each iteration of `around` the block precedes all its readers, under no condition."""
    mine = child_under(around, block)
    theirs = {child_under(around, user) for user in users}
    behind: set[Operation] = set()
    op = mine.next_op
    while op is not None:
        behind.add(op)
        op = op.next_op
    if not theirs <= behind:
        raise refuse(
            block,
            f"rolling_buffer: block '{block.block_name.data}' does not come before all readers of '{name}' in loop '{around.var_name.data}'",
            "compute_at the block at that loop",
        )
    if not all(isinstance(each, tir.ForOp) for each in enclosing(block, scope_of(block))):
        raise refuse(
            block,
            f"rolling_buffer: block '{block.block_name.data}' stands under a branch",
            "only a block that every iteration runs can leave elements for the next",
        )


# Windows


def _window(dim: int, low: Expr, high: Expr, outer: Sequence[tir.ForOp], analyzer: Analyzer) -> _Window | None:
    """Returns how a dimension moves with a loop; None when it does not, or not in steps of a known size."""
    extent = analyzer.simplify(high - low + 1).value
    used = free_vars(low)
    loops = [loop for loop in outer if analyzer.expr(loop.loop_var).atom in used]
    if extent is None or len(loops) != 1:
        return None
    variable = analyzer.expr(loops[0].loop_var).atom
    step = 0
    for atom, coefficient in low.terms:
        if variable not in free_vars(Expr(((atom, coefficient),), 0)):
            continue
        growth = _growth(atom, variable)
        if growth is None or coefficient < 0:
            return None
        step += coefficient * growth
    return _Window(dim, loops[0], low, extent, step)


def _growth(atom: Atom, variable: Atom | None) -> int | None:
    """Returns the most that `variable`, or a quotient of a multiple of it, grows in one iteration."""
    if atom is variable:
        return 1
    if atom.kind is not Kind.FLOORDIV or variable is None:
        return None
    dividend, divisor = atom.operands
    factor = dividend.coefficient(variable)
    if divisor.value is None or divisor.value <= 0 or factor <= 0:
        return None
    if variable in free_vars(dividend - Expr(((variable, factor),), 0)):
        return None
    return -(-factor // divisor.value)


def _check_turns(
    block: tir.BlockOp, moving: Sequence[_Window], box: Box, around: tir.ForOp, analyzer: Analyzer
) -> None:
    """Raises unless the iterations run in order, and each window depends on no loop but its own."""
    name = tir.buffer_name(box.buffer)
    for loop in (*all_loops_above(around), around):
        if loop.kind.data not in ("serial", "unrolled"):
            raise refuse(
                loop,
                f"rolling_buffer: loop '{loop.var_name.data}' is {loop.kind.data}, but the iterations around '{name}' must run one after the other",
                "roll along a serial loop, and bind or parallelize no loop around it",
            )
    for window in moving:
        loop = window.loop
        atom = analyzer.expr(loop.loop_var).atom
        for number, (low, high) in enumerate(box.dims):
            if number != window.dim and atom in free_vars(low, high):
                raise refuse(
                    block,
                    f"rolling_buffer: loop '{loop.var_name.data}' moves dimension {number} of '{name}' as well as dimension {window.dim}",
                    "a window must be moved by a loop of its own",
                )
        for inner in loops_between(block, loop):
            if atom in free_vars(analyzer.expr(inner.min), analyzer.expr(inner.extent)):
                raise refuse(
                    inner,
                    f"rolling_buffer: how far loop '{inner.var_name.data}' runs depends on loop '{loop.var_name.data}'",
                    "all iterations must have the same loops inside",
                )


def _check_reads(user: tir.BlockOp, box: Box, around: tir.ForOp, name: str, analyzer: Analyzer) -> None:
    """Raises where a reader uses more of the buffer in an iteration than the iteration computes."""
    if not reads_within(user, box, around, analyzer):
        raise refuse(
            user,
            f"rolling_buffer: block '{user.block_name.data}' is not known to read only what an iteration of loop '{around.var_name.data}' computes of '{name}'",
            "what earlier iterations computed is overwritten",
        )


def _check_predicate(
    block: tir.BlockOp, moving: Sequence[_Window], inner: Sequence[tir.ForOp], analyzer: Analyzer
) -> None:
    """Raises where an instance runs or not depending on the iteration that computes an element."""
    if block.predicate is None:
        return
    turning = {analyzer.expr(w.loop.loop_var).atom for w in moving} | {
        analyzer.expr(loop.loop_var).atom for loop in inner
    }
    for condition in conditions_of(block.predicate, analyzer):
        if any(v in turning for v in free_vars(condition)) and not bounds_an_axis(block, condition, analyzer):
            raise refuse(
                block,
                f"rolling_buffer: the condition {condition!r} of block '{block.block_name.data}' bounds no axis of it: in which iterations an element is computed is not known",
                "a condition may say from or up to which value an axis runs",
            )


# Values


def _check_values(block: tir.BlockOp, first: tir.ForOp, users: Sequence[tir.BlockOp], name: str) -> None:
    """Raises where an element's inputs change: the next iteration would then compute another value."""
    pending, seen = [block], {block}
    for each in pending:
        # A reduction must be over before anything reads it.
        others = users if each is block else (block,)
        turns = {loop.loop_var for loop in loops_above(each) if any(is_inside(o, loop) for o in others)}
        reason = _why_not_fixed(each, turns)
        if reason is not None:
            raise refuse(
                each,
                f"rolling_buffer: what loop '{first.var_name.data}' computes of '{name}' may differ from iteration to iteration: {reason}",
                "what is kept must be what would be computed again",
            )
        own = set(buffers_written(each))
        for buffer in dict.fromkeys(buffers_read(each)):
            scope = scope_of(each)
            if any(use.writes and use.block is None for use in uses_in(buffer, scope)):
                raise refuse(
                    each,
                    f"rolling_buffer: '{tir.buffer_name(buffer)}' is written outside of any block",
                    "give the statement a block",
                )
            inside = [w for w in writers(buffer, scope) if is_inside(w, first)]
            if buffer not in own:
                if inside and not any(_is_there(each, writer, buffer) for writer in inside):
                    raise refuse(
                        each,
                        f"rolling_buffer: block '{each.block_name.data}' is not known to read only what was written of '{tir.buffer_name(buffer)}' when loop '{first.var_name.data}' comes to it",
                        "what is kept must be what would be computed again",
                    )
                pending += [writer for writer in inside if writer not in seen]
                seen.update(inside)


def _is_there(reader: tir.BlockOp, writer: tir.BlockOp, buffer: SSAValue) -> bool:
    """Returns whether a writer precedes a reader in the same iteration and writes all elements it reads."""
    around = next(loop for loop in reversed(loops_above(writer)) if is_inside(reader, loop))
    if not runs_before(writer, reader):
        return False
    analyzer = analyzer_for(all_loops_above(writer))
    box = written_box(writer, buffer, loops_between(writer, around), analyzer, with_predicate=False)
    return not isinstance(box, str) and reads_within(reader, box, around, analyzer)


def _why_not_fixed(maker: tir.BlockOp, turns: Set[SSAValue]) -> str | None:
    """Returns why an element that `maker` writes may have several values when read; None if one.

    `turns` are the variables of the loops that are around the reader, too.
    """
    called = maker.block_name.data
    if (reasons := why_neither(maker)) is not None:
        return f"block '{called}' is neither complete ({reasons[0]}) nor a reduction ({reasons[1]})"
    require_own_values(maker, "rolling_buffer")
    if any(isinstance(op, tir.EvaluateOp | tir.BlockOp) and op is not maker for op in walk_ops(maker)):
        return f"block '{called}' does more than compute elements"
    analyzer = Analyzer()
    placed = {low for region in write_regions(maker) for low in region.mins}
    for axis, kind, extent, binding, variable in zip(
        maker.iter_names.data, maker.iter_types.data, maker.dom_extents, maker.bindings, maker.iter_vars, strict=True
    ):
        if const_int(extent) == 1:
            continue
        if kind.data == "S" and variable not in placed:
            return f"axis '{axis.data}' of block '{called}' is not an index of what it writes"
        if kind.data == "R" and any(v.payload in turns for v in free_vars(analyzer.expr(binding))):
            return f"axis '{axis.data}' of block '{called}' is reduced over several iterations"
    return None


# Application


def _apply(plan: _Plan) -> None:
    roll = plan.rolling
    extent = as_expr(roll.extent)
    analyzer = Analyzer()
    for op in plan.accesses:
        old = list(op.indices)
        builder = builder_before(op)
        place = analyzer.to_ssa(floormod(analyzer.expr(old[roll.dim]), extent), builder, old[roll.dim].type)
        set_indices(op, [place if k == roll.dim else index for k, index in enumerate(old)])
        erase_if_dead(old[roll.dim])
    _skip_what_is_there(plan)
    variable = plan.analyzer.expr(roll.loop.loop_var).atom
    for each in (plan.block, *plan.users):
        _mark_opaque(each, variable)
    _resize(plan.buffer, roll.dim, roll.extent)
    for each in _declaring(plan):
        declare_access(each)


def _declaring(plan: _Plan) -> Iterable[tir.BlockOp]:
    """Yields the blocks whose declarations name the buffer, inner ones first."""
    found: dict[tir.BlockOp, None] = {}
    for each in (plan.block, *plan.users):
        for op in reversed([op for op in walk_ops(each) if isinstance(op, tir.BlockOp)]):
            found[op] = None
    return found


def _skip_what_is_there(plan: _Plan) -> None:
    """Restricts the block to the elements that are new in an iteration."""
    block, analyzer = plan.block, plan.analyzer
    (region,) = write_regions(block)
    bound = bindings_of(block, analyzer)
    builder = builder_before(block)
    condition = block.predicate
    for window in plan.windows:
        index = substitute(analyzer.expr(region.mins[window.dim]), bound)
        place = analyzer.simplify(index - window.low)
        variable = window.loop.loop_var
        start = analyzer.to_ssa(analyzer.expr(window.loop.min) + 1, builder, variable.type)
        known = analyzer.to_ssa(as_expr(window.overlap), builder, region.mins[window.dim].type)
        new = analyzer.to_ssa(place, builder, region.mins[window.dim].type)
        either = builder.insert(
            tir.OrOp(
                builder.insert(tir.LtOp(variable, start)).result,
                builder.insert(tir.LeOp(known, new)).result,
            )
        ).result
        condition = either if condition is None else builder.insert(tir.AndOp(condition, either)).result
    set_block(block, predicate=condition)


def _mark_opaque(block: tir.BlockOp, variable: Atom | None) -> None:
    """Axes that move with the rolling loop are bound to its order from now on."""
    analyzer = Analyzer()
    kinds = [
        StringAttr("opaque") if variable in free_vars(analyzer.expr(binding)) else kind
        for kind, binding in zip(block.iter_types.data, block.bindings, strict=True)
    ]
    block.properties["iter_types"] = ArrayAttr(kinds)


def _resize(buffer: SSAValue, dim: int, extent: int) -> None:
    """Replaces an allocation by one with another, constant extent in one dimension."""
    alloc, type_ = buffer.owner, buffer.type
    assert isinstance(alloc, tir.AllocBufferOp) and isinstance(type_, tir.BufferType) and alloc.parent is not None
    dims: list[Attribute] = list(type_.shape.data)
    shape = list(alloc.shape)
    if not isinstance(dims[dim], IntegerAttr):
        shape.pop(sum(not isinstance(d, IntegerAttr) for d in dims[:dim]))
    dims[dim] = IntegerAttr(extent, index_type(buffer))
    new = tir.AllocBufferOp(
        alloc.var_name.data,
        tir.BufferType(ArrayAttr(dims), type_.dtype, type_.scope),
        shape=shape,
        properties={k: v for k, v in alloc.properties.items() if k not in ("operandSegmentSizes", "var_name")},
    )
    new.location = alloc.location
    new.result.name_hint = buffer.name_hint
    alloc.parent.insert_op_before(new, alloc)
    buffer.replace_all_uses_with(new.result)
    before = list(alloc.shape)
    erase_op(alloc)
    erase_if_dead(*before)
