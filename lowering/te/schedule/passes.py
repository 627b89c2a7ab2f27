"""What follows a lowered schedule: the passes of TVM's `lower`, in its order."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects import tir
from ....support.walk import walk_ops
from .place_declarations import place_declarations
from .share_indices import share_indices

LOWER_PASSES = (
    "loop-partition", "vectorize-loop", "inject-virtual-thread", "inject-double-buffer", "storage-rewrite", "unroll-loop",
    "simplify", "remove-no-op", "rewrite-unsafe-select", "hoist-if-then-else",
)  # fmt: skip
"""By name. In simple mode loops are not partitioned."""


def passes(*, simple_mode: bool) -> Iterator[ModulePass]:
    """The passes to run on the functions of lowered schedules."""
    from ....passes.registry import PASSES

    known = {entry.name: entry for entry in PASSES}
    for name in LOWER_PASSES:
        if not (simple_mode and name == "loop-partition"):
            yield known[name].load()()


UNROLL_PRAGMAS = ("pragma_auto_unroll_max_step", "pragma_unroll_explicit")


def drop_unroll_pragmas(function: tir.PrimFuncOp) -> None:
    """Takes away what was said to `unroll-loop`, which has run."""
    for op in list(walk_ops(function)):
        if isinstance(op, tir.AttrOp) and op.key.data in UNROLL_PRAGMAS:
            token = op.node.owner
            op.detach()
            op.erase()
            if isinstance(token, tir.IterVarOp) and not token.result.uses:
                variable = token.var.owner
                token.detach()
                token.erase()
                if isinstance(variable, tir.VarOp):
                    _drop_variable(variable)


def _drop_variable(variable: tir.VarOp) -> None:
    loops = [use.operation for use in variable.result.uses]
    if all(isinstance(loop, tir.ForOp) and loop.var is variable.result for loop in loops):
        for loop in loops:
            loop.operands = loop.operands[:2]
        variable.detach()
        variable.erase()


def run_passes(module: ModuleOp, *, simple_mode: bool = False) -> None:
    """Runs the passes, in place."""
    context = Context()
    for each in passes(simple_mode=simple_mode):
        each.apply(context, module)
    for op in module.ops:
        if isinstance(op, tir.PrimFuncOp):
            drop_unroll_pragmas(op)
            share_indices(op)
            place_declarations(op)
