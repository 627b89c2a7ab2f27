"""The targets of `mir-opt -t` that print text: `.mir` and MLIR's form.

LLVM IR and assembly are produced by `lowering/driver/build.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from ..dialects.array import ArrayValueAttr
from ..support import extensions


@dataclass(frozen=True)
class MlirStyle:
    """The flags of `xdsl-opt` for MLIR's form."""

    generic: bool = False
    properties_as_attributes: bool = False
    locations: bool = False
    highlight: bool = False
    elide: bool = False
    """Whether large arrays are named instead of written out: for people to read, and not to be read back."""


ELIDED_ELEMENTS = 64
"""Arrays of more elements are large."""


class ElidingPrinter(Printer):
    """Prints large arrays elided.

    #mirstack.array<"float32", [64, 3, 7, 7], elided "weights.npz", "conv0_weight">
    """

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, ArrayValueAttr) and prod(attribute.data.shape) > ELIDED_ELEMENTS:
            box = attribute.data
            shape = ", ".join(map(str, box.shape))
            self.print_string(f'#{attribute.name}<"{box.dtype}", [{shape}], elided {box.label}>')
        else:
            super().print_attribute(attribute)


def print_mlir(module: ModuleOp, style: MlirStyle = MlirStyle()) -> str:
    """Prints the module in MLIR's form."""
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
MIR_DIALECTS = frozenset({"relay", "te", "tir", "schedule", "rule", "mirstack", "builtin"})


def has_mir_text(module: ModuleOp) -> bool:
    """Tells whether the module is still at the levels of `.mir`, not lowered to MLIR's dialects."""
    return all(op.name.partition(".")[0] in MIR_DIALECTS or _has_format(op) for op in module.ops)


def _has_format(op: Operation) -> bool:
    """Returns whether an extension has a format of `.mir` for an op."""
    from ..parser import owns

    return any(owns(each.name, op) for each in extensions.loaded("format"))


def print_mir(module: ModuleOp) -> str:
    """Prints the module in the text formats of its levels."""
    from ..parser import print_mir as in_formats

    return in_formats(module)


NATIVE = ("llvm", "asm")
"""The targets for which a module is lowered by all passes of the pipeline."""

TARGETS = ("mir", "mlir", *NATIVE)
