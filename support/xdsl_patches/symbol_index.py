"""Looks symbols up in an index while a module is only read, in xDSL's own verifiers too."""

from __future__ import annotations

from xdsl.traits import SymbolTable

from ..symbols import lookup_symbol
from . import Patch


def look_up_in_index() -> None:
    """Makes `SymbolTable.lookup_symbol` use the index of `indexed_symbols()`, where there is one."""
    # Verifiers inside xDSL's dialects call the static method by its name on the class.
    SymbolTable.lookup_symbol = staticmethod(lookup_symbol)


PATCH = Patch(
    reason="each look-up scans the whole table: verifying a module of many calls is quadratic",
    gain="4,000 calls in a module of 4,000 functions: verified in 0.2 s instead of 29 s",
    apply=look_up_in_index,
)
