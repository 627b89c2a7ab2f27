"""Edits that passes on Relay share: inlining of bodies, replacement and erasure of values."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects.relay import ir
from ....dialects.relay.leaves import place_leaves as place_leaves
from ....dialects.relay.operator import OperatorOp
from ....support.edit import erase_op, insert_op_before
from ....support.text import FreshNames
from ....support.walk import walk_ops


def functions_of(module: ModuleOp) -> dict[str, ir.FuncOp]:
    """The module's Relay functions by name."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, ir.FuncOp)}


def fresh_names(module: ModuleOp) -> FreshNames:
    """Names for new functions and types of a module."""
    names = (op.properties.get("sym_name") for op in module.ops)
    taken = [name.data for name in names if isinstance(name, StringAttr)]
    return FreshNames(
        [*taken, *(name for op in module.ops if isinstance(op, ir.TypeDataOp) for name in op.constructors())]
    )


def blocks_of(function: ir.FuncOp | ir.FnOp) -> Iterator[Block]:
    """Iterates over a function's blocks, an outer one before its inner ones.

    Includes bodies of local functions.
    """
    pending = [function.body.block]
    while pending:
        block = pending.pop()
        yield block
        for op in block.ops:
            pending += [inner for region in op.regions for inner in region.blocks]


def returned(block: Block) -> SSAValue:
    """The value that a body or a branch ends with."""
    end = block.last_op
    assert isinstance(end, ir.ReturnOp)
    return end.value


def copy_body(
    body: Block, arguments: Sequence[SSAValue], before: Operation, values: dict[SSAValue, SSAValue] | None = None
) -> SSAValue:
    """Copies a function's ops to before an op, its block arguments replaced; returns the copied result."""
    values = {} if values is None else values
    values.update(zip(body.args, arguments, strict=True))
    for op in body.ops:
        if isinstance(op, ir.ReturnOp):
            break
        copy = op.clone(values)
        insert_op_before(copy, before)
    result = returned(body)
    return values.get(result, result)


def move_body(body: Block, arguments: Sequence[SSAValue], before: Operation) -> SSAValue:
    """Moves a function's ops to before an op, its block arguments replaced; returns its result.

    The block is left empty.
    """
    for argument, value in zip(body.args, arguments, strict=True):
        argument.replace_all_uses_with(value)
    result = returned(body)
    for op in list(body.ops):
        op.detach()
        if isinstance(op, ir.ReturnOp):
            op.erase()
        else:
            insert_op_before(op, before)
    return result


def replace(op: Operation, value: SSAValue) -> None:
    """Replaces an op of one result by `value`, and erases it."""
    if value.name_hint is None:
        value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    erase_op(op)


ERASABLE = (OperatorOp, ir.ConstantOp, ir.TupleOp, ir.TupleGetItemOp)
"""What goes when nothing uses it any more, stateful operators excepted."""


def erase_unused(op: Operation, within: Block | None = None) -> None:
    """Erases an operator, a constant or a part of a tuple that nothing uses, and then what only it used.

    `within` is the only block that ops are erased in.
    """
    pending: list[Operation] = [op]
    while pending:
        current = pending.pop()
        if not isinstance(current, ERASABLE) or current.parent is None or current.result.first_use is not None:
            continue
        if isinstance(current, OperatorOp) and current.OPERATOR.stateful:
            continue
        owners = [value.owner for value in current.operands if isinstance(value.owner, Operation)]
        pending += [each for each in owners if within is None or each.parent is within]
        erase_op(current)


def free_values(region_owner: ir.FnOp) -> list[SSAValue]:
    """The values from outside that a local function uses, in order of first use."""
    inside: set[Block] = set()
    found: dict[SSAValue, None] = {}
    pending: list[Region] = [region_owner.body]
    while pending:
        block = pending.pop().block
        inside.add(block)
        for op in block.ops:
            for operand in op.operands:
                owner = operand.owner
                home = owner if isinstance(owner, Block) else owner.parent
                if home not in inside:
                    found[operand] = None
            pending += reversed(op.regions)
    return list(found)


def replace_values(root: Operation, values: Mapping[SSAValue, SSAValue], keep: Container[Operation] = ()) -> None:
    """Replaces values in the operands of every op inside `root`, except those of `keep`.

    Linear however many operands an op has.
    """
    for op in walk_ops(root):
        if any(operand in values for operand in op.operands) and op not in keep:
            op.operands = [values.get(operand, operand) for operand in op.operands]


def erase_lets(root: Operation, lets: Sequence[ir.LetOp]) -> None:
    """Takes the `let`s away, given in program order; their values are used directly."""
    values: dict[SSAValue, SSAValue] = {}
    for let in lets:
        values[let.result] = values.get(let.value, let.value)
    replace_values(root, values)
    for let in reversed(lets):
        erase_op(let)


def inner_first(root: Operation) -> list[Operation]:
    """Returns every op inside `root`, in program order, each after the ops of its regions."""
    order: list[Operation] = []
    pending: list[tuple[Operation, bool]] = [(root, False)]
    while pending:
        op, done = pending.pop()
        if done or not op.regions:
            order.append(op)
            continue
        pending.append((op, True))
        pending += [
            (inner, False) for r in reversed(op.regions) for b in reversed(r.blocks) for inner in reversed(b.ops)
        ]
    return order


def take_leaves_in(function: ir.FnOp) -> None:
    """Copies the constants and names of functions that a local function uses from outside into it."""
    values: dict[SSAValue, SSAValue] = {}
    body = function.body.block
    for value in free_values(function):
        if isinstance(value.owner, ir.LEAVES):
            copy = value.owner.clone()
            first = body.first_op
            assert first is not None
            insert_op_before(copy, first)
            values[value] = copy.results[0]
    if not values:
        return
    for op in inner_first(function):
        if any(operand in values for operand in op.operands):
            op.operands = [values.get(operand, operand) for operand in op.operands]
            place_leaves(op)
    for value in values:
        if value.first_use is None and isinstance(value.owner, Operation):
            erase_op(value.owner)
