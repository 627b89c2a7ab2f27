"""LLVM IR text to code in this process, as `mirstack.compile` does it with the text of a program."""

from __future__ import annotations

from collections.abc import Mapping

from mirstack.lowering.llvm.jit.load import CompiledModule, Target, emit_object, link_objects
from mirstack.lowering.runtime import runtime_symbols


def compile_ir(
    text: str,
    *,
    cpu: str | None = None,
    features: str | None = None,
    opt_level: int = 3,
    symbols: Mapping[str, int] | None = None,
    keep_alive: tuple[object, ...] = (),
) -> CompiledModule:
    """IR text to code loaded into this process, for this machine's processor unless `cpu` or `features` say otherwise."""
    target = Target(cpu=cpu, features=features, opt_level=opt_level)
    return link_objects([emit_object(text, target)], symbols=symbols, runtime=runtime_symbols, keep_alive=keep_alive)
