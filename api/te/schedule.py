"""`te.create_schedule`, schedules and stages, and the steps of their lowering by TVM's names.

See `lowering.te.schedule.frontend`. `InferBound`, `ScheduleOps` and `SchedulePostProcToPrimFunc` are what `mirstack.lower` does, one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import StringAttr

from ...dialects.te.caller_location import at_caller, caller, located
from ...dialects.te.tensor import ComputeOp, Operation, ScanOp, Tensor
from ...dialects.tir.node import Const, IterVar, Range, Var
from ...dialects.tir.node.buffer import Buffer
from ...dialects.tir.node.expr import Expr, fail
from ...dialects.tir.node.stmt import Stmt
from ...lowering.te.schedule.frontend import Schedule, Stage, create_schedule
from ...lowering.te.schedule.operation_graph import inputs_of, post_order
from ...lowering.te.schedule.stage import Fuse, Rebase, ScheduleData, Singleton, Split
from ...passes.schedule.engine.errors import ScheduleError
from ...support.deep_stack import in_deep_stack
from ...support.public_names import public_names
from ..ir.container import Map
from ..ir.prim_func import CLASS, CLASS_NAME, PrimFunc

if TYPE_CHECKING:
    from ...lowering.te.emit.statements import Body

_SCHEDULED: WeakKeyDictionary[Stmt, tuple[ScheduleData, Body]] = WeakKeyDictionary()
"""What each result of `ScheduleOps` was made of."""


def InferBound(sch: Schedule) -> Map[IterVar, Range]:
    """Infers the range of every axis of a schedule, by the axis."""
    from ...lowering.te.schedule.infer_bound import infer_bound
    from ...lowering.te.schedule.normalize import copied

    with at_caller():
        return Map(in_deep_stack(lambda: infer_bound(copied(sch.data))).items())


def ScheduleOps(sch: Schedule, bounds: Mapping[IterVar, Range], debug_keep_trivial_loop: bool = False) -> Stmt:
    """Makes the loops of all stages: a statement on tensors, which are not buffers yet.

    `bounds` are what `InferBound` returned. Loops of one iteration stay loops in any case, as with `debug_keep_trivial_loop`.
    """
    from ...lowering.te.emit.producer_stmts import nodes_of
    from ...lowering.te.emit.schedule_ops import schedule_ops
    from ...lowering.te.schedule.message_passing import Domains
    from ...lowering.te.schedule.normalize import copied

    domains = Domains()
    for axis, domain in bounds.items():
        domains[axis] = domain

    def run() -> tuple[ScheduleData, Body]:
        work = copied(sch.data)
        return work, schedule_ops(work, domains)

    with at_caller():
        made = in_deep_stack(run)
        stmt = nodes_of(made[1])
    _SCHEDULED[stmt] = made
    return stmt


def SchedulePostProcToPrimFunc(
    arg_list: Sequence[Tensor | Var], body: Stmt, extern_buffer: Mapping[Tensor, Buffer] | None = None
) -> PrimFunc:
    """Makes a function of what `ScheduleOps` returned; its buffers are flat, as after `StorageFlatten`.

    Raises MirError for a statement of another origin, and for buffers given for tensors.
    """
    from ...lowering.te.emit.lower_schedule import function_of

    if extern_buffer:
        raise fail(
            "no buffers can be bound to tensors here", "a parameter gets a buffer of its own: leave extern_buffer out"
        )
    found = _SCHEDULED.get(body)
    if found is None:
        raise fail(
            "the statement is not a result of te.schedule.ScheduleOps",
            "pass what it returned; a changed statement is made a function by tir.PrimFunc(params, body)",
        )
    with at_caller():
        function = function_of(found[0], found[1], arg_list, "main")
    function.attributes[CLASS] = StringAttr(CLASS_NAME)
    return PrimFunc(function)


def AutoInlineElemWise(sch: Schedule) -> None:
    """Computes inline each stage that is read element by element, at the same indices."""
    _inline(sch, _is_elementwise)


def AutoInlineBroadcast(sch: Schedule) -> None:
    """Computes inline each stage whose elements are those of its inputs, some axes left out."""
    _inline(sch, _is_broadcast)


def AutoInlineInjective(sch: Schedule) -> None:
    """Computes inline each stage that is not a reduction."""
    _inline(sch, lambda op: not op.reduce_axis)


def _inline(sch: Schedule, is_meant: Callable[[ComputeOp], bool]) -> None:
    # What statements read must be in memory.
    operations = [stage.data.op for stage in sch.stages]
    stored = {
        id(tensor.op)
        for op in operations
        if op is not None and not isinstance(op, ComputeOp)
        for tensor in inputs_of(op)
    }
    for stage in sch.stages:
        op = stage.data.op
        if (
            isinstance(op, ComputeOp)
            and id(op) not in stored
            and not stage.is_output
            and stage.attach_type == 1
            and is_meant(op)
        ):
            stage.compute_inline()


def _is_elementwise(op: ComputeOp) -> bool:
    """Returns whether every read is at the operation's own indices."""
    return not op.reduce_axis and all(_positions(op, read.args) == list(range(len(op.axis))) for read in _reads(op))


def _is_broadcast(op: ComputeOp) -> bool:
    """Returns whether every read is at some of the operation's indices, in order, or at constants."""
    if op.reduce_axis:
        return False
    for read in _reads(op):
        positions = _positions(op, [index for index in read.args if not isinstance(index, Const)])
        places = [place for place in positions if place is not None]
        if len(places) != len(positions) or places != sorted(set(places)):
            return False
    return True


def _reads(op: ComputeOp) -> Iterable[Expr]:
    from ...dialects.te.tensor import Read, parts_of

    return (part for part in parts_of(op.body) if isinstance(part, Read))


def _positions(op: ComputeOp, indices: Iterable[Expr]) -> list[int | None]:
    """Returns which of the operation's axes each index is; None where it is none."""
    places = {id(axis): place for place, axis in enumerate(op.axis)}
    return [places.get(id(index)) for index in indices]


def CreateReadGraph(roots: Sequence[Operation]) -> Map[Operation, list[Tensor]]:
    """Returns the tensors that each operation reads, of all that the roots need."""
    return Map((op, list(inputs_of(op))) for op in post_order(roots))


def PostDFSOrder(roots: Sequence[Operation], read_graph: Mapping[Operation, Sequence[Tensor]]) -> list[Operation]:
    """Returns the operations that the roots need, inputs first."""
    return [op for op in post_order(roots) if op in read_graph]


def CreateAttachPath(sch: Schedule) -> Map[Operation, list[IterVar]]:
    """Returns the loops around each operation, innermost first."""
    from ...lowering.te.schedule.infer_bound import attach_path

    return Map((stage.data.op, attach_path(stage.data)) for stage in sch.stages if stage.data.op is not None)


def ScanGetBody(scan: ScanOp) -> list[Operation]:
    """Returns the operations of a scan's steps: those between its state and its updates."""
    from ...lowering.te.schedule.operation_graph import sub_graph

    return sub_graph(list(scan.update), [*scan.state, *scan.inputs], False)


__all__ = [
    "AutoInlineBroadcast", "AutoInlineElemWise", "AutoInlineInjective", "Buffer", "CreateAttachPath", "CreateReadGraph",
    "Fuse", "InferBound", "PostDFSOrder", "Rebase", "ScanGetBody", "Schedule", "ScheduleError", "ScheduleOps",
    "SchedulePostProcToPrimFunc", "Singleton", "Split", "Stage", "at_caller", "caller", "create_schedule", "located",
]  # fmt: skip

__dir__ = public_names(__name__)
