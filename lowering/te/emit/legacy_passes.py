"""The passes of TVM's `lower`, in its order: those that follow a lowered schedule in `mirstack.lower`.

They are no part of the way to machine code (`lowering/pipeline.py`): `mirstack.lower` returns the TIR that TVM's function of this
name returns, so it runs TVM's list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects import tir
from ....support.edit import erase_op
from ....support.walk import walk_ops
from .place_declarations import place_declarations
from .share_indices import share_indices

BLOCK_PASSES = (
    "lower-init-block", "plan-and-update-buffer-allocation-location", "convert-blocks-to-opaque", "compact-buffer-allocation",
    "unify-thread-binding", "lower-match-buffer", "inject-software-pipeline", "lower-opaque-block", "flatten-buffer",
    "narrow-data-type", "simplify",
)  # fmt: skip
"""Names of the passes that make flat loops of blocks and buffers, for functions not made of schedules."""

LOWER_PASSES = (
    "loop-partition", "vectorize-loop", "inject-virtual-thread", "inject-double-buffer", "storage-rewrite", "unroll-loop",
    "simplify", "remove-no-op", "rewrite-unsafe-select", "hoist-if-then-else",
)  # fmt: skip
"""By name. In simple mode loops are not partitioned."""


_OPTIONS: dict[str, dict[str, object]] = {"narrow-data-type": {"target_bits": 32}}


def passes(module: ModuleOp, *, simple_mode: bool, disabled: Collection[str]) -> Iterator[ModulePass]:
    """Yields the passes for lowered schedules, or for functions with blocks; `disabled` are TVM's names."""
    from ....passes.pass_info import camel_case
    from ....passes.registry import PASSES

    known = {entry.name: entry for entry in PASSES}
    has_blocks = any(isinstance(op, tir.BlockOp) for op in walk_ops(module))
    for name in (*(BLOCK_PASSES if has_blocks else ()), *LOWER_PASSES):
        if not (simple_mode and name == "loop-partition") and camel_case(name) not in disabled:
            yield known[name].load()(**_OPTIONS.get(name, {}))


UNROLL_PRAGMAS = ("pragma_auto_unroll_max_step", "pragma_unroll_explicit")


def drop_unroll_pragmas(function: tir.PrimFuncOp) -> None:
    """Takes away what was said to `unroll-loop`, which has run."""
    for op in list(walk_ops(function)):
        if isinstance(op, tir.AttrOp) and op.key.data in UNROLL_PRAGMAS:
            token = op.node.owner
            erase_op(op)
            if isinstance(token, tir.IterVarOp) and not token.result.uses:
                variable = token.var.owner
                erase_op(token)
                if isinstance(variable, tir.VarOp):
                    _drop_variable(variable)


def _drop_variable(variable: tir.VarOp) -> None:
    loops = [use.operation for use in variable.result.uses]
    if all(isinstance(loop, tir.ForOp) and loop.var is variable.result for loop in loops):
        for loop in loops:
            loop.operands = loop.operands[:2]
        erase_op(variable)


def run_passes(module: ModuleOp, *, simple_mode: bool = False, disabled: Collection[str] = ()) -> None:
    """Runs the passes in place, except those `disabled` by TVM's names (`CommonSubexprElimTIR`)."""
    context = Context()
    for each in list(passes(module, simple_mode=simple_mode, disabled=disabled)):
        each.apply(context, module)
    for op in module.ops:
        if isinstance(op, tir.PrimFuncOp):
            drop_unroll_pragmas(op)
            if "CommonSubexprElimTIR" not in disabled:
                share_indices(op)
            place_declarations(op)
