"""Makes the loops of all stages, each at its place (TVM, "te/schedule/schedule_ops", "te/operation").

s[B].compute_at(s[C], i)    →    for i: (B's loops for what C reads), then C's loops inside of i
"""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects.arith.ordered import number
from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.te.axes import REDUCE, SPATIAL
from ....dialects.te.expr_mutator import both, substitute
from ....dialects.te.ops import FOLDS, neutral
from ....dialects.tir import node as ex
from ....dialects.tir.node import Const, Expr, IterVar, Range, Var, fail, location_scope, text_of
from ....dialects.tir.node.emit_expr import type_of
from ..schedule.infer_bound import attach_path, scope_of
from ..schedule.message_passing import Domains, Values, make_bound_check, spread
from ..schedule.stage import INLINED, ROOT, SCAN_UPDATE, ScheduleData, StageData, is_placeholder
from .loop_nest import Nest, conditions, loop_nest, merge
from .statements import AllReduce, Attr, Body, Cond, Holder, Let, Mark, Provide, Realize, Statements, Temporary, walk


class StatementBuilder:
    """Builds the statements of one schedule."""

    def __init__(self, schedule: ScheduleData, domains: Domains):
        self.schedule = schedule
        self.domains = domains
        # The marks of each loop, and the places of each scan's first steps and of its further ones.
        self.marks: dict[int, list[Mark]] = {}
        self.scan_init: dict[int, Body] = {}
        self.scan_update: dict[int, Body] = {}
        self.threads: dict[int, IterVar] = {
            key: attrs.thread
            for stage in schedule.stages
            for key, attrs in stage.attrs.items()
            if attrs.thread is not None
        }

    def run(self) -> Body:
        """Returns the statements of the whole program."""
        body: Body = []
        of_init: dict[int, te.ScanOp] = {}
        for stage in self.schedule.stages:
            if isinstance(stage.op, te.ScanOp):
                for tensor in stage.op.init:
                    of_init[id(tensor.op)] = stage.op
        for stage in reversed(self.schedule.stages):
            op = stage.operation
            if is_placeholder(op) or stage.attach_type == INLINED:
                continue
            spec = stage.attach_spec()
            with location_scope(op.location):
                if id(op) in of_init:
                    self._put(self.scan_init[id(of_init[id(op)])], stage)
                elif spec.attach_type == SCAN_UPDATE:
                    assert spec.attach_stage is not None
                    self._put(self.scan_update[id(spec.attach_stage.op)], stage)
                elif spec.attach_type == ROOT:
                    body = self._pipeline(stage, body)
                else:
                    found = self.marks.get(id(spec.attach_axis), [])
                    if not found:
                        raise fail(
                            f"stage '{stage.name}' is computed at a loop that was not made",
                            "compute it at a loop of a stage that is computed",
                        )
                    for mark in found:
                        self._put(mark.body, stage)
        return body

    def _put(self, body: Body, stage: StageData) -> None:
        body[:] = self._pipeline(stage, list(body))

    def _pipeline(self, stage: StageData, consumer: Body) -> Body:
        """Returns the stage, then its consumers, inside of the allocation of its memory."""
        op = stage.operation
        producer = self._provide(stage)
        if stage.double_buffer:
            producer = [Attr("double_buffer_scope", op.outputs[0], number(1), body=producer)]
        return self._realize(stage, [*producer, *consumer])

    def _realize(self, stage: StageData, body: Body) -> Body:
        op = stage.operation
        paths = {id(stage): [self.threads.get(id(a), a) for a in attach_path(stage)]}
        scope = scope_of(stage, paths)
        for tensor in reversed(op.outputs):
            aligned: dict[int, tuple[int, int]] = {}
            if isinstance(op, te.ComputeOp):
                ranges = [self.domains[axis] for axis in op.axis]
                for dim, axis in enumerate(op.axis):
                    attrs = stage.known_attrs(axis)
                    if attrs is not None and attrs.align is not None:
                        aligned[dim] = attrs.align
            else:
                ranges = [Range.from_min_extent(number(0, d.dtype), d) for d in tensor.dims]
            body = [Realize(tensor, ranges, scope, aligned, body=body)]
        return body

    def _provide(self, stage: StageData) -> Body:
        op = stage.operation
        match op:
            case te.ComputeOp():
                return self._compute(stage, op)
            case te.ScanOp():
                return self._scan(stage, op)
            case ext.ExternOp():
                buffers = list(zip((*op.in_buffers, *op.out_buffers), (*op.inputs, *op.outputs), strict=True))
                statements: Body = [Attr("extern_scope", None, number(0), body=[Statements(op.body, buffers)])]
                return statements
            case _:
                raise fail(f"operation '{op.name}' cannot be scheduled")

    def _remember(self, body: Body) -> None:
        """Notes the marks of a nest that was just made."""
        for node in walk(body):
            if isinstance(node, Mark):
                self.marks.setdefault(id(node.axis), []).append(node)

    # Computes --------------------------------------------------------------------------------------------------------

    def _compute(self, stage: StageData, op: te.ComputeOp) -> Body:
        crossing, normal, tensorized = 0, 0, False
        for axis in stage.leaves:
            attrs = stage.known_attrs(axis)
            tensorized = tensorized or (attrs is not None and attrs.annotation == "tensorized")
            if axis.iter_type == REDUCE:
                is_bound = attrs is not None and attrs.thread is not None
                crossing, normal = crossing + is_bound, normal + (not is_bound)
            elif crossing and axis.iter_type == SPATIAL:
                raise fail(
                    f"axis '{axis.name}' of stage '{stage.name}' stands inside of a reduction axis that is bound to a thread",
                    "threads that reduce together are the innermost loops: reorder the axes",
                )
        if tensorized:
            from .tensorize import tensorize

            if crossing:
                raise fail(
                    f"stage '{stage.name}' has a tensorized axis and reduces across threads",
                    "unbind the reduction axis, or do not tensorize",
                )
            body = tensorize(stage, op, self.domains, self._predicates)
        elif crossing:
            if normal:
                raise fail(
                    f"stage '{stage.name}' reduces across threads and in loops",
                    "rfactor the reduction first, so that only the axis bound to threads is left: BF = s.rfactor(B, ki)",
                )
            body = self._cross_thread(stage, op)
        elif op.reduce_axis:
            body = self._reduction(stage, op)
        else:
            values: Values = {}
            nest = loop_nest(stage, self.domains, values)
            nest.append(self._guards(stage, values))
            provides: Body = [
                Provide(t, tuple(values[id(a)] for a in op.axis), substitute(v, values))
                for t, v in zip(op.outputs, op.body, strict=True)
            ]
            body = merge(nest, provides)
        self._remember(body)
        return body

    def _predicates(self, stage: StageData, values: Values) -> list[Expr]:
        return make_bound_check(stage, self.domains, values, skip_domain=False, skip=set())

    def _guards(self, stage: StageData, values: Values) -> list[Holder]:
        """Returns the branches around a store: inside of the bounds, and where the store predicate holds."""
        guards = conditions(self._predicates(stage, values))
        if stage.store_predicate is not None:
            guards += conditions([substitute(stage.store_predicate, values)], expected=False)
        return guards

    def _reduction(self, stage: StageData, op: te.ComputeOp) -> Body:
        first = op.body[0]
        assert isinstance(first, te.Reduce)
        reduction = first.reduction
        values: Values = {}
        nest: Nest = loop_nest(stage, self.domains, values)
        nest.append(self._guards(stage, values))
        # Which axes belong to elements (1), and which to the reduction (2).
        masks = {id(a): 2 for a in op.reduce_axis} | {id(a): 1 for a in op.axis}
        spread(stage, masks)
        common = next((i for i, a in enumerate(stage.leaves) if masks.get(id(a), 0) & 2), len(stage.leaves))
        init_values: Values = {id(a): values[id(a)] for a in stage.leaves[:common]}
        skip = {key for key, mask in masks.items() if mask == 2}
        self._check_starts(stage, op, [a for a in stage.leaves if masks.get(id(a)) == 3])
        init_nest = loop_nest(stage, self.domains, init_values, begin=common, is_init=True, skip=skip)
        init_nest.append(conditions(make_bound_check(stage, self.domains, init_values, skip_domain=True, skip=skip)))
        begin = tuple(init_values[id(a)] for a in op.axis)
        place = tuple(values[id(a)] for a in op.axis)
        starts: Body = [
            Provide(t, begin, substitute(v, init_values))
            for t, v in zip(op.outputs, start_values(reduction), strict=True)
        ]
        init = merge(init_nest, starts)
        update = self._update(reduction, op, place, values)
        return merge(nest[: common + 1], [*init, *merge(nest[common + 1 :], update)])

    def _check_starts(self, stage: StageData, op: te.ComputeOp, fused: Sequence[IterVar]) -> None:
        """Raises MirError where the loops of a reduction's init run over a reduction axis that may be empty."""
        for axis in op.reduce_axis if fused else ():
            extent = self.domains[axis].extent
            if not isinstance(extent, Const) or extent.value == 0:
                raise fail(
                    f"loop '{fused[0].name}' of stage '{stage.name}' runs over elements and over the reduction axis '{axis.name}',"
                    f" which has {'no' if isinstance(extent, Const) else text_of(extent)} elements",
                    "no loop would store what a reduction over nothing is; fuse spatial axes with each other only",
                )

    def _update(self, reduction: te.Reduction, op: te.ComputeOp, place: tuple[Expr, ...], values: Values) -> Body:
        held = [te.Read(t, place) for t in op.outputs]
        sources = [substitute(s, values) for s in reduction.sources]
        combined = combine(reduction, list(held), sources)
        body: Body = [Provide(t, place, v) for t, v in zip(op.outputs, combined, strict=True)]
        if _reads_earlier(combined, held):
            # A later value is made of an earlier one as it was: all are computed before the first is stored.
            names = [Var(f"{op.name}.v{i}", v.dtype) for i, v in enumerate(combined)]
            body = [Provide(t, place, n) for t, n in zip(op.outputs, names, strict=True)]
            for name, value in reversed(list(zip(names, combined, strict=True))):
                body = [Let(name, value, body=body)]
        condition = reduction.condition
        if condition is not None:
            condition = substitute(condition, values)
            if not (isinstance(condition, Const) and condition.value):
                body = [Cond(condition, body=body)]
        return body

    def _cross_thread(self, stage: StageData, op: te.ComputeOp) -> Body:
        first = op.body[0]
        assert isinstance(first, te.Reduce)
        reduction = first.reduction
        if reduction.init:
            raise fail(
                f"stage '{stage.name}' reduces across threads from a given first value",
                "leave out init=, and add the value in a compute of its own",
            )
        for axis in stage.leaves:
            extent = self.domains[axis].extent if axis.iter_type == REDUCE else None
            if isinstance(extent, Const) and extent.value == 0:
                raise fail(
                    f"stage '{stage.name}' reduces across 0 threads: axis '{axis.name}' has no elements",
                    "no thread would store what a reduction over nothing is; leave the axis a loop",
                )
        values: Values = {}
        nest = loop_nest(stage, self.domains, values)
        guards = self._predicates(stage, values)
        condition = (
            both(guards) if reduction.condition is None else both([substitute(reduction.condition, values), *guards])
        )
        results = [ex.Buffer(f"reduce_temp{i}", (number(1),), t.dtype) for i, t in enumerate(op.outputs)]
        threads = [
            attrs.thread
            for a in stage.leaves
            if a.iter_type == REDUCE and (attrs := stage.known_attrs(a)) is not None and attrs.thread is not None
        ]
        sources = tuple(substitute(s, values) for s in reduction.sources)
        place = tuple(values[id(a)] for a in op.axis)
        stores: Body = [
            Provide(t, place, ex.BufferLoad(b, (number(0),))) for t, b in zip(op.outputs, results, strict=True)
        ]
        # Threads beyond the tensor take part in the reduction, but store nothing.
        inside = make_bound_check(
            stage,
            self.domains,
            values,
            skip_domain=False,
            skip={id(a) for a in stage.all_axes if a.iter_type == REDUCE},
        )
        checks = conditions(inside)
        if stage.store_predicate is not None:
            checks = [*conditions([substitute(stage.store_predicate, values)], expected=False), *checks]
        body: Body = [AllReduce(reduction, sources, condition, results, threads), *merge([checks], stores)]
        for buffer in reversed(results):
            body = [Temporary(buffer, "local", body=body)]
        return merge(nest, body)

    # Scans -----------------------------------------------------------------------------------------------------------

    def _scan(self, stage: StageData, op: te.ScanOp) -> Body:
        """Returns the loop over a scan's steps; its first steps go before it, inside of the threads around it."""
        from ....dialects.te.axes import THREAD

        values: Values = {}
        begin = 0
        for place, axis in enumerate(stage.leaves):
            if axis.iter_type == THREAD:
                begin = place + 1
        nest = loop_nest(stage, self.domains, values)
        guards = conditions(self._predicates(stage, values))
        init, update = Attr("scan_init", None, number(0)), Attr("scan_update", None, number(0))
        self.scan_init[id(op)], self.scan_update[id(op)] = init.body, update.body
        inner = merge([*nest[begin + 1 :], guards], [update])
        body = merge(nest[: begin + 1], [init, *inner])
        self._remember(body)
        return body


def _reads_earlier(combined: list[Expr], held: list[te.Read]) -> bool:
    reads = [{id(part) for part in te.parts_of([value])} for value in combined]
    return any(id(h) in found for place, found in enumerate(reads) for h in held[:place])


def start_values(reduction: te.Reduction) -> list[Expr]:
    """Returns the values with which a reduction begins."""
    if reduction.init:
        return list(reduction.init)
    if not isinstance(reduction.reducer, str):
        return list(reduction.reducer.identities)
    dtype = reduction.sources[0].dtype
    return [ex.const(neutral(reduction.reducer, type_of(dtype)), dtype)]


def combine(reduction: te.Reduction, left: list[Expr], right: list[Expr]) -> list[Expr]:
    """Returns the values that the reduction makes of two lists of values."""
    if isinstance(reduction.reducer, str):
        return [ex.BUILD[FOLDS[reduction.reducer]](left[0], right[0])]
    values = {id(p): v for p, v in zip(reduction.reducer.parameters, [*left, *right], strict=True)}
    return [substitute(r, values) for r in reduction.reducer.results]


def schedule_ops(schedule: ScheduleData, domains: Domains) -> Body:
    """Returns the statements of a normalized schedule whose ranges are known."""
    return StatementBuilder(schedule, domains).run()
