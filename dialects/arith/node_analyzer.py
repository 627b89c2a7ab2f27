"""Analyzes TIR's expression nodes within the bounds of their dtypes; writes results as nodes again.

analyzer.analyzed(node)     the analyzer's expression, on which `iter_map` and others work
analyzer.node(result)       the node of such an expression, its terms in TVM's order
"""

from __future__ import annotations

from functools import reduce

from .. import tir
from ..tir import node as ex
from ..tir.node import Apply, Expr, SizeVar, Var
from . import expr as x
from .bounds import INF
from .expr import Atom, Kind
from .ordered import Arith, number


class NodeAnalyzer(Arith):
    """Simplifies and proves; a variable is within the values of its dtype, a size at least 0."""

    def __init__(self) -> None:
        super().__init__()
        self._origins: dict[Atom, Expr] = {}

    def _symbol(self, e: Expr) -> x.Expr:
        limits = ex.INT_LIMITS.get(e.dtype)
        if isinstance(e, SizeVar):
            limits = (0, INF)
        found = x.symbol(e.name if isinstance(e, Var) else "value", limits)
        self._origins[self.analyzer.variable(found)] = e
        return found

    def _parts(self, e: Expr) -> tuple[Expr, ...]:
        parts = super()._parts(e)
        if not parts and isinstance(e, Apply) and e.op is tir.CastOp:
            # A dtype that holds all values of the other keeps each.
            inner, outer = ex.INT_LIMITS.get(e.args[0].dtype), ex.INT_LIMITS.get(e.dtype)
            if inner is not None and outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1]:
                return e.args
        return parts

    def _simplify(self, e: Expr) -> Expr:
        result = super()._simplify(e)
        if isinstance(result, Apply) and result.op in (tir.AndOp, tir.OrOp):
            known = self.analyzer.simplify(self.analyzed(result))
            if not known.terms:
                return ex.IntImm("bool", known.const)
            for part, other in (result.args, result.args[::-1]):
                with self.knowing(part):
                    implied = self.prove(other)
                if implied:
                    return part if result.op is tir.AndOp else other
        return result

    def variable(self, variable: Expr) -> x.Expr:
        """Returns the analyzer's variable for one of TIR."""
        return self._atom(variable)

    def forget_simplified(self) -> None:
        """Forgets what expressions were simplified to, after more was learned."""
        self._memo.clear()

    def equal_of(self, variable: Expr) -> Expr | None:
        """Returns what a variable was bound to, None where to a range or nothing."""
        return self._equal.get(id(variable))

    def node(self, e: x.Expr, dtype: str = "int32") -> Expr:
        """Returns the node of an expression of the analyzer's, simplified, its numbers of a dtype."""
        return self.simplify(self._tree(e, dtype))

    def _tree(self, e: x.Expr, dtype: str) -> Expr:
        result: Expr = number(0, dtype)
        for atom, coefficient in e.terms:
            term = ex.multiply(self._of_atom(atom, dtype), number(abs(coefficient), dtype))
            result = ex.add(result, term) if coefficient > 0 else ex.subtract(result, term)
        return ex.add(result, number(e.const, dtype)) if e.const else result

    def _of_atom(self, atom: Atom, dtype: str) -> Expr:
        match atom.kind:
            case Kind.VAR:
                return self._origins[atom]
            case Kind.GE | Kind.EQ | Kind.AND:
                return ex.cast(dtype, self._condition(x.Expr(((atom, 1),), 0), dtype))
            case Kind.SELECT:
                condition, then, otherwise = atom.operands
                choose = ex.if_then_else if atom.payload else ex.select
                return choose(self._condition(condition, dtype), self._tree(then, dtype), self._tree(otherwise, dtype))
            case _:
                # The only call that nodes become is a product too large to be multiplied out.
                build = _BUILD.get(atom.kind, ex.multiply)
                return reduce(build, [self._tree(operand, dtype) for operand in atom.operands])

    def _condition(self, e: x.Expr, dtype: str) -> Expr:
        atom = e.atom
        match atom.kind if atom is not None else None:
            case Kind.GE | Kind.EQ if atom is not None:
                build = ex.greater_equal if atom.kind is Kind.GE else ex.equal
                return build(self._tree(atom.operands[0], dtype), number(0, dtype))
            case Kind.AND if atom is not None:
                return reduce(ex.logical_and, [self._condition(operand, dtype) for operand in atom.operands])
            case _ if x.logical_not(e).atom is not None:
                return ex.logical_not(self._condition(x.logical_not(e), dtype))
            case _:
                return ex.cast("bool", self._tree(e, dtype))


_BUILD = {
    Kind.FLOORDIV: ex.floordiv,
    Kind.FLOORMOD: ex.floormod,
    Kind.TRUNCDIV: ex.truncdiv,
    Kind.TRUNCMOD: ex.truncmod,
    Kind.MIN: ex.minimum,
    Kind.MAX: ex.maximum,
}
