"""The pass `convert-blocks-to-opaque`: iteration variables of blocks are replaced by what binds them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.passes import ModulePass

from ...dialects import tir
from .rewriting import ops_of, set_operands


def make_opaque(block: tir.BlockOp) -> None:
    """The block without iteration variables: each becomes its binding."""
    if not block.iter_vars:
        return
    body = block.body.block
    for variable, binding in zip(list(body.args), block.bindings, strict=True):
        variable.replace_all_uses_with(binding)
    for variable in reversed(list(body.args)):
        body.erase_arg(variable)
    set_operands(block, [], [], [], [] if block.predicate is None else [block.predicate])
    block.iter_names = ArrayAttr([])
    block.iter_types = ArrayAttr([])


@dataclass(frozen=True)
class ConvertBlocksToOpaque(ModulePass):
    """Substitutes the bindings of blocks for their iteration variables."""

    name = "convert-blocks-to-opaque"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Makes every block of the module opaque; raises MirError where an init is left, whose meaning needs the axes."""
        from ...support.diagnostics import error_at

        for init in ops_of(op, tir.InitOp):
            raise error_at(init, "T.init must be lowered before blocks become opaque", "run lower-init-block first")
        for block in ops_of(op, tir.BlockOp):
            make_opaque(block)
