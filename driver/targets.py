"""What `mir-opt -t` prints: `.mir` text, MLIR's form, the LLVM IR that runs, its assembly. The last two import LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from ..dialects.array import ArrayValueAttr

if TYPE_CHECKING:
    from ..lowering.pipeline import Options


@dataclass(frozen=True)
class MlirStyle:
    """How MLIR's form is printed: the flags of `xdsl-opt`."""

    generic: bool = False
    properties_as_attributes: bool = False
    locations: bool = False
    highlight: bool = False
    elide: bool = False
    """Whether large arrays are named instead of written out: for people to read, and not to be read back."""


ELIDED_ELEMENTS = 64
"""Arrays of more elements are large."""


class ElidingPrinter(Printer):
    """Prints a large array as `#mirstack.array<"float32", [64, 3, 7, 7], elided "weights.npz", "conv0_weight">`."""

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, ArrayValueAttr) and prod(attribute.data.shape) > ELIDED_ELEMENTS:
            box = attribute.data
            shape = ", ".join(map(str, box.shape))
            self.print_string(f'#{attribute.name}<"{box.dtype}", [{shape}], elided {box.label}>')
        else:
            super().print_attribute(attribute)


def print_mlir(module: ModuleOp, style: MlirStyle = MlirStyle()) -> str:
    """The module in MLIR's form."""
    stream = StringIO()
    printer_class = ElidingPrinter if style.elide else Printer
    if style.highlight and not style.elide:
        from xdsl.syntax_printer import SyntaxPrinter

        printer_class = SyntaxPrinter
    printer = printer_class(
        stream=stream,
        print_generic_format=style.generic,
        print_properties_as_attributes=style.properties_as_attributes,
        print_debuginfo=style.locations,
    )
    printer.print_op(module)
    return stream.getvalue() + "\n"


# The dialects of the top-level ops that `.mir` has a text for; MLIR's own dialects are written in MLIR's form.
MIR_DIALECTS = frozenset({"relay", "te", "tir", "schedule", "rule", "builtin"})


def has_mir_text(module: ModuleOp) -> bool:
    """Whether the module is still at the levels that `.mir` writes, not lowered to MLIR's dialects."""
    return all(op.name.partition(".")[0] in MIR_DIALECTS for op in module.ops)


def print_mir(module: ModuleOp) -> str:
    """The module in the text formats of its levels."""
    from ..parser import print_mir as in_formats

    return in_formats(module)


@dataclass(frozen=True)
class Machine:
    """What native code is made for: `cpu` is LLVM's name of it, None for this machine's, `caches` and `allow_extern` as `Options` has
    them."""

    opt_level: int = 3
    cpu: str | None = None
    caches: str = ""
    allow_extern: tuple[str, ...] = ()
    strict_math: bool = False


Watch = Callable[[ModulePass, ModuleOp], None]


def print_llvm(module: ModuleOp, machine: Machine = Machine(), watch: Watch | None = None) -> str:
    """The LLVM IR that the module is compiled to, lowered in place from whatever level it is at.

    `watch` is called after each pass of the lowering.
    """
    from ..lowering.llvm.text.translation import translate
    from ..lowering.pipeline import lower_module

    lower_module(module, _options(module, machine), () if watch is None else (watch,))
    return translate(module, externs=machine.allow_extern)


def print_asm(module: ModuleOp, machine: Machine = Machine(), watch: Watch | None = None) -> str:
    """The machine code that the module is compiled to, as assembly; as `print_llvm`."""
    from ..lowering.llvm.jit.codegen_process import start
    from ..lowering.llvm.jit.load import emit_assembly
    from ..lowering.pipeline import target_of

    start()
    options = _options(module, machine)
    return emit_assembly(print_llvm(module, machine, watch), target_of(options))


def _options(module: ModuleOp, machine: Machine) -> Options:
    """How `mirstack.compile` would lower the module: its only function is the entry, else `main`."""
    from ..api.entry import functions_of
    from ..lowering.pipeline import Options

    functions = list(functions_of(module))
    entry = functions[0] if len(functions) == 1 else "main"
    return Options(
        entry=entry,
        opt_level=machine.opt_level,
        cpu=machine.cpu,
        caches=machine.caches,
        allow_extern=machine.allow_extern,
        strict_math=machine.strict_math,
    )


TARGETS = ("mir", "mlir", "llvm", "asm")
