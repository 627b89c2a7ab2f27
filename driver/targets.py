"""What `mir-opt -t` prints: `.mir` text, MLIR's form, the LLVM IR that runs, its assembly. The last two import LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer


@dataclass(frozen=True)
class MlirStyle:
    """How MLIR's form is printed: the flags of `xdsl-opt`."""

    generic: bool = False
    properties_as_attributes: bool = False
    locations: bool = False
    highlight: bool = False


def print_mlir(module: ModuleOp, style: MlirStyle = MlirStyle()) -> str:
    """The module in MLIR's form."""
    stream = StringIO()
    printer_class = Printer
    if style.highlight:
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


def print_mir(module: ModuleOp) -> str:
    """The module in the text formats of its levels."""
    from ..parser import print_mir as in_formats

    return in_formats(module)


def print_llvm(module: ModuleOp) -> str:
    """The LLVM IR that the module is compiled to, lowered from whatever level it is at."""
    from ..lowering.pipeline import llvm_text

    return llvm_text(module)


def print_asm(module: ModuleOp) -> str:
    """The machine code for this machine, as assembly."""
    from ..lowering.pipeline import assembly_text

    return assembly_text(module)


TARGETS: dict[str, Callable[[ModuleOp], str]] = {
    "mir": print_mir,
    "mlir": print_mlir,
    "llvm": print_llvm,
    "asm": print_asm,
}
