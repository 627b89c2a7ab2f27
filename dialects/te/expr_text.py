"""Expressions as a person writes them: `str(a + b)`, and in messages."""

from __future__ import annotations

from collections.abc import Iterable

from .. import tir
from . import extern as ext
from . import tensor as te
from .expr import Apply, Call, Const, Expr, IfThenElse, IterVar, Var

MOST_TEXT = 200
"""How long a text in a message may be; the rest is left out."""
MOST_DEPTH = 100
"""How many expressions may be inside of each other; what is deeper is left out."""


def text_of(e: Expr, most: int = MOST_TEXT) -> str:
    """Returns the expression as text, `a * 2 + b`; what is longer than `most` ends in "…"."""
    return _Writer(most).text(e, 0)


class _Writer:
    """Writes expressions. A part that several share is written once, so that the work is not more than the expression."""

    def __init__(self, most: int):
        self._most = most
        self._known: dict[Expr, str] = {}

    def text(self, e: Expr, depth: int) -> str:
        known = self._known.get(e)
        if known is None:
            known = "…" if depth > MOST_DEPTH else self._text(e, depth + 1)
            if len(known) > self._most:
                known = known[: self._most - 1] + "…"
            self._known[e] = known
        return known

    def _list(self, parts: Iterable[Expr], depth: int) -> str:
        return ", ".join(self.text(part, depth) for part in parts)

    def _text(self, e: Expr, depth: int) -> str:
        match e:
            case Const():
                return str(bool(e.value)) if e.dtype == "bool" else str(e.value)
            case Var() | IterVar():
                return e.name
            case Apply():
                return self._operation(e, depth)
            case te.Read():
                return f"{e.tensor.name}[{self._list(e.args, depth)}]"
            case ext.Load():
                return f"{e.buffer.name}[{self._list(e.args, depth)}]"
            case IfThenElse():
                return f"if_then_else({self._list((e.args[0], e.then_value, e.else_value), depth)})"
            case Call():
                return f"{e.intrinsic}({self._list(e.args, depth)})"
            case _:
                return "…"

    def _operation(self, e: Apply, depth: int) -> str:
        parts = [self.text(a, depth) for a in e.args]
        if e.op is tir.NotOp:
            return f"not {parts[0]}"
        if e.op is tir.SelectOp:
            return f"Select({', '.join(parts)})"
        if e.op is tir.CastOp:
            return f"{e.dtype}({parts[0]})"
        symbol = str(getattr(e.op, "SYMBOL", e.op.name))
        if symbol[0].isalpha() and symbol not in ("and", "or"):
            return f"{symbol.removeprefix('T.')}({', '.join(parts)})"
        strength = _precedence(e)
        left, right = _grouped(e.args[0], parts[0], strength), _grouped(e.args[1], parts[1], strength + 1)
        return f"{left} {symbol} {right}"


_PRECEDENCE = {"or": 0, "and": 1, "+": 3, "-": 3, "*": 4, "//": 4, "%": 4, "/": 4}


def _precedence(e: Expr) -> int:
    """How strongly an infix operator binds; what is no operator binds most."""
    symbol = str(getattr(e.op, "SYMBOL", "T.")) if isinstance(e, Apply) else "T."
    return 5 if symbol.startswith("T.") else _PRECEDENCE.get(symbol, 2)


def _grouped(e: Expr, text: str, around: int) -> str:
    return f"({text})" if _precedence(e) < around else text
