"""decompose_padding: replaces a padding block by one that fills and one that copies the inside.

After TVM's `decompose_padding.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr, Kind
from ....dialects.arith.expr import TRUE, ZERO, conjuncts, free_vars, ge, maximum, substitute
from ....support.edit import builder_at_end, builder_before, erase_op, move_before
from ....support.walk import enclosing, walk_ops
from ...tir.rewriting import erase_dead, erase_if_dead
from ..analysis.access import declare_access, made_in
from ..analysis.block_kind import analyzer_for, bind_axes, conditions_of, set_block
from ..analysis.region_cover import bounds_an_axis, loops_between, reads_within, written_box
from ..analysis.structure import all_loops_above, body_of, child_under, is_inside, loops_above, scope_of, uses_in
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.block_axes import Axis, axes_of, make_block, move_body, replace_variables
from .common.clone_expression import clone_value
from .common.loops import copy_loops, require_block, require_complete, require_loop, require_own_values


@primitive
def decompose_padding(state: State, block: tir.BlockOp, loop: tir.ForOp) -> Operation:
    """Fills a padded buffer before `loop`, and copies only the inside in it; returns the filling block.

                                            for i in range(140):
                                                with T.block("P_pad_const"):
                                                    P[vi] = 0
    for i in range(140):             →      for i in range(128):
        with T.block("P"):                      with T.block("P"):
            P[vi] = T.if_then_else(                 P[vi + 6] = A[vi]
                6 <= vi and vi < 134, A[vi - 6], 0)

    sch.decompose_padding(P, i)
    """
    block, loop = require_block(block, "decompose_padding"), require_loop(loop, "decompose_padding")
    plan = _planned(block, loop)
    new = _filling_block(state, plan)
    _keep_inside(state, plan)
    return new


@dataclass(frozen=True)
class _Plan:
    """The checked rewrite of decompose_padding."""

    block: tir.BlockOp
    loop: tir.ForOp
    store: tir.StoreOp
    padding: SSAValue
    inside: dict[int, tuple[Expr, Expr]]
    """For the axes that the condition bounds, by number: the least and the greatest value inside."""
    trimmed: dict[int, tir.ForOp]
    """Axes that loops of their own drive, which run over the inside alone."""
    analyzer: Analyzer


def _planned(block: tir.BlockOp, loop: tir.ForOp) -> _Plan:
    name, under = block.block_name.data, loop.var_name.data
    if not is_inside(block, loop) or scope_of(block) is not scope_of(loop):
        raise refuse(
            loop, f"decompose_padding: loop '{under}' is not around block '{name}'", "give a loop of get_loops(block)"
        )
    require_complete(block, "decompose_padding", "it must write each element once, and read other buffers only")
    require_own_values(block, "decompose_padding")
    if not all(isinstance(each, tir.ForOp) for each in enclosing(block, loop)):
        raise refuse(
            block,
            f"decompose_padding: block '{name}' stands under a branch in loop '{under}'",
            "give a loop inside of the branch",
        )
    store, condition, padding = choice_of(block)
    analyzer = analyzer_for(all_loops_above(block))
    inside = inside_of(block, condition, analyzer)
    _check_others(block, loop, store.buffer)
    trimmed = _trimmed(block, loop, inside, analyzer)
    return _Plan(block, loop, store, padding, inside, trimmed, analyzer)


def choice_of(block: tir.BlockOp) -> tuple[tir.StoreOp, SSAValue, SSAValue]:
    """Returns a block's store, the condition of its choice and the padding; raises for other blocks."""
    name = block.block_name.data
    note = "it must be P[…] = T.if_then_else(condition, value, padding)"
    stores: list[tir.StoreOp] = []
    for op in walk_ops(block):
        if isinstance(op, tir.StoreOp) and op.parent is block.body.block and op.predicate is None:
            stores.append(op)
        elif op is not block and (
            isinstance(op, tir.StoreOp | tir.ForOp | tir.BlockOp | tir.IfOp | tir.WhileOp | tir.EvaluateOp)
        ):
            raise refuse(op, f"decompose_padding: block '{name}' is more than one store", note)
    if len(stores) != 1:
        raise refuse(block, f"decompose_padding: block '{name}' is more than one store", note)
    (store,) = stores
    choice = store.value.owner
    if isinstance(choice, tir.IfThenElseOp):
        last = choice.else_region.block.last_op
        assert isinstance(last, tir.YieldOp)
        padding = last.values[0]
    elif isinstance(choice, tir.SelectOp):
        padding = choice.false_value
    else:
        raise refuse(store, f"decompose_padding: block '{name}' does not choose between a value and padding", note)
    pending = [padding]
    for value in pending:
        owner = value.owner
        if not isinstance(owner, Operation):
            if value in block.iter_vars:
                raise refuse(
                    store,
                    f"decompose_padding: the padding of block '{name}' depends on its axes",
                    "the padding must be one value",
                )
        elif is_inside(owner, block):
            if isinstance(owner, tir.LoadOp | tir.IfThenElseOp):
                raise refuse(
                    store,
                    f"decompose_padding: the padding of block '{name}' is not a constant",
                    "the padding must be one value",
                )
            pending += owner.operands
    return store, choice.condition, padding


def inside_of(block: tir.BlockOp, condition: SSAValue, analyzer: Analyzer) -> dict[int, tuple[Expr, Expr]]:
    """Returns a range for each axis that the condition bounds."""
    name = block.block_name.data
    axes = axes_of(block, analyzer)
    found: dict[int, tuple[Expr, Expr]] = {}
    for each in conjuncts(analyzer.expr(condition)):
        atom = each.atom
        e = atom.operands[0] if atom is not None and atom.kind is Kind.GE else ZERO
        bounded = [(k, e.coefficient(axis.atom)) for k, axis in enumerate(axes) if e.coefficient(axis.atom)]
        number, sign = bounded[0] if len(bounded) == 1 else (0, 0)
        rest = e - axes[number].symbol.scaled(sign) if sign else ZERO
        if abs(sign) != 1 or any(axis.atom in free_vars(rest) for axis in axes) or made_in(block, rest):
            raise refuse(
                block,
                f"decompose_padding: the condition {each!r} of block '{name}' does not bound one axis",
                "what is inside must be a range of each axis: low <= v and v < high",
            )
        axis = axes[number]
        low, high = found.get(number, (axis.min, axis.min + axis.extent - 1))
        if sign > 0:
            low = _greater(low, -rest, analyzer)
        else:
            high = -_greater(-high, -rest, analyzer)
        found[number] = analyzer.simplify(low), analyzer.simplify(high)
    kept = {
        k: ends
        for k, ends in found.items()
        if not (
            analyzer.can_prove_equal(ends[0], axes[k].min)
            and analyzer.can_prove_equal(ends[1], axes[k].min + axes[k].extent - 1)
        )
    }
    if not kept:
        raise refuse(
            block,
            f"decompose_padding: block '{name}' pads nothing: its condition always holds",
            "the block may stay as it is",
        )
    for k, (low, high) in kept.items():
        if analyzer.can_prove_ge0(low - high - 1):
            raise refuse(
                block,
                f"decompose_padding: block '{name}' copies nothing: no value of axis '{axes[k].name}' is inside",
                "the block may stay as it is",
            )
    return kept


def _greater(a: Expr, b: Expr, analyzer: Analyzer) -> Expr:
    if analyzer.can_prove_ge0(a - b):
        return a
    return b if analyzer.can_prove_ge0(b - a) else maximum(a, b)


def _check_others(block: tir.BlockOp, loop: tir.ForOp, target: SSAValue) -> None:
    """Raises where filling before `loop` changes what other blocks in it read of the buffer."""
    name, buffer, under = block.block_name.data, tir.buffer_name(target), loop.var_name.data
    scope = scope_of(block)
    others: dict[tir.BlockOp, None] = {}
    for use in uses_in(target, scope):
        if use.block is None:
            raise refuse(
                block, f"decompose_padding: '{buffer}' is used outside of any block", "give the statement a block"
            )
        if use.block is not block and is_inside(use.block, loop):
            others[use.block] = None
    for other in others:
        holder = next(each for each in reversed(loops_above(block)) if is_inside(other, each))
        if not _covers(block, other, holder, target):
            raise refuse(
                other,
                f"decompose_padding: block '{other.block_name.data}' in loop '{under}' is not known to read of '{buffer}' only what block '{name}' has just written",
                f"give a loop inside of '{holder.var_name.data}', which holds both",
            )


def _covers(block: tir.BlockOp, reader: tir.BlockOp, holder: tir.ForOp, target: SSAValue) -> bool:
    """Returns whether in each iteration of `holder` the block precedes the reader and writes all it reads."""
    current = child_under(holder, block).next_op
    while current is not None and current is not child_under(holder, reader):
        current = current.next_op
    if current is None:
        return False
    analyzer = analyzer_for(dict.fromkeys((*all_loops_above(block), *all_loops_above(reader))))
    bind_axes(analyzer, reader)
    if block.predicate is not None and not all(
        bounds_an_axis(block, each, analyzer) for each in conditions_of(block.predicate, analyzer)
    ):
        return False
    box = written_box(block, target, loops_between(block, holder), analyzer, with_predicate=False)
    if isinstance(box, str):
        return False
    return reads_within(reader, box, holder, analyzer)


def _trimmed(
    block: tir.BlockOp, loop: tir.ForOp, inside: dict[int, tuple[Expr, Expr]], analyzer: Analyzer
) -> dict[int, tir.ForOp]:
    """Returns the loops from `loop` on that hold only the block and drive only one axis that is bounded."""
    axes = axes_of(block, analyzer)
    found: dict[int, tir.ForOp] = {}
    below: Operation = block
    for each in reversed([loop, *loops_between(block, loop)]):
        if any(op is not below and not (op.results and not op.regions) for op in body_of(each).ops):
            break
        below = each
        uses = list(each.loop_var.uses)
        number = next((k for k, b in enumerate(block.bindings) if b is each.loop_var), None)
        if number not in inside or len(uses) != 1 or each.kind.data == "thread_binding":
            continue
        axis = axes[number]
        if analyzer.can_prove_equal(each.min, axis.min) and analyzer.can_prove_equal(each.extent, axis.extent):
            found[number] = each
    return found


# Application


def _filling_block(state: State, plan: _Plan) -> tir.BlockOp:
    """Creates the block that writes the padding everywhere, in copies of the loops from `loop` on."""
    block, loop, analyzer = plan.block, plan.loop, plan.analyzer
    holder = Block()
    builder = builder_at_end(holder, block.location)
    nest = (loop, *loops_between(block, loop))
    renamed, builder = copy_loops(nest, builder, analyzer, block.location)
    axes = [
        Axis(a.name, a.kind, a.min, a.extent, substitute(analyzer.simplify(a.binding), renamed), a.type)
        for a in axes_of(block, analyzer)
    ]
    predicate = TRUE if block.predicate is None else substitute(analyzer.expr(block.predicate), renamed)
    name = state.fresh_block_name(block, f"{block.block_name.data}_pad_const")
    new, _ = make_block(builder, name, axes, analyzer, predicate=predicate)
    values = dict(zip(block.iter_vars, new.iter_vars, strict=True))
    inside = builder_at_end(new.body.block, plan.store.location)
    padding = clone_value(plan.padding, {}, inside, block)
    places = [clone_value(index, values, inside, block) for index in plan.store.indices]
    inside.insert(tir.StoreOp(padding, plan.store.buffer, places))
    move_before(holder.ops, loop)
    declare_access(new)
    state.added(new)
    return new


def _keep_inside(state: State, plan: _Plan) -> None:
    """Restricts the block to the inside."""
    block, analyzer = plan.block, plan.analyzer
    builder = builder_before(block)
    conditions: list[SSAValue] = [] if block.predicate is None else [block.predicate]
    axes: list[Axis] = []
    for number, axis in enumerate(axes_of(block, analyzer)):
        if number not in plan.inside:
            axes.append(Axis(axis.name, axis.kind, axis.min, axis.extent, analyzer.simplify(axis.binding), axis.type))
            continue
        low, high = plan.inside[number]
        binding = axis.binding
        if number not in plan.trimmed:
            binding = analyzer.simplify(binding - low)
            if not analyzer.can_prove(ge(axis.binding, low)):
                place = analyzer.to_ssa(axis.binding, builder, axis.type)
                least = analyzer.to_ssa(low, builder, axis.type)
                conditions.append(builder.insert(tir.LeOp(least, place)).result)
            if not analyzer.can_prove(ge(high, axis.binding)):
                place = analyzer.to_ssa(axis.binding, builder, axis.type)
                end = analyzer.to_ssa(high + 1, builder, axis.type)
                conditions.append(builder.insert(tir.LtOp(place, end)).result)
        axes.append(Axis(axis.name, axis.kind, ZERO, analyzer.simplify(high - low + 1), binding, axis.type))
    for number, loop in plan.trimmed.items():
        _run_over(loop, axes[number].extent)
    new, values = make_block(builder, block.block_name.data, axes, analyzer, annotations=block.annotations)
    new.location = block.location
    if conditions:
        condition = conditions[0]
        for each in conditions[1:]:
            condition = builder_before(new).insert(tir.AndOp(condition, each)).result
        set_block(new, predicate=condition)
    _choose_value(plan.store)
    move_body(block, new)
    moved: dict[SSAValue, Expr] = {}
    for number, (old, axis) in enumerate(zip(block.iter_vars, axes, strict=True)):
        shift = plan.inside[number][0] if number in plan.inside else ZERO
        moved[old] = values[axis.atom] + shift
    replace_variables(new, moved, Analyzer())
    erase_dead(new)
    state.forward(block, new)
    erase_op(block)
    declare_access(new)


def _run_over(loop: tir.ForOp, extent: Expr) -> None:
    """Sets the range of a loop to start at 0 and have `extent` iterations."""
    before = [loop.min, loop.extent]
    builder, type_ = builder_before(loop), loop.loop_var.type
    loop.operands[0] = Analyzer().to_ssa(ZERO, builder, type_)
    loop.operands[1] = Analyzer().to_ssa(extent, builder, type_)
    erase_if_dead(*before)


def _choose_value(store: tir.StoreOp) -> None:
    """Stores the value that is inside, without a choice."""
    choice = store.value.owner
    if isinstance(choice, tir.SelectOp):
        value = choice.true_value
    else:
        assert isinstance(choice, tir.IfThenElseOp)
        last = choice.then_region.block.last_op
        assert isinstance(last, tir.YieldOp)
        value = last.values[0]
        move_before([op for op in choice.then_region.block.ops if op is not last], choice)
    place = list(store.operands).index(choice.results[0])
    store.operands[place] = value
    erase_if_dead(choice.results[0])
