"""`mirstack.preload`: what parsing and compiling import when they first need it, imported at once."""

from __future__ import annotations

import sys
from importlib import import_module

from ...support.garbage import no_collection
from ...support.xdsl_patches import apply

PRELOADED = (
    "parser.source",
    "parser.relay.reading",
    "parser.rules",
    "parser.rules.build",
    "parser.rules.reader",
    "parser.tvmscript",
    "parser.te",
    "dialects.relay.infer.inference",
    "dialects.relay.infer.result",
    "dialects.relay.verify",
    "dialects.relay.operators.sorting.bitonic_sort",
    "dialects.relay.operators.sorting.radix_sort",
    "dialects.relay.operators.indexing.te_scatter",
    "dialects.relay.operators.sorting.te_sort",
    "dialects.rule.levels.relay",
    "dialects.tir.attribute_values",
    "passes.schedule.primitives.common.new_blocks",
    "passes.schedule.analysis.layout_map",
    "lowering.driver.cache.programs",
    "lowering.driver.cache.kernels",
    "lowering.driver.cache.kernel_facts",
    "lowering.relay.kernels.te_kernel",
    "lowering.llvm.jit.object_pool",
    "lowering.llvm.jit.object_symbols",
    "lowering.llvm.text.translation",
    "lowering.llvm.jit.codegen_process",
    "lowering.llvm.jit.load",
    "lowering.driver.workers",
    "lowering.driver.lowering_process",
    "lowering.driver.lowered_unit",
    "support.memory",
    "lowering.driver.compile",
    "lowering.driver.compile_program",
    "lowering.driver.reachable",
    "lowering.driver.loading.load_program",
    "lowering.driver.loading.relay_executable",
    "lowering.driver.loading.kernel_executable",
)
"""Modules of the package that functions import, of those that a usual model needs."""


@no_collection()
def preload() -> None:
    """Imports all that parsing and compiling need, otherwise imported at first use (0.6 s, once)."""
    apply()
    from ...dialects.relay.operator import get_operator
    from ...passes.schedule.engine import primitive
    from ..pipeline import Options, lowering_passes

    for name in PRELOADED:
        import_module(f"....{name}", __name__)
    for _ in lowering_passes(Options()):
        pass
    # With all topics of the operator table before its own: those of a usual model.
    get_operator("nn.batch_norm")
    primitive.load_all()
    if sys.platform == "linux":
        for name in ("multiprocessing.connection", "multiprocessing.popen_fork"):
            import_module(name)
