"""Schedules and stages under TVM's names: what a program, in Python or as text, calls.

Arguments are checked against the table of `signatures`; each call that was carried out is recorded in the schedule's `trace`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ....dialects.te.caller_location import at_caller, located
from ....dialects.te.expr import Expr, ExprLike, IterVar, current_location, describe, fail, items_of
from ....dialects.te.schedule_interface import ScheduleBase, StageBase
from ....dialects.te.schedule_signatures import Parameter, signatures
from ....dialects.te.tensor import Operation, Tensor
from ....support.text import did_you_mean
from . import dataflow_rewrite, primitives
from .normalize import copied, normalize
from .stage import ScheduleData, StageData, create_group
from .stage import create_schedule as make_schedule
from .trace import Argument, Ref, Step, TensorRef, Trace

_SPOKEN = {
    "axis": "an axis (s[B].op.axis[0], or what split and fuse give)",
    "stage": "a stage (s[B])",
    "tensor": "a tensor",
    "expr": "an integer or an expression",
    "str": "a string",
    "int": "an integer",
    "bool": "True or False",
    "literal": "a number or a string",
}

if TYPE_CHECKING:
    from ....dialects.te.schedule_ops import ScheduleOp


class Stage(StageBase):
    """How one tensor is computed: its loops, in order, and where it is computed."""

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
        """Whether the tensor is one that the schedule was made for."""
        return self.data.is_output

    def __repr__(self) -> str:
        return f"stage({self.data.name})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuses a name that stages do not have, with the one that is meant."""
            known = [member for member in dir(type(self)) if not member.startswith("_")]
            raise AttributeError(f"a stage has no '{name}'{did_you_mean(name, known)}", name=name, obj=self)

    def _do(self, name: str, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        return self.schedule.carry_out(name, self.data, function, args, keywords)

    def split(
        self, parent: IterVar, factor: ExprLike | None = None, nparts: ExprLike | None = None
    ) -> tuple[IterVar, IterVar]:
        """Splits a loop into an outer and an inner one, `factor` long or `nparts` of them."""
        return self._do("split", primitives.split, parent, factor, nparts)

    def fuse(self, *args: Any) -> IterVar:
        """Fuses neighbouring loops, outer first, into one."""
        several = items_of(args[0]) if len(args) == 1 else None
        return self._do("fuse", primitives.fuse, *(args if several is None else several))

    def reorder(self, *args: IterVar) -> None:
        """Puts the loops named into this order, in the places that they have now."""
        self._do("reorder", primitives.reorder, *args)

    def tile(
        self, x_parent: IterVar, y_parent: IterVar, x_factor: ExprLike, y_factor: ExprLike
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Splits two loops and brings the inner parts inside: x_outer, y_outer, x_inner, y_inner."""
        return self._do("tile", primitives.tile, x_parent, y_parent, x_factor, y_factor)

    def bind(self, ivar: IterVar, thread_ivar: IterVar) -> None:
        """Runs a loop on threads: `s[B].bind(x, te.thread_axis("threadIdx.x"))`."""
        self._do("bind", primitives.bind, ivar, thread_ivar)

    def env_threads(self, threads: IterVar | Sequence[IterVar]) -> None:
        """Launches threads around all that a scan does."""
        self._do("env_threads", primitives.env_threads, threads)

    def set_scope(self, scope: str) -> None:
        """Sets the storage scope."""
        self._do("set_scope", primitives.set_scope, scope)

    def set_store_predicate(self, predicate: ExprLike) -> None:
        """Stores results only where the condition holds."""
        self._do("set_store_predicate", primitives.set_store_predicate, predicate)

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Computes this stage inside of a loop of another."""
        self._do("compute_at", primitives.compute_at, parent, scope)

    def compute_inline(self) -> None:
        """Writes this stage's value where it is read."""
        self._do("compute_inline", primitives.compute_inline)

    def compute_root(self) -> None:
        """Computes this stage by itself."""
        self._do("compute_root", primitives.compute_root)

    def vectorize(self, var: IterVar) -> None:
        """Makes vector operations of a loop."""
        self._do("vectorize", primitives.vectorize, var)

    def unroll(self, var: IterVar) -> None:
        """Writes the turns of a loop one after the other."""
        self._do("unroll", primitives.unroll, var)

    def parallel(self, var: IterVar) -> None:
        """Runs the turns of a loop in parallel."""
        self._do("parallel", primitives.parallel, var)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: object = None) -> None:
        """Annotates a loop for later passes."""
        self._do("pragma", primitives.pragma, var, pragma_type, pragma_value)

    def prefetch(self, tensor: Tensor, var: IterVar, offset: ExprLike) -> None:
        """Asks for what will be read of a tensor `offset` turns later."""
        self._do("prefetch", primitives.prefetch, tensor, var, offset)

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Rounds the stride of a dimension up to `factor * k + offset`."""
        self._do("storage_align", primitives.storage_align, axis, factor, offset)

    def double_buffer(self) -> None:
        """Gives the stage its memory twice."""
        self._do("double_buffer", primitives.double_buffer)

    @located
    def tensorize(self, var: IterVar, tensor_intrin: object) -> None:
        """Replaces the loop over `var` and what is in it by an intrinsic (te.decl_tensor_intrin)."""
        if not isinstance(var, IterVar):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"var of tensorize is {_SPOKEN['axis']}, not {describe(var)}")
        primitives.tensorize(self.data, var, tensor_intrin)


class Schedule(ScheduleBase):
    """The stages of a program: `s[B]` is that of a tensor."""

    def __init__(self, data: ScheduleData):
        self.data = data
        self.trace = Trace(data)

    @property
    def stages(self) -> list[Stage]:
        """All stages, producers first."""
        return [Stage(self, s) for s in self.data.stages]

    @property
    def outputs(self) -> list[Operation]:
        """The operations that the schedule was made for."""
        return list(self.data.outputs)

    def __getitem__(self, tensor: Any) -> Stage:
        """The stage of a tensor or operation. Raises MirError for one that is not part of the schedule."""
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

    def create_group(
        self, outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], include_inputs: bool = False
    ) -> Stage:
        """A group of the stages between inputs and outputs, which are placed together."""

        def create(outputs: list[Tensor], inputs: list[Tensor], include_inputs: bool) -> StageData:
            return create_group(self.data, outputs, inputs, include_inputs)

        return self.carry_out("create_group", None, create, (outputs, inputs, include_inputs), {})

    def cache_read(self, tensor: Tensor, scope: str, readers: Any) -> Tensor:
        """A copy of a tensor in memory of another scope, which the readers read instead."""

        def read(tensor: Tensor, scope: str, readers: list[Tensor]) -> Tensor:
            return dataflow_rewrite.cache_read(self.data, tensor, scope, [r.op for r in readers])

        return self.carry_out("cache_read", None, read, (tensor, scope, readers), {})

    def cache_write(self, tensor: Tensor | Sequence[Tensor], scope: str) -> Any:
        """Computes a tensor in memory of another scope, and copies it from there."""

        def write(tensors: list[Tensor], scope: str) -> list[Tensor]:
            return dataflow_rewrite.cache_write(self.data, tensors, scope)

        made: list[Tensor] = self.carry_out("cache_write", None, write, (tensor, scope), {})
        return made[0] if isinstance(tensor, Tensor) else made

    def rfactor(self, tensor: Tensor, axis: IterVar, factor_axis: int = 0) -> Any:
        """Reduces over parts first: the axis becomes a dimension of them."""

        def factor(tensor: Tensor, axis: IterVar, factor_axis: int) -> list[Tensor]:
            return dataflow_rewrite.rfactor(self.data, tensor, axis, factor_axis)

        made: list[Tensor] = self.carry_out("rfactor", None, factor, (tensor, axis, factor_axis), {})
        return made[0] if len(made) == 1 else made

    def name_result(self, result: object, name: str) -> None:
        """Notes what the program calls a result of a primitive."""
        self.trace.named(result.data if isinstance(result, Stage) else result, name)

    def as_op(self, operations: Sequence[Operation], name: str | None = None, target: str | None = None) -> ScheduleOp:
        """Returns the primitives that were applied as ops; `operations` are the program's, in the order of its text."""
        from .apply_schedule import trace_to_op

        return trace_to_op(self, operations, name, target)

    def normalize(self) -> Schedule:
        """This schedule with inlined stages written out, and every loop counted from 0."""
        work = copied(self.data)
        normalize(work)
        return Schedule(work)

    def carry_out(
        self,
        name: str,
        stage: StageData | None,
        function: Callable[..., Any],
        args: Sequence[Any],
        keywords: dict[str, Any],
    ) -> Any:
        """Checks arguments by the table, applies a primitive, and records it. Raises TypeError for arguments of wrong kinds."""
        signature = signatures()[name]
        given: list[Any] = []
        recorded: dict[str, Argument] = {}
        with at_caller():
            owner: TensorRef | None = None if stage is None else self.trace.stage(stage)
            step = Step(name, owner, recorded, current_location())
            if signature.parameters and signature.parameters[0].takes_all:
                parameter = signature.parameters[0]
                values = [self._checked(parameter, name, value) for value in args]
                recorded[parameter.name] = [self._ref(value, stage) for value in values]
                given = values
            else:
                for parameter, value in zip(signature.parameters, args, strict=True):
                    checked = self._argument(parameter, name, value)
                    recorded[parameter.name] = self._recorded(parameter, checked, stage, step)
                    given.append(checked)
            result = function(*([] if stage is None else [stage]), *given, **keywords)
            results: list[object] = list(items_of(result) or ()) if items_of(result) is not None else [result]
            if not signature.results:
                results = []
            self.trace.add(step, results)
        if isinstance(result, StageData):
            return Stage(self, result)
        return result

    def _argument(self, parameter: Parameter, name: str, value: Any) -> Any:
        if value is None and parameter.default is None:
            return None
        if not parameter.is_list:
            return self._checked(parameter, name, value)
        several = items_of(value)
        return [self._checked(parameter, name, v) for v in ((value,) if several is None else several)]

    def _checked(self, parameter: Parameter, name: str, value: Any) -> Any:
        """The argument, where it is of the parameter's kind; stages and operations as what the engine takes."""
        kind = parameter.kind
        if kind == "axis" and isinstance(value, IterVar):
            return value
        if kind == "stage" and isinstance(value, Stage):
            return value.data
        if kind == "tensor" and isinstance(value, Tensor):
            return value
        if kind == "tensor" and isinstance(value, Operation):
            return value.outputs[0]
        if kind == "expr" and isinstance(value, (Expr, int, float)) and not isinstance(value, str):
            return value
        if kind == "str" and isinstance(value, str):
            return value
        if kind == "int" and isinstance(value, int) and not isinstance(value, bool):
            return value
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind == "literal" and isinstance(value, (str, int, float, Expr)):
            return value
        raise TypeError(f"'{parameter.name}' of {name} is {_SPOKEN[kind]}, not {describe(value)}")

    def _recorded(self, parameter: Parameter, value: Any, stage: StageData | None, step: Step) -> Argument:
        if isinstance(value, list):
            return [self._ref(v, stage) for v in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, Expr) and parameter.kind in ("expr", "literal"):
            for axis in axes_in(value):
                step.axes[id(axis)] = self.trace.axis(axis, stage)
            return value
        return (
            value if value is None or not parameter.is_operand or parameter.kind == "expr" else self._ref(value, stage)
        )

    def _ref(self, value: Any, stage: StageData | None) -> Ref:
        if isinstance(value, IterVar):
            return self.trace.axis(value, stage)
        return self.trace.tensor(value) if isinstance(value, Tensor) else self.trace.stage(value)


def axes_in(root: Expr) -> list[IterVar]:
    """The axes in an expression."""
    found: dict[int, IterVar] = {}
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, IterVar):
            found[id(node)] = node
        pending += node.args
    return list(found.values())


@located
def create_schedule(ops: Any) -> Schedule:
    """A schedule of everything that the operations (or tensors) need, each computed by itself."""
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
