"""A module as text that decides what it is compiled to."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.printer import Printer

from ....dialects.array import ArrayBox, ArrayValueAttr


def module_text(module: ModuleOp) -> tuple[str, list[ArrayBox]]:
    """Returns the generic form with source places, and the arrays written in it as `#array0`, `#array1`, …"""
    stream = StringIO()
    printer = _Printer(stream)
    printer.print_op(module)
    return stream.getvalue(), printer.boxes


class _Printer(Printer):
    def __init__(self, stream: StringIO):
        super().__init__(stream=stream, print_generic_format=True, print_debuginfo=True)
        self.boxes: list[ArrayBox] = []

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, ArrayValueAttr):
            self.print_string(f"#array{len(self.boxes)}")
            self.boxes.append(attribute.data)
        else:
            super().print_attribute(attribute)
