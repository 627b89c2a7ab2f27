"""Analyzer expressions as text, in TVMScript's notation, for messages."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import BlockArgument, OpResult, SSAValue

from .conditions import logical_not
from .expr import Atom, Expr, Function, Kind, Symbol

_INFIX = {Kind.FLOORDIV: " // ", Kind.FLOORMOD: " % ", Kind.PRODUCT: " * ", Kind.AND: " and "}
_NAMED = {Kind.TRUNCDIV: "T.Div", Kind.TRUNCMOD: "T.truncmod", Kind.MIN: "T.min", Kind.MAX: "T.max"}


def value_name(value: SSAValue) -> str:
    """The name that the text gives a scalar value: of a loop, an axis, a parameter, a variable; else its hint."""
    if isinstance(value, BlockArgument):
        owner = value.block.parent_op()
        if owner is not None:
            for field in ("iter_names", "param_names"):
                names = owner.properties.get(field)
                if isinstance(names, ArrayAttr) and value.index < len(names.data):
                    name = names.data[value.index]
                    return name.data if isinstance(name, StringAttr) else "?"
            name = owner.properties.get("var_name")
            if isinstance(name, StringAttr):
                return name.data
    elif isinstance(value, OpResult):
        name = value.op.properties.get("var_name")
        if isinstance(name, StringAttr):
            return name.data
        if value.op.name == "tir.load":
            from ..tir.buffer import buffer_name

            return f"{buffer_name(value.op.operands[0])}[…]"
    return value.name_hint or "_"


def to_text(expr: Expr) -> str:
    """The expression, larger coefficients first, the constant last."""
    if expr.const == 1 and len(expr.terms) == 1 and expr.terms[0][1] == -1 and _is_logic(expr.terms[0][0]):
        return _negation_text(expr.terms[0][0])
    parts: list[str] = []
    for atom, coefficient in sorted(expr.terms, key=lambda t: (t[1] < 0, -abs(t[1]))):
        text = _atom_text(atom)
        if abs(coefficient) != 1:
            text = f"{_wrapped(text) if atom.kind is not Kind.PRODUCT else text} * {abs(coefficient)}"
        if not parts:
            parts.append(f"-{_wrapped(text)}" if coefficient < 0 else text)
        else:
            parts.append(f" {'-' if coefficient < 0 else '+'} {_wrapped(text) if _is_logic(atom) else text}")
    if expr.const or not parts:
        sign = "-" if expr.const < 0 else "+"
        parts.append(f" {sign} {abs(expr.const)}" if parts else str(expr.const))
    return "".join(parts)


def _is_logic(atom: Atom) -> bool:
    return atom.kind in (Kind.AND, Kind.GE, Kind.EQ)


def _negation_text(atom: Atom) -> str:
    if atom.kind is Kind.EQ:
        return _comparison(atom.operands[0], "!=")
    if atom.kind is Kind.AND:
        return " or ".join(_operand(logical_not(e)) for e in atom.operands)
    return f"not ({_atom_text(atom)})"


def _wrapped(text: str) -> str:
    """In parentheses unless it is one name or call."""
    return text if text.replace(".", "").replace("_", "").isalnum() or text.startswith("T.") else f"({text})"


def _operand(expr: Expr) -> str:
    return _wrapped(to_text(expr))


def _atom_text(atom: Atom) -> str:
    kind, operands = atom.kind, atom.operands
    if kind is Kind.VAR:
        of = atom.payload
        if isinstance(of, SSAValue):
            return value_name(of)
        return of.name if isinstance(of, Symbol) else str(of)
    if kind in _INFIX:
        return _INFIX[kind].join(map(_operand, operands))
    if kind is Kind.GE or kind is Kind.EQ:
        return _comparison(operands[0], "==" if kind is Kind.EQ else "")
    if kind is Kind.SELECT:
        return f"T.{'if_then_else' if atom.payload else 'Select'}({', '.join(map(to_text, operands))})"
    name = _NAMED.get(kind)
    if name is None:
        function: object = atom.payload
        name = str(function.name) if isinstance(function, Function) else str(function)
    return f"{name}({', '.join(map(to_text, operands))})"


def _comparison(expr: Expr, equality: str) -> str:
    """`expr` >= 0 (or == 0, != 0 by `equality`) with the positive terms on the left and the negative on the right."""
    left = Expr(tuple(t for t in expr.terms if t[1] > 0), 0)
    right = Expr(tuple((a, -c) for a, c in expr.terms if c < 0), 0)
    if equality:
        return f"{to_text(left)} {equality} {to_text(right - expr.const)}"
    if not left.terms:
        return f"{to_text(right)} < {expr.const + 1}"
    if right.terms and expr.const == -1:
        return f"{to_text(right)} < {to_text(left)}"
    return f"{to_text(right - expr.const)} <= {to_text(left)}"
