"""Padding and shapes as TOPI's functions take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..relay.expr import RelayExpr, Var
from ..relay.ty import TensorType


def type_of(data: RelayExpr) -> TensorType:
    """Returns the type of a variable that represents a tensor."""
    type = data.type_annotation if isinstance(data, Var) else None
    if not isinstance(type, TensorType):
        raise TypeError(f"a tensor is wanted, not {data}")
    return type


def shape_of(data: RelayExpr) -> tuple[int, ...]:
    """Returns the shape of a tensor. Raises TypeError if it is not known when the program is made."""
    return type_of(data).concrete_shape


def numbers_of(padding: Any, kernel: Sequence[int], dilation: Any) -> Any:
    """Returns padding as numbers: none for VALID, for SAME what keeps the size where the stride is 1."""
    if not isinstance(padding, str):
        return padding
    if padding == "VALID":
        return (0,) * len(kernel)
    if padding != "SAME":
        raise TypeError(f"padding is numbers, 'VALID' or 'SAME', not {padding!r}")
    along: list[int] = [int(dilation)] * len(kernel) if hasattr(dilation, "__index__") else list(dilation)
    sums = [(size - 1) * step for size, step in zip(kernel, along, strict=True)]
    return (*((total + 1) // 2 for total in sums), *(total // 2 for total in sums))


def _both_sides(padding: Any, kernel: Sequence[int]) -> tuple[int, ...]:
    rank = len(kernel)
    sizes = numbers_of(padding, kernel, 1)
    given = [sizes] if hasattr(sizes, "__index__") else list(sizes)
    sizes = tuple(int(size) for size in given)
    sizes = sizes * rank if len(sizes) == 1 else sizes
    if len(sizes) not in (rank, 2 * rank):
        raise ValueError(f"padding has {rank} numbers or {2 * rank}, not {len(sizes)}")
    return sizes * 2 if len(sizes) == rank else sizes


def get_pad_tuple(padding: Any, kernel: Sequence[int]) -> tuple[int, int, int, int]:
    """Returns the padding above, to the left, below, and to the right."""
    top, left, bottom, right = _both_sides(padding, [int(size) for size in kernel])
    return top, left, bottom, right


def get_pad_tuple1d(padding: Any, kernel: Any) -> tuple[int, int]:
    """Returns the padding before and after."""
    size = kernel if hasattr(kernel, "__index__") else kernel[0]
    left, right = _both_sides(padding, [int(size)])
    return left, right


def get_pad_tuple3d(padding: Any, kernel: Sequence[int]) -> tuple[int, ...]:
    """Returns the padding at the beginning of each of three axes, then at the end of each."""
    return _both_sides(padding, [int(size) for size in kernel])


def get_pad_tuple_generic(padding: Any, kernel: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the padding at the beginning of each axis, and at the end of each."""
    sides = _both_sides(padding, [int(size) for size in kernel])
    return list(sides[: len(kernel)]), list(sides[len(kernel) :])
