"""From TIR to the standard dialects: blocks to loops, loops to vectors, then scf, memref, vector, arith, math and func.

`lower_tir(module)` is the whole way, in place; each step is a pass that `mir-opt` can stop after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def lower_tir_blocks(module: ModuleOp) -> None:
    """Blocks to loops and branches, still in tir: every prim_func of the module, in place."""
    from xdsl.context import Context

    from ...passes.tir.blocks.convert_blocks_to_opaque import ConvertBlocksToOpaque
    from ...passes.tir.blocks.lower_init_block import LowerInitBlock
    from ...passes.tir.blocks.lower_match_buffer import LowerMatchBuffer
    from ...passes.tir.blocks.lower_opaque_block import LowerOpaqueBlock
    from ...passes.tir.blocks.plan_and_update_buffer_allocation_location import PlanAndUpdateBufferAllocationLocation
    from ...passes.tir.buffers.compact_buffer_allocation import CompactBufferAllocation

    context = Context()
    LowerInitBlock().apply(context, module)
    PlanAndUpdateBufferAllocationLocation().apply(context, module)
    ConvertBlocksToOpaque().apply(context, module)
    LowerMatchBuffer().apply(context, module)
    CompactBufferAllocation().apply(context, module)
    LowerOpaqueBlock().apply(context, module)


def lower_tir(module: ModuleOp) -> None:
    """Replaces every prim_func of the module by a `func.func` over bare pointers, in place; other ops are left alone.

    See `signature.KernelSignature` for how such a function is called. Raises MirError where a prim_func holds what a CPU
    has no meaning for.
    """
    from ...support.deep_stack import in_deep_stack

    in_deep_stack(lambda: _lower(module))


def _lower(module: ModuleOp) -> None:
    from xdsl.context import Context

    from ...passes.tir.vectors.vectorize_loop import VectorizeLoop
    from .lower_to_scf import lower_tir_to_scf

    lower_tir_blocks(module)
    VectorizeLoop().apply(Context(), module)
    lower_tir_to_scf(module)
