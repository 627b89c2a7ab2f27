"""Expressions as a person writes them, for messages."""

from __future__ import annotations

from ... import tir
from .. import extern as ext
from .. import tensor as te
from ..expr import Apply, Call, Const, Expr, IfThenElse, IterVar, Var

MOST_TEXT = 200
"""How long a text may be; the rest is left out."""


def text_of(e: Expr) -> str:
    """The expression; what is long ends in "…"."""
    text = _text(e, 0)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _text(e: Expr, depth: int) -> str:
    if depth > 20:
        return "…"
    match e:
        case Const():
            return repr(e.value)
        case Var() | IterVar():
            return e.name
        case Apply():
            parts = [_text(a, depth + 1) for a in e.args]
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
        case te.Read():
            return f"{e.tensor.name}[{', '.join(_text(a, depth + 1) for a in e.args)}]"
        case ext.Load():
            return f"{e.buffer.name}[{', '.join(_text(a, depth + 1) for a in e.args)}]"
        case IfThenElse():
            parts = [_text(p, depth + 1) for p in (e.args[0], e.then_value, e.else_value)]
            return f"if_then_else({', '.join(parts)})"
        case Call():
            return f"{e.intrinsic}({', '.join(_text(a, depth + 1) for a in e.args)})"
        case _:
            return "…"


_PRECEDENCE = {"or": 0, "and": 1, "+": 3, "-": 3, "*": 4, "//": 4, "%": 4, "/": 4}


def _precedence(e: Expr) -> int:
    """How strongly an infix operator binds; what is no operator binds most."""
    symbol = str(getattr(e.op, "SYMBOL", "T.")) if isinstance(e, Apply) else "T."
    return 5 if symbol.startswith("T.") else _PRECEDENCE.get(symbol, 2)


def _grouped(e: Expr, text: str, around: int) -> str:
    return f"({text})" if _precedence(e) < around else text
