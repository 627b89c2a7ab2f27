"""Constant-time symbol lookup while a module is only read.

xDSL's `SymbolTable.lookup_symbol` scans the whole table for each call, which makes verifying a module of many calls
quadratic. Inside `indexed_symbols()` lookups of this thread go through an index, made at a table's first use; outside, and
in other threads, they are xDSL's own.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation
from xdsl.traits import SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException


class _Indices(threading.local):
    """The index of each symbol table op seen so far, or None outside `indexed_symbols()`."""

    tables: dict[Operation, dict[str, Operation]] | None = None


_INDICES = _Indices()
_scan = SymbolTable.lookup_symbol


@contextmanager
def indexed_symbols() -> Generator[None]:
    """While inside, no op with a symbol may be added, renamed or erased by this thread."""
    outer = _INDICES.tables
    _INDICES.tables = {} if outer is None else outer
    try:
        yield
    finally:
        _INDICES.tables = outer


def lookup_symbol(op: Operation, name: str | StringAttr | SymbolRefAttr) -> Operation | None:
    """Looks up `name` in the nearest symbol table around `op`; None when it has none."""
    tables = _INDICES.tables
    if tables is None:
        return _scan(op, name)
    match name:
        case SymbolRefAttr():
            path = [name.root_reference.data, *(part.data for part in name.nested_references)]
        case StringAttr():
            path = [name.data]
        case _:
            path = [name]
    table: Operation | None = op
    while table is not None and not table.has_trait(SymbolTable, value_if_unregistered=False):
        table = table.parent_op()
    found: Operation | None = None
    for part in path:
        if table is None or not table.regions or table.regions[0].first_block is None:
            return None
        if table not in tables:
            tables[table] = _index(table)
        found = table = tables[table].get(part)
    return found


def _index(table: Operation) -> dict[str, Operation]:
    symbols: dict[str, Operation] = {}
    block = table.regions[0].first_block
    for child in () if block is None else block.ops:
        if (interface := child.get_trait(SymbolOpInterface)) is None:
            continue
        try:
            name = interface.get_sym_attr_name(child)
        except VerifyException:
            continue  # The op's own verifier reports the missing name.
        if name is not None:
            symbols.setdefault(name.data, child)
    return symbols
