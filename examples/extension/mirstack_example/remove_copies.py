"""Implements `remove-copies`, a pass of xDSL, which mirstack takes as it is."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class RemoveCopies(ModulePass):
    """Replace copies of tensors by the tensors."""

    name = "remove-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for copy in list(op.walk()):
            if copy.name == "relay.copy":
                copy.results[0].replace_all_uses_with(copy.operands[0])
                copy.detach()
                copy.erase()
