"""reorder_block_iter_var: the order in which a block lists its axes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block

from ....dialects import tir
from ....support.text import counted
from ...tir.rewriting import set_operands
from ..engine.errors import refuse
from ..engine.primitive import primitive
from ..engine.state import State
from .common.loops import require_block


@primitive
def reorder_block_iter_var(state: State, block: tir.BlockOp, new_order: Sequence[int]) -> None:
    """Lists the axes of a block in another order: place k takes the axis that was at `new_order[k]`.

    vi, vj, vk = T.axis.remap("SSR", [i, j, k])   →   vk, vi, vj = T.axis.remap("RSS", [k, i, j])      new_order=[2, 0, 1]

    What the block computes, and the loops around it, stay as they are.
    """
    block = require_block(block, "reorder_block_iter_var")
    count = len(block.iter_vars)
    order = list(new_order)
    if sorted(order) != list(range(count)):
        raise refuse(
            block,
            f"reorder_block_iter_var: {order} is not an order of the {counted(count, 'axis')} of block '{block.block_name.data}'",
            f"list each of 0 to {count - 1} once" if count else "the block has no axes",
        )
    names, kinds = block.iter_names.data, block.iter_types.data
    block.properties["iter_names"] = ArrayAttr([StringAttr(names[k].data) for k in order])
    block.properties["iter_types"] = ArrayAttr([StringAttr(kinds[k].data) for k in order])
    groups = (block.dom_mins, block.dom_extents, block.bindings)
    mins, extents, bindings = ([group[k] for k in order] for group in groups)
    set_operands(block, mins, extents, bindings, [] if block.predicate is None else [block.predicate])
    _permute_arguments(block.body.block, order)


def _permute_arguments(body: Block, order: Sequence[int]) -> None:
    old = list(body.args)
    hints = [argument.name_hint for argument in old]
    new = [body.insert_arg(argument.type, len(body.args)) for argument in (old[k] for k in order)]
    for place, k in enumerate(order):
        old[k].replace_all_uses_with(new[place])
        new[place].name_hint = hints[k]
    for argument in old:
        body.erase_arg(argument)
