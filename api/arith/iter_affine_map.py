"""Iteration maps: indices as sums of the digits of loops, detected, simplified, inverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import reduce

from ...dialects.arith import expr as x
from ...dialects.arith import iter_map, subspace
from ...dialects.arith.iter_map import IterRange
from ...dialects.arith.node_analyzer import NodeAnalyzer
from ...dialects.tir import node as ex
from ...dialects.tir.node import Expr, ExprLike, IntImm, Range, Var, convert
from ...support.arguments import check
from ...support.public_names import public_names


class IterMapLevel(IntEnum):
    """The requirement on a map: one to one and onto, onto the box of its indices, or its form only."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name: str) -> IterMapLevel:
        """Returns the level of a name: "bijective", "surjective", "nocheck"."""
        found = {level.name.lower(): level for level in IterMapLevel}.get(name.lower())
        if found is None:
            raise ex.fail(f"there is no level '{name}' of iteration maps", "write bijective, surjective or nocheck")
        return found


_LEVELS = {
    IterMapLevel.Bijective: iter_map.IterMapLevel.BIJECTIVE,
    IterMapLevel.Surjective: iter_map.IterMapLevel.SURJECTIVE,
    IterMapLevel.NoCheck: iter_map.IterMapLevel.NO_CHECK,
}


class IterMapExpr:
    """A part of an iteration map."""

    __slots__ = ()


class IterMark:
    """A loop's variable, counted from 0, or a sum that acts as one loop, and its number of values."""

    __slots__ = ("extent", "source")

    def __init__(self, source: Expr | IterSumExpr, extent: ExprLike):
        check(source, "source", "an expression or an IterSumExpr", Expr, IterSumExpr)
        self.source = source
        self.extent = convert(extent)

    def __repr__(self) -> str:
        return f"IterMark({self.source}, extent={self.extent})"


class IterSplitExpr(IterMapExpr):
    """Digits of a mark: `(source // lower_factor) % extent * scale`."""

    __slots__ = ("extent", "lower_factor", "scale", "source")

    def __init__(self, source: IterMark, lower_factor: ExprLike, extent: ExprLike, scale: ExprLike):
        check(source, "source", "an IterMark", IterMark)
        self.source = source
        self.lower_factor = convert(lower_factor)
        self.extent = convert(extent)
        self.scale = convert(scale)

    def __repr__(self) -> str:
        return f"IterSplit({self.source}, lower_factor={self.lower_factor}, extent={self.extent}, scale={self.scale})"


class IterSumExpr(IterMapExpr):
    """The sum of splits, and `base`."""

    __slots__ = ("args", "base")

    def __init__(self, args: Sequence[IterSplitExpr], base: ExprLike):
        self.args = list(args)
        for each in self.args:
            check(each, "args", "a list of IterSplitExpr", IterSplitExpr)
        self.base = convert(base)

    def __repr__(self) -> str:
        return f"IterSum({self.args}, {self.base})"


class IterMapResult:
    """Holds a sum for each index; none, but the reasons in `errors`, where the map does not exist."""

    __slots__ = ("errors", "indices", "padding_predicate")

    def __init__(self, indices: Sequence[IterSumExpr], errors: Sequence[str]):
        self.indices = list(indices)
        self.errors = list(errors)
        # No map that needs padding is detected.
        self.padding_predicate = IntImm("bool", 0)

    def __repr__(self) -> str:
        return f"IterMapResult(indices={self.indices}, errors={self.errors})"


class _Maps:
    """Detects maps, and goes between the analyzer's and those of nodes; an object is written once."""

    def __init__(self, input_iters: Mapping[Var, Range]):
        self.nodes = NodeAnalyzer()
        self.inputs: dict[x.Atom, IterRange] = {}
        self.variables: dict[x.Atom, Var] = {}
        self.dtype = "int32"
        for variable, span in input_iters.items():
            check(variable, "input_iters", "a dictionary of variables", Var)
            self.dtype = variable.dtype
            atom = self.nodes.analyzer.variable(self.nodes.variable(variable))
            self.inputs[atom] = IterRange(self.nodes.analyzed(span.min), self.nodes.analyzed(span.extent))
        self._marks: dict[iter_map.IterMark, IterMark] = {}
        self._read: dict[int, iter_map.IterMark] = {}

    def detect(
        self, indices: Sequence[ExprLike], predicate: ExprLike, level: IterMapLevel | str, simplify_trivial: bool
    ) -> iter_map.IterMapResult:
        """Returns the indices as sums of the analyzer's."""
        required = IterMapLevel.from_str(level) if isinstance(level, str) else IterMapLevel(level)
        given = [convert(index) for index in indices]
        if given:
            self.dtype = given[0].dtype
        return iter_map.detect_iter_map(
            self.nodes.analyzer,
            [self.nodes.analyzed(index) for index in given],
            self.inputs,
            self.nodes.analyzed(convert(predicate)),
            _LEVELS[required],
            simplify_trivial,
        )

    def node(self, e: x.Expr) -> Expr:
        """Returns an expression of the analyzer's as a node."""
        return self.nodes.node(e, self.dtype)

    def condition(self, e: x.Expr, input_iters: Mapping[Var, Range]) -> Expr:
        """Returns a condition without what the loops' ranges imply; an end from above is written `a < n`."""
        known = NodeAnalyzer()
        for variable, span in input_iters.items():
            known.bind(variable, span.min, span.extent)
        kept: list[Expr] = []
        for part in x.conjuncts(e):
            written = self.nodes.node(part, "bool")
            atom = part.atom
            if atom is not None and atom.kind is x.Kind.GE:
                (operand,) = atom.operands
                if operand.terms and all(factor < 0 for _, factor in operand.terms):
                    end = operand.const + 1
                    written = ex.LT(self.node(x.as_expr(operand.const) - operand), IntImm(self.dtype, end))
            if not known.prove(written):
                kept.append(written)
        return reduce(ex.logical_and, kept) if kept else IntImm("bool", 1)

    def whole(self, e: x.Expr) -> IterSumExpr:
        """Returns an index that one nest contributes as a sum."""
        found = iter_map.iter_sum(self.nodes.analyzer, e, self.inputs)
        return IterSumExpr([], self.node(e)) if isinstance(found, str) else self.sum(found)

    def sum(self, total: iter_map.IterSumExpr) -> IterSumExpr:
        """Returns a sum of nodes."""
        return IterSumExpr([self._split(split) for split in total.args], self.node(total.base))

    def _split(self, split: iter_map.IterSplitExpr) -> IterSplitExpr:
        return IterSplitExpr(
            self._mark(split.source), self.node(split.lower_factor), self.node(split.extent), self.node(split.scale)
        )

    def _mark(self, mark: iter_map.IterMark) -> IterMark:
        found = self._marks.get(mark)
        if found is None:
            if isinstance(mark.source, iter_map.IterSumExpr):
                source: Expr | IterSumExpr = self.sum(mark.source)
            else:
                source = self.node(x.Expr(((mark.source, 1),), 0) - self.inputs[mark.source].min)
            found = self._marks[mark] = IterMark(source, self.node(mark.extent))
        return found

    def analyzed(self, total: IterSumExpr) -> iter_map.IterSumExpr:
        """Returns a sum of nodes as the analyzer's; what it says of loops becomes known."""
        return iter_map.IterSumExpr(
            tuple(self._analyzed_split(split) for split in total.args), self.nodes.analyzed(total.base)
        )

    def _analyzed_split(self, split: IterSplitExpr) -> iter_map.IterSplitExpr:
        parts = (self.nodes.analyzed(e) for e in (split.lower_factor, split.extent, split.scale))
        return iter_map.IterSplitExpr(self._analyzed_mark(split.source), *parts)

    def _analyzed_mark(self, mark: IterMark) -> iter_map.IterMark:
        found = self._read.get(id(mark))
        if found is None:
            extent = self.nodes.analyzed(mark.extent)
            if isinstance(mark.source, IterSumExpr):
                source: x.Atom | iter_map.IterSumExpr = self.analyzed(mark.source)
            else:
                self.dtype = mark.source.dtype
                source, low = self._loop(mark.source)
                self.inputs[source] = IterRange(low, extent)
            found = self._read[id(mark)] = iter_map.IterMark(source, extent)
        return found

    def _loop(self, source: Expr) -> tuple[x.Atom, x.Expr]:
        """Returns the variable and the minimum of `i - min`."""
        variable = source.args[0] if isinstance(source, ex.Sub) else source
        if not isinstance(variable, Var):
            raise ex.fail(f"the source of a mark is a loop's variable, less its minimum, not {source}")
        low = self.nodes.analyzed(source.args[1]) if isinstance(source, ex.Sub) else x.ZERO
        atom = self.nodes.analyzer.variable(self.nodes.variable(variable))
        self.variables[atom] = variable
        return atom, low


def detect_iter_map(
    indices: Sequence[ExprLike],
    input_iters: Mapping[Var, Range],
    predicate: ExprLike = True,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> IterMapResult:
    """Returns indices as an iteration map of loops, under a predicate."""
    maps = _Maps(input_iters)
    found = maps.detect(indices, predicate, check_level, simplify_trivial_iterators)
    return IterMapResult([maps.sum(total) for total in found.indices], found.errors)


def subspace_divide(
    bindings: Sequence[ExprLike],
    input_iters: Mapping[Var, Range],
    sub_iters: Sequence[Var],
    predicate: ExprLike = True,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[list[IterMark]]:
    """Divides indices into the parts of outer loops and of inner ones, `sub_iters`.

    The list is empty where an index is not such a sum. Each index is `outer * inner.extent + inner`; the marks of both are a pair of the result. The last pair has the conditions on
    the outer and on the inner loops as its extents.
    """
    maps = _Maps(input_iters)
    required = IterMapLevel.from_str(check_level) if isinstance(check_level, str) else IterMapLevel(check_level)
    if required == IterMapLevel.Bijective and not maps.detect(bindings, predicate, required, True):
        return []
    given = [convert(index) for index in bindings]
    maps.dtype = given[0].dtype if given else maps.dtype
    inner = {maps.nodes.analyzer.variable(maps.nodes.variable(variable)) for variable in sub_iters}
    found = subspace.subspace_divide(
        maps.nodes.analyzer,
        [maps.nodes.analyzed(index) for index in given],
        maps.inputs,
        inner,
        maps.nodes.analyzed(convert(predicate)),
        simplify_trivial_iterators,
    )
    if not found:
        return []
    divisions = [
        [
            IterMark(maps.whole(each.outer), maps.node(each.outer_extent)),
            IterMark(maps.whole(each.inner + each.base), maps.node(each.inner_extent)),
        ]
        for each in found.indices
    ]
    conditions = (found.outer_predicate, found.inner_predicate)
    zero = IntImm(maps.dtype, 0)
    return [*divisions, [IterMark(zero, maps.condition(each, input_iters)) for each in conditions]]


def normalize_to_iter_sum(index: ExprLike, input_iters: Mapping[Var, Range]) -> IterSumExpr:
    """Returns an index as a sum of splits of loops. Raises MirError where it is none."""
    maps = _Maps(input_iters)
    given = convert(index)
    maps.dtype = given.dtype
    found = iter_map.iter_sum(maps.nodes.analyzer, maps.nodes.analyzed(given), maps.inputs)
    if isinstance(found, str):
        raise ex.fail(f"{given} is not a sum of loops' digits: {found}")
    return maps.sum(found)


def iter_map_simplify(
    indices: Sequence[ExprLike],
    input_iters: Mapping[Var, Range],
    predicate: ExprLike = True,
    check_level: IterMapLevel | str = IterMapLevel.Surjective,
    simplify_trivial_iterators: bool = True,
) -> list[Expr]:
    """Returns indices simplified as an iteration map; where they are none, by the ranges of the loops."""
    maps = _Maps(input_iters)
    found = maps.detect(indices, predicate, check_level, simplify_trivial_iterators)
    if found:
        return [_plain(maps, maps.sum(total)) for total in found.indices]
    for variable, span in input_iters.items():
        maps.nodes.bind(variable, span.min, span.extent)
    with maps.nodes.knowing(convert(predicate)):
        return [maps.nodes.simplify(convert(index)) for index in indices]


def normalize_iter_map_to_expr(expr: IterMapExpr) -> Expr:
    """Returns a sum or a split as an expression of the loops' variables."""
    check(expr, "expr", "an IterSumExpr or an IterSplitExpr", IterSumExpr, IterSplitExpr)
    return _plain(_Maps({}), expr)


def _plain(maps: _Maps, e: IterMapExpr) -> Expr:
    """Returns a sum or a split as an expression; a loop whose minimum is not 0 is its variable less that."""
    total = e if isinstance(e, IterSumExpr) else IterSumExpr([e], 0) if isinstance(e, IterSplitExpr) else None
    assert total is not None
    known = maps.analyzed(total)
    plain = iter_map.normalize_iter_sum(known)
    counted = {atom: x.Expr(((atom, 1),), 0) - span.min for atom, span in maps.inputs.items() if span.min != x.ZERO}
    return maps.node(x.substitute(plain, counted) if counted else plain)


def inverse_affine_iter_map(iter_map: Sequence[IterSumExpr], outputs: Sequence[ExprLike]) -> dict[Var, Expr]:
    """Returns the loops' variables as expressions of the indices' values, of a bijective map."""
    return _inverse(iter_map, outputs)


def _inverse(sums: Sequence[IterSumExpr], outputs: Sequence[ExprLike]) -> dict[Var, Expr]:
    maps = _Maps({})
    if len(sums) != len(outputs):
        raise ex.fail(f"{len(sums)} indices cannot have {len(outputs)} values")
    known = iter_map.IterMapResult(tuple(maps.analyzed(total) for total in sums))
    values = [maps.nodes.analyzed(convert(value)) for value in outputs]
    found = iter_map.inverse_affine_iter_map(maps.nodes.analyzer, known, maps.inputs, values)
    inverse: dict[Var, Expr] = {}
    for atom, value in found.items():
        inverse[maps.variables[atom]] = maps.node(value)
    return inverse


__dir__ = public_names(__name__)
