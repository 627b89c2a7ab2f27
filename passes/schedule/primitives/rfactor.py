"""rfactor: splits a reduction into partial reductions, one per iteration of a loop, and their total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Expr
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import TRUE, Atom, conjuncts, free_vars, logical_and, substitute
from ....dialects.arith.iter_map import IterMapLevel
from ....support.edit import builder_at_end, builder_before, erase_op, move_before
from ....support.text import counted
from ....support.walk import enclosing
from ...tir.rewriting import erase_dead, erase_if_dead
from ..analysis.access import declare_access, index_type, order_reads
from ..analysis.block_kind import analyzer_for, axis_kinds, why_not_affine, why_not_reduction
from ..analysis.commutative_reducer import Leaf, Reduction, reduction_of
from ..analysis.region_cover import why_not_covered
from ..analysis.structure import (
    Scope,
    all_loops_above,
    buffers_read,
    child_blocks,
    child_under,
    consumers,
    is_inside,
    loops_above,
    scope_of,
    writers,
)
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .blockize import require_only
from .common.block_axes import Axis, axes_of, axis_over, bind_long_axes, make_block, replace_variables
from .common.clone_expression import clone_value
from .common.loops import copy_loops, require_loop, require_own_values


@primitive
def rfactor(state: State, loop: tir.ForOp, factor_axis: int) -> Operation:
    """Reduces in two steps: each iteration of `loop` into a new dimension of a new buffer, then these.

                                                    for i, k0, k1 in T.grid(8, 4, 16):
                                                        with T.block("B_rf"):
    for i, k0, k1 in T.grid(8, 4, 16):                      vk0, vi, vk1 = T.axis.remap("SSR", [k0, i, k1])
        with T.block("B"):                                  with T.init(): B_rf[vk0, vi] = 0
            with T.init(): B[vi] = 0             →          B_rf[vk0, vi] = B_rf[vk0, vi] + A[vi, vk0 * 16 + vk1]
            B[vi] = B[vi] + A[vi, vk]               for i, k0 in T.grid(8, 4):
                                                        with T.block("B"):
    sch.rfactor(k0, 0)                                      with T.init(): B[vi] = 0
                                                            B[vi] = B[vi] + B_rf[vk0, vi]

    The new dimension is number `factor_axis`. Returns the block of the partial results, whose axis over `loop` is spatial: that
    loop may then run in parallel.
    """
    loop = require_loop(loop, "rfactor")
    plan = _planned(loop, factor_axis)
    return _apply(state, plan)


@dataclass(frozen=True)
class _Plan:
    """The checked rewrite of rfactor."""

    block: tir.BlockOp
    loop: tir.ForOp
    loops: list[tir.ForOp]
    reducing: list[tir.ForOp]
    """The loops of the reduction except `loop`."""
    reduction: Reduction
    dimension: int
    analyzer: Analyzer
    partial: list[Axis]
    final: list[Axis]
    values: dict[SSAValue, Expr]
    """The axes of the block in terms of those of the partial one."""
    extent: int
    predicate: Expr
    final_predicate: Expr


def _planned(loop: tir.ForOp, factor_axis: int) -> _Plan:
    """Checks everything; raises where rfactor would be wrong."""
    called = loop.var_name.data
    blocks = child_blocks(loop)
    if len(blocks) != 1:
        names = ", ".join(f"'{b.block_name.data}'" for b in blocks) or "none"
        raise refuse(
            loop,
            f"rfactor: loop '{called}' holds {counted(len(blocks), 'block')} ({names}), and must hold exactly one",
            "give a loop around a single reduction block",
        )
    (block,) = blocks
    name = block.block_name.data
    if loop.kind.data != "serial":
        raise refuse(loop, f"rfactor: loop '{called}' is {loop.kind.data}, and must be serial", "rfactor first")
    reason = why_not_affine(block)
    if reason is not None:
        raise refuse(block, f"rfactor: the bindings of block '{name}' are not affine in its loops: {reason}")
    reason = why_not_reduction(block)
    if reason is not None:
        raise refuse(block, f"rfactor: block '{name}' is not a reduction block: {reason}")
    require_own_values(block, "rfactor")
    loops = loops_above(block)
    reducing = _reducing(block, loop, loops)
    _require_inputs(block)
    _require_read_as_written(block)
    reduction = reduction_of(block, "rfactor")
    rank = len(reduction.outputs[0].indices)
    if not -rank - 1 <= factor_axis <= rank:
        raise refuse(
            block,
            f"rfactor: '{tir.buffer_name(reduction.outputs[0].buffer)}' has {counted(rank, 'dimension')}, so that factor_axis is from {-rank - 1} to {rank}, not {factor_axis}",
        )
    analyzer = analyzer_for(all_loops_above(block))
    extent = analyzer.simplify(loop.extent).value
    if extent is None:
        raise refuse(
            loop,
            f"rfactor: the extent of loop '{called}' is not a constant, so that no buffer can hold a result for each iteration",
            "split it by a constant, and give the inner loop",
        )
    factored = axis_over(loop, f"v{called}", "S", analyzer)
    partial, values = _partial_axes(block, loop, loops, factored, analyzer)
    old = axes_of(block, analyzer)
    final = [Axis(factored.name, "R", factored.min, factored.extent, factored.binding, factored.type)]
    final += [_copied(axis) for axis in old if axis.kind == "S"]
    predicate = TRUE if block.predicate is None else analyzer.expr(block.predicate)
    gone = {each.loop_var for each in reducing}
    parts = [p for p in conjuncts(predicate) if not any(a.payload in gone for a in free_vars(p))]
    plan = _Plan(
        block,
        loop,
        loops,
        reducing,
        reduction,
        factor_axis + rank + 1 if factor_axis < 0 else factor_axis,
        analyzer,
        partial,
        final,
        values,
        extent,
        predicate,
        logical_and(*parts),
    )
    _require_affine_results(plan)
    return plan


def _reducing(block: tir.BlockOp, loop: tir.ForOp, loops: list[tir.ForOp]) -> list[tir.ForOp]:
    """Returns the loops of reduction axes except `loop`; raises unless `loop` is one of them too."""
    name, called = block.block_name.data, loop.var_name.data
    analyzer = Analyzer()
    touched: dict[SSAValue, dict[str, str]] = {each.loop_var: {} for each in loops}
    for axis in axes_of(block, analyzer):
        for atom in free_vars(axis.binding):
            if isinstance(atom.payload, SSAValue) and atom.payload in touched:
                touched[atom.payload][axis.kind] = axis.name
    mine = touched[loop.loop_var]
    if "S" in mine:
        reductions = [each.var_name.data for each in loops if list(touched[each.loop_var]) == ["R"]]
        raise refuse(
            loop,
            f"rfactor: loop '{called}' drives the spatial axis '{mine['S']}' of block '{name}', and may drive reduction axes only",
            f"the loops of its reduction are {', '.join(repr(r) for r in reductions) or 'none'}",
        )
    if not mine:
        raise refuse(loop, f"rfactor: loop '{called}' drives no axis of block '{name}'")
    first: tir.ForOp | None = None
    for each in loops:
        kinds = touched[each.loop_var]
        if "R" in kinds and "S" in kinds:
            raise refuse(
                each,
                f"rfactor: loop '{each.var_name.data}' drives the spatial axis '{kinds['S']}' and the reduction axis '{kinds['R']}' of block '{name}'",
                "split it, so that each loop drives axes of one kind",
            )
        if "R" in kinds and first is None:
            first = each
            others = child_blocks(each)
            if len(others) != 1:
                other = next(b for b in others if b is not block)
                raise refuse(
                    other,
                    f"rfactor: block '{other.block_name.data}' is in loop '{each.var_name.data}' too, which drives the reduction of block '{name}'",
                    "the loops of the reduction may hold its block only",
                )
            parent = each.parent_op()
            assert parent is not None
            require_only(block, parent, "rfactor")
        if first is not None and not kinds and analyzer.expr(each.extent).value != 1:
            raise refuse(
                each,
                f"rfactor: loop '{each.var_name.data}' is in the reduction of block '{name}', but drives no axis of it",
            )
    return [each for each in loops if "R" in touched[each.loop_var] and each is not loop]


def _require_inputs(block: tir.BlockOp) -> None:
    """Raises where the loops around the block compute its inputs: partial results come before the loops."""
    scope = scope_of(block)
    nest = child_under(scope, block)
    name = block.block_name.data
    for parent in enclosing(block, scope):
        if not isinstance(parent, tir.ForOp):
            raise refuse(
                parent,
                f"rfactor: '{parent.name}' stands among the loops around block '{name}', which may be loops only",
            )
    for buffer in dict.fromkeys(buffers_read(block)):
        for maker in writers(buffer, scope):
            if maker is not block and is_inside(maker, nest):
                raise refuse(
                    maker,
                    f"rfactor: block '{name}' reads '{tir.buffer_name(buffer)}', which block '{maker.block_name.data}' writes in the same loops: the partial results would be computed before it",
                    "have the two in loops of their own",
                )


def _require_read_as_written(block: tir.BlockOp) -> None:
    for consumer in consumers(block):
        reason = why_not_covered(block, consumer)
        if reason is not None:
            raise refuse(consumer, f"rfactor: {reason}: the scope is not a stage pipeline")


def _copied(axis: Axis) -> Axis:
    return Axis(axis.name, axis.kind, axis.min, axis.extent, axis.binding, axis.type)


def _partial_axes(
    block: tir.BlockOp, loop: tir.ForOp, loops: list[tir.ForOp], factored: Axis, analyzer: Analyzer
) -> tuple[list[Axis], dict[SSAValue, Expr]]:
    """Returns the axes of the partial block, and the old ones in terms of them.

    Reduction axes that share loops with `loop`, be it by way of others, make room for axes over those loops.
    """
    old = axes_of(block, analyzer)
    opened = {loop.loop_var}
    while True:
        reached = set(opened)
        for axis in old:
            used = {v for a in free_vars(axis.binding) if isinstance(v := a.payload, SSAValue)}
            if axis.kind == "R" and used & reached:
                reached |= used
        if reached == opened:
            break
        opened = reached
    over: dict[Atom, Axis] = {}
    axes, values = [factored], dict[SSAValue, Expr]()
    own = {each.loop_var: each for each in loops}
    over[analyzer.variable(loop.loop_var)] = factored
    for axis in old:
        if axis.kind == "S" or not any(a.payload in opened for a in free_vars(axis.binding)):
            kept = _copied(axis)
            axes.append(kept)
            values[axis.variable] = kept.symbol
            continue
        for atom in free_vars(axis.binding):
            each = own.get(atom.payload) if isinstance(atom.payload, SSAValue) else None
            if each is not None and atom not in over:
                over[atom] = axis_over(each, f"v{each.var_name.data}", "R", analyzer)
                axes.append(over[atom])
        values[axis.variable] = substitute(axis.binding, {atom: a.symbol for atom, a in over.items()})
    return axes, values


def _require_affine_results(plan: _Plan) -> None:
    """Raises where a predicate bounds loops that are separated: no primitive could edit the blocks."""
    for axes, loops, predicate in (
        (plan.partial, plan.loops, plan.predicate),
        (plan.final, [each for each in plan.loops if each not in plan.reducing], plan.final_predicate),
    ):
        iters: dict[Value, tuple[Value, Value]] = {each.loop_var: (each.min, each.extent) for each in loops}
        found = plan.analyzer.detect_iter_map([a.binding for a in axes], iters, predicate, IterMapLevel.SURJECTIVE)
        if not found:
            raise refuse(
                plan.block,
                f"rfactor: the loops of block '{plan.block.block_name.data}' have a common bound (T.where) or are mixed, and would not be affine once '{plan.loop.var_name.data}' is factored out: {found.errors[0]}",
                "split by factors that divide the extent",
            )


# Application


def _apply(state: State, plan: _Plan) -> tir.BlockOp:
    block, analyzer = plan.block, plan.analyzer
    scope = scope_of(block)
    nest = child_under(scope, block)
    partials = [_new_buffer(state, scope, output.buffer, plan) for output in plan.reduction.outputs]
    new = _partial_block(state, plan, nest, partials)
    final, values = make_block(
        builder_before(block),
        block.block_name.data,
        plan.final,
        analyzer,
        predicate=plan.final_predicate,
        annotations=block.annotations,
    )
    old_axes = (a for a in axes_of(block, analyzer) if a.kind == "S")
    spatial = {old.variable: values[axis.atom] for axis, old in zip(plan.final[1:], old_axes, strict=True)}
    places = [
        _with_axis([_moved(i, spatial) for i in output.indices], values[plan.final[0].atom] - plan.final[0].min, plan)
        for output in plan.reduction.outputs
    ]
    _fill(
        final,
        plan,
        [(o.buffer, [_moved(i, spatial) for i in o.indices]) for o in plan.reduction.outputs],
        lambda k, builder: _load(builder, partials[k], places[k]),
        "",
    )
    declare_access(final)
    order_reads(final, partials)
    before = list(block.operands)
    state.forward(block, final)
    erase_op(block)
    erase_if_dead(*before)
    for each in plan.reducing:
        _dissolve(state, each, plan)
    return new


def _moved(index: SSAValue, values: dict[SSAValue, Expr]) -> Expr:
    """Returns an index of an output, with other variables in place of the axes."""
    analyzer = Analyzer()
    atoms = {atom: e for v, e in values.items() if (atom := analyzer.expr(v).atom) is not None}
    return substitute(analyzer.expr(index), atoms)


def _with_axis(indices: list[Expr], axis: Expr, plan: _Plan) -> list[Expr]:
    return [*indices[: plan.dimension], axis, *indices[plan.dimension :]]


def _load(builder: Builder, buffer: SSAValue, place: Sequence[Expr]) -> SSAValue:
    type_ = index_type(buffer)
    return builder.insert(tir.LoadOp(buffer, [Analyzer().to_ssa(e, builder, type_) for e in place])).result


def _new_buffer(state: State, scope: Scope, buffer: SSAValue, plan: _Plan) -> SSAValue:
    """Returns the buffer of the partial results: one more dimension than the output."""
    type_ = buffer.type
    assert isinstance(type_, tir.BufferType)
    owner = buffer.owner
    shape: list[Attribute] = list(type_.shape.data)
    shape.insert(plan.dimension, IntegerAttr(plan.extent, index_type(buffer)))
    name = state.fresh_buffer_name(scope, f"{tir.buffer_name(buffer)}_rf")
    new_type = tir.BufferType(ArrayAttr(shape), type_.dtype, type_.scope)
    kept = list(owner.shape) if isinstance(owner, tir.BufferOp) else []
    return state.allocate(scope, tir.AllocBufferOp(name, new_type, shape=kept))


def _partial_block(state: State, plan: _Plan, nest: Operation, partials: list[SSAValue]) -> tir.BlockOp:
    """Returns the block of the partial results, in copies of all loops, before the nest."""
    block, analyzer = plan.block, plan.analyzer
    renamed, builder = copy_loops(plan.loops, builder_before(nest), analyzer, block.location)
    axes = [
        Axis(a.name, a.kind, a.min, a.extent, substitute(a.binding, renamed), a.type, a.symbol) for a in plan.partial
    ]
    new, made = make_block(
        builder,
        state.fresh_block_name(block, f"{block.block_name.data}_rf"),
        axes,
        analyzer,
        predicate=substitute(plan.predicate, renamed),
        annotations=block.annotations,
    )
    values = {v: substitute(e, made) for v, e in plan.values.items()}
    counter = made[plan.partial[0].atom] - plan.partial[0].min
    targets = [
        (partials[k], _with_axis([_moved(i, values) for i in output.indices], counter, plan))
        for k, output in enumerate(plan.reduction.outputs)
    ]
    outputs = plan.reduction.outputs
    _fill(new, plan, targets, lambda k, b: clone_value(outputs[k].new, {}, b, block), "_rf")
    inside = Analyzer()
    bind_long_axes(inside, new)
    replace_variables(new, values, inside)
    declare_access(new)
    order_reads(new, buffers_read(block))
    state.added(new)
    return new


def _fill(
    block: tir.BlockOp, plan: _Plan, targets: Sequence[tuple[SSAValue, Sequence[Expr]]], new: Leaf, suffix: str
) -> None:
    """Writes the body of a block that reduces the values of `new` into the targets.

    Without reduction axes it stores each value once.
    """
    outputs = plan.reduction.outputs
    builder = builder_at_end(block.body.block, plan.block.location)
    reduces = "R" in axis_kinds(block)

    def start(k: int, inside: Builder) -> SSAValue:
        return clone_value(outputs[k].init, {}, inside, plan.block)

    def store(k: int, value: SSAValue, inside: Builder) -> None:
        buffer, place = targets[k]
        indices = [Analyzer().to_ssa(e, inside, index_type(buffer)) for e in place]
        inside.insert(tir.StoreOp(value, buffer, indices))

    if reduces:
        init = builder.insert(tir.InitOp())
        inside = builder_at_end(init.body.block, plan.block.location)
        for k in range(len(outputs)):
            store(k, start(k, inside), inside)

    def old(k: int, place: Builder) -> SSAValue:
        return _load(place, *targets[k]) if reduces else start(k, place)

    values: list[SSAValue] = []
    for k, output in enumerate(outputs):
        if not reduces and not plan.reduction.chooses:
            value = new(k, builder)
        else:
            value = plan.reduction.combine(k, builder, old, new)
        if not plan.reduction.chooses:
            # Each output has its own value alone to do with.
            store(k, value, builder)
            continue
        name = output.let_name or f"v_{tir.buffer_name(output.buffer)}"
        values.append(builder.insert(tir.LetOp(f"{name}{suffix}", value)).result)
        values[-1].name_hint = name
    for k, value in enumerate(values):
        store(k, value, builder)


def _dissolve(state: State, loop: tir.ForOp, plan: _Plan) -> None:
    """Takes a loop away from around what it holds."""
    why = f"the loop went to the partial results of rfactor over '{plan.loop.var_name.data}'"
    erase_dead(loop)
    move_before(loop.body.block.ops, loop)
    state.gone(loop, why)
    operands = list(loop.operands)
    erase_op(loop)
    erase_if_dead(*operands)
