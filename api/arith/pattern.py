"""Reads expressions that are linear in variables, and conditions that bound variables."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.arith import expr as x
from ...dialects.arith.analyzer import linear_in
from ...dialects.arith.expr import Atom, Kind
from ...dialects.arith.node_analyzer import NodeAnalyzer
from ...dialects.tir.node import Expr, ExprLike, Var, convert
from ...support.arguments import items
from ...support.public_names import public_names


def detect_linear_equation(expr: ExprLike, var_list: Sequence[Var]) -> list[Expr]:
    """Returns the coefficient of each variable, and the rest; an empty list where it is not linear.

    detect_linear_equation(a * 4 + b * 6 + 7, [a])      # [4, b * 6 + 7]
    """
    analyzer = NodeAnalyzer()
    given = convert(expr)
    atoms = _atoms(analyzer, var_list)
    rest, found = analyzer.analyzed(given), list[x.Expr]()
    for atom in atoms:
        if atom not in x.free_vars(rest):
            found.append(x.ZERO)
            continue
        parts = linear_in(rest, atom)
        if parts is None or any(other in x.free_vars(parts[0]) for other in atoms):
            return []
        found.append(parts[0])
        rest = parts[1]
    return [analyzer.node(e, given.dtype) for e in (*found, rest)]


def detect_clip_bound(expr: ExprLike, var_list: Sequence[Var]) -> list[Expr | None]:
    """Returns the ends that a condition sets to each variable, least and greatest; None for no end.

    The list is empty where a part of the condition bounds no single variable.

        detect_clip_bound(tir.all(a < b * 6, a - 1 > 0), [a])      # [2, b * 6 - 1]
    """
    analyzer = NodeAnalyzer()
    atoms = _atoms(analyzer, var_list)
    ends: dict[Atom, tuple[x.Expr | None, x.Expr | None]] = dict.fromkeys(atoms, (None, None))
    for condition in x.conjuncts(analyzer.analyzed(convert(expr))):
        order = condition.atom
        if order is None or order.kind not in (Kind.GE, Kind.EQ):
            return []
        (e,) = order.operands
        used = [atom for atom in atoms if atom in x.free_vars(e)]
        parts = linear_in(e, used[0]) if len(used) == 1 else None
        if parts is None or parts[0] not in (x.ONE, -x.ONE):
            return []
        (atom,), (factor, rest) = used, parts
        low, high = ends[atom]
        # factor * atom + rest >= 0
        end = rest.scaled(-factor.const)
        if order.kind is Kind.EQ or factor == x.ONE:
            low = end if low is None else x.maximum(low, end)
        if order.kind is Kind.EQ or factor != x.ONE:
            high = end if high is None else x.minimum(high, end)
        ends[atom] = (low, high)
    dtypes = [variable.dtype for variable in var_list]
    return [
        None if end is None else analyzer.node(end, dtype)
        for atom, dtype in zip(atoms, dtypes, strict=True)
        for end in ends[atom]
    ]


def _atoms(analyzer: NodeAnalyzer, var_list: Sequence[Var]) -> list[Atom]:
    variables = items(var_list, "var_list", "variables", Var)
    return [analyzer.analyzer.variable(analyzer.variable(variable)) for variable in variables]


__dir__ = public_names(__name__)
