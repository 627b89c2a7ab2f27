"""Implements `cache_read`, `cache_write` and `rfactor` (TVM, "te/schedule/schedule_dataflow_rewrite")."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects.arith.ordered import Arith, is_one, is_zero
from ....dialects.te import tensor as te
from ....dialects.te.axes import REDUCE, SPATIAL
from ....dialects.te.axes import axis as axis_of
from ....dialects.te.expr_mutator import both, substitute
from ....dialects.te.functions import likely
from ....dialects.te.tensor import compute_named
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, IntImm, IterVar, Range, location_scope
from .message_passing import Domains, Values, make_bound_check, pass_down_domain, pass_down_index, pass_up_index, spread
from .operation_graph import Replacement, change_body, rebuilt, replace_data_flow, replace_inputs
from .primitives import leaf, refused
from .stage import ScheduleData, StageData, new_stage, reset_axes


def _stage(schedule: ScheduleData, tensor: te.Tensor) -> StageData:
    stage = schedule.stage_of(tensor.op)
    if stage is None:
        from ....dialects.tir.node import fail

        raise fail(
            f"tensor '{tensor.name}' is not part of this schedule",
            "a schedule has what its outputs are computed from: te.create_schedule(B.op)",
        )
    return stage


def cache_read(schedule: ScheduleData, tensor: te.Tensor, scope: str, readers: Sequence[te.Tensor]) -> te.Tensor:
    """Copies a tensor for its readers: `C = f(A)` becomes `A_local = copy(A)`, `C = f(A_local)`."""
    stage = _stage(schedule, tensor)
    source = stage.operation.outputs[tensor.value_index]
    if not readers:
        raise refused(
            stage, f"cache_read of '{tensor.name}' names no reader", f's.cache_read({tensor.name}, "{scope}", [C])'
        )
    name = tensor.op.name if tensor.op.num_outputs == 1 else f"{tensor.op.name}.v{tensor.value_index}"
    with location_scope(stage.operation.location):
        cache: te.Tensor = compute_named(
            source.dims, [f"ax{i}" for i in range(len(source.dims))], lambda *i: source(*i), f"{name}.{scope}"
        )
    replacement = Replacement({source: cache})
    changed: list[tuple[StageData, te.Operation]] = []
    for reader in readers:
        target = schedule.stage_of(reader.op)
        if target is None:
            raise refused(
                stage, f"'{reader.op.name}' is not part of this schedule", "readers are tensors computed from it"
            )
        new = replace_inputs(target.operation, replacement)
        if new is target.operation:
            raise refused(
                stage,
                f"stage '{target.name}' does not read '{tensor.name}'",
                "name the tensors that are computed from it",
            )
        changed.append((target, new))
    flow = Replacement()
    for target, new in changed:
        for before, after in zip(target.operation.outputs, new.outputs, strict=True):
            flow.add(before, after)
        schedule.register(new, target)
        target.op = new
    replace_data_flow(schedule.stages, flow)
    schedule.insert(new_stage(cache.op, schedule, scope), schedule.index(stage) + 1, stage)
    return cache


def cache_write(schedule: ScheduleData, tensor: Sequence[te.Tensor], scope: str) -> list[te.Tensor]:
    """Computes a tensor in another scope: `C = f(A)` becomes `C_local = f(A)`, `C = copy(C_local)`.

    Loops that C had belong to C_local.
    """
    stage = _stage(schedule, tensor[0])
    op = stage.operation
    if not isinstance(op, te.ComputeOp):
        raise refused(
            stage,
            f"cannot cache what '{stage.name}' writes: it is not a te.compute",
            "cache what reads it: s.cache_read",
        )
    if {id(schedule.stage_of(t.op)) for t in tensor} != {id(stage)} or len(tensor) != op.num_outputs:
        raise refused(
            stage,
            f"cache_write takes all {op.num_outputs} tensors of '{stage.name}' together, and no others",
            "give the list of what one te.compute makes: s.cache_write([B0, B1], scope)",
        )
    reduced = {id(a) for a in op.reduce_axis}
    arith, domains = Arith(), Domains()
    for axis in op.axis:
        domains[axis] = axis.domain
        arith.bind(axis, axis.min, axis.extent)
    pass_down_domain(stage, domains, arith, allow_missing=True)
    made = {id(a): 1 for a in op.axis}
    spread(stage, made)
    spatial = [a for a in stage.leaves if id(a) not in reduced and id(a) in made]
    values: Values = {}
    renamed: dict[int, Expr] = {}
    new_axes: list[IterVar] = []
    for axis in spatial:
        if axis.iter_type != SPATIAL:
            raise refused(
                stage, f"cannot cache '{stage.name}': loop '{axis.name}' is not an axis of elements", "cache it first"
            )
        domain = domains[axis]
        new = axis_of(f"{axis.name}.c", domain, SPATIAL, axis.dtype)
        new_axes.append(new)
        values[id(axis)] = domain.min if is_one(domain.extent) else axis
        renamed[id(axis)] = new
    pass_up_index(stage, domains, values, allow_missing=True)
    checks = make_bound_check(stage, domains, values, skip_domain=True, skip=reduced)
    roots = {id(a): values[id(a)] for a in op.axis if id(a) in values}

    def moved(e: Expr) -> Expr:
        return substitute(substitute(e, roots), renamed)

    body = change_body(op.body, moved)
    if checks:
        body = _guarded(body, [substitute(c, renamed) for c in checks])
    places: Values = {id(a): a for a in op.axis}
    pass_down_index(stage, domains, places, allow_missing=True)
    with location_scope(op.location):
        cached = te.ComputeOp(f"{op.name}.{scope}", tuple(new_axes), body, op.tag, op.attrs)
        cached.set_outputs([(tuple(a.extent for a in new_axes), t.dtype) for t in op.outputs])
        args = [places[id(a)] for a in spatial]
        copy = rebuilt(op, tuple(te.Read(t, args) for t in cached.outputs))
    flow = Replacement(dict(zip(op.outputs, copy.outputs, strict=True)))
    schedule.register(copy, stage)
    stage.op = copy
    replace_data_flow([s for s in schedule.stages if s is not stage], flow)
    reset_axes(stage)
    stage.attrs = {}
    schedule.insert(new_stage(cached, schedule, scope), schedule.index(stage), stage)
    return list(cached.outputs)


def _guarded(body: tuple[Expr, ...], checks: list[Expr]) -> tuple[Expr, ...]:
    condition = likely(both(checks))
    first = body[0]
    if isinstance(first, te.Reduce):
        old = first.reduction
        held = condition if old.condition is None else ex.logical_and(old.condition, condition)
        reduction = te.Reduction(old.reducer, old.sources, old.axes, held, old.init)
        return tuple(te.Reduce.of(reduction, i) for i in range(len(body)))
    return tuple(ex.if_then_else(condition, v, ex.const(0, v.dtype)) for v in body)


def rfactor(schedule: ScheduleData, tensor: te.Tensor, axis: IterVar, factor_axis: int = 0) -> list[te.Tensor]:
    """Factors a reduction: partial results over one of its loops, then their combination.

    `B[i] = sum(A[i, k], k)` becomes, for `ko` of a split k,
    `B_rf[ko, i] = sum(A[i, ko * 16 + ki], ki)`, `B[i] = sum(B_rf[ko, i], ko)`.

    The axis becomes dimension `factor_axis` of the partial results, whose loops may then be parallel, vectorized or bound.
    """
    stage = _stage(schedule, tensor)
    op = stage.operation
    if not isinstance(op, te.ComputeOp) or not isinstance(op.body[0], te.Reduce):
        raise refused(
            stage, f"cannot rfactor stage '{stage.name}': it is not a reduction", "rfactor the stage that reduces"
        )
    leaf(stage, axis, "rfactor")
    if axis.iter_type != REDUCE:
        raise refused(
            stage,
            f"cannot rfactor axis '{axis.name}' of stage '{stage.name}': it is not a reduction axis",
            f"its reduction axes are {', '.join(a.name for a in stage.leaves if a.iter_type == REDUCE)}",
        )
    reduction = op.body[0].reduction
    if reduction.init:
        raise refused(
            stage,
            f"cannot rfactor stage '{stage.name}': its reduction begins with a given value, which each part would add again",
            "leave out init=, and add the value in a compute of its own",
        )
    place = factor_axis if factor_axis >= 0 else len(op.axis) + 1 + factor_axis
    if not 0 <= place <= len(op.axis):
        raise refused(
            stage,
            f"factor_axis is {factor_axis}, but the parts of '{stage.name}' have {len(op.axis) + 1} dimensions",
            "0 is the first, -1 the last",
        )
    touched, before = {id(axis): 1}, 0
    while len(touched) > before:
        # Axes that were fused with a part of this one are made of others, too.
        before = len(touched)
        spread(stage, touched, up=True)
        spread(stage, touched)
    for each in op.axis:
        if id(each) in touched:
            raise refused(
                stage,
                f"cannot rfactor axis '{axis.name}' of stage '{stage.name}': it was made of '{each.name}' too, which is not a reduction axis",
                "fuse and split reduction axes among themselves",
            )
    arith, domains = Arith(), Domains()
    skip = {id(a) for a in op.axis}
    for each in op.reduce_axis:
        arith.bind(each, each.min, each.extent)
        if id(each) in touched:
            domains[each] = each.domain
        else:
            skip.add(id(each))
    pass_down_domain(stage, domains, arith, allow_missing=True)
    values: Values = {}
    for each in stage.leaves:
        if id(each) in touched:
            values[id(each)] = domains[each].min if is_one(domains[each].extent) else each
    pass_up_index(stage, domains, values, allow_missing=True)
    conditions = make_bound_check(stage, domains, values, skip_domain=True, skip=skip)
    if reduction.condition is not None:
        conditions.append(reduction.condition)
    domain = domains[axis]
    if not is_zero(domain.min):
        raise refused(
            stage,
            f"cannot rfactor axis '{axis.name}' of stage '{stage.name}': it does not begin at 0",
            "split it first: the parts begin at 0",
        )
    with location_scope(op.location):
        factored = _factored(stage, op, reduction, axis, place, touched, domains, values, conditions)
        repl = _combined(op, reduction, axis, place, domain, factored)
    schedule.insert(new_stage(factored, schedule), schedule.index(stage), stage)
    flow = Replacement(dict(zip(op.outputs, repl.outputs, strict=True)))
    schedule.register(repl, stage)
    stage.op = repl
    replace_data_flow([s for s in schedule.stages if s is not stage], flow)
    reset_axes(stage)
    stage.attrs = {}
    return list(factored.outputs)


def _factored(
    stage: StageData,
    op: te.ComputeOp,
    reduction: te.Reduction,
    axis: IterVar,
    place: int,
    touched: dict[int, int],
    domains: Domains,
    values: Values,
    conditions: list[Expr],
) -> te.ComputeOp:
    """Returns the operation that computes the parts."""
    part = axis_of(axis.name, domains[axis], SPATIAL, axis.dtype)
    axes = [*op.axis]
    axes.insert(place, part)
    renamed: dict[int, Expr] = {id(axis): part}
    reduced: list[IterVar] = [a for a in op.reduce_axis if id(a) not in touched]
    for each in stage.leaves:
        if id(each) in touched and each is not axis:
            new = axis_of(each.name, domains[each], REDUCE, each.dtype)
            reduced.append(new)
            renamed[id(each)] = new
    if not reduced:
        # A reduction is over something: here over one value.
        reduced.append(
            axis_of(
                f"{axis.name}.one",
                Range.from_min_extent(IntImm(axis.dtype, 0), IntImm(axis.dtype, 1)),
                REDUCE,
                axis.dtype,
            )
        )
    roots = {id(a): values[id(a)] for a in op.reduce_axis if id(a) in touched}

    def moved(e: Expr) -> Expr:
        return substitute(substitute(e, roots), renamed)

    condition = likely(both(moved(c) for c in conditions)) if conditions else None
    sources = tuple(moved(s) for s in reduction.sources)
    parts = te.Reduction(reduction.reducer, sources, tuple(reduced), condition, ())
    body = tuple(te.Reduce.of(parts, i) for i in range(len(sources)))
    made = te.ComputeOp(f"{op.name}.rf", tuple(axes), body, op.tag, op.attrs)
    made.set_outputs([(tuple(a.extent for a in axes), t.dtype) for t in op.outputs])
    return made


def _combined(
    op: te.ComputeOp, reduction: te.Reduction, axis: IterVar, place: int, domain: Range, factored: te.ComputeOp
) -> te.ComputeOp:
    """Returns the operation that puts the parts together."""
    over = axis_of(f"{axis.name}.v", domain, REDUCE, axis.dtype)
    axes = tuple(axis_of(f"ax{i}", a.domain, SPATIAL, a.dtype) for i, a in enumerate(op.axis))
    indices: list[Expr] = [*axes]
    indices.insert(place, over)
    sources = tuple(te.Read(t, indices) for t in factored.outputs)
    whole = te.Reduction(reduction.reducer, sources, (over,), None, ())
    body = tuple(te.Reduce.of(whole, i) for i in range(len(sources)))
    made = te.ComputeOp(f"{op.name}.repl", axes, body, op.tag, op.attrs)
    made.set_outputs([(t.dims, t.dtype) for t in op.outputs])
    return made
