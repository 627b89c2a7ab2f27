"""The pass `lower-opaque-block`: blocks without iteration variables are replaced by their bodies, allocations by declarations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.passes import ModulePass

from ...dialects import tir
from ...dialects.tir.stmt import RegionsOp
from ...support.diagnostics import error_at
from ...support.walk import post_order
from .rewriting import block_of_ops, builder_before, erase_if_dead, move_before


def inline_block(block: tir.BlockOp) -> None:
    """Puts the body in the block's place, behind a branch where the block has a predicate."""
    if block.iter_vars:
        raise error_at(
            block,
            f"block '{block.block_name.data}' still has iteration variables",
            "run convert-blocks-to-opaque before lower-opaque-block",
        )
    body = block.body.block
    for op in list(body.ops):
        if isinstance(op, RegionsOp):
            regions = list(op.operands)
            op.detach()
            op.erase()
            for region in regions:
                erase_if_dead(region)
    if block.predicate is not None:
        inner = block_of_ops(body.ops)
        builder_before(block).insert(tir.IfOp(block.predicate, inner))
    else:
        move_before(body.ops, block)
    block.detach()
    block.erase()


def lower_allocation(alloc: tir.AllocBufferOp) -> None:
    """`T.alloc_buffer` as `T.decl_buffer` without data: memory until the end of the region."""
    new = tir.DeclBufferOp.create(
        operands=list(alloc.operands),
        properties={**alloc.properties, "implicit": IntegerAttr(0, 1)},
        result_types=[alloc.result.type],
    )
    new.location = alloc.location
    block = alloc.parent
    assert block is not None
    block.insert_op_before(new, alloc)
    new.result.name_hint = alloc.result.name_hint
    alloc.result.replace_all_uses_with(new.result)
    alloc.detach()
    alloc.erase()


def inline_unit_loop(loop: tir.ForOp) -> None:
    """A loop of one turn is its body at its start, unless an annotation or a thread hangs on it."""
    extent = loop.extent.owner
    if not isinstance(extent, tir.ConstOp) or not isinstance(extent.value, IntegerAttr) or extent.value.value.data != 1:
        return
    if loop.kind.data == "thread_binding" or loop.annotations.data:
        return
    loop.loop_var.replace_all_uses_with(loop.min)
    move_before(loop.body.block.ops, loop)
    loop.detach()
    loop.erase()


@dataclass(frozen=True)
class LowerOpaqueBlock(ModulePass):
    """Removes blocks and loops of one turn; predicates become branches, allocations declarations."""

    name = "lower-opaque-block"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lowers every block of the module."""
        for inner in post_order(op):
            if isinstance(inner, tir.BlockOp):
                inline_block(inner)
            elif isinstance(inner, tir.AllocBufferOp):
                lower_allocation(inner)
            elif isinstance(inner, tir.ForOp):
                inline_unit_loop(inner)
