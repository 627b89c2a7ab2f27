"""Parts of what `mirstack.compile` does: LLVM IR text to code in this process, TIR to the standard dialects."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from mirstack.lowering.driver.build import Passes
from mirstack.lowering.llvm.jit.load import CompiledModule, Target, emit_object, link_objects
from mirstack.lowering.pipeline import Options, kernel_passes
from mirstack.lowering.runtime import runtime_symbols
from mirstack.support.deep_stack import in_deep_stack
from xdsl.dialects.builtin import ModuleOp


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


def lower_to_scf(module: ModuleOp) -> None:
    """Runs the passes of the pipeline down to the standard dialects on a module of TIR, in place, without default schedules."""
    steps = takewhile(lambda step: step.name != "lower-std-to-llvm", kernel_passes(Options(opt_level=0)))
    in_deep_stack(lambda: Passes().run(steps, module))
