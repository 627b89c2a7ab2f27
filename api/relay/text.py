"""Relay text in Python: reading and writing."""

from __future__ import annotations

import re

from ...support.arguments import check
from ..compile import parse as parse_module
from ..ir.module import IRModule
from .expr import RelayExpr


def parse(source: str, source_name: str = "from_string", init_module: IRModule | None = None) -> IRModule:
    """The module of a text in any of `.mir`'s formats, typed. The functions of `init_module` are there, too.

    Raises MirError with everything that is wrong in the text.
    """
    module = IRModule.of_op(parse_module(source, source_name))
    if init_module is None:
        return module
    result = IRModule.of_op(init_module.copy_op())
    result.update(module)
    return result


fromtext = parse


def parse_expr(source: str) -> RelayExpr:
    """The expression that a text such as `add(1f, 2f)`, `fn (%x: float32) { … }` or `free_var %x: float32; exp(%x)` writes.

    The text may begin with a version line and end with `#[metadata]`, as that of an expression does.
    """
    check(source, "source", "the text of an expression", str)
    source = _VERSION.sub("", source, count=1)
    if source.lstrip().startswith("free_var"):
        return parse(f'#[version = "0.0.5"]\n{source}')["main"].body
    expression, mark, metadata = source.partition("#[metadata]")
    return parse(f"def @main() {{\n{expression}\n}}\n{mark}{metadata}")["main"].body


_VERSION = re.compile(r'\A\s*+#\[version = "[^"\n]*"\][ \t]*\n?')


def astext(obj: RelayExpr | IRModule, show_meta_data: bool = True) -> str:
    """The text of an expression or a module, with the constants that it refers to unless `show_meta_data` is False."""
    check(obj, "obj", "an expression or an IRModule", RelayExpr, IRModule)
    return obj.astext(show_meta_data)
