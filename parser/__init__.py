"""Text to IR and IR to text: `.mir` files, whose items are each in the format of their level.

`items` splits a file and says what a format must offer; each format is a package or module beside it.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import MirError, Sources, error_at
from ..support.garbage import no_collection
from ..support.source_text import refuse_surrogates, source_text
from ..support.verify import defined_twice
from .items import FORMATS, Item, ParseContext, in_order, split_items, symbol_of

if TYPE_CHECKING:
    from .items import Format

__all__ = ["parse_items", "parse_mir", "print_mir"]


def parse_mir(
    text: str,
    name: str = "<input>",
    *,
    first_line: int = 1,
    directory: str | None = None,
    indent: int = 0,
    captured: Mapping[str, object] | None = None,
    init: ModuleOp | None = None,
    nodes: Mapping[str, Sequence[object]] | None = None,
    infer: bool = True,
) -> ModuleOp:
    """Parses a `.mir` text to a module; its ops are in the order of the items.

    `name` is the file in locations, `first_line` the number of the text's first line (a later part of a split file), and
    `indent` by how many columns the text is indented in its file.
    `directory` is where side files are looked up; None refuses them. `captured` are Python values of names that TVMScript
    may use without defining them. `init` is a module whose functions and types the text may use, and which the result begins with;
    `nodes` are arrays and attributes by what the text calls them, `meta[KEY][i]`. Without `infer` Relay's values have the types that are
    written, and no others. Raises MirError with every error found.
    """
    text = source_text(text)
    refuse_surrogates(text, name, first_line)
    sources = Sources(dict(Sources.current().texts))
    sources.add(name, textwrap.indent(text, " " * indent), first_line)
    with sources.reading(), no_collection():
        module = ModuleOp([]) if init is None else in_deep_stack(init.clone)
        context = ParseContext(name, module, directory, captured=captured or {}, nodes=nodes or {}, infers=infer)
        return in_deep_stack(lambda: _parse(text, name, first_line, indent, context))


def _parse(text: str, name: str, first_line: int, indent: int, context: ParseContext) -> ModuleOp:
    module = context.module
    context.symbols.update({symbol: op for op in module.ops if (symbol := symbol_of(op)) is not None})
    if any(op.name == "rule.operator" for op in module.ops):
        from ..dialects.relay.operator import definitions_in

        context.operators.update({item.sym_name.data: item.entry() for item in definitions_in(module)})
    items = split_items(text, name, first_line, context.report)
    if indent:
        items = [replace(item, indent=indent) for item in items]
    ops_of = parse_items(items, context)
    if context.errors:
        raise MirError(in_order(context.errors))
    module.body.block.add_ops([op for ops in ops_of for op in ops])
    return module


def parse_items(items: Sequence[Item], context: ParseContext) -> list[list[Operation]]:
    """Parses the items of a file, each by its format, and returns the ops of each.

    Errors are reported to the context, in the order of the formats; the ops of what was read all the same are returned.
    """
    by_format: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        by_format.setdefault(item.format, []).append(index)
    ops_of: list[list[Operation]] = [[] for _ in items]
    for format in sorted(by_format, key=_rank):
        indices = by_format[format]
        try:
            with _scope(context):
                parsed = _format(format, items[indices[0]]).parse([items[i] for i in indices], context)
        except (MirError, VerifyException) as error:
            context.report(error, items[indices[0]].location())
            continue
        for index, ops in zip(indices, parsed, strict=True):
            ops_of[index] = ops
            for op in ops:
                _add_symbol(op, context)
    return ops_of


def _scope(context: ParseContext) -> AbstractContextManager[None]:
    """Returns what makes the operators known that the file defines."""
    if not context.operators:
        return nullcontext()
    from ..dialects.relay.operator import operators_in_scope

    return operators_in_scope(context.operators)


def _rank(format: str) -> int:
    names = list(FORMATS)
    return names.index(format) if format in FORMATS else len(names)


def _format(name: str, item: Item) -> Format:
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise error_at(item.location(), f"'{item.kind}' items cannot be read", f"the formats read here are {known}")
    return _load(name)


def _load(name: str) -> Format:
    module, attribute = FORMATS[name]
    return getattr(importlib.import_module(module, __package__), attribute)


def _add_symbol(op: Operation, context: ParseContext) -> None:
    symbol = symbol_of(op)
    if symbol is None:
        return
    if symbol in context.symbols:
        context.report(defined_twice(symbol, op, context.symbols[symbol]))
    else:
        context.symbols[symbol] = op


def print_mir(module: ModuleOp) -> str:
    """Prints a module as `.mir` text, each op in the format of its level.

    `parse_mir` reads the same module. Raises MirError for a top-level op that no format can write.
    """
    with no_collection():
        return in_deep_stack(lambda: _print(module))


def _print(module: ModuleOp) -> str:
    runs: list[tuple[str, list[Operation]]] = []
    for op in module.ops:
        format = _owner(op)
        if runs and runs[-1][0] == format:
            runs[-1][1].append(op)
        else:
            runs.append((format, [op]))
    texts = [""] * len(runs)
    for format in FORMATS:
        indices = [i for i, run in enumerate(runs) if run[0] == format]
        if not indices:
            continue
        groups: Sequence[Sequence[Operation]] = [runs[i][1] for i in indices]
        for index, text in zip(indices, _load(format).print(groups, module), strict=True):
            texts[index] = text.strip("\n")
    return "\n\n".join(text for text in texts if text) + "\n" if any(texts) else ""


def owns(format: str, op: Operation) -> bool:
    """Returns whether a format prints a top-level op."""
    return _load(format).owns(op)


# The dialect of a top-level op says which format to ask first, so that printing one format does not import the others.
_FORMAT_OF_DIALECT = {"tir": "tvmscript", "te": "te", "relay": "relay", "schedule": "schedule"}


def _owner(op: Operation) -> str:
    guess = _FORMAT_OF_DIALECT.get(op.name.partition(".")[0])
    candidates = ([guess] if guess else []) + [name for name in FORMATS if name != guess]
    for name in candidates:
        if _load(name).owns(op):
            return name
    raise error_at(
        op,
        f"'{op.name}' has no .mir text",
        "print the module with '-t mlir', or stop the pipeline before the pass that made this op",
    )
