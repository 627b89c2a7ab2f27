"""`eliminate-common-subexpr`: an operator applied to the same arguments as before gives way to what it gave before.

As TVM's pass of this name: uses of operators and projections of tuples are merged, in local functions and branches with those
around them; equal scalars are the same argument, and arguments in another order are others. Stateful operators and those without arguments stay. (`cse`, which knows
any dialect, also merges constants, tuples, functions and branches.)
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.relay import ir
from ...dialects.relay.operator import OperatorOp
from ...support.walk import walk_ops
from ..common.cse import Equality, merge_equal_ops


@dataclass(frozen=True)
class EliminateCommonSubexpr(ModulePass):
    """Merge operators with equal attributes and the same arguments."""

    name = "eliminate-common-subexpr"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        scalars = [inner for inner in walk_ops(op) if isinstance(inner, ir.ConstantOp)]
        if merge_equal_ops(op, _TvmEquality()):
            for scalar in scalars:
                if scalar.result.first_use is None:
                    scalar.detach()
                    scalar.erase()


class _TvmEquality(Equality):
    def may_merge(self, op: Operation) -> bool:
        return isinstance(op, OperatorOp | ir.TupleGetItemOp) and bool(op.operands)

    def commutes(self, op: Operation) -> bool:
        return False

    def operand_key(self, operand: SSAValue) -> Hashable:
        owner = operand.owner
        if isinstance(owner, ir.ConstantOp) and not owner.value.data.shape:
            return owner.value
        return id(operand)
