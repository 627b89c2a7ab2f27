"""The pass `convert-ssa`: a variable that several loops or lets bind becomes one of its own for each.

    i = T.int32()                      for i in range(4): …
    for i in range(4): …         →     for i in range(8): …
    for i in range(8): …

Values are defined once here in any case; the pass removes a common name, `i = T.int32()` declared around
two loops over `i`, as TVM's passes leave it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects import tir
from ....support.edit import erase_op
from ....support.walk import following, walk_ops
from ..rewriting import PrimFuncPass


def separate(func: tir.PrimFuncOp) -> None:
    """Splits variables that several loops or lets of a function share."""
    binders: dict[SSAValue, list[tir.ForOp | tir.LetOp]] = {}
    for op in walk_ops(func):
        if isinstance(op, tir.ForOp | tir.LetOp) and op.var is not None:
            binders.setdefault(op.var, []).append(op)
    for variable, ops in binders.items():
        if len(ops) > 1:
            for op in ops:
                _separate_one(op, variable)
            owner = variable.owner
            if isinstance(owner, tir.VarOp) and not variable.uses:
                erase_op(owner)


def _separate_one(op: tir.ForOp | tir.LetOp, variable: SSAValue) -> None:
    if isinstance(op, tir.ForOp):
        inside = set(walk_ops(op)) - {op}
        op.operands = [op.min, op.extent]
        variable.replace_uses_with_if(op.loop_var, lambda use: use.operation in inside)
        return
    op.operands = [op.value]
    inside = {inner for after in following(op) for inner in walk_ops(after)}
    variable.replace_uses_with_if(op.result, lambda use: use.operation in inside)


@dataclass(frozen=True)
class ConvertSSA(PrimFuncPass):
    """Splits variables that several loops or lets share."""

    name = "convert-ssa"

    def apply_to(self, func: tir.PrimFuncOp) -> None:
        """Separates the variables of one prim_func."""
        separate(func)
