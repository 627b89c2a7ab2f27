"""The pass `lower-std-to-llvm`: standard dialects to the `llvm` dialect, composed of one table per source dialect."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...support.diagnostics import error_at
from . import (
    arith_to_llvm,
    cf_to_llvm,
    func_to_llvm,
    math_to_llvm,
    memref_to_llvm,
    parallel_to_llvm,
    scf_to_llvm,
    vector_to_llvm,
)
from .converter import Converter, Handler

TABLES = (
    func_to_llvm.TABLE,
    cf_to_llvm.TABLE,
    scf_to_llvm.TABLE,
    parallel_to_llvm.TABLE,
    arith_to_llvm.TABLE,
    math_to_llvm.TABLE,
    memref_to_llvm.TABLE,
    vector_to_llvm.TABLE,
)

HANDLERS: dict[type, Handler] = {op: handler for table in TABLES for op, handler in table.handlers.items()}


def lower_std_to_llvm(module: ModuleOp) -> None:
    """Converts every function and global of `module` in place; raises `MirError` at an op that LLVM has no code for.

    Functions and globals that are in the `llvm` dialect already are kept, and so are Relay's, which have a lowering of
    their own that calls what is converted here.
    """
    functions = [op for op in module.body.ops if isinstance(op, func.FuncOp)]
    converter = Converter(HANDLERS, func_to_llvm.signatures_of(functions))
    kept: list[Operation] = []
    for op in list(module.body.ops):
        converter.location = op.location
        if isinstance(op, llvm.FuncOp | llvm.GlobalOp):
            op.detach()
            converter.add_symbol(op.sym_name.data, op)
            continue
        if op.name in ("relay.func", "relay.type_data"):
            kept.append(op)
            continue
        handler = HANDLERS.get(type(op))
        if handler is None or op.results or op.operands:
            raise error_at(
                op,
                f"'{op.name}' cannot be lowered to LLVM at the top of a module",
                "a module holds functions and globals",
            )
        handler(converter, op)
        converter.run()
        while converter.pending:
            converter.pending.pop(0)()
            converter.run()
    for op in kept:
        op.detach()
    converter.finish(module)
    module.body.block.add_ops(kept)


@dataclass(frozen=True)
class LowerStdToLLVM(ModulePass):
    """Lowers func, cf, scf, arith, math, memref and vector to the `llvm` dialect; memrefs become bare pointers."""

    name = "lower-std-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts the module in place."""
        lower_std_to_llvm(op)
