"""The pass `renormalize-split-pattern`: `x % c // d` as `x // d % (c // d)`, where d divides c.

What splits and fusions of loops leave is then a quotient first, which often cancels; as in TVM's pass of this name.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ....dialects import tir
from ....dialects.arith import Analyzer
from ....dialects.arith.from_ssa import is_index_type
from ....dialects.tir.operators import as_const
from ....support.edit import builder_before
from ..analyzed_walk import AnalyzedWalk, Visit
from ..rewriting import erase_dead, prim_funcs, replace_by_side
from .expression_simplifier import ExpressionSimplifier


class _Renormalizer(AnalyzedWalk):
    def __init__(self) -> None:
        super().__init__(Analyzer())
        self.expressions = ExpressionSimplifier(self.analyzer)

    def visit(self, op: Operation) -> Generator[Visit, None, Iterable[Operation] | None]:
        if isinstance(op, tir.IfOp) and (condition := as_const(op.condition)) is not None:
            return replace_by_side(op, bool(condition.value))
        if isinstance(op, tir.FloorDivOp):
            self.quotient(op)
        elif isinstance(op, tir.CompareOp):
            self.expressions.visit(op)
        yield from self.inside(op)
        return None

    def quotient(self, op: tir.FloorDivOp) -> None:
        """Of a remainder, where the one divisor divides the other."""
        remainder, by = op.lhs.owner, as_const(op.rhs)
        if not isinstance(remainder, tir.FloorModOp) or by is None or not is_index_type(op.result.type):
            return
        modulus = as_const(remainder.rhs)
        if modulus is None or by.value <= 1 or modulus.value % by.value or modulus.value <= 0:
            return
        builder = builder_before(op)
        divided = builder.insert(tir.FloorDivOp(remainder.lhs, op.rhs))
        number = builder.insert(tir.ConstOp.int(int(modulus.value // by.value), op.result.type))
        new = builder.insert(tir.FloorModOp(divided.result, number.result))
        op.result.replace_all_uses_with(new.result)
        self.expressions.simplify_root(divided.result)


@dataclass(frozen=True)
class RenormalizeSplitPattern(ModulePass):
    """Puts quotients before remainders in index arithmetic."""

    name = "renormalize-split-pattern"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every prim_func of the module."""
        for func in prim_funcs(op):
            _Renormalizer().run(func)
            erase_dead(func)
