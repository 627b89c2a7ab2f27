"""Solves linear equations and inequalities of integers, as `tvm.arith.int_solver`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...dialects.arith import expr as x
from ...dialects.arith.expr import Atom
from ...dialects.arith.linear_system import Bounds, coefficients, diagonalize, eliminate
from ...dialects.arith.node_analyzer import NodeAnalyzer
from ...dialects.tir import node as ex
from ...dialects.tir.node import Expr, ExprLike, IntImm, Range, Var, convert
from ...dialects.tir.node.functor import expressions_of, substitute
from ...support.arguments import check, items
from ...support.public_names import public_names
from .int_set import evaluate

Ranges = Mapping[Var, Range]


class IntGroupBounds:
    """Bounds `coef * variable`: at least each of `lower`, at most each of `upper`, equal to `equal`."""

    __slots__ = ("coef", "equal", "lower", "upper")

    def __init__(self, coef: ExprLike, lower: Sequence[ExprLike], equal: Sequence[ExprLike], upper: Sequence[ExprLike]):
        self.coef = convert(coef)
        self.lower = [convert(e) for e in lower]
        self.equal = [convert(e) for e in equal]
        self.upper = [convert(e) for e in upper]

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """Returns the bounds that a range is."""
        check(rng, "rng", "a Range", Range)
        analyzer = NodeAnalyzer()
        one = IntImm(rng.min.dtype, 1)
        if analyzer.prove_equal(rng.extent, one):
            return IntGroupBounds(one, [], [rng.min], [])
        return IntGroupBounds(one, [rng.min], [], [analyzer.simplify(rng.min + rng.extent - 1)])

    def find_best_range(self, ranges: Ranges | None = None) -> Range | None:
        """Returns the least range that holds the variable's values; None where one side has no bound.

        Variables of `ranges` run: the extent is the greatest that it is for any of their values.
        """
        known = _Known(ranges or {})
        coef = known.analyzer.simplify(self.coef)
        if not isinstance(coef, IntImm) or coef.value < 1:
            raise ex.fail(f"the factor of a bounded variable is a number above 0, not {self.coef}")
        return known.best_range(int(coef.value), self.lower, self.equal, self.upper)

    def __repr__(self) -> str:
        return f"IntGroupBounds(coef={self.coef}, lower={self.lower}, equal={self.equal}, upper={self.upper})"


class IntConstraints:
    """Variables, the ranges that some of them have, and conditions on them."""

    __slots__ = ("ranges", "relations", "variables")

    def __init__(self, variables: Sequence[Var], ranges: Ranges | None, relations: Sequence[Expr]):
        self.variables = items(variables, "variables", "variables", Var)
        self.ranges = dict(ranges or {})
        self.relations = items(relations, "relations", "conditions", Expr)

    def __repr__(self) -> str:
        return f"IntConstraints({self.variables}, {self.ranges}, {self.relations})"


class IntConstraintsTransform:
    """Two systems with the same solutions, and the variables of each as expressions of the other's."""

    __slots__ = ("dst", "dst_to_src", "src", "src_to_dst")

    def __init__(
        self,
        src: IntConstraints,
        dst: IntConstraints,
        src_to_dst: Mapping[Var, Expr],
        dst_to_src: Mapping[Var, Expr],
    ):
        check(src, "src", "IntConstraints", IntConstraints)
        check(dst, "dst", "IntConstraints", IntConstraints)
        self.src = src
        self.dst = dst
        self.src_to_dst = dict(src_to_dst)
        self.dst_to_src = dict(dst_to_src)

    def __repr__(self) -> str:
        return f"IntConstraintsTransform({self.src}, {self.dst}, {self.src_to_dst}, {self.dst_to_src})"


def _constraints(
    equations: Sequence[Expr] | IntConstraints, variables: Sequence[Var] | None, ranges: Ranges | None
) -> IntConstraints:
    if isinstance(equations, IntConstraints):
        return equations
    return IntConstraints(variables or [], ranges, equations)


class _Known:
    """An analyzer that knows ranges of variables."""

    def __init__(self, ranges: Ranges):
        self.analyzer = NodeAnalyzer()
        self.ranges = dict(ranges)
        for variable, span in ranges.items():
            self.analyzer.bind(variable, span.min, span.extent)

    def interval(self, e: Expr) -> tuple[Expr, Expr] | None:
        """Returns the least and the greatest value of an expression; None where an end is open."""
        values = evaluate(e, self.ranges, self.analyzer)
        ends = (values.min_value, values.max_value)
        return None if any(end.dtype == "handle" for end in ends) else ends

    def best_range(
        self, coef: int, lower: Sequence[Expr], equal: Sequence[Expr], upper: Sequence[Expr]
    ) -> Range | None:
        best: tuple[Expr, Expr] | None = None
        for low in (*equal, *lower):
            for high in (*equal, *upper):
                first = self.analyzer.simplify(ex.floordiv(low + (coef - 1), coef) if coef > 1 else low)
                last = ex.floordiv(high, coef) if coef > 1 else high
                span = self.interval(self.analyzer.simplify(last - first))
                if span is None:
                    continue
                extent = self.analyzer.simplify(span[1] + 1)
                if best is None or self.analyzer.prove(ex.less(extent, best[1])):
                    best = first, extent
        if best is None:
            return None
        # A range may be empty; its extent is then 0.
        empty = self.analyzer.prove(ex.less(best[1], 0))
        return Range.from_min_extent(best[0], IntImm(best[1].dtype, 0) if empty else best[1])


def _conjuncts(relations: Iterable[Expr]) -> list[Expr]:
    found: list[Expr] = []
    pending = list(relations)[::-1]
    while pending:
        e = pending.pop()
        if isinstance(e, ex.And):
            pending += e.args[::-1]
        else:
            found.append(e)
    return found


def _is_false(e: Expr) -> bool:
    return isinstance(e, IntImm) and not e.value


def _impossible(src: IntConstraints) -> IntConstraintsTransform:
    return IntConstraintsTransform(src, IntConstraints([], {}, [IntImm("bool", 0)]), {}, {})


# Equations -----------------------------------------------------------------------------------------------------------


def solve_linear_equations(
    equations: Sequence[Expr] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Ranges | None = None,
) -> IntConstraintsTransform:
    """Solves equations for variables: a system of fewer variables, in which the equations are true.

    What is not an equation that is linear in the variables remains a relation. A system without a solution has no
    variables and one relation, which is false.

        solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y]).src_to_dst     # {x: 15, y: 5}
    """
    src = _constraints(equations, variables, ranges)
    known = _Known(src.ranges)
    atoms = [known.analyzer.analyzer.variable(known.analyzer.variable(variable)) for variable in src.variables]
    matrix: list[list[int]] = []
    values: list[x.Expr] = []
    others: list[Expr] = []
    for relation in _conjuncts(src.relations):
        parts = None
        if isinstance(relation, ex.EQ) and relation.args[0].dtype in ex.INT_LIMITS:
            a, b = (known.analyzer.analyzed(e) for e in relation.args)
            parts = coefficients(a - b, atoms)
        if parts is None:
            others.append(relation)
        else:
            matrix.append(parts[0])
            values.append(-parts[1])
    return _Equations(src, known).solved(matrix, values, others)


class _Equations:
    def __init__(self, src: IntConstraints, known: _Known):
        self.src = src
        self.known = known
        self.dtype = src.variables[0].dtype if src.variables else "int32"

    def solved(self, matrix: list[list[int]], values: list[x.Expr], others: list[Expr]) -> IntConstraintsTransform:
        src, analyzer = self.src, self.known.analyzer
        count = len(src.variables)
        system = diagonalize(matrix, values, count)
        known: list[x.Expr] = []
        conditions: list[x.Expr] = []
        for row, value in enumerate(system.values):
            factor = x.as_expr(system.matrix[row][row]) if row < system.rank else x.ZERO
            remainder = x.floormod(value, factor) if row < system.rank else value
            conditions.append(x.eq(remainder, x.ZERO))
            if row < system.rank:
                known.append(analyzer.analyzer.simplify(x.floordiv(value, factor)))
        relations = [analyzer.node(condition, "bool") for condition in map(analyzer.analyzer.simplify, conditions)]
        if any(map(_is_false, relations)):
            return _impossible(src)
        new = [Var(f"n{i}", src.variables[0].dtype) for i in range(count - system.rank)]
        unknowns = known + [analyzer.analyzed(variable) for variable in new]
        src_to_dst: dict[Var, Expr] = {}
        for variable, row in zip(src.variables, system.to_old, strict=True):
            src_to_dst[variable] = _negated(analyzer.node(_dot(row, unknowns), variable.dtype))
        old = [analyzer.analyzed(variable) for variable in src.variables]
        dst_to_src = {
            variable: analyzer.node(_dot(row, old), self.dtype)
            for variable, row in zip(new, system.to_new[system.rank :], strict=True)
        }
        ranges: dict[Var, Range] = {}
        for variable, e in dst_to_src.items():
            ends = self.known.interval(e)
            if ends is not None and not self.uses_unknowns(ends):
                ranges[variable] = Range.from_min_extent(ends[0], analyzer.simplify(ends[1] - ends[0] + 1))
        after = _Known({**src.ranges, **ranges})
        kept = [e for e in relations if not after.analyzer.prove(e)]
        for variable, span in src.ranges.items():
            if variable in src_to_dst:
                value = src_to_dst[variable]
                bounds = (ex.LE(span.min, value), ex.LT(value, analyzer.simplify(span.min + span.extent)))
                kept += [analyzer.simplify(e) for e in bounds if not after.analyzer.prove(e)]
        kept += [analyzer.simplify(substitute(e, src_to_dst)) for e in others]
        if any(map(_is_false, kept)):
            return _impossible(src)
        ranges.update({variable: span for variable, span in src.ranges.items() if variable not in src_to_dst})
        return IntConstraintsTransform(src, IntConstraints(new, ranges, kept), src_to_dst, dst_to_src)

    def uses_unknowns(self, ends: Sequence[Expr]) -> bool:
        unknown = {id(variable) for variable in self.src.variables}
        return any(id(part) in unknown for end in ends for part in expressions_of(end))


def _negated(e: Expr) -> Expr:
    """Returns `a * -1` for `0 - a`, as TVM has it in solutions."""
    if isinstance(e, ex.Sub) and isinstance(e.args[0], IntImm) and not e.args[0].value:
        return ex.Mul(e.args[1], IntImm(e.dtype, -1))
    return e


def _dot(row: Sequence[int], values: Sequence[x.Expr]) -> x.Expr:
    total = x.ZERO
    for factor, value in zip(row, values, strict=True):
        total += value.scaled(factor)
    return total


# Inequalities --------------------------------------------------------------------------------------------------------


def solve_linear_inequalities(
    equations: Sequence[Expr] | IntConstraints,
    variables: Sequence[Var] | None = None,
    ranges: Ranges | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """Returns the ranges of variables for which inequalities are true, each by the variables after it.

    With `deskew_range` the variables of the result begin at 0, and the result says what they are of the old ones.
    Conditions that the ranges do not imply remain relations.
    """
    src = _constraints(equations, variables, ranges)
    solution = _Inequalities(src)
    dst = solution.ranged()
    if not deskew_range:
        return dst
    if any(map(_is_false, dst.relations)):
        return _impossible(src)
    return _deskewed(src, dst)


class _Inequalities:
    def __init__(self, src: IntConstraints):
        self.src = src
        self.known = _Known(src.ranges)
        self.nodes = self.known.analyzer
        self.dtype = src.variables[0].dtype if src.variables else "int32"
        self.atoms: dict[Var, Atom] = {
            variable: self.nodes.analyzer.variable(self.nodes.variable(variable)) for variable in src.variables
        }
        self.others: list[Expr] = []
        self.result = eliminate(NodeAnalyzer().analyzer, list(self.inequalities()), list(self.atoms.values()))

    def inequalities(self) -> Iterable[x.Expr]:
        """Yields the conditions as expressions that are at most 0."""
        read = self.nodes.analyzed
        for relation in _conjuncts(self.src.relations):
            if not isinstance(relation, ex.CompareExpr) or relation.args[0].dtype not in ex.INT_LIMITS:
                self.others.append(relation)
                continue
            a, b = map(read, relation.args)
            match relation:
                case ex.LE():
                    yield a - b
                case ex.LT():
                    yield a - b + 1
                case ex.GE():
                    yield b - a
                case ex.GT():
                    yield b - a + 1
                case ex.EQ():
                    yield a - b
                    yield b - a
                case _:
                    self.others.append(relation)
        for variable in self.src.variables:
            span = self.src.ranges.get(variable)
            if span is not None:
                value, low, extent = read(variable), read(span.min), read(span.extent)
                yield low - value
                yield value - low - extent + 1

    def node(self, e: x.Expr) -> Expr:
        return self.nodes.node(e, self.dtype)

    def ends(self, bounds: Bounds) -> tuple[list[Expr], list[Expr], list[Expr]]:
        low, same, high = ([self.node(e) for e in ends] for ends in (bounds.lower, bounds.equal, bounds.upper))
        return low, same, high

    def conditions(self) -> list[Expr]:
        """Returns what the bounds say as conditions, and what no bound says."""
        found: list[Expr] = []
        for variable, atom in self.atoms.items():
            bounds = self.result.bounds[atom]
            value = variable if bounds.coef == 1 else variable * bounds.coef
            low, same, high = self.ends(bounds)
            found += [ex.EQ(value, e) for e in same]
            found += [ex.GE(value, e) for e in low]
            found += [ex.LE(value, e) for e in high]
        zero = IntImm(self.dtype, 0)
        return [*found, *(ex.LE(self.node(e), zero) for e in self.result.rest), *self.others]

    def ranged(self) -> IntConstraints:
        if self.result.is_empty:
            return IntConstraints([], {}, [IntImm("bool", 0)])
        ranges: dict[Var, Range] = {}
        for variable in reversed(self.src.variables):
            bounds = self.result.bounds[self.atoms[variable]]
            outer = {v: span for v, span in self.src.ranges.items() if v not in self.atoms}
            found = _Known({**outer, **ranges}).best_range(bounds.coef, *self.ends(bounds))
            if found is not None:
                ranges[variable] = found
        outer = {v: span for v, span in self.src.ranges.items() if v not in self.atoms}
        known = _Known({**outer, **ranges})
        relations = [e for e in self.conditions() if not known.analyzer.prove(e)]
        ordered = {v: ranges[v] for v in self.src.variables if v in ranges}
        return IntConstraints(self.src.variables, ordered, relations)


def _compared(analyzer: NodeAnalyzer, e: Expr) -> Expr:
    """Returns a condition simplified, a comparison with all variables on its left side."""
    if not isinstance(e, ex.LE | ex.GE):
        return analyzer.simplify(e)
    a, b = e.args if isinstance(e, ex.LE) else e.args[::-1]
    total = analyzer.simplify(a - b)
    constant = analyzer.analyzed(total).const
    return analyzer.simplify(ex.LE(analyzer.simplify(total - constant), IntImm(total.dtype, -constant)))


def _deskewed(src: IntConstraints, dst: IntConstraints) -> IntConstraintsTransform:
    src_to_dst: dict[Var, Expr] = {}
    dst_to_src: dict[Var, Expr] = {}
    ranges: dict[Var, Range] = {}
    new: list[Var] = []
    analyzer = NodeAnalyzer()
    for variable in reversed(src.variables):
        span = dst.ranges.get(variable)
        if span is None:
            src_to_dst[variable] = dst_to_src[variable] = variable
            new.append(variable)
            continue
        low = analyzer.simplify(substitute(span.min, src_to_dst))
        if analyzer.prove_equal(span.extent, IntImm(span.extent.dtype, 1)):
            src_to_dst[variable] = low
            continue
        if isinstance(low, IntImm) and not low.value:
            shifted: Var = Var(variable.name, variable.dtype)
            src_to_dst[variable] = shifted
        else:
            shifted = Var(f"{variable.name}.shifted", variable.dtype)
            src_to_dst[variable] = ex.Add(shifted, low)
        new.append(shifted)
        dst_to_src[shifted] = analyzer.simplify(variable - span.min)
        ranges[shifted] = Range.from_min_extent(IntImm(variable.dtype, 0), span.extent)
    new.reverse()
    for variable, extent in ranges.items():
        analyzer.bind(variable, extent.min, extent.extent)
    relations = [_compared(analyzer, substitute(e, src_to_dst)) for e in dst.relations]
    kept = [e for e in relations if not (isinstance(e, IntImm) and e.value)]
    return IntConstraintsTransform(
        src,
        IntConstraints(new, {v: ranges[v] for v in new if v in ranges}, kept),
        {v: src_to_dst[v] for v in src.variables},
        {v: dst_to_src[v] for v in new if v in dst_to_src},
    )


__dir__ = public_names(__name__)
