"""Index maps of layouts: whether they are one-to-one, where the new layout has padding, their inverse.

A map such as `i // 4, i % 4` of 14 elements is one-to-one on 16: the dividend i is taken to run on to the next multiple of
what it is divided by, from the last one before it begins (`(i + 1) // 8`). The new indices are then an iteration map of
dividends, which has an inverse; padding is where a dividend is outside of the range that it had. After TVM's
`DetectPaddedIterMap`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import lcm, prod

from ....dialects.arith import Analyzer, Expr, Kind, symbol
from ....dialects.arith.analyzer import Value
from ....dialects.arith.expr import ZERO, Atom, as_expr, floordiv, floormod, free_vars, rebuild, substitute
from ....dialects.arith.iter_map import IterMapLevel, IterMapResult, IterRange, inverse_affine_iter_map

Comparison = tuple[str, Expr, int]
"""`("==", e, 3)`: e is 3; likewise "<" and ">="."""


def call_with_symbols(function: Callable[..., object], rank: int) -> tuple[list[Expr], object] | str:
    """Calls a map with `rank` symbols: returns the symbols and its results, or the rank that it takes.

    Keyword-only parameters take the last indices, `*indices` those between.
    """
    parameters = inspect.signature(function).parameters.values()
    first = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    last = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    between = rank - len(first) - len(last)
    if between < 0 or (between and all(p.kind is not p.VAR_POSITIONAL for p in parameters)):
        return str(len(first) + len(last))
    symbols = [symbol(name) for name in first]
    symbols += [symbol(f"i{len(first) + k}") for k in range(between)]
    named = {name: symbol(name) for name in last}
    return [*symbols, *named.values()], function(*symbols, **named)


@dataclass
class Dividend:
    """A dividend: `linear` (of variables that nothing else uses) plus `shift`; the divisors divide `unit`."""

    linear: Expr
    shift: int = 0
    unit: int = 1
    divisors: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    low: int = 0
    high: int = 0
    value: Expr = ZERO

    @property
    def extent(self) -> int:
        """Returns the extent with its padding."""
        return -(-(self.high + 1) // self.unit) * self.unit


@dataclass(frozen=True)
class LayoutMap:
    """A map that keeps elements apart. `shape` are the extents of the new layout."""

    symbols: Sequence[Expr]
    shape: Sequence[int]
    found: IterMapResult
    """The new indices as an iteration map of `ranges`: the old indices, and the variables that represent dividends."""
    ranges: Mapping[Atom, IterRange]
    dividends: Sequence[Dividend]
    extents: Mapping[Expr, int]

    @property
    def pads(self) -> bool:
        """Returns whether the new layout has elements that hold none of the old."""
        return any(d.low or d.high + 1 != d.extent for d in self.dividends)

    def inverse(self, indices: Sequence[Expr]) -> list[Expr]:
        """Returns the old indices of new ones (variables, in the range of the new shape)."""
        analyzer = self._knowing(indices)
        values = self._inputs(indices, analyzer)
        found: list[Expr] = []
        for variable in self.symbols:
            assert variable.atom is not None
            found.append(analyzer.simplify(values[variable.atom]))
        return found

    def padding(self, indices: Sequence[Expr]) -> list[list[Comparison]]:
        """Returns the conditions of padding: it is where all comparisons of one of the lists hold."""
        analyzer = self._knowing(indices)
        inverse = inverse_affine_iter_map(analyzer, self.found, self.ranges, indices)
        found: list[list[Comparison]] = []
        for d in self.dividends:
            assert d.value.atom is not None
            value, unit = inverse[d.value.atom], as_expr(d.unit)
            block, place = analyzer.simplify(floordiv(value, unit)), analyzer.simplify(floormod(value, unit))
            for comparison, number, end in (("<", 0, d.low), (">=", (d.high + 1) // d.unit, (d.high + 1) % d.unit)):
                if end:
                    where: list[Comparison] = [] if block.value is not None else [("==", block, number)]
                    found.append([*where, (comparison, place, end)])
        return found

    def _knowing(self, indices: Sequence[Expr]) -> Analyzer:
        analyzer = Analyzer()
        for index, extent in zip(indices, self.shape, strict=True):
            if index.value is None:
                analyzer.bind(index, 0, extent)
        return analyzer

    def _inputs(self, indices: Sequence[Expr], analyzer: Analyzer) -> dict[Atom, Expr]:
        values = inverse_affine_iter_map(analyzer, self.found, self.ranges, indices)
        for d in self.dividends:
            assert d.value.atom is not None
            value = values[d.value.atom] - d.shift
            used = {atom: IterRange(ZERO, as_expr(self.extents[Expr(((atom, 1),), 0)])) for atom in free_vars(d.linear)}
            if d.linear.atom is not None:
                values[d.linear.atom] = value
                continue
            inner = Analyzer().detect_iter_map([d.linear], _pairs(used), 1, IterMapLevel.BIJECTIVE)
            values.update(inverse_affine_iter_map(analyzer, inner, used, [value]))
        return values


def _pairs(ranges: Mapping[Atom, IterRange]) -> dict[Value, tuple[Value, Value]]:
    return {Expr(((atom, 1),), 0): (r.min, r.extent) for atom, r in ranges.items()}


def layout_map(extents: Mapping[Expr, int], results: Sequence[Expr]) -> LayoutMap | str:
    """Returns the map from variables (0 to their extents) to `results`, or why it is not a bijection."""
    exact = _detected(extents, (), results)
    if isinstance(exact, LayoutMap):
        return exact
    dividends = _dividends(extents, results)
    if isinstance(dividends, str) or not dividends:
        return exact
    replaced: dict[Atom, Expr] = {}
    for e in results:
        _replace(e, dividends, replaced)
    new = [substitute(e, replaced) for e in results]
    left = {variable: extent for variable, extent in extents.items() if not _in(variable, dividends)}
    gone = {atom for d in dividends for atom in free_vars(d.linear)}
    if any(atom in gone for atom in free_vars(*new)):
        return exact
    ranges = {**left, **{d.value: d.extent for d in dividends}}
    padded = _detected(ranges, dividends, new)
    if isinstance(padded, str):
        return exact
    return LayoutMap(list(extents), padded.shape, padded.found, padded.ranges, dividends, dict(extents))


def _in(variable: Expr, dividends: Sequence[Dividend]) -> bool:
    return any(variable.atom in free_vars(d.linear) for d in dividends)


def _detected(extents: Mapping[Expr, int], dividends: Sequence[Dividend], results: Sequence[Expr]) -> LayoutMap | str:
    """Returns the map of these variables if it is one-to-one and leaves nothing out."""
    analyzer = Analyzer()
    for variable, extent in extents.items():
        analyzer.bind(variable, 0, extent)
    found = analyzer.detect_iter_map(results, {v: (0, e) for v, e in extents.items()})
    if not found:
        return found.errors[0]
    bounds = [analyzer.const_int_bound(e) for e in results]
    if any(bound.min_value < 0 for bound in bounds):
        return "an index may be negative"
    shape = [bound.max_value + 1 for bound in bounds]
    if prod(shape) < prod(extents.values()):
        return "two elements would share a place"
    if prod(shape) > prod(extents.values()):
        return "it leaves gaps between elements"
    ranges: dict[Atom, IterRange] = {}
    for variable, extent in extents.items():
        assert variable.atom is not None
        ranges[variable.atom] = IterRange(ZERO, as_expr(extent))
    return LayoutMap(list(extents), shape, found, ranges, dividends, dict(extents))


def _dividends(extents: Mapping[Expr, int], results: Sequence[Expr]) -> list[Dividend] | str:
    """Returns the dividends in the results, with the padding that makes their divisions come out even."""
    found: dict[Expr, Dividend] = {}
    for e in results:
        for linear, const, divisor in _divisions(e):
            d = found.setdefault(linear, Dividend(linear))
            d.shift = max(d.shift, const)
            d.unit = lcm(d.unit, divisor)
            d.divisors.append((const, divisor))
    analyzer = Analyzer()
    for variable, extent in extents.items():
        analyzer.bind(variable, 0, extent)
    seen: set[Atom] = set()
    for d in found.values():
        bound = analyzer.const_int_bound(d.linear)
        d.low, d.high = bound.min_value + d.shift, bound.max_value + d.shift
        used = free_vars(d.linear)
        count = prod(extents[Expr(((atom, 1),), 0)] for atom in used)
        ranges: dict[Value, tuple[Value, Value]] = {
            Expr(((atom, 1),), 0): (0, extents[Expr(((atom, 1),), 0)]) for atom in used
        }
        contiguous = count == d.high - d.low + 1 and analyzer.detect_iter_map(
            [d.linear], ranges, 1, IterMapLevel.BIJECTIVE
        )
        if (
            not contiguous
            or not 0 <= d.low < d.unit
            or seen & set(used)
            or any((d.shift - const) % divisor for const, divisor in d.divisors)
        ):
            return "its divisions do not come out even"
        seen.update(used)
        d.value = symbol("dividend")
    return list(found.values())


def _divisions(e: Expr) -> list[tuple[Expr, int, int]]:
    """Returns (linear part, constant, divisor) of an expression's divisions, nested ones as one."""
    found: list[tuple[Expr, int, int]] = []
    pending = [(atom, 1) for atom, _ in e.terms]
    while pending:
        atom, factor = pending.pop()
        if atom.kind not in (Kind.FLOORDIV, Kind.FLOORMOD) or (divisor := atom.operands[1].value) is None:
            continue
        dividend = atom.operands[0]
        inner = dividend.atom
        if inner is not None and inner.kind is Kind.FLOORDIV and inner.operands[1].value is not None:
            found.append(
                (_linear(inner.operands[0]), inner.operands[0].const, inner.operands[1].value * divisor * factor)
            )
        else:
            found.append((_linear(dividend), dividend.const, divisor * factor))
    return [each for each in found if all(atom.kind is Kind.VAR for atom, _ in each[0].terms)]


def _linear(e: Expr) -> Expr:
    return e - e.const


def _replace(e: Expr, dividends: Sequence[Dividend], replaced: dict[Atom, Expr]) -> None:
    """Maps each division in an expression to that of the variable that represents its dividend."""
    for atom, _ in e.terms:
        if atom.kind not in (Kind.FLOORDIV, Kind.FLOORMOD):
            continue
        dividend = atom.operands[0]
        known = next((d for d in dividends if d.linear == _linear(dividend)), None)
        if known is None:
            _replace(dividend, dividends, replaced)
        else:
            replaced[atom] = rebuild(atom, (known.value - (known.shift - dividend.const), atom.operands[1]))
