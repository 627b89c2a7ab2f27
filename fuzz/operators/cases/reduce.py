"""Cases of reductions, references element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import FLOATS, NUMBERS, array, case, seeds, values

Reference = Callable[..., Any]


@st.composite
def reductions(draw: Any, dtypes: Any = NUMBERS, extra: Any = None, low: float = -2, high: float = 2) -> Any:
    x = draw(array(st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), dtypes, low, high))
    axes = draw(st.none() | st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True))
    attrs: dict[str, Any] = {
        "axis": None if axes is None else tuple(a - x.ndim * draw(st.integers(0, 1)) for a in axes)
    }
    attrs["keepdims"] = draw(st.booleans())
    attrs["exclude"] = draw(st.booleans())
    for name, strategy in (extra or {}).items():
        attrs[name] = draw(strategy)
    return attrs, [x]


def axes_of(attrs: Any, rank: int) -> list[int]:
    if attrs.axis is None:
        return list(range(rank))
    named = [a % rank for a in attrs.axis]
    return [a for a in range(rank) if a not in named] if attrs.exclude else sorted(named)


def groups(attrs: Any, x: np.ndarray, function: Callable[[list[Any]], Any], dtype: Any) -> np.ndarray:
    """Returns `function` of each list of elements that are reduced together, in row-major order."""
    axes = axes_of(attrs, x.ndim)
    kept = [a for a in range(x.ndim) if a not in axes]
    result = np.empty([x.shape[a] for a in kept], dtype)
    for place in np.ndindex(*result.shape):
        index: list[Any] = [slice(None)] * x.ndim
        for axis, at in zip(kept, place, strict=True):
            index[axis] = at
        result[place] = function(x[tuple(index)].reshape(-1).tolist())
    return result.reshape([1 if a in axes else d for a, d in enumerate(x.shape)]) if attrs.keepdims else result


def elements(function: Callable[[list[Any]], Any]) -> Reference:
    def reference(attrs: Any, x: np.ndarray) -> np.ndarray:
        wide = x if x.dtype.kind in "iub" else x.astype(np.float64)
        return groups(attrs, wide, function, object if x.dtype.kind == "i" else np.float64).astype(x.dtype)

    return reference


case("sum", reductions(), elements(sum), loose=2)
case("prod", reductions(low=-1.5, high=1.5), elements(math.prod), loose=2)
case("max", reductions(), elements(max))
case("min", reductions(), elements(min))
case("all", reductions(("bool",)), lambda a, x: groups(a, x, all, bool))
case("any", reductions(("bool",)), lambda a, x: groups(a, x, any, bool))
case("mean", reductions(), elements(lambda v: math.fsum(v) / len(v)), loose=2)
LAST = {"select_last_index": st.booleans()}


def position(best: Callable[[list[Any]], Any]) -> Reference:
    def reference(attrs: Any, x: np.ndarray) -> np.ndarray:
        def find(items: list[Any]) -> int:
            wanted = best(items)
            places = [n for n, v in enumerate(items) if v == wanted]
            return places[-1 if attrs.select_last_index else 0]

        return groups(attrs, x.astype(np.float64), find, np.int32)

    return reference


case("argmax", reductions(NUMBERS, LAST), position(max))
case("argmin", reductions(NUMBERS, LAST), position(min))


@st.composite
def _variances(draw: Any) -> Any:
    attrs, (x,) = draw(reductions(FLOATS, {"unbiased": st.just(False)}))
    rank = x.ndim
    named = range(rank) if attrs["axis"] is None else [a % rank for a in attrs["axis"]]
    over = tuple(a for a in range(rank) if (a in named) != (attrs["exclude"] and attrs["axis"] is not None))
    return attrs, [x, x.mean(axis=over, keepdims=True)]


def _variance(attrs: Any, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return groups(attrs, x.astype(np.float64), lambda v: float(np.var(v)), np.float64).astype(x.dtype)


case("variance", _variances(), _variance)
case("sum", st.just(({}, [values((2, 3), "float32", 1)])), elements(sum))
_ = seeds
