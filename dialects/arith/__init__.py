"""The arithmetic analyzer over TIR's integer expressions: `Analyzer` is the way in.

`expr` holds the expressions, `convert` and `build` go between them and SSA, `bounds` and `simplify` are what the analyzer knows,
`iter_map` detects quasi-affine iteration maps, `int_set` gives the intervals that expressions cover while variables run.
"""

from .analyzer import Analyzer, Scope
from .bounds import INF, ConstIntBound, ModularSet
from .expr import Atom, Expr, Kind, Symbol, symbol

__all__ = ["INF", "Analyzer", "Atom", "ConstIntBound", "Expr", "Kind", "ModularSet", "Scope", "Symbol", "symbol"]
