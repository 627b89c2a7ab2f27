"""Normalizes a schedule before its bounds are inferred.

Stages are inlined, every loop is counted from 0, and stages move out of loops that were split.
"""

from __future__ import annotations

from copy import copy

from ....dialects.te import tensor as te
from ....dialects.te.axes import axis as axis_of
from ....dialects.te.expr_mutator import substitute
from ....dialects.tir.node import Expr, IterVar
from .operation_graph import Replacement, change_body, rebuilt, replace_data_flow
from .stage import INLINE, INLINED, SCAN_UPDATE, SCOPE, Fuse, Rebase, ScheduleData, Split, StageData, root_axes


def copied(schedule: ScheduleData) -> ScheduleData:
    """Returns a schedule that can be changed without changing this one.

    Operations, axes and relations stay the same objects.
    """
    stages = {id(s): copy(s) for s in (*schedule.stages, *schedule.groups)}

    def new(stage: StageData | None) -> StageData | None:
        return None if stage is None else stages[id(stage)]

    result = ScheduleData(list(schedule.outputs))
    for stage in stages.values():
        stage.schedule = result
        stage.group, stage.attach_stage = new(stage.group), new(stage.attach_stage)
        stage.all_axes, stage.leaves, stage.relations = list(stage.all_axes), list(stage.leaves), list(stage.relations)
        stage.attrs = dict(stage.attrs)
    result.stages = [stages[id(s)] for s in schedule.stages]
    result.groups = [stages[id(s)] for s in schedule.groups]
    result.by_op = {key: stages[id(s)] for key, s in schedule.by_op.items()}
    result.kept = list(schedule.kept)
    return result


def normalize(schedule: ScheduleData) -> None:
    """Brings a schedule into the form that bounds are inferred from, in place (TVM, `Schedule.normalize`)."""
    inject_inline(schedule)
    rebase(schedule)
    legalize_attach(schedule)


def inject_inline(schedule: ScheduleData) -> None:
    """Writes the values of stages that are computed inline where they are read, last stage first."""
    for stage in reversed(schedule.stages):
        if stage.attach_type != INLINE:
            continue
        stage.attach_type = INLINED
        op = stage.operation
        assert isinstance(op, te.ComputeOp)
        replacement = Replacement()
        for reader in schedule.stages:
            target = reader.op
            if not isinstance(target, te.ComputeOp):
                continue
            memo: dict[int, Expr] = {}

            def inlined(e: Expr, memo: dict[int, Expr] = memo, op: te.ComputeOp = op) -> Expr:
                from ....dialects.te.expr_mutator import map_children

                found = memo.get(id(e))
                if found is None:
                    found = map_children(e, inlined)
                    if isinstance(found, te.Read) and found.tensor.op is op:
                        values = {id(axis): index for axis, index in zip(op.axis, found.args, strict=True)}
                        found = substitute(op.body[found.tensor.value_index], values)
                    memo[id(e)] = found
                return found

            body = change_body(target.body, inlined)
            if any(a is not b for a, b in zip(body, target.body, strict=True)):
                new = rebuilt(target, body)
                for before, after in zip(target.outputs, new.outputs, strict=True):
                    replacement.add(before, after)
                schedule.register(new, reader)
                reader.op = new
        replace_data_flow(schedule.stages, replacement)


def rebase(schedule: ScheduleData) -> None:
    """Loops over an operation's own axes are counted from 0; those bound to threads are left."""
    rebased: dict[int, IterVar] = {}
    for stage in schedule.stages:
        if stage.attach_type == INLINED or stage.op is None:
            continue
        for axis in root_axes(stage.op):
            position, attrs = stage.position(axis), stage.known_attrs(axis)
            if position is None or (attrs is not None and attrs.thread is not None):
                continue
            new = axis_of(axis.name, None, axis.iter_type, axis.dtype)
            stage.relations.append(Rebase(axis, new))
            if attrs is not None:
                stage.attrs[id(new)] = attrs
            stage.leaves[position] = new
            stage.all_axes.append(new)
            rebased[id(axis)] = new
    for stage in [*schedule.stages, *schedule.groups]:
        if stage.attach_type == SCOPE and id(stage.attach_axis) in rebased:
            stage.attach_axis = rebased[id(stage.attach_axis)]


def legalize_attach(schedule: ScheduleData) -> None:
    """A stage computed at a loop that was split or fused later moves to the inner part, or the fused loop."""
    replaced: dict[int, IterVar] = {}
    for first in schedule.stages:
        stage = first
        while True:
            spec = stage.attach_spec()
            axis, target = spec.attach_axis, spec.attach_stage
            if target is None or spec.attach_type not in (SCOPE, SCAN_UPDATE):
                break
            stage = target
            if spec.attach_type == SCAN_UPDATE or axis is None or stage.position(axis) is not None:
                continue
            new, is_changed = axis, True
            while is_changed:
                is_changed = False
                for relation in stage.relations:
                    if isinstance(relation, Fuse) and new is relation.inner:
                        new, is_changed = relation.fused, True
                    elif isinstance(relation, Split) and new is relation.parent:
                        new, is_changed = relation.inner, True
                    elif isinstance(relation, Rebase) and new is relation.parent:
                        new, is_changed = relation.rebased, True
            replaced[id(axis)] = new
    for stage in [*schedule.stages, *schedule.groups]:
        if stage.attach_type == SCOPE and id(stage.attach_axis) in replaced:
            stage.attach_axis = replaced[id(stage.attach_axis)]
