"""What depends on what in a TE function: the ops that its parameters need, and the steps of a scan."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...support.walk import walk_ops
from .. import tir
from .compute import ComputeOp, ScanOp, extents_of
from .ops import FuncOp, ReadOp, tensor_name


def needed_ops(function: FuncOp) -> set[Operation]:
    """The ops at the function's level that its parameters depend on."""
    block = function.body.block
    found: set[Operation] = set()
    pending = [v.owner for v in function.params]
    while pending:
        op = pending.pop()
        if not isinstance(op, Operation) or op in found:
            continue
        found.add(op)
        pending += [v.owner for v in _inputs(op) if isinstance(v.owner, Operation) and v.owner.parent is block]
    return found


def _inputs(op: Operation) -> Iterable[SSAValue]:
    for inner in walk_ops(op):
        yield from inner.operands


def steps_of(scan: ScanOp) -> list[ComputeOp]:
    """The computes that a scan carries out step by step, in order: its updates, and what they need of the state."""
    ordered: list[ComputeOp] = []
    depends: dict[Operation, bool] = {}
    states, updates = set(scan.state), {u.owner for u in scan.update}
    pending: list[Operation] = [u.owner for u in reversed(scan.update) if isinstance(u.owner, Operation)]
    while pending:
        op = pending[-1]
        if op in depends:
            pending.pop()
            continue
        read = (
            [v for v in _inputs(op) if isinstance(v.owner, ComputeOp) or v in states]
            if isinstance(op, ComputeOp)
            else []
        )
        missing = [v.owner for v in read if v not in states and v.owner not in depends]
        if missing:
            pending += [owner for owner in missing if isinstance(owner, Operation)]
            continue
        pending.pop()
        depends[op] = op in updates or any(
            v in states or (isinstance(v.owner, Operation) and depends[v.owner]) for v in read
        )
        if depends[op] and isinstance(op, ComputeOp):
            ordered.append(op)
    return ordered


def verify_scan(scan: ScanOp) -> None:
    """A step reads states before it, and what earlier computes of the same step gave; nothing else reads the steps."""
    name = scan.scan_name.data
    if len({extents_of(init)[0] for init in scan.init}) != 1:
        raise VerifyException(f"the inits of scan '{name}' have different numbers of first steps")
    steps = steps_of(scan)
    states, inside = set(scan.state), {r for step in steps for r in step.results}
    for step in steps:
        if not step.axes:
            raise VerifyException(
                f"'{step.compute_name.data}' is computed at each step of scan '{name}', so it needs a first dimension to step along"
            )
        axis = step.iter_names.data[0].data
        for op in walk_ops(step):
            if not isinstance(op, ReadOp) or not op.indices:
                continue
            if op.tensor in states and not _is_before(op.indices[0], step):
                raise VerifyException(
                    f"step {axis} of scan '{name}' may read its state '{tensor_name(op.tensor)}' only at earlier steps, as in {tensor_name(op.tensor)}[{axis} - 1, …]"
                )
            if op.tensor in inside and op.indices[0] is not step.axes[0]:
                raise VerifyException(
                    f"'{tensor_name(op.tensor)}' is computed step by step in scan '{name}', so it is read at the step at hand: {tensor_name(op.tensor)}[{axis}, …]"
                )
    for step in steps:
        for result in step.results:
            for use in result.uses:
                outer = use.operation
                while (parent := outer.parent_op()) is not None and not isinstance(parent, FuncOp):
                    outer = parent
                if outer is not scan and outer not in steps:
                    raise VerifyException(
                        f"'{tensor_name(result)}' is computed step by step in scan '{name}', so it cannot be used outside of it: use the scan's result"
                    )


def _is_before(index: SSAValue, step: ComputeOp) -> bool:
    """Whether an index is the step's first axis less a positive number."""
    if isinstance(index, BlockArgument) or not isinstance(index.owner, tir.SubOp | tir.AddOp):
        return False
    amount = index.owner.rhs.owner
    if index.owner.lhs is not step.axes[0] or not isinstance(amount, tir.ConstOp):
        return False
    if not isinstance(amount.value, IntegerAttr):
        return False
    number = amount.value.value.data
    return number > 0 if isinstance(index.owner, tir.SubOp) else number < 0
