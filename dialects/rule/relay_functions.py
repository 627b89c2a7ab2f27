"""Functions of rules that speak of Relay's attributes: layouts, padding, dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .functions import NoMatch, named_function


@named_function(arity=2)
def full_axes(axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """a transpose's axes as numbers from 0: None is back to front, -1 the last"""
    return tuple(reversed(range(rank))) if axes is None else tuple(axis % rank for axis in axes)


@named_function(arity=2)
def is_permutation(source: str, target: str) -> bool:
    """whether a layout is another with its axes in another order, none of them split"""
    return source.isupper() and target.isupper() and sorted(source) == sorted(target)


@named_function(arity=2)
def layout_axes(source: str, target: str) -> tuple[int, ...]:
    """the axes of the transpose from a layout to one that is a permutation of it"""
    return tuple(source.index(axis) for axis in target)


@named_function(arity=2)
def permuted_layout(layout: str, axes: Sequence[int]) -> str:
    """a layout without split axes, its axes in another order"""
    if not layout.isupper() or len(layout) != len(axes):
        raise NoMatch
    return "".join(layout[axis] for axis in axes)


@named_function(arity=3)
def with_padding(padding: Sequence[int], width: Sequence[Sequence[int]], layout: str) -> tuple[int, ...]:
    """before…, after… padding of a convolution or pooling plus an nn.pad's; no match if it pads other axes"""
    if not layout.isupper() or len(layout) != len(width):
        raise NoMatch
    spatial = [axis for axis in range(len(layout)) if layout[axis] not in "NC"]
    if any(any(pair) for axis, pair in enumerate(width) if axis not in spatial):
        raise NoMatch
    count = len(spatial)
    own = tuple(padding) * (2 * count if len(padding) == 1 else 2 if len(padding) == count else 1)
    added = [width[axis][0] for axis in spatial] + [width[axis][1] for axis in spatial]
    if min(added) < 0:
        raise NoMatch
    return tuple(a + b for a, b in zip(own, added, strict=True))


@named_function(arity=2)
def widens(source: str, target: str) -> bool:
    """whether a cast keeps every value: to more bits of one kind, or from integers to a wide enough float"""
    kinds = {"int": 0, "uint": 1, "float": 2}
    (a, m), (b, n) = _split(source), _split(target)
    if a == b and a in kinds:
        return m <= n
    if a == "uint" and b == "int":
        return m < n
    # A float holds integers of up to as many bits as its significand has.
    return a in ("int", "uint") and b == "float" and m <= {16: 11, 32: 24, 64: 53}[n]


@named_function(arity=1)
def lowest(dtype: str) -> Any:
    """the least number of a dtype; of a float, the least that is finite"""
    return _range(dtype)[0]


@named_function(arity=1)
def highest(dtype: str) -> Any:
    """the greatest number of a dtype; of a float, the greatest that is finite"""
    return _range(dtype)[1]


def _split(dtype: str) -> tuple[str, int]:
    kind = dtype.rstrip("0123456789")
    return kind, int(dtype[len(kind) :] or 0)


def _range(dtype: str) -> tuple[Any, Any]:
    import numpy as np

    from ..array import numpy_dtype
    from ..numeric import integer_range

    kind, _ = _split(dtype)
    if kind in ("int", "uint"):
        return integer_range(numpy_dtype(dtype))
    if kind == "float":
        info = np.finfo(dtype)
        return info.min, info.max
    raise NoMatch
