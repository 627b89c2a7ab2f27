"""`remove-unused-functions`: drops functions that no entry reaches, as TVM's RemoveUnusedFunctions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....dialects.relay import ir
from ....support.diagnostics import error_at
from ....support.edit import erase_op
from ....support.walk import walk_ops
from ..common.rewriting import functions_of


@dataclass(frozen=True)
class RemoveUnusedFunctions(ModulePass):
    """Drop the Relay functions that the entry functions do not call, directly or through others."""

    name = "remove-unused-functions"

    entry_functions: tuple[str, ...] = ("main",)
    """The functions that stay for their own sake."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = functions_of(op)
        for name in self.entry_functions:
            if name not in functions:
                raise error_at(
                    op,
                    f"there is no function @{name} to start from",
                    f"entry-functions names functions of the module: {', '.join(f'@{f}' for f in functions) or 'it has none'}",
                )
        used: set[str] = set()
        pending = list(self.entry_functions)
        while pending:
            name = pending.pop()
            if name in used or name not in functions:
                continue
            used.add(name)
            for inner in walk_ops(functions[name]):
                match inner:
                    case ir.CallGlobalOp():
                        pending.append(inner.callee.root_reference.data)
                    case ir.GlobalRefOp():
                        pending.append(inner.symbol.root_reference.data)
                    case _:
                        pass
        for name, function in functions.items():
            if name not in used:
                erase_op(function)
