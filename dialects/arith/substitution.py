"""Atoms of an expression replaced by others, everything around them simplified by the constructors anew."""

from __future__ import annotations

from collections.abc import Callable

from .conditions import eq, ge, logical_and, select
from .expr import ONE, ZERO, Atom, Expr, Kind, as_expr, call, floordiv, floormod, maximum, minimum, truncdiv, truncmod


def rebuild(atom: Atom, operands: tuple[Expr, ...]) -> Expr:
    """The atom with other operands, simplified by the constructors."""
    match atom.kind:
        case Kind.VAR:
            return Expr(((atom, 1),), 0)
        case Kind.PRODUCT:
            total = ONE
            for operand in operands:
                total = total * operand
            return total
        case Kind.SELECT:
            return select(operands[0], operands[1], operands[2], bool(atom.payload))
        case Kind.CALL:
            return call(atom.payload, operands)
        case Kind.GE:
            return ge(operands[0], ZERO)
        case Kind.EQ:
            return eq(operands[0], ZERO)
        case _:
            return _BUILDERS[atom.kind](*operands)


_BUILDERS: dict[Kind, Callable[..., Expr]] = {
    Kind.FLOORDIV: floordiv,
    Kind.FLOORMOD: floormod,
    Kind.TRUNCDIV: truncdiv,
    Kind.TRUNCMOD: truncmod,
    Kind.MIN: minimum,
    Kind.MAX: maximum,
    Kind.AND: logical_and,
}


def substitute(expr: Expr, values: dict[Atom, Expr], memo: dict[Atom, Expr] | None = None) -> Expr:
    """`expr` with atoms (variables, say) replaced everywhere in it."""
    if memo is None:
        memo = dict(values)
    total = as_expr(expr.const)
    for atom, coefficient in expr.terms:
        replaced = memo.get(atom)
        if replaced is None:
            operands = tuple(substitute(e, values, memo) for e in atom.operands)
            same = all(a is b for a, b in zip(operands, atom.operands, strict=True))
            replaced = Expr(((atom, 1),), 0) if same else rebuild(atom, operands)
            memo[atom] = replaced
        total += replaced.scaled(coefficient)
    return expr if total == expr else total
