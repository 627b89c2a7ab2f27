"""`defuse-ops`: the inverse of `fuse-ops`: each call of a Primitive function becomes the operators that it holds."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.relay import ir
from ...support.walk import walk_ops
from .attributes import is_primitive
from .rewriting import copy_body, move_body, place_leaves, replace


@dataclass(frozen=True)
class DefuseOps(ModulePass):
    """Put the operators of Primitive functions back in the place of the calls."""

    name = "defuse-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for call in [inner for inner in walk_ops(op) if isinstance(inner, ir.CallOp)]:
            function = call.callee.owner
            if isinstance(function, ir.FnOp) and is_primitive(function) and function.self_name is None:
                _defuse(call, function)


def _defuse(call: ir.CallOp, function: ir.FnOp) -> None:
    body = function.body.block
    if function.result.has_one_use():
        value = move_body(body, call.arguments, call)
    else:
        value = copy_body(body, call.arguments, call)
    user = call.result.get_user_of_unique_use()
    replace(call, value)
    if user is not None:
        place_leaves(user)
    if function.result.first_use is None:
        function.detach()
        function.erase(safe_erase=False)
