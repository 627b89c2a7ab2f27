"""Integer sets: `IntervalSet`, and the regions that indices cover while loops run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...dialects.arith import ordered_int_set
from ...dialects.arith.analyzer import Value
from ...dialects.arith.iter_map import filled
from ...dialects.arith.node_analyzer import NodeAnalyzer
from ...dialects.tir import node as ex
from ...dialects.tir.node import Expr, ExprLike, IntImm, Range, Var, convert
from ...support.public_names import public_names

_NEGATIVE = Var("neg_inf", "handle")
_POSITIVE = Var("pos_inf", "handle")


def pos_inf() -> Var:
    """Returns the end of sets that have no greatest value."""
    return _POSITIVE


def neg_inf() -> Var:
    """Returns the end of sets that have no least value."""
    return _NEGATIVE


class IntSet:
    """A set of integers."""

    __slots__ = ()

    @staticmethod
    def vector(vec: Expr) -> IntervalSet:
        """Returns the set of a vector's elements: of a ramp by a number those from its base on."""
        if isinstance(vec, ex.Broadcast):
            return IntSet.single_point(vec.value)
        if isinstance(vec, ex.Ramp) and isinstance(vec.stride, IntImm):
            reach = vec.stride.value * vec.lanes
            if reach > 0:
                return IntervalSet(vec.base, vec.base + (reach - 1))
            return IntervalSet(vec.base + (reach + 1), vec.base) if reach else IntSet.single_point(vec.base)
        if ex.lanes_of(vec.dtype) == 1:
            return IntSet.single_point(vec)
        raise ex.fail(f"the elements of {vec} are not an interval", "a vector is a Ramp by a number, or a Broadcast")

    @staticmethod
    def single_point(point: ExprLike) -> IntervalSet:
        """Returns the set of one value."""
        return IntervalSet(point, point)


class IntervalSet(IntSet):
    """The integers `min_value` to `max_value`, included; `neg_inf()`, `pos_inf()` leave an end open."""

    __slots__ = ("max_value", "min_value")

    def __init__(self, min_value: ExprLike, max_value: ExprLike):
        self.min_value = convert(min_value)
        self.max_value = convert(max_value)

    def is_everything(self) -> bool:
        """Returns whether the set holds every integer."""
        return self.min_value is _NEGATIVE and self.max_value is _POSITIVE

    def is_nothing(self) -> bool:
        """Returns whether the set is known to be empty: its least value is above its greatest."""
        if self.min_value is _POSITIVE or self.max_value is _NEGATIVE:
            return True
        known = self.inner
        if known.min is None or known.max is None:
            return False
        return NodeAnalyzer().prove(ex.greater(known.min, known.max))

    @property
    def inner(self) -> ordered_int_set.IntSet:
        """Returns the set as the analyzers have it."""
        return ordered_int_set.IntSet(
            None if self.min_value is _NEGATIVE else self.min_value,
            None if self.max_value is _POSITIVE else self.max_value,
        )

    @staticmethod
    def of(found: ordered_int_set.IntSet, analyzer: NodeAnalyzer) -> IntervalSet:
        """Returns a set that the analyzers found."""
        return IntervalSet(
            _NEGATIVE if found.min is None else analyzer.simplify(found.min),
            _POSITIVE if found.max is None else analyzer.simplify(found.max),
        )

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


def evaluate(expr: Expr, domain: Mapping[Var, IntervalSet | Range], analyzer: NodeAnalyzer) -> IntervalSet:
    """Returns the set of an expression's values while variables run over sets."""
    sets = {id(variable): _set_of(values) for variable, values in domain.items()}
    return IntervalSet.of(ordered_int_set.Interval(analyzer).of(expr, sets), analyzer)


def _set_of(values: IntervalSet | Range) -> ordered_int_set.IntSet:
    return values.inner if isinstance(values, IntervalSet) else ordered_int_set.IntSet.of_range(values)


def estimate_region_lower_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: ExprLike
) -> list[IntervalSet] | None:
    """Returns the box that a region fills completely while variables run; None where none is known."""
    analyzer = NodeAnalyzer()
    starts = [analyzer.analyzed(each.min) for each in region]
    sizes = [analyzer.analyzed(each.extent) for each in region]
    inner: dict[Value, tuple[Value, Value]] = {
        analyzer.variable(variable): (analyzer.analyzed(span.min), analyzer.analyzed(span.extent))
        for variable, span in var_dom.items()
    }
    found = filled(starts, sizes, inner, analyzer.analyzer, analyzer.analyzed(convert(predicate)))
    if isinstance(found, str):
        return None
    dtypes = [each.min.dtype for each in region]
    return [
        IntervalSet(analyzer.node(low, dtype), analyzer.node(high, dtype))
        for (low, high), dtype in zip(found, dtypes, strict=True)
    ]


def estimate_region_strict_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: ExprLike
) -> list[IntervalSet] | None:
    """Returns the box that is exactly what a region covers while variables run; None where none is known."""
    return estimate_region_lower_bound(region, var_dom, predicate)


def estimate_region_upper_bound(
    region: Sequence[Range], var_dom: Mapping[Var, Range], predicate: ExprLike
) -> list[IntervalSet]:
    """Returns a box that holds what a region covers while variables run: the exact one where it is known."""
    exact = estimate_region_strict_bound(region, var_dom, predicate)
    if exact is not None:
        return exact
    analyzer = NodeAnalyzer()
    for variable, span in var_dom.items():
        analyzer.bind(variable, span.min, span.extent)
    found: list[IntervalSet] = []
    for each in region:
        least, most = (evaluate(end, var_dom, analyzer) for end in (each.min, each.min + each.extent - 1))
        found.append(IntervalSet(least.min_value, most.max_value))
    return found


__dir__ = public_names(__name__)
