"""`defuse-ops`: replaces each call of a Primitive function by its operators.

The inverse of `fuse-ops`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....support.walk import walk_ops
from ..common.function_attributes import is_primitive
from ..common.rewriting import copy_body, move_body, place_leaves, replace_values


@dataclass(frozen=True)
class DefuseOps(ModulePass):
    """Put the operators of Primitive functions back in the place of the calls."""

    name = "defuse-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        values: dict[SSAValue, SSAValue] = {}
        calls = [inner for inner in walk_ops(op) if isinstance(inner, ir.CallOp) and _kernel(inner) is not None]
        for call in calls:
            value = _defuse(call)
            values[call.result] = values.get(value, value)
        users = {use.operation for call in calls for use in call.result.uses}
        replace_values(op, values)
        for call in reversed(calls):
            function = _kernel(call)
            _erase(call)
            if function is not None and function.result.first_use is None:
                _erase(function)
        for user in users:
            place_leaves(user)


def _kernel(call: ir.CallOp) -> ir.FnOp | None:
    """The kernel that is called."""
    function = call.callee.owner
    if isinstance(function, ir.FnOp) and is_primitive(function) and function.self_name is None:
        return function
    return None


def _defuse(call: ir.CallOp) -> SSAValue:
    """Moves the kernel's ops to before the call; returns the value that replaces it."""
    function = _kernel(call)
    assert function is not None
    put = move_body if function.result.has_one_use() else copy_body
    return put(function.body.block, call.arguments, call)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase(safe_erase=False)
