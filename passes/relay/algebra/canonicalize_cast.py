"""`canonicalize-cast`: a widening cast that several elementwise operators use, once for each of them.

As TVM's CanonicalizeCast: the narrow tensor is then what kernels share, and each cast is fused with its user.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects.relay.operator import OperatorOp, OpPattern, is_operator
from ....dialects.tir.node import bits_of
from ....dialects.tir.types import type_to_dtype
from ....support.edit import insert_op_before
from ....support.walk import walk_ops
from ..functional.infer_type import ensure_types


@dataclass(frozen=True)
class CanonicalizeCast(ModulePass):
    """Give each elementwise or broadcasting user of a widening cast a cast of its own."""

    name = "canonicalize-cast"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        ensure_types(op)
        # Users first: a cast of a cast that is split has as many users.
        for cast in [inner for inner in walk_ops(op) if is_operator(inner, "cast")][::-1]:
            if isinstance(cast, OperatorOp) and _widens(cast):
                _split(cast)


def _widens(cast: OperatorOp) -> bool:
    source, target = cast.args[0].type, cast.result.type
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        return False
    return bits_of(type_to_dtype(source.element_type)) < bits_of(type_to_dtype(target.element_type))


def _split(cast: OperatorOp) -> None:
    users = list(dict.fromkeys(use.operation for use in cast.result.uses))
    ours = [user for user in users if _is_elementwise(user)]
    # The cast itself stays with the users that are not elementwise; if there are none, with the first elementwise one.
    for user in ours if len(ours) < len(users) else ours[1:]:
        own = cast.clone()
        own.location = cast.location
        insert_op_before(own, user)
        for index, operand in enumerate(user.operands):
            if operand is cast.result:
                user.operands[index] = own.results[0]


def _is_elementwise(user: Operation) -> bool:
    return isinstance(user, OperatorOp) and user.OPERATOR.pattern <= OpPattern.BROADCAST
