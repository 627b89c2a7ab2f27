"""Between a schedule's trace and the ops of `schedule_ops`: `trace_to_op` writes steps down, `apply_schedule` carries them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import NoneType, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import tir
from ....dialects.te import expr as ex
from ....dialects.te import schedule_ops as so
from ....dialects.te import tensor as te
from ....dialects.te.axes import Axis, Range, thread_axis
from ....dialects.te.emit import attribute_of, hint, number_of, type_of
from ....dialects.te.expr import Expr, IterVar
from ....dialects.te.lift import attribute_value
from ....dialects.te.schedule_ops import AXIS, GROUP, TENSOR
from ....support.diagnostics import MirError, error_at
from . import trace as tr
from .frontend import Schedule, create_schedule


class Names:
    """The names by which a schedule refers to the tensors of a program, whose operations are given in order."""

    def __init__(self, operations: Sequence[te.Operation]):
        self.of: dict[int, tuple[str, int]] = {}
        self.tensors: dict[tuple[str, int], te.Tensor] = {}
        counts: dict[str, int] = {}
        for op in operations:
            for tensor in op.outputs:
                which = counts.get(tensor.name, 0)
                counts[tensor.name] = which + 1
                self.of[id(tensor)] = (tensor.name, which)
                self.tensors[tensor.name, which] = tensor


def trace_to_op(
    schedule: Schedule, operations: Sequence[te.Operation], name: str | None = None, target: str | None = None
) -> so.ScheduleOp:
    """The `te.schedule` of what was done to a schedule of the program that `operations` are, in the order of its text."""
    return _Writer(schedule, Names(operations)).write(name, target)


class _Writer:
    def __init__(self, schedule: Schedule, names: Names):
        self.schedule = schedule
        self.names = names
        self.block = Block()
        self.made: list[list[SSAValue]] = []
        self.threads: dict[int, SSAValue] = {}
        self.scalars: dict[int, SSAValue] = {}

    def write(self, name: str | None, target: str | None) -> so.ScheduleOp:
        outputs: list[str] | None = None
        if target is None:
            outputs = [op.outputs[0].name for op in self.schedule.outputs]
        for step in self.schedule.trace.steps:
            self.made.append(self._step(step))
        return so.ScheduleOp(Region(self.block), name, target, outputs)

    def _add(self, op: Operation, step: tr.Step) -> SSAValue:
        op.location = step.location
        self.block.add_op(op)
        return op.results[0]

    def _step(self, step: tr.Step) -> list[SSAValue]:
        signature = tr_signature(step.name)
        arguments: list[tuple[str, SSAValue]] = []
        literals: dict[str, Attribute] = {}
        if step.owner is not None:
            arguments.append(("", self._ref(step.owner, step)))
        for parameter in signature.parameters:
            value = step.arguments.get(parameter.name)
            if value is None:
                continue
            if parameter.kind == "expr" or isinstance(value, Expr):
                if parameter.kind != "expr":
                    literals[parameter.name] = attribute_of(value)
                    continue
                assert isinstance(value, (Expr, int, float))
                arguments.append((parameter.name, self._expr(ex.convert(value), step)))
            elif isinstance(value, list):
                arguments += [(parameter.name, self._ref(v, step)) for v in value]
            elif parameter.is_operand:
                assert isinstance(value, (tr.Made, tr.AxisOf, tr.Given, tr.Thread))
                arguments.append((parameter.name, self._ref(value, step)))
            elif value != parameter.default:
                literals[parameter.name] = attribute_of(value)
        kinds = [TENSOR] * step.results if signature.results[:1] in (("tensors",), ("tensor",)) else []
        kinds = kinds or ([GROUP] if signature.results == ("stage",) else [AXIS] * step.results)
        op = so.make_step(step.name, arguments, literals, kinds)
        op.location = step.location
        self.block.add_op(op)
        for place, result in enumerate(op.results):
            result.name_hint = hint(step.names.get(place, ""))
        return list(op.results)

    def _ref(self, ref: tr.Ref, step: tr.Step) -> SSAValue:
        match ref:
            case tr.Made():
                return self.made[ref.step][ref.place]
            case tr.Given():
                name, which = self.names.of[id(ref.tensor)]
                return self._add(so.TensorRefOp(name, which), step)
            case tr.AxisOf():
                return self._add(so.AxisRefOp(self._ref(ref.tensor, step), ref.which, ref.place), step)
            case tr.Thread():
                found = self.threads.get(id(ref.axis))
                if found is None:
                    axis = ref.axis
                    extent = -1
                    if axis.has_domain:
                        if (
                            not isinstance(axis.extent, ex.Const)
                            or not isinstance(axis.min, ex.Const)
                            or axis.min.value
                        ):
                            raise error_at(
                                step.location,
                                f"thread '{axis.name}' has a range that is no number",
                                "give the number of threads: te.thread_axis((0, 32), …)",
                            )
                        extent = int(axis.extent)
                    found = self.threads[id(axis)] = self._add(
                        so.ThreadAxisOp(axis.thread_tag, axis.name, extent), step
                    )
                return found

    def _expr(self, e: Expr, step: tr.Step) -> SSAValue:
        match e:
            case ex.Const():
                return self._add(tir.ConstOp(number_of(e)), step)
            case IterVar():
                return self._add(so.AxisValueOp(self._ref(step.axes[id(e)], step), type_of(e.dtype)), step)
            case ex.Var():
                return self._add(so.VarRefOp(e.name, type_of(e.dtype)), step)
            case ex.Apply():
                operands = [self._expr(a, step) for a in e.args]
                return self._add(e.op.create(operands=operands, result_types=[type_of(e.dtype)]), step)
            case _:
                raise error_at(
                    step.location,
                    f"an argument of {step.name} is no integer arithmetic",
                    "arguments are numbers, sizes and axes, and what +, -, *, // and comparisons make of them",
                )


def tr_signature(name: str) -> so.Signature:
    """The table's entry of a primitive."""
    return so.signatures()[name]


def apply_schedule(
    op: so.ScheduleOp,
    operations: Sequence[te.Operation],
    outputs: Sequence[te.Operation],
    sizes: Mapping[str, ex.Var],
) -> Schedule:
    """The schedule that the op says, of the program that `operations` are; errors stand at the step at fault."""
    names = Names(operations)
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
    def __init__(self, schedule: Schedule, names: Names, sizes: Mapping[str, ex.Var]):
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
                    domain = Range(ex.Const(0, "int32"), ex.Const(extent, "int32"))
                    axis = Axis(axis.name, domain, axis.iter_type, thread_tag=axis.thread_tag)
                self.values[op.result] = axis
            case so.AxisValueOp():
                self.values[op.result] = self.values[op.axis]
            case so.StepOp():
                self._step(op)
            case tir.ConstOp():
                value = op.value
                if isinstance(value, StringAttr):
                    raise error_at(op, "a string is no number")
                self.values[op.result] = ex.const(value.value.data, tir.type_to_dtype(op.result.type))
            case _ if isinstance(op, so.SCALARS):
                parts = tuple(self._scalar(v) for v in op.operands)
                kind = ex.Equality if isinstance(op, tir.EqOp | tir.NeOp) else ex.Apply
                self.values[op.results[0]] = kind(type(op), parts, tir.type_to_dtype(op.results[0].type))  # type: ignore[arg-type]
            case _:
                raise error_at(op, f"'{op.name}' is no step of a schedule")

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
        arguments: dict[str, object] = {}
        for parameter in signature.parameters:
            values = [self._handle(v, parameter.kind) for v in op.of(parameter.name)]
            literal = op.literals.data.get(parameter.name)
            if parameter.takes_all:
                continue
            if parameter.is_list:
                arguments[parameter.name] = values
            elif values:
                arguments[parameter.name] = values[0]
            elif literal is not None and not isinstance(literal, NoneType):
                arguments[parameter.name] = attribute_value(literal)
        positional: list[object] = []
        if signature.parameters and signature.parameters[0].takes_all:
            positional = [self._handle(v, "axis") for v in op.of(signature.parameters[0].name)]
        owner: object = self.schedule
        if signature.owner == "stage":
            owner = self._handle(op.of("")[0], "stage")
        if name == "cache_write":
            arguments["tensor"] = arguments["tensor"] if len(op.of("tensor")) > 1 else self.values[op.of("tensor")[0]]
        result = getattr(owner, name)(*positional, **arguments)
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
