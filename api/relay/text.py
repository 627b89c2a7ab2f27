"""Relay text in Python: reading and writing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import cast

from ...parser import parse_mir
from ...support.arguments import check, items
from ...support.diagnostics import Diagnostic, MirTypeError
from ...support.short_tracebacks import short_traceback
from ..compile import parse_into
from ..ir.module import IRModule
from ..nd import as_numpy
from .expr import Constant, RelayExpr

MetaTable = Mapping[str, Sequence[object]]
"""What a text calls `meta[KEY][i]`: constants and arrays under `relay.Constant`, dictionaries of attributes under other keys."""


@short_traceback
def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: MetaTable | None = None,
) -> IRModule:
    """Parses a text in any of `.mir`'s formats to a typed module, which begins with `init_module`.

    The text may use its definitions, and the entries of `init_meta_table` as `meta[relay.Constant][0]`, where it has no metadata of its
    own. Raises MirError with every error of the text.
    """
    check(init_module, "init_module", "an IRModule", IRModule, NoneType)
    op = None if init_module is None else init_module.op
    return IRModule.of_op(parse_into(source, source_name, init=op, nodes=_nodes(init_meta_table)), init_module)


fromtext = parse


def _nodes(table: MetaTable | None) -> dict[str, Sequence[object]]:
    check(table, "init_meta_table", "a dictionary of lists of constants, or of attributes", Mapping, NoneType)
    return {
        key: [
            _node(entry, f"init_meta_table['{key}'][{index}]")
            for index, entry in enumerate(items(entries, key, "nodes"))
        ]
        for key, entries in (table or {}).items()
    }


def _node(entry: object, place: str) -> object:
    """Returns an entry as an array, or as attributes by name. Raises MirTypeError for anything else."""
    if isinstance(entry, Constant):
        return entry.value.data.array
    if isinstance(entry, Mapping):
        return cast("Mapping[str, object]", entry)
    if hasattr(entry, "__array__") or hasattr(entry, "numpy"):
        return as_numpy(entry)
    raise MirTypeError(Diagnostic(f"{place} is a constant, an array or a dictionary of attributes, not {entry!r}"))


@short_traceback
def parse_expr(source: str) -> RelayExpr:
    """Parses an expression: `add(1f, 2f)`, `fn (%x: float32) { … }`, `free_var %x: float32; exp(%x)`.

    The text may begin with a version line and end with `#[metadata]`, as the text of an expression does. Types are checked, but the
    expression has those that are written alone: `transform.InferType` finds the others.
    """
    check(source, "source", "the text of an expression", str)
    source = _VERSION.sub("", source, count=1)
    if source.lstrip().startswith("free_var"):
        source = f'#[version = "0.0.5"]\n{source}'
    else:
        expression, mark, metadata = source.partition("#[metadata]")
        source = f"def @main() {{\n{expression}\n}}\n{mark}{metadata}"
    parse_into(source, "from_string")
    return IRModule.of_op(parse_mir(source, "from_string", infer=False))["main"].body


_VERSION = re.compile(r'\A\s*+#\[version = "[^"\n]*"\][ \t]*\n?')


def astext(obj: RelayExpr | IRModule, show_meta_data: bool = True) -> str:
    """Prints an expression or a module, with its constants unless `show_meta_data` is False."""
    check(obj, "obj", "an expression or an IRModule", RelayExpr, IRModule)
    return obj.astext(show_meta_data)


def pretty_print(obj: RelayExpr | IRModule) -> str:
    """Returns the text of an expression or a module without its metadata."""
    return astext(obj, show_meta_data=False)
