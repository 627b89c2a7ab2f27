"""Records the primitives that are applied to a schedule as ops (`dialects.te.schedule_ops`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ....dialects import tir
from ....dialects.schedule.signature_table import Signature
from ....dialects.te import schedule_ops as so
from ....dialects.te import tensor as te
from ....dialects.te.emit import attribute_of
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, IterVar, current_location, fail
from ....dialects.tir.node.emit_expr import hint, number_of, type_of
from ....support.diagnostics import MirError
from .stage import ScheduleData, StageData


class TensorNames:
    """Names the tensors of a program; those of the same name are distinguished by their position."""

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


class Recorder:
    """Writes each primitive as an op, after the ops that name its axes and tensors.

    An axis is named before its primitive is applied, which may change the operation's axes: `arguments`, then `applied`.
    """

    def __init__(self, schedule: ScheduleData):
        self.schedule = schedule
        self.block = Block()
        # Why the first primitive with such an argument has no op, and whether the one that is not applied yet has none.
        self._refused: MirError | VerifyException | None = None
        self._unwritten: MirError | VerifyException | None = None
        self._made: dict[int, SSAValue] = {}
        self._threads: dict[int, SSAValue] = {}
        self._tensors: list[tuple[so.TensorRefOp, te.Tensor]] = []
        # The ops of a primitive that is not applied yet. Objects whose id is a key must outlive it.
        self._pending: list[Operation] = []
        self._kept: list[object] = []

    def arguments(
        self, signature: Signature, owner: StageData | None, given: Mapping[str, Any]
    ) -> tuple[list[tuple[str, SSAValue]], dict[str, Attribute]]:
        """Returns operands by parameter and literals.

        Raises MirError for an axis that belongs to no stage of the schedule.
        """
        self._pending, self._unwritten = [], None
        values = [] if owner is None else [("", self._stage(owner))]
        literals: dict[str, Attribute] = {}
        for parameter in signature.parameters:
            value = given.get(parameter.name)
            if value is None:
                continue
            try:
                if parameter.element in so.HANDLES:
                    several: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
                    values += [(parameter.name, self._handle(v, owner)) for v in several]
                elif parameter.kind == "expr":
                    values.append((parameter.name, self._expr(ex.convert(value), owner, signature.name)))
                elif isinstance(value, Expr) or value != parameter.default:
                    literals[parameter.name] = _literal(value)
            except _NotWrittenError as error:
                self._unwritten = error.reason
        return values, literals

    def applied(
        self,
        signature: Signature,
        arguments: tuple[list[tuple[str, SSAValue]], dict[str, Attribute]],
        results: Sequence[Any],
    ) -> None:
        """Adds a primitive that was applied."""
        self._refused = self._refused or self._unwritten
        kinds = [
            so.AXIS if isinstance(r, IterVar) else so.TENSOR if isinstance(r, te.Tensor) else so.GROUP for r in results
        ]
        op = so.make_step(signature.name, *arguments, kinds)
        op.location = current_location()
        self.block.add_ops([*self._pending, op])
        for value, result in zip(op.results, results, strict=True):
            self._made[id(result)] = value
            self._kept.append(result)
            self.name(result, "".join(c if c.isalnum() else "_" for c in str(getattr(result, "name", ""))))

    def name(self, result: object, name: str) -> None:
        """Notes what the program calls a result."""
        made = self._made.get(id(result))
        if made is not None:
            made.name_hint = hint(name)

    def as_op(self, operations: Sequence[te.Operation], name: str | None, target: str | None) -> so.ScheduleOp:
        """Returns the `te.schedule`, once. Raises MirError for an argument that no op represents."""
        if self._refused is not None:
            raise self._refused
        names = TensorNames(operations)
        for op, tensor in self._tensors:
            if op.parent is not None:
                op.properties["which"] = IntegerAttr(names.of[id(tensor)][1], 64)
        outputs = [op.outputs[0].name for op in self.schedule.outputs] if target is None else None
        return so.ScheduleOp(Region(self.block), name, target, outputs)

    def _add(self, op: Operation) -> SSAValue:
        op.location = current_location()
        self._pending.append(op)
        return op.results[0]

    def _handle(self, value: Any, near: StageData | None) -> SSAValue:
        if isinstance(value, IterVar):
            return self._axis(value, near)
        return self._tensor(value) if isinstance(value, te.Tensor) else self._stage(value)

    def _stage(self, stage: StageData) -> SSAValue:
        """Returns the tensor that names a stage, or the group that a primitive made."""
        made = self._made.get(id(stage))
        if made is not None:
            return made
        assert stage.original is not None
        return self._tensor(stage.original.outputs[0])

    def _tensor(self, tensor: te.Tensor) -> SSAValue:
        """Returns the value that names a tensor: a primitive's result, or one of the program before rewrites."""
        made = self._made.get(id(tensor))
        if made is not None:
            return made
        stage = self.schedule.stage_of(tensor.op)
        if stage is not None and stage.original is not None and tensor.op is not stage.original:
            return self._tensor(stage.original.outputs[tensor.value_index])
        op = so.TensorRefOp(tensor.name)
        self._tensors.append((op, tensor))
        return self._add(op)

    def _axis(self, axis: IterVar, near: StageData | None) -> SSAValue:
        """Returns an axis that a primitive made, a thread, or an axis of an operation."""
        made = self._made.get(id(axis))
        if made is not None:
            return made
        if axis.thread_tag:
            return self._thread(axis)
        for stage in [near, *self.schedule.stages]:
            op = None if stage is None else stage.op
            axes: list[tuple[str, Sequence[IterVar]]] = []
            if isinstance(op, te.ScanOp):
                axes = [("scan_axis", [op.scan_axis])]
            elif isinstance(op, te.ComputeOp):
                axes = [("axis", op.axis), ("reduce_axis", op.reduce_axis)]
            for which, each in axes:
                place = next((i for i, one in enumerate(each) if one is axis), None)
                if stage is not None and place is not None:
                    return self._add(so.AxisRefOp(self._stage(stage), which, place))
        raise fail(f"axis '{axis.name}' belongs to no stage of this schedule", "take axes from s[B].op.axis")

    def _thread(self, axis: IterVar) -> SSAValue:
        found = self._threads.get(id(axis))
        if found is not None and (found.owner in self._pending or found.owner.parent is not None):  # pyright: ignore[reportAttributeAccessIssue]
            return found
        extent = -1
        if axis.dom is not None:
            if not isinstance(axis.extent, ex.Const) or not isinstance(axis.min, ex.Const) or axis.min.value:
                raise _NotWrittenError(
                    fail(
                        f"thread '{axis.name}' has a range that is not a number",
                        "give the number of threads: te.thread_axis((0, 32), …)",
                    )
                )
            extent = int(axis.extent)
        self._kept.append(axis)
        found = self._threads[id(axis)] = self._add(so.ThreadAxisOp(axis.thread_tag, axis.name, extent))
        return found

    def _expr(self, e: Expr, near: StageData | None, primitive: str) -> SSAValue:
        match e:
            case ex.Const():
                return self._add(tir.ConstOp(number_of(e)))
            case IterVar():
                return self._add(so.AxisValueOp(self._axis(e, near), type_of(e.dtype)))
            case ex.Var():
                return self._add(so.VarRefOp(e.name, type_of(e.dtype)))
            case ex.Apply():
                operands = [self._expr(a, near, primitive) for a in e.args]
                return self._add(e.op.create(operands=operands, result_types=[type_of(e.dtype)]))
            case _:
                raise _NotWrittenError(
                    fail(
                        f"an argument of {primitive} is not integer arithmetic",
                        "arguments are numbers, sizes and axes, and what +, -, *, // and comparisons make of them",
                    )
                )


def _literal(value: Any) -> Attribute:
    try:
        return attribute_of(value)
    except (MirError, VerifyException) as error:
        raise _NotWrittenError(error) from None


class _NotWrittenError(Exception):
    """An argument that may be applied, but that no op represents."""

    def __init__(self, reason: MirError | VerifyException):
        super().__init__()
        self.reason = reason
