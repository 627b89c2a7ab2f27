"""Infers the range of every axis, from the outputs to their inputs (TVM, "te/schedule/bound")."""

from __future__ import annotations

from ....dialects.arith.ordered import Arith, is_one, is_zero, number
from ....dialects.arith.ordered_int_set import EVERYTHING, Interval, IntSet
from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.te.axes import is_virtual
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, IterVar, Range, fail, location_scope
from .message_passing import Domains, pass_down_domain, pass_up_set, visible_ranges
from .operation_graph import inputs_of
from .stage import INLINED, ROOT, SCAN_UPDATE, SCOPE, ScheduleData, StageData, is_placeholder, root_axes

RANKS = {"global": 0, "shared": 1, "shared.dyn": 1, "warp": 2, "local": 3}
"""How near to a thread a storage scope is; others are as "local"."""


def storage_rank(scope: str) -> int:
    """Returns the rank of a scope as `RANKS` has it."""
    return RANKS.get(scope, 3)


def thread_rank(tag: str) -> int:
    """0 for blocks of threads, 1 for threads."""
    return 0 if tag.startswith("blockIdx") else 1


def scope_of(stage: StageData, paths: dict[int, list[IterVar]]) -> str:
    """Returns the storage scope of a stage; by default that of the threads around it."""
    if stage.scope:
        return stage.scope
    rank = -1
    for axis in paths.get(id(stage), []):
        tag = axis.thread_tag
        if tag and not is_virtual(tag):
            rank = max(rank, thread_rank(tag))
    # Without threads memory is global; inside of a block it is shared, inside of a thread local.
    return {-1: "global", 0: "shared", 1: "local"}[rank]


class BoundInference:
    """One schedule's ranges on their way."""

    def __init__(self, schedule: ScheduleData):
        self.schedule = schedule
        self.domains = Domains()
        self.arith = Arith()
        self.interval = Interval(self.arith)
        self.bind: dict[int, IterVar] = {}
        self.readers: dict[int, list[StageData]] = {}
        for stage in schedule.stages:
            for key, attrs in stage.attrs.items():
                if attrs.thread is not None:
                    self.bind[key] = attrs.thread
            if stage.op is not None and stage.attach_type != INLINED:
                self._collect_reads(stage)
        self.paths = {id(stage): attach_path(stage) for stage in schedule.stages if stage.attach_type != INLINED}
        self.bound_paths = {key: [self.bind.get(id(a), a) for a in path] for key, path in self.paths.items()}

    def _collect_reads(self, stage: StageData) -> None:
        op = stage.operation
        states = list(op.state) if isinstance(op, te.ScanOp) else []
        for tensor in [*inputs_of(op), *states]:
            held = self.readers.setdefault(id(tensor), [])
            if not any(r is stage for r in held):
                held.append(stage)

    def run(self) -> Domains:
        """Returns the ranges of all axes."""
        for stage in reversed(self.schedule.stages):
            if stage.attach_type == INLINED:
                continue
            with location_scope(stage.operation.location):
                self._root_bound(stage)
                for axis in root_axes(stage.operation):
                    if axis in self.domains:
                        self.arith.bind(axis, self.domains[axis].min, self.domains[axis].extent)
                pass_down_domain(stage, self.domains, self.arith)
                for thread in stage.env_threads:
                    self.domains[thread] = thread.domain
        for axis, range in self.domains.items():
            # The axis itself is bound: an extent of 1 must not replace it in its own range.
            self.domains[axis] = Range.from_min_extent(
                self.arith.simplify(range.min), self.arith.simplify(range.extent)
            )
        return self.domains

    def _root_bound(self, stage: StageData) -> None:
        op = stage.operation
        if stage.is_output and stage.attach_spec().attach_type != ROOT:
            raise fail(
                f"output '{stage.name}' is computed inside of another stage",
                "an output is computed by itself: s[…].compute_root()",
            )
        if stage.is_output or is_placeholder(op):
            for axis in root_axes(op):
                self.domains[axis] = axis.domain
            return
        consumers: dict[int, StageData] = {}
        for tensor in op.outputs:
            for reader in self.readers.get(id(tensor), []):
                consumers.setdefault(id(reader), reader)
        reads: dict[int, list[list[IntSet]]] = {id(t): [[] for _ in t.dims] for t in op.outputs}
        scope, path = scope_of(stage, self.bound_paths), self.paths[id(stage)]
        for consumer in consumers.values():
            self._check_threads(stage, consumer, scope)
            self._consumer(stage, consumer, scope, path, reads)
        self._gather(op, reads)

    def _needs_relax(self, axis: IterVar, found: bool, scope: str) -> bool:
        """Returns whether all of an axis is needed: inside the attach point, or by threads that share memory."""
        tag = self.bind.get(id(axis), axis).thread_tag
        if not tag or tag == "pipeline":
            return not found
        if is_virtual(tag):
            return not found
        if scope.startswith("warp") and tag == "threadIdx.x":
            return True
        return storage_rank(scope) <= thread_rank(tag)

    def _check_threads(self, stage: StageData, consumer: StageData, scope: str) -> None:
        """Raises MirError where a consumer is outside of threads that each have a copy of the stage."""
        shared = {id(axis) for axis in self.paths[id(stage)]}
        loops = [axis for axis in (*consumer.leaves, *self.paths[id(consumer)]) if id(axis) in shared]
        around = {self.bind.get(id(axis), axis).thread_tag for axis in loops}
        for axis in stage.leaves:
            tag = self.bind.get(id(axis), axis).thread_tag
            own = tag.startswith(("blockIdx", "threadIdx")) and storage_rank(scope) > thread_rank(tag)
            if own and tag not in around and not (scope.startswith("warp") and tag == "threadIdx.x"):
                raise fail(
                    f"stage '{stage.name}' is in memory of scope '{scope}', of which each thread of '{tag}' has its own, and '{consumer.name}' reads it outside of these threads",
                    f"bind a loop of '{consumer.name}' to '{tag}' and compute '{stage.name}' inside of it, or choose a scope that all see",
                )

    def _consumer(
        self,
        stage: StageData,
        consumer: StageData,
        scope: str,
        path: list[IterVar],
        reads: dict[int, list[list[IntSet]]],
    ) -> None:
        attached = {id(axis) for axis in path}
        begun = isinstance(consumer.op, te.ScanOp) and any(t.op is stage.op for t in consumer.op.init)
        if begun and any(id(axis) in attached for axis in consumer.leaves):
            raise fail(
                f"stage '{stage.name}' is computed in the steps of scan '{consumer.name}', which begins with it",
                "compute it at the root, or in a loop around the scan",
            )
        state: dict[int, IntSet] = {}
        found = False
        for axis in reversed(consumer.leaves):
            found = found or id(axis) in attached
            range = self.domains[axis]
            if is_one(range.extent):
                state[id(axis)] = IntSet.point(range.min)
            elif self._needs_relax(axis, found, scope):
                state[id(axis)] = IntSet.of_range(range)
            else:
                self._check_zero(range, axis, consumer)
                state[id(axis)] = IntSet.point(self.bind.get(id(axis), axis))
        relaxed: dict[int, IntSet] = {}
        for axis in self.paths[id(consumer)]:
            found = found or id(axis) in attached
            self._check_later(consumer, axis)
            range = self.domains[axis]
            self._check_zero(range, axis, consumer)
            if self._needs_relax(axis, found, scope):
                relaxed[id(axis)] = IntSet.of_range(range)
                if id(axis) in self.bind:
                    relaxed[id(self.bind[id(axis)])] = relaxed[id(axis)]
        loops = (*consumer.leaves, *self.paths[id(consumer)])
        if path and not any(axis is path[0] for axis in loops):
            self._check_later(stage, path[0])
            raise fail(
                f"stage '{stage.name}' is computed at loop '{path[0].name}' of {_where(stage)}, which its reader '{consumer.name}' is not inside of",
                "a stage is computed in a loop that holds all of its readers; compute the reader there too, or this stage at the root",
            )
        pass_up_set(consumer, self.domains, state, self.interval)
        arith = Arith()
        interval = Interval(arith)
        sets: dict[int, IntSet] = {}
        op = consumer.operation
        for axis, range in visible_ranges(consumer, self.domains):
            arith.bind(axis, range.min, range.extent)
        for axis in root_axes(op):
            held = state.get(id(axis))
            range = axis.domain if held is None else self.interval.range_of(held, axis.domain)
            whole = IntSet.of_range(range) if not is_one(range.extent) else IntSet.point(range.min)
            if relaxed and whole.min is not None and whole.max is not None:
                low, high = interval.of(whole.min, relaxed).min, interval.of(whole.max, relaxed).max
                sets[id(axis)] = IntSet(low, high)
            else:
                sets[id(axis)] = whole
        self._propagate(op, interval, sets, reads)

    def _check_later(self, stage: StageData, axis: IterVar) -> None:
        """Raises where a loop around a stage belongs to one that comes before it: to one that it reads."""
        if axis not in self.domains:
            holder = next(s for s in self.schedule.stages if any(a is axis for a in s.leaves))
            raise fail(
                f"stage '{stage.name}' is computed in loop '{axis.name}' of stage '{holder.name}', which comes before it: it makes what '{stage.name}' reads",
                "a stage is computed in a loop of one of its readers",
            )

    def _check_zero(self, range: Range, axis: IterVar, stage: StageData) -> None:
        if not is_zero(self.arith.simplify(range.min)):
            raise fail(
                f"loop '{axis.name}' of stage '{stage.name}' does not begin at 0, but holds other stages",
                "bind or split the axis after what is computed in it",
            )

    def _propagate(
        self, op: te.Operation, interval: Interval, sets: dict[int, IntSet], reads: dict[int, list[list[IntSet]]]
    ) -> None:
        """Adds the regions that the operation reads, while its axes run over their sets, to `reads`."""
        match op:
            case te.ComputeOp():
                for read in reads_in(op.body):
                    held = reads.get(id(read.tensor))
                    if held is None:
                        continue
                    for dim, (index, extent) in enumerate(zip(read.args, read.tensor.dims, strict=True)):
                        held[dim].append(self._clipped(interval, interval.of(index, sets), extent))
            case te.ScanOp():
                self._propagate_scan(op, sets, reads)
            case ext.ExternOp():
                for tensor in op.inputs:
                    held = reads.get(id(tensor))
                    for dim, extent in enumerate(tensor.dims if held is not None else ()):
                        assert held is not None
                        held[dim].append(IntSet.of_range(Range.from_min_extent(number(0, extent.dtype), extent)))
            case _:
                pass

    def _clipped(self, interval: Interval, values: IntSet, extent: Expr) -> IntSet:
        """Returns the set within the dimension: nothing else is read.

        Ends are replaced together, where both are for sure tighter.
        """
        low, high = number(0, extent.dtype), ex.subtract(extent, number(1, extent.dtype))
        if values.min is None and values.max is None:
            return IntSet(low, high)
        if (
            values.min is not None
            and values.max is not None
            and interval.arith.prove(ex.greater_equal(low, values.min))
            and interval.arith.prove(ex.less_equal(high, values.max))
        ):
            return IntSet(low, high)
        return values

    def _propagate_scan(self, op: te.ScanOp, sets: dict[int, IntSet], reads: dict[int, list[list[IntSet]]]) -> None:
        axes = root_axes(op)
        steps = axes[0]
        place = 1
        for init, update in zip(op.init, op.update, strict=True):
            first, held = reads.get(id(init)), reads.get(id(update))
            if first is not None:
                first[0].append(IntSet.of_range(Range.from_min_extent(number(0), op.init[0].dims[0])))
            if held is not None:
                held[0].append(sets.get(id(steps), IntSet.point(steps)))
            for dim in range(1, len(update.dims)):
                values = sets.get(id(axes[place]), EVERYTHING)
                for target in (first, held):
                    if target is not None:
                        target[dim].append(values)
                place += 1

    def _gather(self, op: te.Operation, reads: dict[int, list[list[IntSet]]]) -> None:
        match op:
            case te.ComputeOp():
                for dim, axis in enumerate(op.axis):
                    parts = [s for t in op.outputs for s in reads[id(t)][dim]]
                    whole = axis.domain
                    self.domains[axis] = self.interval.range_of(self.interval.union(parts), whole)
                for axis in op.reduce_axis:
                    self.domains[axis] = axis.domain
            case te.ScanOp():
                self._gather_scan(op, reads)
            case _:
                for axis in root_axes(op):
                    self.domains[axis] = axis.domain

    def _gather_scan(self, op: te.ScanOp, reads: dict[int, list[list[IntSet]]]) -> None:
        axes = root_axes(op)
        parts = [s for t in op.outputs for s in reads[id(t)][0]]
        held = self.interval.union(parts)
        whole = axes[0].domain
        extent = whole.extent
        if held.max is not None and parts:
            # Later steps than are read need not run.
            asked = ex.subtract(ex.add(held.max, number(1)), whole.min)
            extent = self.arith.simplify(ex.minimum(asked, whole.extent))
        self.domains[axes[0]] = Range.from_min_extent(whole.min, extent)
        place = 1
        for tensor in op.outputs:
            for _ in tensor.dims[1:]:
                # States are kept whole: a step may read the one before at any place.
                self.domains[axes[place]] = axes[place].domain
                place += 1


def _where(stage: StageData) -> str:
    spec = stage.attach_spec()
    return f"stage '{spec.attach_stage.name}'" if spec.attach_stage is not None else "the program"


def attach_path(stage: StageData) -> list[IterVar]:
    """Returns the loops around a stage, innermost first.

    Raises MirError where a stage is computed at an axis that is not a loop (any more).
    """
    path: list[IterVar] = []
    while True:
        spec = stage.attach_spec()
        axis, target = spec.attach_axis, spec.attach_stage
        if target is None or spec.attach_type not in (SCOPE, SCAN_UPDATE):
            return path
        starts = spec.attach_type == SCAN_UPDATE
        for leaf in reversed(target.leaves):
            starts = starts or leaf is axis
            if starts:
                path.append(leaf)
        if not starts:
            raise fail(
                f"stage '{stage.name}' is computed at axis '{axis.name if axis is not None else '?'}' of stage '{target.name}', which is not a loop of it",
                f"its loops are {', '.join(leaf.name for leaf in target.leaves)}",
            )
        stage = target


def reads_in(values: tuple[Expr, ...]) -> list[te.Read]:
    """Returns every read in the values of a compute, those of a reduction included."""
    return [node for node in te.parts_of(values) if isinstance(node, te.Read)]


def infer_bound(schedule: ScheduleData) -> Domains:
    """Returns the range of every axis of a normalized schedule.

    Raises MirError where a stage cannot be where it is computed.
    """
    return BoundInference(schedule).run()
