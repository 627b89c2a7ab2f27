"""Shared edits of loops: checks for plain loops, constants beside a loop, new loops around a body."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from xdsl.builder import Builder
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from .....dialects import tir
from .....dialects.arith import Analyzer, Expr
from .....dialects.arith.expr import Atom, substitute
from .....dialects.tir.buffer import NO_ATTRS
from .....support.edit import add_op, builder_at_end, builder_before, insert_op_before, move_to_end
from .....support.operands import operands_of
from .....support.walk import all_ops
from ...analysis.block_kind import why_neither, why_not_complete
from ...analysis.structure import child_under, const_int, is_inside, scope_of
from ...engine.errors import describe, refuse
from .clone_expression import clone_value


def require_loop(op: Operation, primitive: str) -> tir.ForOp:
    """Returns the argument as a loop; raises when it is none."""
    if not isinstance(op, tir.ForOp):
        raise refuse(op, f"{primitive}: {describe(op)} is not a loop", "give a loop that get_loops returned")
    return op


def require_block(op: Operation, primitive: str) -> tir.BlockOp:
    """Returns the argument as a block; raises when it is none."""
    if not isinstance(op, tir.BlockOp):
        raise refuse(op, f"{primitive}: {describe(op)} is not a block", "give a block that get_block returned")
    return op


def require_complete(block: tir.BlockOp, primitive: str, note: str) -> None:
    """Raises unless a block is complete."""
    reason = why_not_complete(block)
    if reason is not None:
        raise refuse(block, f"{primitive}: block '{block.block_name.data}' is not a complete block: {reason}", note)


def require_complete_or_reduction(
    block: tir.BlockOp, primitive: str, loop: tir.ForOp | None = None, started: bool = True
) -> None:
    """Raises unless a block is complete or a reduction block, inside of `loop` if there is one."""
    reasons = why_neither(block, loop, started)
    if reasons is not None:
        where = "" if loop is None else f" in loop '{loop.var_name.data}'"
        raise refuse(
            block,
            f"{primitive}: block '{block.block_name.data}'{where} is neither a complete nor a reduction block",
            f"not complete: {reasons[0]}",
            f"no reduction: {reasons[1]}",
        )


def require_plain(loop: tir.ForOp, primitive: str, from_zero: bool = True) -> None:
    """Raises for a loop that is bound to a thread, annotated, or (`from_zero`) does not start at 0."""
    name = loop.var_name.data
    if loop.kind.data == "thread_binding" and loop.thread is not None:
        raise refuse(
            loop,
            f"{primitive}: loop '{name}' is bound to {loop.thread.data}, and a bound loop keeps its shape",
            f"{primitive} before bind",
        )
    if loop.annotations.data:
        keys = ", ".join(loop.annotations.data)
        raise refuse(
            loop,
            f"{primitive}: loop '{name}' has annotations ({keys})",
            f"unannotate it first, or {primitive} before annotate",
        )
    if from_zero and const_int(loop.min) != 0:
        raise refuse(
            loop,
            f"{primitive}: loop '{name}' does not start at 0",
            "run it from 0 and add the start where its variable is used",
        )


def require_countable(where: Operation, primitive: str, what: str, number: int | None, type: Attribute) -> None:
    """Raises where a count exceeds the dtype that holds it; None is an unknown count."""
    assert isinstance(type, tir.types.IntegerType)
    most = (1 << (type.width.data - 1)) - 1
    if number is not None and number > most:
        raise refuse(
            where,
            f"{primitive}: {what} would be {number}, more than {most}",
            f"it is counted in {tir.type_to_dtype(type)}",
        )


def const_before(op: Operation, value: int, like: SSAValue) -> SSAValue:
    """Returns a constant of the dtype of `like`, before `op`."""
    return builder_before(op).insert(tir.ConstOp.int(value, like.type)).result


def nest(loops: list[tir.ForOp], anchor: Operation, body: Iterable[Operation]) -> None:
    """Puts loops, outermost first, one into the other before `anchor`, and `body` into the innermost."""
    ops = list(body)
    insert_op_before(loops[0], anchor)
    for outer, inner in pairwise(loops):
        add_op(outer.body.block, inner)
    move_to_end(ops, loops[-1].body.block)


def copy_loops(
    loops: Iterable[tir.ForOp],
    builder: Builder,
    analyzer: Analyzer,
    location: LocationAttr,
    *,
    suffix: str = "",
    is_init: bool = False,
) -> tuple[dict[Atom, Expr], Builder]:
    """Copies loops, outermost first, one into the other; copies for an init have no annotations.

    Returns the loops' variables in terms of the copies', and a builder in the innermost copy.
    """
    renamed: dict[Atom, Expr] = {}
    for old in loops:
        low, extent = (
            analyzer.to_ssa(substitute(analyzer.expr(e), renamed), builder, old.loop_var.type)
            for e in (old.min, old.extent)
        )
        copy = tir.ForOp(
            f"{old.var_name.data}{suffix}",
            low,
            extent,
            kind=old.kind.data,
            thread=None if old.thread is None else old.thread.data,
            annotations=NO_ATTRS if is_init else old.annotations,
        )
        name_value(copy)
        builder.insert(copy)
        if not is_init:
            copy.location = old.location
        renamed[analyzer.variable(old.loop_var)] = analyzer.expr(copy.loop_var)
        builder = builder_at_end(copy.body.block, location)
    return renamed, builder


def name_value(loop: tir.ForOp) -> None:
    """Names the loop variable's value after the loop in printed IR."""
    name = loop.var_name.data
    loop.loop_var.name_hint = name if SSAValue.is_valid_name(name) else None


def require_own_values(block: tir.BlockOp, primitive: str) -> None:
    """Raises when a block's body uses a loop variable without an axis of it: it cannot leave that loop."""
    for op in all_ops(block):
        if op is block:
            continue
        for value in _leaves(operands_of(op), block):
            loop = value.owner.parent_op() if type(value) is BlockArgument else None
            if type(loop) is tir.ForOp and not is_inside(loop, block) and scope_of(loop) is scope_of(block):
                raise refuse(
                    op,
                    f"{primitive}: block '{block.block_name.data}' uses loop '{loop.var_name.data}' other than through an axis",
                    "bind an axis of the block to the loop",
                )


def _leaves(values: Iterable[SSAValue], block: tir.BlockOp) -> Iterable[SSAValue]:
    """Yields the leaves of values that are computed outside of a block."""
    pending, seen = list(values), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if type(value) is not OpResult:
            yield value
        elif not is_inside(value.op, block):
            pending += operands_of(value.op)


def carry_values(block: tir.BlockOp) -> None:
    """Clones into a block the values that its body uses from the surrounding loops, which it will leave."""
    scope = scope_of(block)
    nest = child_under(scope, block)
    made: dict[SSAValue, SSAValue] = {}
    first = block.body.block.first_op
    if nest is block or first is None:
        return
    builder = builder_before(first)
    for op in all_ops(block):
        if op is block:
            continue
        for index, operand in enumerate(operands_of(op)):
            if type(operand) is OpResult and not is_inside(operand.op, block) and is_inside(operand.op, nest):
                if operand not in made:
                    made[operand] = clone_value(operand, made, builder, nest)
                op.operands[index] = made[operand]
