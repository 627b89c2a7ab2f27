"""Defines schedules and stages: an operation's loops, their axes, and where it is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ....dialects.te import tensor as te
from ....dialects.te.axes import OPAQUE
from ....dialects.tir.node import Expr, IterVar, StringImm
from .operation_graph import inputs_of, post_order, sub_graph

ROOT, INLINE, INLINED, SCOPE, SCAN_UPDATE = "root", "inline", "inlined", "scope", "scan_update"
"""Where a stage is computed: by itself, in its readers (to be, and already), in a loop of another stage, in a scan's steps."""


@dataclass(eq=False)
class Split:
    """`parent` is `outer` times the extent of `inner`, plus `inner`; `factor` or `nparts` is set."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Expr | None
    nparts: Expr | None


@dataclass(eq=False)
class Fuse:
    """`fused` runs over `outer` and, faster, `inner`."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@dataclass(eq=False)
class Rebase:
    """`rebased` is `parent` counted from 0."""

    parent: IterVar
    rebased: IterVar


@dataclass(eq=False)
class Singleton:
    """An axis of one value, for what has none to fuse."""

    axis: IterVar

    @property
    def iter(self) -> IterVar:
        """The axis, by TVM's name."""
        return self.axis


Relation = Split | Fuse | Rebase | Singleton


@dataclass(eq=False)
class AxisAttrs:
    """The attributes that a schedule set on an axis."""

    annotation: str = ""
    """"", "unrolled", "vectorized", "parallel" or "tensorized"."""
    thread: IterVar | None = None
    pragmas: list[tuple[str, Expr]] = field(default_factory=list["tuple[str, Expr]"])
    prefetches: list[tuple[te.Tensor, Expr]] = field(default_factory=list["tuple[te.Tensor, Expr]"])
    align: tuple[int, int] | None = None
    intrinsic: object = None
    kind: int = IterVar.DataPar

    @property
    def iter_type(self) -> int:
        """The kind that the annotation makes of the axis, of those that `IterVar` lists."""
        return _ANNOTATED.get(self.annotation, self.kind)

    @property
    def bind_thread(self) -> IterVar | None:
        """The thread that the axis is bound to."""
        return self.thread

    @property
    def pragma_keys(self) -> list[StringImm]:
        """The names of the pragmas."""
        return [StringImm(key) for key, _ in self.pragmas]

    @property
    def pragma_values(self) -> list[Expr]:
        """The values of the pragmas."""
        return [value for _, value in self.pragmas]

    @property
    def prefetch_data(self) -> list[te.Tensor]:
        """The tensors that are prefetched."""
        return [tensor for tensor, _ in self.prefetches]

    @property
    def prefetch_offset(self) -> list[Expr]:
        """The number of iterations by which each tensor is prefetched."""
        return [offset for _, offset in self.prefetches]

    @property
    def dim_align_factor(self) -> int:
        """The number whose multiple the stride of the axis is; 0 for none."""
        return self.align[0] if self.align else 0

    @property
    def dim_align_offset(self) -> int:
        """The number that is added to the aligned stride."""
        return self.align[1] if self.align else 0

    @property
    def tensor_intrin(self) -> object:
        """The intrinsic that replaces the loop, or None."""
        return self.intrinsic


_ANNOTATED = {
    "unrolled": IterVar.Unrolled, "vectorized": IterVar.Vectorized, "parallel": IterVar.Parallelized,
    "tensorized": IterVar.Tensorized,
}  # fmt: skip


@dataclass(eq=False)
class StageData:
    """One operation's loops; a group of stages has no operation."""

    op: te.Operation | None
    schedule: ScheduleData | None = None
    original: te.Operation | None = None
    all_axes: list[IterVar] = field(default_factory=list["IterVar"])
    leaves: list[IterVar] = field(default_factory=list["IterVar"])
    relations: list[Relation] = field(default_factory=list["Relation"])
    attrs: dict[int, AxisAttrs] = field(default_factory=dict[int, "AxisAttrs"])
    attach_type: str = ROOT
    attach_axis: IterVar | None = None
    attach_stage: StageData | None = None
    scope: str = ""
    is_output: bool = False
    double_buffer: bool = False
    group: StageData | None = None
    children: int = 0
    env_threads: list[IterVar] = field(default_factory=list["IterVar"])
    store_predicate: Expr | None = None

    @property
    def name(self) -> str:
        """The name of the stage in messages."""
        return "a group" if self.op is None else self.op.name

    @property
    def operation(self) -> te.Operation:
        """The operation, which only a group lacks."""
        assert self.op is not None
        return self.op

    def attrs_of(self, axis: IterVar) -> AxisAttrs:
        """Returns the attributes of the axis, creating them if needed."""
        found = self.attrs.get(id(axis))
        if found is None:
            found = self.attrs[id(axis)] = AxisAttrs(kind=axis.iter_type)
        return found

    def known_attrs(self, axis: IterVar) -> AxisAttrs | None:
        """Returns the attributes of the axis, or None."""
        return self.attrs.get(id(axis))

    def position(self, axis: IterVar) -> int | None:
        """Returns the place of an axis among the loops."""
        return next((i for i, leaf in enumerate(self.leaves) if leaf is axis), None)

    def attach_spec(self) -> StageData:
        """Returns the stage or group that says where this one is computed."""
        spec = self
        while spec.attach_type == ROOT and spec.group is not None:
            spec = spec.group
        return spec


@dataclass(eq=False)
class ScheduleData:
    """The stages of a program, producers first."""

    outputs: list[te.Operation]
    stages: list[StageData] = field(default_factory=list["StageData"])
    groups: list[StageData] = field(default_factory=list["StageData"])
    by_op: dict[int, StageData] = field(default_factory=dict[int, "StageData"])
    kept: list[object] = field(default_factory=list["object"])

    def stage_of(self, op: te.Operation) -> StageData | None:
        """Returns the stage of an operation, or of what it was before a primitive rewrote it."""
        return self.by_op.get(id(op))

    def register(self, op: te.Operation, stage: StageData) -> None:
        """From now on, `op` names the stage."""
        self.by_op[id(op)] = stage
        self.kept.append(op)

    def insert(self, stage: StageData, position: int, beside: StageData) -> None:
        """Adds a stage to the list, in the group of another."""
        stage.schedule = self
        self.stages.insert(position, stage)
        self.register(stage.operation, stage)
        stage.group = beside.group
        if stage.group is not None:
            stage.group.children += 1

    def index(self, stage: StageData) -> int:
        """Returns the place of a stage in the list."""
        return next(i for i, s in enumerate(self.stages) if s is stage)


def root_axes(op: te.Operation) -> list[IterVar]:
    """Returns the axes that an operation is computed over."""
    match op:
        case te.ComputeOp():
            return [*op.axis, *op.reduce_axis]
        case te.ScanOp():
            return op.schedule_axes
        case _:
            return []


def new_stage(op: te.Operation, schedule: ScheduleData, scope: str = "") -> StageData:
    """Returns a stage without transformations."""
    stage = StageData(op, schedule, op, scope=scope)
    reset_axes(stage)
    return stage


def reset_axes(stage: StageData) -> None:
    """The loops are the operation's axes again."""
    stage.all_axes = list(root_axes(stage.operation))
    stage.leaves = [a for a in stage.all_axes if a.iter_type != OPAQUE]
    stage.relations = []


def create_schedule(outputs: Sequence[te.Operation]) -> ScheduleData:
    """Returns the schedule of everything that the outputs need, each operation by itself."""
    schedule = ScheduleData(list(outputs))
    are_outputs = {id(op) for op in outputs}
    for op in post_order(outputs):
        stage = new_stage(op, schedule)
        stage.is_output = id(op) in are_outputs
        schedule.stages.append(stage)
        schedule.register(op, stage)
        if isinstance(op, te.ScanOp):
            group = create_group(schedule, op.update, [*op.state, *op.inputs], False)
            group.attach_type = SCAN_UPDATE
            group.attach_stage = stage
    return schedule


def create_group(
    schedule: ScheduleData, outputs: Iterable[te.Tensor], inputs: Iterable[te.Tensor], include_inputs: bool = False
) -> StageData:
    """Groups the stages between inputs and outputs, which are then placed together.

    The group becomes a part of the innermost group that holds all of them. A tensor from before a rewrite means its replacement:
    where `cache_read` put a copy in front of a reader, the copy is between the two. Raises MirError where nothing is computed
    between inputs and outputs, or a group would be cut.
    """
    from ....dialects.tir.node import fail

    def current(tensor: te.Tensor) -> te.Tensor:
        stage = schedule.stage_of(tensor.op)
        return tensor if stage is None else stage.operation.outputs[tensor.value_index]

    ops = sub_graph([current(t) for t in outputs], [current(t) for t in inputs], include_inputs)
    stages = [s for op in ops if (s := schedule.stage_of(op)) is not None]
    if not stages:
        raise fail("a group needs a stage", "between inputs and outputs there is none that is computed")
    group = StageData(None, schedule)
    parent = stages[0].group
    for stage in stages[1:]:
        parent = _common_group(parent, stage.group)
    members = {id(s) for s in stages}
    # A group inside becomes a member when all that it holds is in the new one.
    counts: dict[int, int] = {}
    pending = list(stages)
    while pending:
        stage = pending.pop()
        inner = stage.group
        if inner is None or inner is parent:
            continue
        counts[id(inner)] = counts.get(id(inner), 0) + 1
        if counts[id(inner)] == inner.children and id(inner) not in members:
            members.add(id(inner))
            pending.append(inner)
    for inner in schedule.groups:
        if 0 < counts.get(id(inner), 0) < inner.children:
            raise fail(
                "the new group would cut a group in two",
                "a group holds another wholly or not at all: group the outer stages first",
            )
    group.group = parent
    for member in [*stages, *schedule.groups]:
        if id(member) in members and member.group is parent:
            if parent is not None:
                parent.children -= 1
            member.group = group
            group.children += 1
    if parent is not None:
        parent.children += 1
    schedule.groups.append(group)
    return group


def _common_group(a: StageData | None, b: StageData | None) -> StageData | None:
    seen: set[int] = set()
    while a is not None:
        seen.add(id(a))
        a = a.group
    while b is not None and id(b) not in seen:
        b = b.group
    return b


__all__ = [
    "INLINE", "INLINED", "ROOT", "SCAN_UPDATE", "SCOPE", "ScheduleData", "StageData", "create_group", "create_schedule",
    "inputs_of", "new_stage", "reset_axes", "root_axes",
]  # fmt: skip


def is_placeholder(op: te.Operation | None) -> bool:
    """Returns whether the operation is an input, which is not computed."""
    return isinstance(op, te.PlaceholderOp)
