"""Units whose passes have run: functions of the LLVM dialect, and what a program needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, UnitAttr
from xdsl.passes import ModulePass

from ...dialects.relay import ir as relay
from ..llvm.jit.call import messages_of
from ..mangle_symbols import MangleSymbols
from ..pipeline import Options, kernel_passes
from ..relay.functions.lower_relay_to_llvm import may_fail
from ..relay.functions.prepare_constants import FAILS, KERNEL, PURE, pure_kernels
from ..tir.signature import SHAPE, SIGNATURE
from .units import Unit


def unit_passes(options: Options) -> list[ModulePass]:
    """Returns the passes of a unit, whose functions already have the names that the linker knows."""
    return [step for step in kernel_passes(options) if step.name != MangleSymbols.name]


@dataclass
class LoweredUnit:
    """A unit in the LLVM dialect, with its stubs, declarations and messages."""

    stubs: dict[str, relay.FuncOp]
    declarations: list[llvm.FuncOp]
    messages: dict[int, str]
    """What the statuses mean that its functions may return."""
    module: ModuleOp

    @staticmethod
    def of(unit: Unit) -> LoweredUnit:
        """Takes apart a unit whose passes have run."""
        stubs = unit.take_stubs()
        declarations = _declarations(unit.module)
        _export(unit.module)
        return LoweredUnit(stubs, declarations, messages_of(unit.module), unit.module)


def _declarations(module: ModuleOp) -> list[llvm.FuncOp]:
    """Returns the lowered functions without their bodies, as the program declares them."""
    pure = pure_kernels(module)
    return [
        _declaration(op, op.sym_name.data in pure)
        for op in module.ops
        if isinstance(op, llvm.FuncOp) and SIGNATURE in op.attributes
    ]


def _export(module: ModuleOp) -> None:
    """Makes the lowered functions visible to the linker; their signatures are in their declarations."""
    for op in module.ops:
        if isinstance(op, llvm.FuncOp) and op.attributes.pop(SIGNATURE, None) is not None:
            op.attributes.pop(SHAPE, None)
            op.linkage = llvm.LinkageAttr("external")
            if len(op.body.blocks) > 1:
                op.no_inline = UnitAttr()


def _declaration(kernel: llvm.FuncOp, pure: bool) -> llvm.FuncOp:
    """Returns the function without its body, with what the program must know of it."""
    facts = {**({PURE: UnitAttr()} if pure else {}), **({FAILS: UnitAttr()} if may_fail(kernel) else {})}
    result = llvm.FuncOp(kernel.sym_name.data, kernel.function_type, llvm.LinkageAttr("external"))
    result.location = kernel.location
    result.attributes[KERNEL] = DictionaryAttr(facts)
    for key in (SIGNATURE, SHAPE):
        if key in kernel.attributes:
            result.attributes[key] = kernel.attributes[key]
    return result
