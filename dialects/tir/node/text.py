"""Prints scalar expressions as text: `a * 2 + b`."""

from __future__ import annotations

from collections.abc import Iterable

from ... import tir
from ..intrinsics import DTYPE_FIRST, DTYPE_LAST
from ..literals import float_literal, integer_literal
from ..scalar_ops import OPERATORS, Precedence
from .buffer import Broadcast, Let, Ramp, Shuffle
from .expr import PRINT, Apply, Call, Choice, Const, Element, Expr, IterVar, StringImm, Var, is_float

MOST_TEXT = 200
"""How long a text in a message may be; the rest is left out."""
MOST_DEPTH = 100
"""The depth of nesting from which a text leaves expressions out."""


def text_of(e: Expr, most: int = MOST_TEXT) -> str:
    """Returns the expression as text, `a * 2 + b`; a text longer than `most` ends in "…"."""
    return _Writer(most).text(e, 0)


class _Writer:
    """Writes expressions; a shared subexpression is written once, so that the work is linear in the graph."""

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
            case Element():
                return f"{e.array_name}[{self._list(e.args, depth)}]"
            case Choice():
                return f"if_then_else({self._list((e.args[0], e.then_value, e.else_value), depth)})"
            case Call():
                arguments = [part for part in e.args if not isinstance(part, StringImm)]
                return f"{e.intrinsic}({self._list(arguments, depth)})"
            case StringImm():
                return f'"{e.value}"'
            case Ramp() | Broadcast():
                return f"T.{type(e).__name__}({self._list(e.args, depth)}, {e.lanes})"
            case Shuffle():
                return f"T.Shuffle([{self._list(e.vectors, depth)}], {e.indices})"
            case Let():
                return f"T.Let({self.text(e.body, depth)}, where={{{e.var.name}: {self.text(e.value, depth)}}})"
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


def _precedence(e: Expr) -> int:
    """Returns how tightly an infix operator binds; any other expression is an atom."""
    if not isinstance(e, Apply) or str(getattr(e.op, "SYMBOL", "T.")).startswith("T."):
        return Precedence.ATOM
    return OPERATORS[e.op].precedence


def _grouped(e: Expr, text: str, around: int) -> str:
    return f"({text})" if _precedence(e) < around else text


class _ScriptWriter(_Writer):
    """Writes expressions as TVM prints them, in TVMScript: `T.min(x, T.int64(4))`."""

    def _text(self, e: Expr, depth: int) -> str:
        match e:
            case Const():
                return _literal(e)
            case Choice():
                return f"T.{super()._text(e, depth)}"
            case Call():
                return self._call(e, depth)
            case _:
                return super()._text(e, depth)

    def _call(self, e: Call, depth: int) -> str:
        parts = [self.text(each, depth) if isinstance(each, Expr) else str(each) for each in e.operands]
        if e.intrinsic in DTYPE_FIRST:
            parts.insert(0, f'"{e.dtype}"')
        if e.intrinsic in DTYPE_LAST:
            parts.append(f'"{e.dtype}"')
        return f"{e.callee.name_hint if e.callee is not None else f'T.{e.intrinsic}'}({', '.join(parts)})"  # type: ignore[attr-defined]

    def _operation(self, e: Apply, depth: int) -> str:
        parts = [self.text(a, depth) for a in e.args]
        if e.op is tir.NotOp:
            return f"not {parts[0]}"
        if e.op is tir.SelectOp:
            return f"T.Select({', '.join(parts)})"
        if e.op is tir.CastOp:
            return f'T.Cast("{e.dtype}", {parts[0]})'
        if e.op is tir.DivOp and is_float(e.args[0].dtype):
            strength = OPERATORS[tir.MulOp].precedence
            left, right = _grouped(e.args[0], parts[0], strength), _grouped(e.args[1], parts[1], strength + 1)
            return f"{left} / {right}"
        symbol = str(getattr(e.op, "SYMBOL", e.op.name))
        if symbol[0].isalpha() and symbol not in ("and", "or"):
            return f"T.{symbol.removeprefix('T.')}({', '.join(parts)})"
        return super()._operation(e, depth)


def _literal(e: Const) -> str:
    return float_literal(e.value, e.dtype) if is_float(e.dtype) else integer_literal(int(e.value), e.dtype)


def script_text(e: Expr, most: int = 10_000) -> str:
    """Returns the expression as TVM prints it; a longer text ends in "…"."""
    return _ScriptWriter(most).text(e, 0)


PRINT.append(script_text)
