"""Schedules and stages under TVM's names: what a program, in Python or as text, calls.

Their methods are the primitives of the table of signatures. `Schedule.apply` is the one door for text, Python and ops: it checks arguments
by the table, carries the primitive out, and writes it down as an op.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ....dialects.schedule.kinds import parse_kind, spoken
from ....dialects.schedule.signature_table import REQUIRED, Parameter, Signature, te_signatures
from ....dialects.te.caller_location import at_caller, located
from ....dialects.te.schedule_interface import ScheduleBase, StageBase
from ....dialects.te.tensor import Operation, Tensor
from ....dialects.tir.node import Expr, IterVar, describe, fail, items_of
from ....support.text import did_you_mean
from . import dataflow_rewrite, primitives, stage
from .normalize import copied, normalize
from .recorder import Recorder
from .stage import ScheduleData, StageData
from .stage import create_schedule as make_schedule

if TYPE_CHECKING:
    from ....dialects.te.schedule_ops import ScheduleOp
    from .methods import SchedulePrimitives, StagePrimitives  # pyright: ignore[reportMissingModuleSource]
else:
    SchedulePrimitives = StagePrimitives = object


ATTACH_TYPES = {
    stage.ROOT: 1, stage.INLINE: 2, stage.INLINED: 3, stage.SCOPE: 4, stage.SCAN_UPDATE: 5,
}  # fmt: skip
"""TVM's numbers of the ways in which a stage is computed."""


class Stage(StageBase, StagePrimitives):
    """The stage of one tensor: its loops, in order, and where it is computed."""

    def __init__(self, schedule: Schedule, data: StageData):
        self.schedule = schedule
        self.data = data

    @property
    def op(self) -> Operation:
        """The operation, as primitives have rewritten it. Raises MirError for a group of stages."""
        if self.data.op is None:
            raise fail("a group of stages has no operation of its own", "take the stage of a tensor: s[B].op")
        return self.data.op

    @property
    def leaf_iter_vars(self) -> list[IterVar]:
        """The loops, outermost first."""
        return list(self.data.leaves)

    @property
    def all_iter_vars(self) -> list[IterVar]:
        """All axes: the operation's, and those made by split and fuse."""
        return list(self.data.all_axes)

    @property
    def scope(self) -> str:
        """The storage scope that was set, or ""."""
        return self.data.scope

    @property
    def is_output(self) -> bool:
        """Returns whether the tensor is one that the schedule was made for."""
        return self.data.is_output

    @property
    def origin_op(self) -> Operation | None:
        """The operation that the stage was made for, before primitives rewrote it; None of a group."""
        return self.data.original

    @property
    def attach_type(self) -> int:
        """The way in which the stage is attached, by TVM's number.

        1 is by itself, 2 and 3 are inlined (to be, and already), 4 is in a loop, 5 in a scan.
        """
        return ATTACH_TYPES[self.data.attach_type]

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop that the stage is computed in."""
        return self.data.attach_axis

    @property
    def attach_stage(self) -> Stage | None:
        """The stage whose loop this one is computed in."""
        return self._stage(self.data.attach_stage)

    @property
    def group(self) -> Stage | None:
        """The group that the stage is in, or None."""
        return self._stage(self.data.group)

    @property
    def num_child_stages(self) -> int:
        """The number of stages in a group."""
        return self.data.children

    @property
    def relations(self) -> list[stage.Relation]:
        """The relations of the axes: `Split`, `Fuse`, `Rebase`, `Singleton`."""
        return list(self.data.relations)

    @property
    def iter_var_attrs(self) -> dict[IterVar, stage.AxisAttrs]:
        """The attributes that were set on axes, by the axis."""
        return {axis: found for axis in self.data.all_axes if (found := self.data.known_attrs(axis)) is not None}

    def _stage(self, data: StageData | None) -> Stage | None:
        return None if data is None else Stage(self.schedule, data)

    def same_as(self, other: object) -> bool:
        """Returns whether the two are one stage."""
        return self == other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stage) and other.data is self.data

    def __hash__(self) -> int:
        return id(self.data)

    def __repr__(self) -> str:
        return f"stage({self.data.name})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuses a name that stages do not have, with the one that is meant."""
            known = [member for member in dir(type(self)) if not member.startswith("_")]
            raise AttributeError(f"a stage has no '{name}'{did_you_mean(name, known)}", name=name, obj=self)

    @located
    def tensorize(self, var: IterVar, tensor_intrin: object) -> None:
        """Replaces the loop over `var` and what is in it by an intrinsic (te.decl_tensor_intrin)."""
        if not isinstance(var, IterVar):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"var of tensorize is {_spoken('axis')}, not {describe(var)}")
        primitives.tensorize(self.data, var, tensor_intrin)


class Schedule(ScheduleBase, SchedulePrimitives):
    """The stages of a program: `s[B]` is that of a tensor."""

    def __init__(self, data: ScheduleData):
        self.data = data
        self.recorder = Recorder(data)

    def __repr__(self) -> str:
        return f"Schedule({', '.join(stage.op.name for stage in self.stages)})"

    @property
    def stages(self) -> list[Stage]:
        """All stages, producers first."""
        return [Stage(self, s) for s in self.data.stages]

    @property
    def outputs(self) -> list[Operation]:
        """The operations that the schedule was made for, as primitives have rewritten them."""
        found = [(op, self.data.stage_of(op)) for op in self.data.outputs]
        return [op if of is None or of.op is None else of.op for op, of in found]

    @property
    def groups(self) -> list[Stage]:
        """The groups of stages."""
        return [Stage(self, group) for group in self.data.groups]

    @property
    def stage_map(self) -> dict[Operation, Stage]:
        """The stages by their operation: as it is, and as it was before primitives rewrote it."""
        found = {each: data for data in self.data.stages for each in (data.op, data.original) if each is not None}
        return {op: Stage(self, data) for op, data in found.items()}

    def __getitem__(self, tensor: Any) -> Stage:
        """Returns the stage of a tensor or operation. Raises MirError for one outside of the schedule."""
        if not isinstance(tensor, (Tensor, Operation)):
            raise TypeError(f"a stage is found by its tensor or operation, not by {describe(tensor)}")
        op = tensor.op if isinstance(tensor, Tensor) else tensor
        found = self.data.stage_of(op)
        if found is None:
            with at_caller():
                raise fail(
                    f"tensor '{op.name}' is not part of this schedule",
                    "a schedule has what its outputs are computed from: te.create_schedule(B.op)",
                )
        return Stage(self, found)

    def name_result(self, result: object, name: str) -> None:
        """Notes what the program calls a result of a primitive."""
        self.recorder.name(result.data if isinstance(result, Stage) else result, name)

    def as_op(self, operations: Sequence[Operation], name: str | None = None, target: str | None = None) -> ScheduleOp:
        """Returns the applied primitives as ops, once; `operations` are in the order of the program's text."""
        return self.recorder.as_op(operations, name, target)

    def normalize(self) -> Schedule:
        """This schedule with inlined stages written out, and every loop counted from 0."""
        work = copied(self.data)
        normalize(work)
        return Schedule(work)

    def apply(self, name: str, owner: Stage | None, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Applies a primitive; returns its results.

        Raises TypeError for arguments of wrong kinds, ScheduleError where it is refused.
        """
        signature = te_signatures()[name]
        if name == "fuse" and len(args) == 1:
            args = items_of(args[0]) or args
        try:
            bound = _python_signature(signature).bind(owner or self, *args, **keywords).arguments
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        given = {p.name: _checked(p, name, bound[p.name]) for p in signature.parameters if p.name in bound}
        with at_caller():
            of = None if owner is None else owner.data
            written = self.recorder.arguments(signature, of, given)
            positional: list[Any] = given.pop(signature.variadic.name, []) if signature.variadic else []
            result = _function(name)(of or self.data, *positional, **given)
            several = items_of(result)
            results: list[Any] = [] if signature.result == "none" else [result] if several is None else list(several)
            self.recorder.applied(signature, written, results)
        if signature.element and len(results) == 1:
            # Of one tensor, unless it was given in a list.
            return results[0] if name == "rfactor" or isinstance(bound["tensor"], Tensor) else results
        return Stage(self, result) if isinstance(result, StageData) else result


# Checks of arguments ---------------------------------------------------------------------------------------------------

_TYPES: dict[str, tuple[type, ...]] = {
    "axis": (IterVar,), "stage": (Stage,), "tensor": (Tensor, Operation), "expr": (Expr, int, float), "str": (str,), "int": (int,),
    "bool": (bool,), "literal": (str, int, float, Expr),
}  # fmt: skip


def _spoken(kind: str) -> str:
    return "an integer or an expression" if kind == "expr" else spoken(parse_kind(kind))


def _checked(parameter: Parameter, name: str, value: Any) -> Any:
    """Returns the argument as primitives take it. Raises TypeError for one of another kind."""
    if value is None and parameter.default is None:
        return None
    if parameter.is_list or parameter.variadic:
        several = items_of(value)
        return [_element(parameter, name, v) for v in ((value,) if several is None else several)]
    return _element(parameter, name, value)


def _element(parameter: Parameter, name: str, value: Any) -> Any:
    kind = parameter.element
    if not isinstance(value, _TYPES[kind]) or (kind == "int" and isinstance(value, bool)):
        raise TypeError(f"'{parameter.name}' of {name} is {_spoken(kind)}, not {describe(value)}")
    return value.data if isinstance(value, Stage) else value.outputs[0] if isinstance(value, Operation) else value


# Primitives as methods -------------------------------------------------------------------------------------------------


@cache
def _function(name: str) -> Callable[..., Any]:
    return next(found for m in (primitives, dataflow_rewrite, stage) if (found := vars(m).get(name)) is not None)


@cache
def _python_signature(signature: Signature) -> inspect.Signature:
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for each in signature.parameters:
        kind = inspect.Parameter.VAR_POSITIONAL if each.variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = inspect.Parameter.empty if each.default is REQUIRED else each.default
        parameters.append(inspect.Parameter(each.name, kind, default=default))
    return inspect.Signature(parameters)


def _method(signature: Signature) -> Callable[..., Any]:
    def method(self: Stage | Schedule, *args: Any, **keywords: Any) -> Any:
        owner = self if isinstance(self, Stage) else None
        return (self.schedule if isinstance(self, Stage) else self).apply(signature.name, owner, args, keywords)

    method.__name__ = signature.name
    method.__doc__ = _function(signature.name).__doc__
    method.__signature__ = _python_signature(signature)  # type: ignore[attr-defined]
    return method


for _each in te_signatures().values():
    setattr(Stage if _each.owner == "stage" else Schedule, _each.name, _method(_each))


@located
def create_schedule(ops: Any) -> Schedule:
    """Returns a schedule of everything that the operations (or tensors) need, each computed by itself."""
    given = items_of(ops)
    listed = (ops,) if given is None else given
    found: list[Operation] = []
    for each in listed:
        op = each.op if isinstance(each, Tensor) else each
        if not isinstance(op, Operation):
            raise TypeError(f"a schedule is made for operations, as B.op, not for {describe(op)}")
        found.append(op)
    if not found:
        raise fail("a schedule is made for at least one operation", "name the outputs: te.create_schedule(B.op)")
    return Schedule(make_schedule(found))
