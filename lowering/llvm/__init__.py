"""From xDSL's standard dialects to the `llvm` dialect, to LLVM IR, to native code that Python calls.

`lower_to_llvm(module)` converts in place, `translate(module)` gives LLVM IR text, `compile_ir(text)` machine code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from .jit.load import CompiledModule, compile_ir
    from .text.translation import translate

__all__ = ["CompiledModule", "compile_ir", "lower_to_llvm", "translate"]


def lower_to_llvm(module: ModuleOp) -> None:
    """Standard dialects to the `llvm` dialect, in place; raises `MirError` at an op that LLVM has no code for."""
    from .convert.lower_std_to_llvm import lower_std_to_llvm

    lower_std_to_llvm(module)


def __getattr__(name: str) -> object:
    """Imports `translate` and `jit` when first asked for: llvmlite is not loaded before code is compiled."""
    from importlib import import_module

    modules = {"translate": "text.translation", "compile_ir": "jit.load", "CompiledModule": "jit.load"}
    if name not in modules:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{modules[name]}", __name__), name)
