"""What follows a lowered schedule: the passes of TVM's `lower`, in its order."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects import tir
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
        if name in known and not (simple_mode and name == "loop-partition"):
            yield known[name].load()()


def run_passes(module: ModuleOp, *, simple_mode: bool = False) -> None:
    """Runs the passes, in place."""
    context = Context()
    for each in passes(simple_mode=simple_mode):
        each.apply(context, module)
    for op in module.ops:
        if isinstance(op, tir.PrimFuncOp):
            share_indices(op)
            place_declarations(op)
