"""Walks and rewrites the graph of operations: inputs, post-order, tensors replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....dialects.te import extern as ext
from ....dialects.te import tensor as te
from ....dialects.te.expr_mutator import map_children
from ....dialects.tir.node import Expr, location_scope

if TYPE_CHECKING:
    from .stage import StageData


def inputs_of(op: te.Operation) -> list[te.Tensor]:
    """Returns the tensors that computing the operation needs: of a scan its first steps and its updates."""
    return [*op.init, *op.update] if isinstance(op, te.ScanOp) else op.input_tensors


def post_order(outputs: Iterable[te.Operation]) -> list[te.Operation]:
    """Everything that the outputs need, inputs first."""
    found: list[te.Operation] = []
    state: dict[int, bool] = {}
    for root in outputs:
        pending: list[te.Operation] = [root]
        while pending:
            op = pending[-1]
            if state.get(id(op)):
                pending.pop()
            elif id(op) in state:
                pending.pop()
                state[id(op)] = True
                found.append(op)
            else:
                state[id(op)] = False
                pending += [t.op for t in reversed(inputs_of(op)) if id(t.op) not in state]
    return found


def sub_graph(outputs: Sequence[te.Tensor], inputs: Sequence[te.Tensor], include_inputs: bool) -> list[te.Operation]:
    """Returns the operations between inputs and outputs, outputs included."""
    ends = {id(t.op) for t in inputs}
    found: list[te.Operation] = []
    # Whether an operation depends on the inputs.
    reaches: dict[int, bool] = {}
    order = post_order([t.op for t in outputs])
    for op in order:
        if id(op) in ends:
            reaches[id(op)] = True
            if include_inputs:
                found.append(op)
            continue
        reaches[id(op)] = any(reaches[id(t.op)] for t in inputs_of(op)) or any(t.op is op for t in outputs)
        if reaches[id(op)]:
            found.append(op)
    return found


class Replacement:
    """A substitution of tensors, by the `id` of the tensor that is replaced."""

    def __init__(self, tensors: Mapping[te.Tensor, te.Tensor] | None = None):
        self._by_id: dict[int, te.Tensor] = {}
        self._kept: list[te.Tensor] = []
        for old, new in (tensors or {}).items():
            self.add(old, new)

    def add(self, old: te.Tensor, new: te.Tensor) -> None:
        """Reads of `old` become reads of `new`."""
        self._by_id[id(old)] = new
        self._kept.append(old)

    def get(self, tensor: te.Tensor) -> te.Tensor:
        """Returns the current replacement of the tensor: of one that was replaced twice the last."""
        while (new := self._by_id.get(id(tensor))) is not None:
            tensor = new
        return tensor

    def expr(self, e: Expr, memo: dict[int, Expr]) -> Expr:
        """Returns the expression with reads replaced."""
        found = memo.get(id(e))
        if found is None:
            found = map_children(e, lambda part: self.expr(part, memo))
            if isinstance(found, te.Read) and id(found.tensor) in self._by_id:
                found = te.Read(self.get(found.tensor), found.args)
            memo[id(e)] = found
        return found


def change_body(body: Sequence[Expr], change: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """Applies `change` to each value of a compute, also to those inside a reduction."""
    if not isinstance(body[0], te.Reduce):
        return tuple(change(v) for v in body)
    old = body[0].reduction
    sources = tuple(change(s) for s in old.sources)
    init = tuple(change(v) for v in old.init)
    condition = None if old.condition is None else change(old.condition)
    if (
        all(a is b for a, b in zip(sources, old.sources, strict=True))
        and all(a is b for a, b in zip(init, old.init, strict=True))
        and condition is old.condition
    ):
        return tuple(body)
    reduction = te.Reduction(old.reducer, sources, old.axes, condition, init)
    return tuple(te.Reduce.of(reduction, i) for i in range(len(body)))


def rebuilt(op: te.ComputeOp, body: tuple[Expr, ...]) -> te.ComputeOp:
    """Returns the compute with other values; its axes stay the same objects."""
    with location_scope(op.location):
        made = te.ComputeOp(op.name, op.axis, body, op.tag, op.attrs)
        made.set_outputs([(t.dims, t.dtype) for t in op.outputs])
    for new, old in zip(made.outputs, op.outputs, strict=True):
        new.hint = old.hint
    return made


def replace_inputs(op: te.Operation, replacement: Replacement) -> te.Operation:
    """Returns the operation reading other tensors; itself where nothing changes."""
    match op:
        case te.ComputeOp():
            memo: dict[int, Expr] = {}
            body = change_body(op.body, lambda e: replacement.expr(e, memo))
            return op if all(a is b for a, b in zip(body, op.body, strict=True)) else rebuilt(op, body)
        case te.ScanOp():
            groups = [tuple(map(replacement.get, g)) for g in (op.init, op.update, op.state, op.inputs)]
            if all(a is b for g, old in zip(groups, (op.init, op.update, op.state, op.inputs), strict=True) for a, b in zip(g, old, strict=True)):  # fmt: skip
                return op
            with location_scope(op.location):
                scan = te.ScanOp(op.name, groups[0], groups[1], groups[2], groups[3], op.tag, op.attrs)
                scan.set_outputs([(t.dims, t.dtype) for t in op.outputs])
            if "schedule_axes" in op.__dict__:
                scan.__dict__["schedule_axes"] = op.__dict__["schedule_axes"]
            return scan
        case ext.ExternOp():
            inputs = tuple(map(replacement.get, op.inputs))
            if all(a is b for a, b in zip(inputs, op.inputs, strict=True)):
                return op
            with location_scope(op.location):
                made = ext.ExternOp(op.name, inputs, op.in_buffers, op.out_buffers, op.tag, op.attrs)
                made.body = op.body
                made.set_outputs([(t.dims, t.dtype) for t in op.outputs])
            return made
        case _:
            return op


def replace_data_flow(stages: Sequence[StageData], replacement: Replacement) -> None:
    """Replaces inputs of every stage; a stage that changes has its own outputs replaced likewise."""
    for stage in stages:
        if stage.op is None:
            continue
        new = replace_inputs(stage.op, replacement)
        if new is not stage.op:
            for before, after in zip(stage.op.outputs, new.outputs, strict=True):
                replacement.add(before, after)
            assert stage.schedule is not None
            stage.schedule.register(new, stage)
            stage.op = new
