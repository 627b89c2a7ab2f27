"""Solves linear bounds for a block's axes, one at a time: the values that make it provide a region."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ....dialects import tir
from ....dialects.arith import Analyzer, Atom, Expr, Kind
from ....dialects.arith.expr import floordiv, free_vars
from ....dialects.arith.int_set import Ends, join


def solve_axis(
    block: tir.BlockOp, provided: Ends, wanted: Ends, domains: dict[SSAValue, Ends], analyzer: Analyzer
) -> bool:
    """Solves `axis + low … axis + high` for an axis to meet `wanted`; returns whether there was an axis.

    Axes that are not alone in the ends stay free.
    """
    axes = {analyzer.expr(v).atom: v for v in block.iter_vars}
    low, high = provided
    found = [(atom, c) for atom, c in low.terms if atom in axes]
    if len(found) == 1 and found[0][1] == -1:
        # 9 - axis must meet the range: the axis meets it mirrored.
        return solve_axis(block, (-high, -low), (-wanted[1], -wanted[0]), domains, analyzer)
    if len(found) != 1 or found[0][1] != 1:
        scaled = _solve_quotient(axes, low, high, wanted, analyzer)
        if scaled is not None:
            _restrict(domains, scaled[0], scaled[1], analyzer)
        return scaled is not None
    atom = found[0][0]
    axis = axes[atom]
    one = Expr(((atom, 1),), 0)
    below, above = low - one, high - one
    others = {a for a in axes if a is not None and a is not atom}
    if any(v in others or v is atom for v in free_vars(below, above)):
        return False
    # axis + above must reach wanted's low end, axis + below its high end.
    _restrict(domains, axis, (analyzer.simplify(wanted[0] - above), analyzer.simplify(wanted[1] - below)), analyzer)
    return True


def _solve_quotient(
    axes: dict[Atom | None, SSAValue], low: Expr, high: Expr, wanted: Ends, analyzer: Analyzer
) -> tuple[SSAValue, Ends] | None:
    """Solves `c * axis … c * axis + (c - 1)` for the axis by a division by c, `axis // c` by a product.

    `(axis * 8 + lane) // 16`, lane of 8, is `axis // 2`.
    """
    low, high = analyzer.simplify(low), analyzer.simplify(high)
    quotient = low.atom
    if quotient is not None and quotient.kind is Kind.FLOORDIV and low == high:
        dividend, divisor = quotient.operands
        if dividend.atom in axes and divisor.value is not None and divisor.value > 0:
            ends = wanted[0].scaled(divisor.value), wanted[1].scaled(divisor.value) + (divisor.value - 1)
            return axes[dividend.atom], (analyzer.simplify(ends[0]), analyzer.simplify(ends[1]))
    if len(low.terms) != 1 or low.const or low.terms[0][0] not in axes:
        return None
    atom, factor = low.terms[0]
    if factor <= 1 or analyzer.simplify(high - low).value != factor - 1:
        return None
    by = Expr((), factor)
    return axes[atom], (analyzer.simplify(floordiv(wanted[0], by)), analyzer.simplify(floordiv(wanted[1], by)))


def _restrict(domains: dict[SSAValue, Ends], axis: SSAValue, ends: Ends, analyzer: Analyzer) -> None:
    known = domains.get(axis)
    domains[axis] = ends if known is None else join(known, ends, analyzer)
