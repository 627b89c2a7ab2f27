"""The pass `convert-blocks-to-opaque`: iteration variables of blocks are replaced by what binds them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.tir.types import element_of
from ....support.diagnostics import error_at
from ....support.edit import replace_all_uses_with
from ....support.walk import walk_ops
from ..rewriting import ops_of, set_operands
from ..vectors.arg_reduction import choice_order


def make_opaque(block: tir.BlockOp, strict_math: bool = False) -> None:
    """Replaces the iteration variables of a block by their bindings.

    With `strict_math` the ops that combine floats are not marked as reorderable, so their order stays.
    """
    if not block.iter_vars:
        return
    if any(kind.data == "R" for kind in block.iter_types.data):
        _mark_updates(block, strict_math)
    body = block.body.block
    for variable, binding in zip(list(body.args), block.bindings, strict=True):
        replace_all_uses_with(variable, binding)
    for variable in reversed(list(body.args)):
        body.erase_arg(variable)
    set_operands(block, [], [], [], [] if block.predicate is None else [block.predicate])
    block.iter_names = ArrayAttr[StringAttr]([])
    block.iter_types = ArrayAttr[StringAttr]([])


REASSOCIATE = "tir.reassociate"
"""Attribute of the op that a reduction updates its output by: its instances commute, so they may run in any order."""


def _mark_updates(block: tir.BlockOp, strict_math: bool) -> None:
    """Keeps in mind, beyond the axes, which ops combine a reduction's terms."""
    for op in walk_ops(block):
        if not isinstance(op, tir.StoreOp) or isinstance(op.parent_op(), tir.InitOp):
            continue
        combined = op.value.owner
        choice = choice_of(op)
        if choice is not None:
            choice.attributes[REASSOCIATE] = UnitAttr()
        if (
            strict_math
            and isinstance(combined, tir.AddOp | tir.MulOp)
            and isinstance(element_of(op.value.type), AnyFloat)
        ):
            continue  # In another order it would be rounded otherwise.
        if isinstance(combined, tir.AddOp | tir.MulOp | tir.MinOp | tir.MaxOp):
            sides = (combined.lhs.owner, combined.rhs.owner)
            if any(isinstance(side, tir.LoadOp) and side.buffer is op.buffer for side in sides):
                combined.attributes[REASSOCIATE] = UnitAttr()


def choice_of(store: tir.StoreOp) -> tir.SelectOp | None:
    """Returns the select by which a reduction keeps its old value or takes a term; None for other stores.

        B[i] = T.Select(B[i] >= A[i, k], B[i], A[i, k])

    The condition compares two values, or two values and, where they are equal, their indices (argmax).
    """
    value = store.value
    while isinstance(value.owner, tir.LetOp):
        value = value.owner.value
    select = value.owner
    if not isinstance(select, tir.SelectOp):
        return None
    kept = select.true_value.owner
    if not isinstance(kept, tir.LoadOp) or kept.buffer is not store.buffer:
        return None
    return select if choice_order(select.condition) is not None else None


@dataclass(frozen=True)
class ConvertBlocksToOpaque(ModulePass):
    """Substitutes the bindings of blocks for their iteration variables.

    With `strict_math` sums and products of floats keep their order.
    """

    name = "convert-blocks-to-opaque"

    strict_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Makes every block of the module opaque.

        Raises MirError for a `T.init` that is left, whose meaning needs the iteration variables.
        """
        for init in ops_of(op, tir.InitOp):
            raise error_at(init, "T.init must be lowered before blocks become opaque", "run lower-init-block first")
        for block in ops_of(op, tir.BlockOp):
            make_opaque(block, self.strict_math)
