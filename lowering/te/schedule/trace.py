"""What was done to a schedule, step by step: enough to write it down as ops and as text, and to do it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import LocationAttr

from ....dialects.te import tensor as te
from ....dialects.te.axes import Axis
from ....dialects.te.expr import Expr, IterVar
from .stage import ScheduleData, StageData, is_placeholder


@dataclass(frozen=True)
class Made:
    """Result `place` of step `step`."""

    step: int
    place: int


@dataclass(frozen=True)
class AxisOf:
    """Axis `place` of a tensor's operation as it was then: of `axis` or `reduce_axis`, or the `scan_axis`."""

    tensor: TensorRef
    which: str
    place: int


@dataclass(frozen=True, eq=False)
class Given:
    """A tensor of the program."""

    tensor: te.Tensor


@dataclass(frozen=True, eq=False)
class Thread:
    """A thread."""

    axis: Axis


TensorRef: TypeAlias = "Given | Made"
Ref: TypeAlias = "Made | AxisOf | Given | Thread"
Argument: TypeAlias = "Ref | list[Ref] | Expr | str | int | float | bool | None"


@dataclass
class Step:
    """A primitive with its arguments; `owner` is the stage's tensor (or a group), None for one of the schedule."""

    name: str
    owner: TensorRef | None
    arguments: dict[str, Argument]
    location: LocationAttr
    results: int = 0
    names: dict[int, str] = field(default_factory=dict[int, str])
    """What the program calls the results."""
    axes: dict[int, Ref] = field(default_factory=dict[int, "Ref"])
    """The axes in expressions among the arguments, by id."""


class Trace:
    """The steps of one schedule."""

    def __init__(self, schedule: ScheduleData):
        self.schedule = schedule
        self.steps: list[Step] = []
        self._made: dict[int, Made] = {}
        self._kept: list[object] = []

    def add(self, step: Step, results: list[object]) -> None:
        """Adds a step that was done, with what it gave."""
        step.results = len(results)
        for place, result in enumerate(results):
            name = getattr(result, "name", "")
            step.names[place] = "".join(c if c.isalnum() else "_" for c in str(name))
            key = result.op if isinstance(result, te.Tensor) else result
            # A tensor is one of several of an operation: each is known by itself.
            self._made[id(result)] = Made(len(self.steps), place)
            self._kept += [result, key]
        self.steps.append(step)

    def named(self, thing: object, name: str) -> None:
        """Notes what the program calls a result."""
        made = self._made.get(id(thing))
        if made is not None:
            self.steps[made.step].names[made.place] = name

    def stage(self, stage: StageData) -> TensorRef:
        """The tensor that names a stage; a group is what a step made."""
        made = self._made.get(id(stage))
        if made is not None:
            return made
        assert stage.original is not None
        return self.tensor(stage.original.outputs[0])

    def tensor(self, tensor: te.Tensor) -> TensorRef:
        """A tensor: of the program, or made by a step."""
        made = self._made.get(id(tensor))
        if made is not None:
            return made
        stage = self.schedule.stage_of(tensor.op)
        if stage is not None and stage.original is not None and tensor.op is not stage.original:
            return self.tensor(stage.original.outputs[tensor.value_index])
        return Given(tensor)

    def axis(self, axis: IterVar, near: StageData | None) -> Ref:
        """An axis: made by a step, of an operation, or a thread."""
        made = self._made.get(id(axis))
        if made is not None:
            return made
        if isinstance(axis, Axis) and axis.thread_tag:
            return Thread(axis)
        stages = [near] if near is not None else []
        for stage in [*stages, *self.schedule.stages]:
            op = stage.op
            if isinstance(op, te.ScanOp) and axis is op.scan_axis:
                return AxisOf(self.stage(stage), "scan_axis", 0)
            if isinstance(op, te.ComputeOp) and not is_placeholder(op):
                for which, axes in (("axis", op.axis), ("reduce_axis", op.reduce_axis)):
                    for place, each in enumerate(axes):
                        if each is axis:
                            return AxisOf(self.stage(stage), which, place)
        from ....dialects.te.expr import fail

        raise fail(f"axis '{axis.name}' belongs to no stage of this schedule", "take axes from s[B].op.axis")
