"""The pass `lower-std-to-llvm`: standard dialects to `llvm`, composed of one table per source dialect."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ....passes.common.described_cpu import described_cpu
from ....support.garbage import no_collection
from . import (
    arith_to_llvm,
    cf_to_llvm,
    dot_to_llvm,
    func_to_llvm,
    math_to_llvm,
    memref_to_llvm,
    parallel_to_llvm,
    scf_to_llvm,
    vector_to_llvm,
)
from .bf16_bits import bf16_as_i16
from .converter import Converter, Handler
from .types import TypeConverter

TABLES = (
    func_to_llvm.TABLE,
    cf_to_llvm.TABLE,
    scf_to_llvm.TABLE,
    parallel_to_llvm.TABLE,
    arith_to_llvm.TABLE,
    math_to_llvm.TABLE,
    memref_to_llvm.TABLE,
    vector_to_llvm.TABLE,
    dot_to_llvm.TABLE,
)

HANDLERS: dict[type, Handler] = {op: handler for table in TABLES for op, handler in table.handlers.items()}


LOWERED = (func.FuncOp, memref.GlobalOp)
"""What is lowered at the top of a module."""


def lower_std_to_llvm(module: ModuleOp, cpu: str = "", strict_math: bool = False) -> None:
    """Converts every function and global of `module` in place to the `llvm` dialect.

    `cpu` is LLVM's name of the processor whose instructions are used ("" is this one). With `strict_math` functions such as exp are
    C's, computed in f64. Ops of other levels at the top of the module (LLVM functions, Relay functions, …) are left as they are.
    Raises `MirError` at an op that LLVM has no code for.
    """
    with no_collection():
        ops = list(module.body.ops)
        types = TypeConverter()
        converter = Converter(HANDLERS, func_to_llvm.signatures_of(ops, types), cpu, types, strict_math=strict_math)
        for op in ops:
            if not isinstance(op, LOWERED):
                converter.know(op)
        for op in ops:
            converter.location = op.location
            if isinstance(op, LOWERED):
                HANDLERS[type(op)](converter, op)
                converter.run_all()
            else:
                op.detach()
                converter.top_level.append(op)
        converter.finish(module)
        if types.has_bf16:
            bf16_as_i16(module.body.ops)


@dataclass(frozen=True)
class LowerStdToLLVM(ModulePass):
    """Lowers func, cf, scf, arith, math, memref and vector to `llvm`; memrefs become bare pointers.

    `cpu` is LLVM's name of the processor whose instructions may be used ("" for this one). With `strict_math` functions such as exp
    are the C library's, computed in f64 and rounded, whatever the processor.
    """

    name = "lower-std-to-llvm"

    cpu: str = ""
    strict_math: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts the module in place."""
        lower_std_to_llvm(op, described_cpu(op.ops, self.cpu), self.strict_math)
