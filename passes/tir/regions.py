"""How far an index reaches while loops run: the ends of its range as expressions of what stays fixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import BlockArgument, OpResult

from ...dialects.arith import Analyzer, Atom, Expr, Kind
from ...dialects.arith.analyzer import Value
from ...dialects.arith.expr import TRUE, floordiv, free_vars, maximum, minimum
from ...dialects.arith.iter_map import IterMapLevel
from ...dialects.tir import VarOp

Ends = tuple[Expr, Expr]

FROM_DTYPE = 1 << 24
"""A bound from here on may say only of what dtype a symbolic size is, or a part of one: of `j % (n // 2)` it is 2^30."""


def relax(e: Expr, inner: AbstractSet[Atom], analyzer: Analyzer) -> Ends | None:
    """The least and greatest value of `e` while the `inner` variables take all their values; None when that is not known.

    The ends are expressions of the other variables. Each term is taken by itself, so that the range may be too large,
    never too small. What is loaded or called for where the variables run is not known.
    """
    low = high = Expr((), e.const)
    for atom, coefficient in e.terms:
        term = Expr(((atom, coefficient),), 0)
        for variable in (atom,) if atom.kind is Kind.VAR else free_vars(term):
            if variable in inner or _is_made_within(variable, inner):
                break
        else:
            low, high = low + term, high + term
            continue
        ends = _relax_atom(atom, inner, analyzer)
        if ends is None:
            return None
        first, last = ends if coefficient > 0 else (ends[1], ends[0])
        low, high = low + first.scaled(coefficient), high + last.scaled(coefficient)
    return low, high


def _is_made_within(atom: Atom, inner: AbstractSet[Atom]) -> bool:
    """Whether an atom is the value of an op (a load, say) where the `inner` variables are in scope, which may be of each turn another."""
    value = atom.payload
    if not isinstance(value, OpResult) or isinstance(value.op, VarOp):
        return False
    block = value.op.parent
    while block is not None:
        if any(isinstance(v.payload, BlockArgument) and v.payload.block is block for v in inner):
            return True
        block = block.parent_block()
    return False


def _is_fixed(e: Expr, inner: AbstractSet[Atom]) -> bool:
    """Whether an expression is the same in all iterations of the loops of the `inner` variables."""
    return not any(variable in inner or _is_made_within(variable, inner) for variable in free_vars(e))


def _relax_atom(atom: Atom, inner: AbstractSet[Atom], analyzer: Analyzer) -> Ends | None:
    if atom.kind in (Kind.MIN, Kind.MAX):
        parts = [relax(o, inner, analyzer) for o in atom.operands]
        known = [p for p in parts if p is not None]
        if len(known) == len(parts):
            join = minimum if atom.kind is Kind.MIN else maximum
            return join(*(p[0] for p in known)), join(*(p[1] for p in known))
    if atom.kind is Kind.FLOORDIV and (divisor := atom.operands[1].value) is not None and divisor > 0:
        ends = relax(atom.operands[0], inner, analyzer)
        if ends is not None:
            by = atom.operands[1]
            return analyzer.simplify(floordiv(ends[0], by)), analyzer.simplify(floordiv(ends[1], by))
    if atom.kind is Kind.FLOORMOD and (divisor := atom.operands[1].value) is not None and divisor > 0:
        ends = relax(atom.operands[0], inner, analyzer)
        if ends is not None:
            by = atom.operands[1]
            first, last = (analyzer.simplify(floordiv(end, by)) for end in ends)
            if analyzer.can_prove_equal(first, last):
                start = first.scaled(divisor)
                return analyzer.simplify(ends[0] - start), analyzer.simplify(ends[1] - start)
    if (
        atom.kind in (Kind.FLOORDIV, Kind.FLOORMOD)
        and (by := atom.operands[1]).value is None
        and _is_fixed(by, inner)
        and analyzer.can_prove_ge0(by - 1)
    ):
        # By a symbolic size: j % n ends at n - 1.
        if atom.kind is Kind.FLOORMOD:
            return Expr((), 0), by - 1
        ends = relax(atom.operands[0], inner, analyzer)
        if ends is not None:
            return analyzer.simplify(floordiv(ends[0], by)), analyzer.simplify(floordiv(ends[1], by))
    if atom.kind is Kind.PRODUCT:
        # (n + 3) // 4 * j with j in [0, 4) ends at (n + 3) // 4 * 3.
        fixed, running = Expr((), 1), list[Expr]()
        for factor in atom.operands:
            if _is_fixed(factor, inner):
                fixed = fixed * factor
            else:
                running.append(factor)
        if (
            len(running) == 1
            and analyzer.can_prove_ge0(fixed)
            and (ends := relax(running[0], inner, analyzer)) is not None
        ):
            return analyzer.simplify(ends[0] * fixed), analyzer.simplify(ends[1] * fixed)
    if (ends := analyzer.known(atom).ends) is not None and (ends[0].terms or ends[1].terms):
        # A loop over a symbolic size: its ends, in terms of what is fixed.
        first, last = relax(ends[0], inner, analyzer), relax(ends[1], inner, analyzer)
        return None if first is None or last is None else (first[0], last[1])
    bound = analyzer.const_int_bound(Expr(((atom, 1),), 0))
    if bound.min_value > -FROM_DTYPE and bound.max_value < FROM_DTYPE:
        return Expr((), bound.min_value), Expr((), bound.max_value)
    return ends


def filled(
    starts: Sequence[Expr],
    sizes: Sequence[Expr],
    inner: Mapping[Value, tuple[Value, Value]],
    analyzer: Analyzer,
    predicate: Expr = TRUE,
) -> list[Ends] | str:
    """The ends of the box that regions fill, each element of it, while the `inner` loops (variable: (min, extent)) run.

    For the starts (i * 4 + j, k) and the sizes (1, 2), with i and j in range(4), j inner: (0, 15) and (k, k + 1). In terms of the other
    loops, whose ranges `analyzer` knows. A text says why there is none.
    """
    found = analyzer.detect_iter_map(starts, inner, predicate, IterMapLevel.SURJECTIVE)
    if not found:
        return found.errors[0]
    dims: list[Ends] = []
    variables = {analyzer.expr(loop).atom for loop in inner}
    for number, (total, size) in enumerate(zip(found.indices, sizes, strict=True)):
        low, count = total.base, size
        if total.args:
            (split,) = total.args
            if split.scale != size:
                return f"the steps in dimension {number} leave elements out, or meet elements twice"
            count = analyzer.simplify(split.extent * size)
        if any(atom in variables for atom in free_vars(low, count)):
            return f"how far dimension {number} is written depends on the turn"
        low = analyzer.simplify(low)
        dims.append((low, analyzer.simplify(low + count - 1)))
    return dims


def join(a: Ends, b: Ends, analyzer: Analyzer) -> Ends:
    """The range that holds both."""
    return _least(a[0], b[0], analyzer), -_least(-a[1], -b[1], analyzer)


def _least(a: Expr, b: Expr, analyzer: Analyzer) -> Expr:
    if analyzer.can_prove_ge0(b - a):
        return a
    if analyzer.can_prove_ge0(a - b):
        return b
    return minimum(a, b)
