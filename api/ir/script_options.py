"""The keyword arguments of `script` and `show`, by TVM's names: prefixes, indentation, line numbers."""

from __future__ import annotations

import re
from typing import TypedDict

from ...support.diagnostics import Diagnostic, MirValueError
from ...support.text import did_you_mean


class ScriptOptions(TypedDict, total=False):
    """Holds what `script` takes.

    `name`, `show_meta`, `relax_prefix`, `module_alias` and `num_context_lines` change nothing: constants are part of the text, and
    functions are called by the name of their class.
    """

    name: str | None
    show_meta: bool
    ir_prefix: str
    tir_prefix: str
    relax_prefix: str
    module_alias: str
    buffer_dtype: str
    int_dtype: str
    float_dtype: str
    verbose_expr: bool
    indent_spaces: int
    print_line_numbers: bool
    num_context_lines: int
    syntax_sugar: bool
    show_object_address: bool


_MODULES = {"T": "tir", "I": "ir"}
"""The module of each prefix."""

_DEFAULTS: dict[str, object] = {
    "buffer_dtype": "float32",
    "int_dtype": "int32",
    "float_dtype": "void",
    "verbose_expr": False,
    "syntax_sugar": True,
    "show_object_address": False,
}
"""What stays as it is."""
_NAME = re.compile(r'"(?:[^"\\\n]|\\.)*"|#[^\n]*|(?<![\w.])(?P<prefix>T|I)(?=\.)')


def with_options(text: str, options: ScriptOptions) -> str:
    """Returns a script as the options have it: `tir_prefix="tir"` writes `tir.grid(…)`.

    Raises MirValueError for an option that is not there, and for one that cannot be as it is asked for.
    """
    for name, value in options.items():
        if name not in ScriptOptions.__annotations__:
            near = did_you_mean(name, ScriptOptions.__annotations__)
            raise MirValueError(Diagnostic(f"script has no argument '{name}'{near}"))
        if name in _DEFAULTS and value != _DEFAULTS[name]:
            raise MirValueError(
                Diagnostic(f"script takes {name}={_DEFAULTS[name]!r} only, not {value!r}").with_note(
                    "numbers are written with the dtypes that TVMScript gives them by default"
                )
            )
    names = {"T": options.get("tir_prefix", "T"), "I": options.get("ir_prefix", "I")}
    for name, prefix in names.items():
        if not prefix.isidentifier():
            raise MirValueError(Diagnostic(f"'{prefix}' cannot be a prefix: it is not a name"))
        head = f"from tvm.script import {_MODULES[name]} as"
        text = text.replace(f"{head} {name}\n", f"{head} {prefix}\n")
    text = _NAME.sub(lambda match: names.get(match["prefix"], match[0]), text)
    spaces = options.get("indent_spaces", 4)
    if spaces < 1:
        raise MirValueError(Diagnostic(f"indent_spaces is at least 1, not {spaces}"))
    lines = text.split("\n")
    if spaces != 4:
        lines = [" " * ((len(line) - len(line.lstrip(" "))) // 4 * spaces) + line.lstrip(" ") for line in lines]
    if options.get("print_line_numbers", False):
        width = len(str(len(lines)))
        lines = [f"{number:>{width}} {line}".rstrip() for number, line in enumerate(lines, 1)]
    return "\n".join(lines)
