"""`te.scan` as a serial loop: the first steps are copied from `init`, each further step updates one row of the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, BlockArgument, SSAValue

from ...dialects import te, tir
from ...support.diagnostics import error_at
from ...support.walk import walk_ops

if TYPE_CHECKING:
    from .create_prim_func import Lowering


def lower_scan(lowering: Lowering, scan: te.ScanOp) -> None:
    """The loops of a scan, at the end of the function. Raises MirError where a step reads a state that is not known yet."""
    from .create_prim_func import steps_of

    steps = steps_of(scan)
    check_steps(scan, steps)
    for index, init in enumerate(scan.init):
        buffer = lowering.buffers[scan.results[index]]
        lowering.buffers[scan.state[index]] = buffer
        lowering.buffers[scan.update[index]] = buffer
        _copy_init(lowering, scan, init, buffer)
    begin = lowering.extent(te.extents_of(scan.init[0])[0])
    end = lowering.extent(te.extents_of(scan.state[0])[0])
    loop = tir.ForOp("scan_idx", begin, lowering.add(tir.SubOp(end, begin), lowering.block))
    loop.location = scan.location
    lowering.block.add_op(loop)
    loop.loop_var.name_hint = "scan_idx"
    for step in steps:
        lowering.compute(step, loop.body.block, loop.loop_var)


def _copy_init(lowering: Lowering, scan: te.ScanOp, init: SSAValue, buffer: SSAValue) -> None:
    from .create_prim_func import unique
    from .regions import Accesses

    block: Block = lowering.block
    bindings: list[SSAValue] = []
    extents = [lowering.extent(e) for e in te.extents_of(init)]
    mins = [lowering.constant(0, e.type) for e in extents]
    for number, (low, extent) in enumerate(zip(mins, extents, strict=True)):
        loop = tir.ForOp(f"i{number}", low, extent)
        loop.location = scan.location
        block.add_op(loop)
        block = loop.body.block
        bindings.append(loop.loop_var)
    names = [f"v_i{number}" for number in range(len(extents))]
    name = unique(f"{scan.scan_name.data}_init", lowering.block_names)
    made = tir.BlockOp(name, names, ["S"] * len(extents), mins, extents, bindings)
    made.location = scan.location
    block.add_op(made)
    axes = list(made.iter_vars)
    source = lowering.buffers[init]
    load = tir.LoadOp(source, axes)
    store = tir.StoreOp(load, buffer, axes)
    load.location = store.location = scan.location
    made.body.block.add_ops([load, store])
    reads, writes = Accesses(), Accesses()
    reads.add(source, axes)
    writes.add(buffer, axes)
    lowering.finish(made.body.block, reads, writes, dict(zip(axes, zip(mins, extents, strict=True), strict=True)))


def check_steps(scan: te.ScanOp, steps: list[te.ComputeOp]) -> None:
    """A step reads states before it, and what earlier computes of the same step gave; nothing else reads the steps."""
    name = scan.scan_name.data
    firsts = {te.extents_of(init)[0] for init in scan.init}
    if len(firsts) != 1:
        raise error_at(scan, f"the inits of scan '{name}' have different numbers of first steps")
    states, inside = set(scan.state), {r for step in steps for r in step.results}
    for step in steps:
        if step.reduction is None and not step.axes:
            raise error_at(
                step,
                f"'{step.compute_name.data}' is computed at each step of scan '{name}', so it needs a first dimension to step along",
            )
        for op in walk_ops(step):
            if not isinstance(op, te.ReadOp):
                continue
            first = op.indices[0] if op.indices else None
            if op.tensor in states and not _is_before(first, step):
                raise error_at(
                    op,
                    f"step {step.iter_names.data[0].data} of scan '{name}' may only read the state '{te.tensor_name(op.tensor)}' at earlier steps",
                    f"write {te.tensor_name(op.tensor)}[{step.iter_names.data[0].data} - 1, …]",
                )
            if op.tensor in inside and first is not step.axes[0]:
                raise error_at(
                    op,
                    f"'{te.tensor_name(op.tensor)}' is computed step by step in scan '{name}', so it is read at the step at hand",
                    f"write {te.tensor_name(op.tensor)}[{step.iter_names.data[0].data}, …]",
                )
    users = {use.operation for step in steps for r in step.results for use in r.uses}
    for user in users:
        outer = user
        while outer.parent_op() is not None and not isinstance(outer.parent_op(), te.FuncOp):
            outer = outer.parent_op() or outer
        if outer is not scan and outer not in steps:
            raise error_at(
                user,
                f"a tensor that scan '{name}' computes step by step is used outside of it",
                "use the result of the scan",
            )


def _is_before(index: SSAValue | None, step: te.ComputeOp) -> bool:
    """Whether an index is the step's first axis less a positive number."""
    if index is None or isinstance(index, BlockArgument) or not isinstance(index.owner, tir.SubOp | tir.AddOp):
        return False
    amount = index.owner.rhs.owner
    if (
        index.owner.lhs is not step.axes[0]
        or not isinstance(amount, tir.ConstOp)
        or not isinstance(amount.value, IntegerAttr)
    ):
        return False
    number = amount.value.value.data
    return number > 0 if isinstance(index.owner, tir.SubOp) else number < 0
