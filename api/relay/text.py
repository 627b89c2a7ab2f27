"""Relay text in Python: reading and writing."""

from __future__ import annotations

import re

from ...support.arguments import check
from ..compile import parse as parse_module
from ..ir.module import IRModule
from .expr import RelayExpr


def parse(source: str, source_name: str = "from_string", init_module: IRModule | None = None) -> IRModule:
    """Parses a text in any of `.mir`'s formats to a typed module, with the functions of `init_module`.

    Raises MirError with every error of the text.
    """
    module = IRModule.of_op(parse_module(source, source_name))
    if init_module is None:
        return module
    result = IRModule.of_op(init_module.copy_op())
    result.update(module)
    return result


fromtext = parse


def parse_expr(source: str) -> RelayExpr:
    """Parses an expression: `add(1f, 2f)`, `fn (%x: float32) { … }`, `free_var %x: float32; exp(%x)`.

    The text may begin with a version line and end with `#[metadata]`, as the text of an expression does.
    """
    check(source, "source", "the text of an expression", str)
    source = _VERSION.sub("", source, count=1)
    if source.lstrip().startswith("free_var"):
        return parse(f'#[version = "0.0.5"]\n{source}')["main"].body
    expression, mark, metadata = source.partition("#[metadata]")
    return parse(f"def @main() {{\n{expression}\n}}\n{mark}{metadata}")["main"].body


_VERSION = re.compile(r'\A\s*+#\[version = "[^"\n]*"\][ \t]*\n?')


def astext(obj: RelayExpr | IRModule, show_meta_data: bool = True) -> str:
    """Prints an expression or a module, with its constants unless `show_meta_data` is False."""
    check(obj, "obj", "an expression or an IRModule", RelayExpr, IRModule)
    return obj.astext(show_meta_data)
