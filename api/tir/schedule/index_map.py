"""`IndexMap`: the new indices of a buffer's or block's elements as functions of the old ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ....dialects.arith.node_analyzer import NodeAnalyzer
from ....dialects.tir import node as ex
from ....dialects.tir.node import Expr, ExprLike, IntImm, Range, Var, convert
from ....dialects.tir.node.functor import substitute
from ....passes.schedule.analysis.layout_map import LayoutMap, layout_map
from ....passes.schedule.primitives.transform_layout import AXIS_SEPARATOR
from ....support.diagnostics import Diagnostic, MirValueError
from ....support.public_names import public_names

__all__ = ["IndexMap"]


class IndexMap:
    """A map of indices, `lambda i, j: [i // 4, j, i % 4]`.

    `initial_indices` are variables, `final_indices` expressions of them; `inverse_index_map` is the map back, where it is given.
    """

    AXIS_SEPARATOR = AXIS_SEPARATOR
    """Stands between indices where a group of dimensions ends."""

    def __init__(
        self,
        initial_indices: Sequence[Var],
        final_indices: Sequence[ExprLike],
        inverse_index_map: IndexMap | None = None,
    ):
        self.initial_indices = list(initial_indices)
        self.final_indices = [convert(index) for index in final_indices]
        self.inverse_index_map = inverse_index_map

    @staticmethod
    def from_func(
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: Callable[..., object] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """Returns the map that a function of indices computes.

        `ndim` is their number where it takes `*indices`. Raises MirValueError for a function that returns axis separators.
        """
        found, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise MirValueError(
                Diagnostic("the map has axis separators").with_note(
                    "from_func_with_separators returns them beside the map"
                )
            )
        return found

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: Callable[..., object] | IndexMap | None = None,
        *,
        index_dtype: str = "int64",
    ) -> tuple[IndexMap, list[int]]:
        """Returns the map that a function of indices computes, and where groups of new dimensions end."""
        variables, results = _called(mapping_function, ndim, index_dtype)
        indices: list[ExprLike] = []
        separators: list[int] = []
        for each in results:
            if each is AXIS_SEPARATOR:
                separators.append(len(indices))
            else:
                indices.append(cast("ExprLike", each))
        inverse = inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            inverse = IndexMap.from_func(inverse, len(indices), index_dtype=index_dtype)
        return IndexMap(variables, indices, inverse), separators

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Returns whether both maps compute the same indices."""
        same = len(self.initial_indices) == len(other_map.initial_indices)
        if not same or len(self.final_indices) != len(other_map.final_indices):
            return False
        analyzer, theirs = NodeAnalyzer(), other_map.map_indices(self.initial_indices)
        return all(
            analyzer.analyzed(a) == analyzer.analyzed(b) for a, b in zip(self.final_indices, theirs, strict=True)
        )

    def map_indices(self, indices: Sequence[ExprLike]) -> list[Expr]:
        """Returns the new indices of old ones, simplified."""
        given = self._given(indices)
        analyzer = NodeAnalyzer()
        return [analyzer.node(analyzer.analyzed(substitute(each, given)), each.dtype) for each in self.final_indices]

    def map_shape(self, shape: Sequence[ExprLike]) -> list[Expr]:
        """Returns the extents of the new indices, of which each begins at 0, for the extents of the old ones."""
        if (found := self._layout(shape)) is not None and not isinstance(found, str):
            return [IntImm(each.dtype, size) for each, size in zip(self.final_indices, found.shape, strict=True)]
        last = self.map_indices([convert(extent) - 1 for extent in shape])
        analyzer = NodeAnalyzer()
        return [analyzer.node(analyzer.analyzed(each + 1), each.dtype) for each in last]

    def map_ndarray(self, arr_src: NDArray[Any]) -> NDArray[Any]:
        """Returns an array in the new layout; what is padding is 0."""
        shape = [int(cast("IntImm", extent).value) for extent in self.map_shape(list(arr_src.shape))]
        result = np.zeros(shape, arr_src.dtype)
        for place in np.ndindex(*arr_src.shape):
            new = tuple(int(cast("IntImm", index).value) for index in self.map_indices(list(place)))
            result[new] = arr_src[place]
        return result

    def inverse(self, shape: Sequence[ExprLike | Range]) -> IndexMap:
        """Returns the map back, for old indices of these extents.

        Raises MirValueError for a map that is not a bijection.
        """
        found, predicate = self.non_surjective_inverse(shape)
        if not (isinstance(predicate, IntImm) and predicate.value == 0):
            raise MirValueError(
                Diagnostic(f"the map pads where {predicate}").with_note(
                    "non_surjective_inverse returns that condition, too"
                )
            )
        return found

    def non_surjective_inverse(self, shape: Sequence[ExprLike | Range]) -> tuple[IndexMap, Expr]:
        """Returns the map back, and the condition on new indices under which they are padding.

        Raises MirValueError where two elements share a place, and for extents that are not numbers.
        """
        layout = self._layout(shape)
        if layout is None:
            raise MirValueError(
                Diagnostic("the inverse of a map is known for extents that are numbers, each from 0").with_note(
                    f"the shape is ({', '.join(map(str, shape))})"
                )
            )
        if isinstance(layout, str):
            raise MirValueError(Diagnostic(f"the map has no inverse: {layout}"))
        nodes = NodeAnalyzer()
        dtype = self.initial_indices[0].dtype if self.initial_indices else "int32"
        variables = [Var(f"axis{number}", dtype) for number in range(len(layout.shape))]
        analyzed = [nodes.analyzed(each) for each in variables]
        old = [nodes.node(each, dtype) for each in layout.inverse(analyzed)]
        inverse = IndexMap(variables, old, self)
        padding: list[Expr] = []
        for comparisons in layout.padding(analyzed):
            parts: list[Expr] = []
            for sign, left, right in comparisons:
                compare = {"==": ex.EQ, "<": ex.LT, ">=": ex.GE}[sign]
                parts.append(compare(nodes.node(left, dtype), IntImm(dtype, right)))
            padding.append(reduce(ex.logical_and, parts))
        return inverse, reduce(ex.logical_or, padding) if padding else IntImm("bool", 0)

    def _layout(self, shape: Sequence[ExprLike | Range]) -> LayoutMap | str | None:
        """Returns what the analyzer finds out of the map; None for extents that are not numbers."""
        extents = [each.extent if isinstance(each, Range) else convert(each) for each in shape]
        low = [each.min for each in shape if isinstance(each, Range)]
        self._given(extents)
        if not all(isinstance(e, IntImm) for e in extents) or any(not isinstance(e, IntImm) or e.value for e in low):
            return None
        nodes = NodeAnalyzer()
        known = {
            nodes.variable(variable): int(cast("IntImm", extent).value)
            for variable, extent in zip(self.initial_indices, extents, strict=True)
        }
        return layout_map(known, [nodes.analyzed(each) for each in self.final_indices])

    def _given(self, indices: Sequence[ExprLike]) -> dict[Var, Expr]:
        if len(indices) != len(self.initial_indices):
            raise MirValueError(Diagnostic(f"the map takes {len(self.initial_indices)} indices, not {len(indices)}"))
        return {
            variable: convert(each, variable.dtype)
            for variable, each in zip(self.initial_indices, indices, strict=True)
        }

    def __call__(self, *indices: ExprLike) -> list[Expr]:
        return self.map_indices(indices)

    def __repr__(self) -> str:
        old, new = (", ".join(map(str, each)) for each in (self.initial_indices, self.final_indices))
        return f"T.index_map(lambda {old}: ({new}{',' if len(self.final_indices) == 1 else ''}))"


def _called(function: Callable[..., object], ndim: int | None, dtype: str) -> tuple[list[Var], list[object]]:
    """Returns variables for a function's parameters, and what it returns for them."""
    parameters = list(inspect.signature(function).parameters.values())
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    last = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    starred = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    between = 0 if ndim is None else ndim - len(names) - len(last)
    if between < 0 or (between and not starred) or (starred and ndim is None):
        takes = f"{len(names) + len(last)} indices" + (" or more" if starred else "")
        raise MirValueError(
            Diagnostic(f"the function of an index map takes {takes}, and ndim is {ndim}").with_note(
                "ndim is the number of indices, which a function of *indices does not say"
            )
        )
    first = [Var(name, dtype) for name in names]
    first += [Var(f"{starred[0]}_{number}", dtype) for number in range(between)]
    named = {name: Var(name, dtype) for name in last}
    result = function(*first, **named)
    results = list(cast("Sequence[object]", result)) if isinstance(result, list | tuple) else [result]
    return [*first, *named.values()], results


__dir__ = public_names(__name__)
