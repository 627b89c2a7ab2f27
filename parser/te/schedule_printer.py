"""The steps of a `te.schedule` as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, NoneType, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import te, tir
from ...dialects.te.ops import tensor_name
from ...dialects.te.schedule_ops import GROUP, SCALARS
from ...dialects.te.types import TensorType
from ...dialects.tir.types import I1
from ...support.diagnostics import error_at
from ...support.text import quoted
from .expr_printer import ExprPrinter

Line = Callable[[str], None]
Fresh = Callable[[str], str]


def tensor_keys(function: te.FuncOp) -> dict[SSAValue, tuple[str, int]]:
    """Returns the key of each tensor in a schedule: its name, and its number among tensors of that name.

    `A` → `("A", 0)`, a second `A` → `("A", 1)`.
    """
    found: dict[SSAValue, tuple[str, int]] = {}
    counts: dict[str, int] = {}
    for op in function.body.block.ops:
        for result in op.results:
            if isinstance(result.type, TensorType):
                name = tensor_name(result)
                if len(op.results) > 1:
                    name = f"{name.rpartition('_v')[0]}.v{result.index}"
                which = counts.get(name, 0)
                counts[name] = which + 1
                found[result] = (name, which)
    return found


class SchedulePrinter:
    """Prints the steps of one schedule.

    `names` are those of the function's values; the names of handles are added to them.
    """

    def __init__(self, function: te.FuncOp, names: dict[SSAValue, str], schedule: str, fresh: Fresh, line: Line):
        self.names = names
        self.exprs = ExprPrinter(names)
        self.schedule = schedule
        self.fresh = fresh
        self.line = line
        self.tensors: dict[tuple[str, int], str] = {
            key: names[value] for value, key in tensor_keys(function).items() if value in names
        }
        self.sizes = {
            op.var_name.data: names[op.result]
            for op in function.body.block.ops
            if isinstance(op, tir.VarOp) and op.result in names
        }

    def outputs(self, op: te.ScheduleOp) -> str:
        """The argument of `te.create_schedule`."""
        names = [] if op.outputs is None else [o.data for o in op.outputs.data]
        texts = [f"{self._tensor(op, (name, 0))}.op" for name in names]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    def _tensor(self, op: Operation, key: tuple[str, int]) -> str:
        found = self.tensors.get(key)
        if found is None:
            raise error_at(op, f"the schedule names a tensor '{key[0]}', which its function does not have")
        return found

    def print(self, schedule: te.ScheduleOp) -> None:
        """A line for each step."""
        for op in schedule.steps:
            match op:
                case te.TensorRefOp():
                    self.names[op.result] = self._tensor(op, (op.tensor.data, op.which.value.data))
                case te.VarRefOp():
                    found = self.sizes.get(op.var_name.data)
                    if found is None:
                        raise error_at(
                            op, f"the schedule names a size '{op.var_name.data}', which its function does not have"
                        )
                    self.names[op.result] = found
                case te.AxisRefOp():
                    place = "" if op.which.data == "scan_axis" else f"[{op.place.value.data}]"
                    self.names[op.result] = f"{self._stage(op.tensor)}.op.{op.which.data}{place}"
                case te.ThreadAxisOp():
                    self._thread(op)
                case te.AxisValueOp():
                    self.names[op.result] = self.names[op.axis]
                case te.StepOp():
                    self._step(op)
                case _ if isinstance(op, SCALARS):
                    pass
                case _:
                    raise error_at(op, f"'{op.name}' is not a step of a schedule")

    def _stage(self, value: SSAValue) -> str:
        text = self.names[value]
        return text if value.type == GROUP else f"{self.schedule}[{text}]"

    def _thread(self, op: te.ThreadAxisOp) -> None:
        tag, extent, name = op.tag.data, op.extent.value.data, op.var_name.data
        parts = [quoted(tag)] if extent < 0 else [f"(0, {extent})", quoted(tag)]
        if name != tag:
            parts.append(f"name={quoted(name)}")
        self.names[op.result] = self.fresh(op.result.name_hint or name)
        self.line(f"{self.names[op.result]} = te.thread_axis({', '.join(parts)})")

    def _step(self, op: te.StepOp) -> None:
        signature = op.signature
        parts: list[str] = []
        by_name = False
        for parameter in signature.parameters:
            values = [self._argument(v, parameter.kind) for v in op.of(parameter.name)]
            literal = op.literals.data.get(parameter.name)
            if parameter.variadic:
                parts += values
                continue
            if not values and (literal is None or isinstance(literal, NoneType)):
                by_name = True
                continue
            if parameter.is_list:
                is_one = op.primitive() == "cache_write" and len(values) == 1
                text = values[0] if is_one else f"[{', '.join(values)}]"
            else:
                text = values[0] if values else _literal(op, literal)
            named = by_name or (parameter.kind in ("expr", "bool") and parameter.default is None)
            parts.append(f"{parameter.name}={text}" if named else text)
        owner = self._stage(op.of("")[0]) if signature.owner == "stage" else self.schedule
        targets = [self.fresh(result.name_hint or _fallback(op.primitive())) for result in op.results]
        self.names.update(zip(op.results, targets, strict=True))
        call = f"{owner}.{op.primitive()}({', '.join(parts)})"
        self.line(f"{', '.join(targets)} = {call}" if targets else call)

    def _argument(self, value: SSAValue, kind: str) -> str:
        if kind == "stage":
            return self._stage(value)
        return self.exprs.text(value) if kind == "expr" else self.names[value]


def _fallback(primitive: str) -> str:
    return {"cache_read": "cache", "cache_write": "cache", "rfactor": "parts", "create_group": "g"}.get(primitive, "x")


def _literal(op: Operation, value: Attribute | None) -> str:
    match value:
        case IntegerAttr():
            return str(bool(value.value.data)) if value.type == I1 else str(value.value.data)
        case FloatAttr():
            return repr(value.value.data)
        case StringAttr():
            return quoted(value.data)
        case _:
            raise error_at(op, "an argument of a step cannot be written as text")


def print_schedule(op: te.ScheduleOp, function: te.FuncOp, names: Mapping[SSAValue, str], fresh: Fresh) -> str:
    """The text of an item `@te.schedule(f)`."""
    assert op.sym_name is not None and op.target is not None
    schedule = fresh("s")
    lines = [f"@te.schedule({op.target.root_reference.data})", f"def {op.sym_name.data}({schedule}):"]
    printer = SchedulePrinter(function, dict(names), schedule, fresh, lambda text: lines.append(f"    {text}"))
    printer.print(op)
    if len(lines) == 2:
        lines.append("    pass")
    return "\n".join(lines)
