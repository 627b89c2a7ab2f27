"""Applies the ops of a `te.schedule` to the program that they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import NoneType, StringAttr
from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ....dialects.te import schedule_ops as so
from ....dialects.te import tensor as te
from ....dialects.te.axes import axis as axis_of
from ....dialects.te.axes import thread_axis
from ....dialects.te.lift import attribute_value
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, IterVar, Range
from ....support.diagnostics import MirError, error_at
from .frontend import Schedule, Stage, create_schedule
from .recorder import TensorNames


def apply_schedule(
    op: so.ScheduleOp,
    operations: Sequence[te.Operation],
    outputs: Sequence[te.Operation],
    sizes: Mapping[str, ex.Var],
) -> Schedule:
    """Applies a `te.schedule` to the program of `operations`; an error is reported at the step at fault."""
    names = TensorNames(operations)
    if op.outputs is not None and op.target is None:
        listed: list[te.Operation] = []
        for text in op.outputs.data:
            tensor = names.tensors.get((text.data, 0))
            if tensor is None:
                raise error_at(op, f"the program has no tensor '{text.data}'")
            listed.append(tensor.op)
        outputs = listed
    if not outputs:
        raise error_at(op, "a schedule needs an output", "return a tensor that is computed")
    with ex.location_scope(op.location):
        schedule = create_schedule(list(outputs))
    _Reader(schedule, names, sizes).read(op)
    return schedule


class _Reader:
    def __init__(self, schedule: Schedule, names: TensorNames, sizes: Mapping[str, ex.Var]):
        self.schedule = schedule
        self.names = names
        self.sizes = sizes
        self.values: dict[SSAValue, object] = {}

    def read(self, schedule: so.ScheduleOp) -> None:
        for op in schedule.steps:
            with ex.location_scope(op.location):
                try:
                    self._read(op)
                except TypeError as error:
                    raise error_at(op, str(error)) from None

    def _read(self, op: Operation) -> None:
        match op:
            case so.TensorRefOp():
                tensor = self.names.tensors.get((op.tensor.data, op.which.value.data))
                if tensor is None:
                    raise error_at(op, f"the program has no tensor '{op.tensor.data}'", self._known())
                self.values[op.result] = tensor
            case so.VarRefOp():
                size = self.sizes.get(op.var_name.data)
                if size is None:
                    raise error_at(op, f"the program has no size '{op.var_name.data}'")
                self.values[op.result] = size
            case so.AxisRefOp():
                self.values[op.result] = self._axis(op)
            case so.ThreadAxisOp():
                extent = op.extent.value.data
                axis = thread_axis(None, op.tag.data, op.var_name.data)
                if extent >= 0:
                    domain = Range.from_min_extent(ex.IntImm("int32", 0), ex.IntImm("int32", extent))
                    axis = axis_of(axis.name, domain, axis.iter_type, thread_tag=axis.thread_tag)
                self.values[op.result] = axis
            case so.AxisValueOp():
                self.values[op.result] = self.values[op.axis]
            case so.StepOp():
                self._step(op)
            case tir.ConstOp():
                value = op.value
                if isinstance(value, StringAttr):
                    raise error_at(op, "a string is not a number")
                self.values[op.result] = ex.const(value.value.data, tir.type_to_dtype(op.result.type))
            case _ if isinstance(op, so.SCALARS):
                parts = tuple(self._scalar(v) for v in op.operands)
                self.values[op.results[0]] = ex.apply(type(op), parts, tir.type_to_dtype(op.results[0].type))  # type: ignore[arg-type]
            case _:
                raise error_at(op, f"'{op.name}' is not a step of a schedule")

    def _known(self) -> str:
        return f"it has {', '.join(dict.fromkeys(name for name, _ in self.names.tensors))}"

    def _scalar(self, value: SSAValue) -> Expr:
        found = self.values[value]
        assert isinstance(found, Expr)
        return found

    def _axis(self, op: so.AxisRefOp) -> IterVar:
        tensor = self.values[op.tensor]
        assert isinstance(tensor, te.Tensor)
        current = self.schedule[tensor].op
        found: IterVar | Sequence[IterVar] = getattr(current, op.which.data, ())
        axes = (found,) if isinstance(found, IterVar) else found
        place = op.place.value.data
        if place >= len(axes):
            raise error_at(op, f"'{tensor.name}' has {len(axes)} axes in {op.which.data}; there is no number {place}")
        return axes[place]

    def _step(self, op: so.StepOp) -> None:
        signature, name = op.signature, op.primitive()
        positional: list[object] = []
        arguments: dict[str, object] = {}
        for parameter in signature.parameters:
            values = [self._handle(v, parameter.kind) for v in op.of(parameter.name)]
            literal = op.literals.data.get(parameter.name)
            if parameter.variadic:
                positional = values
            elif values:
                arguments[parameter.name] = values if len(values) > 1 else values[0]
            elif parameter.is_list:
                arguments[parameter.name] = []
            elif literal is not None and not isinstance(literal, NoneType):
                arguments[parameter.name] = attribute_value(literal)
        owner = self._handle(op.of("")[0], "stage") if signature.owner == "stage" else None
        assert owner is None or isinstance(owner, Stage)
        result = self.schedule.apply(name, owner, positional, arguments)
        results: tuple[object, ...] = ()
        if op.results:
            several = ex.items_of(result)
            results = (result,) if several is None else several
        if len(results) != len(op.results):
            raise MirError(error_at(op, f"{name} gives {len(results)} results here, not {len(op.results)}").diagnostics)
        self.values.update(zip(op.results, results, strict=True))

    def _handle(self, value: SSAValue, kind: str) -> object:
        found = self.values[value]
        if kind == "stage" and isinstance(found, te.Tensor):
            return self.schedule[found]
        return found
