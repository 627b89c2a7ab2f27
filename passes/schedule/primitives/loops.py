"""What edits of loops share: checks that a loop is plain, constants beside a loop, new loops around a body."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from xdsl.ir import Operation, SSAValue

from ....dialects import tir
from ...tir.rewriting import builder_before, move_to_end
from ..errors import describe, refuse
from ..structure import const_int


def require_loop(op: Operation, primitive: str) -> tir.ForOp:
    """The argument as a loop; raises when it is none."""
    if not isinstance(op, tir.ForOp):
        raise refuse(op, f"{primitive}: {describe(op)} is no loop", "give a loop that get_loops returned")
    return op


def require_block(op: Operation, primitive: str) -> tir.BlockOp:
    """The argument as a block; raises when it is none."""
    if not isinstance(op, tir.BlockOp):
        raise refuse(op, f"{primitive}: {describe(op)} is no block", "give a block that get_block returned")
    return op


def require_plain(loop: tir.ForOp, primitive: str) -> None:
    """Raises for a loop that is bound to a thread, annotated, or does not start at 0."""
    name = loop.var_name.data
    if loop.kind.data == "thread_binding" and loop.thread is not None:
        raise refuse(
            loop,
            f"{primitive}: loop '{name}' is bound to {loop.thread.data}, and a bound loop keeps its shape",
            f"{primitive} before bind",
        )
    if loop.annotations.data:
        keys = ", ".join(loop.annotations.data)
        raise refuse(loop, f"{primitive}: loop '{name}' has annotations ({keys})", "unannotate it first")
    if const_int(loop.min) != 0:
        raise refuse(loop, f"{primitive}: loop '{name}' does not start at 0")


def const_before(op: Operation, value: int, like: SSAValue) -> SSAValue:
    """A constant of the dtype of `like`, before `op`."""
    return builder_before(op).insert(tir.ConstOp.int(value, like.type)).result


def nest(loops: list[tir.ForOp], anchor: Operation, body: Iterable[Operation]) -> None:
    """Puts loops, outermost first, one into the other before `anchor`, and `body` into the innermost."""
    ops = list(body)
    block = anchor.parent
    assert block is not None
    block.insert_op_before(loops[0], anchor)
    for outer, inner in pairwise(loops):
        outer.body.block.add_op(inner)
    move_to_end(ops, loops[-1].body.block)


def name_value(loop: tir.ForOp) -> None:
    """Has the loop's variable bear its name in printed IR."""
    name = loop.var_name.data
    loop.loop_var.name_hint = name if SSAValue.is_valid_name(name) else None
