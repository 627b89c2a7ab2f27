"""Analyzes arithmetic on TIR's integer expressions; `Analyzer` is the entry point.

`const_fold` folds constants as TVM's operators do, `expr` holds the analyzer's expressions, `from_ssa` and `to_ssa` go between them and
SSA, `bounds` and `simplify` are what the analyzer knows, `iter_map` detects quasi-affine iteration maps, `int_set` returns the
intervals that expressions cover while variables run, and `regions` infers the accesses of a block. The names below are loaded at first use: folding needs no analyzer.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .analyzer import Analyzer, Scope
    from .bounds import INF, ConstIntBound, ModularSet
    from .expr import Atom, Expr, Kind, Symbol, symbol

__all__ = ["INF", "Analyzer", "Atom", "ConstIntBound", "Expr", "Kind", "ModularSet", "Scope", "Symbol", "symbol"]

_LAZY = {
    **dict.fromkeys(("Analyzer", "Scope"), ".analyzer"),
    **dict.fromkeys(("INF", "ConstIntBound", "ModularSet"), ".bounds"),
    **dict.fromkeys(("Atom", "Expr", "Kind", "Symbol", "symbol"), ".expr"),
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        found: object = getattr(import_module(_LAZY[name], __package__), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
