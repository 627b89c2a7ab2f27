"""Constant masks of attentions that allow each query the keys up to a diagonal: causal ones.

Such a mask is added to the scores, or chosen by a condition. Forbidden scores are `NEVER` or less, of which a softmax makes 0, as long
as the others are not of that size. The mask is rewritten as a comparison of the keys' places, from which schedules read which keys need
not be computed. A row without any allowed key is a mean of all values: its mask stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from ....dialects.relay.emit import dtype_of, shape_of
from ....dialects.relay.ir import ConstantOp
from ....dialects.relay.operator import OperatorOp, is_operator
from ....dialects.tir.types import FLOAT_LIMITS, type_to_dtype
from .recorded_operators import Recorder

NEVER = -1e9
"""What is added to the score of a key that is not seen, at most; programs write -1e9, the least number, or minus infinity."""
WORTHWHILE = 0.125
"""The part of the scores from which leaving them out pays."""


@dataclass(frozen=True)
class Triangle:
    """Allows query r the keys up to r + diagonal."""

    diagonal: int
    is_all: bool
    """Whether the last change of the scores says no more than that."""


def find_triangle(changes: Sequence[tuple[OperatorOp, int]], rows: int) -> Triangle | None:
    """Returns the keys that the last change of the scores, a constant mask, allows each query.

    None if it is not one.
    """
    if not changes:
        return None
    op, place = changes[-1]
    whole = shape_of(op.result)
    found = _seen(op, place)
    if whole is None or found is None:
        return None
    seen, plain = found
    keys = whole[-1]
    if seen.ndim < 2 or seen.shape[-2:] != (rows, keys) or whole[-2] != rows:
        return None
    seen = seen.reshape(-1, rows, keys)
    if not seen.any(axis=-1).all():
        return None
    somewhere: NDArray[np.bool_] = np.logical_or.reduce(seen, axis=0)
    last = keys - 1 - np.argmax(somewhere[:, ::-1], axis=-1)
    diagonal = int((last - np.arange(rows)).max())
    below = np.tril(np.ones((rows, keys), np.bool_), diagonal)
    if 1 - below.mean() < WORTHWHILE:
        return None
    return Triangle(diagonal, plain and bool((seen == below).all()))


def _seen(op: OperatorOp, place: int) -> tuple[NDArray[np.bool_], bool] | None:
    """Returns which scores count after a mask, and whether it leaves those unchanged."""
    others = [arg.owner for k, arg in enumerate(op.args) if k != place]
    constants = [owner.value.array for owner in others if isinstance(owner, ConstantOp)]
    if len(constants) != len(others):
        return None
    if is_operator(op, "add"):
        (mask,) = (np.asarray(array, np.float64) for array in constants)
        seen = mask > NEVER
        return seen, bool((mask[seen] == 0).all())
    if is_operator(op, "where") and place in (1, 2):
        condition, other = constants
        if not (np.asarray(other, np.float64) <= NEVER).all():
            return None
        chosen = np.asarray(condition, np.bool_)
        return chosen if place == 1 else ~chosen, True
    return None


def masked(make: Recorder, scores: SSAValue, triangle: Triangle) -> SSAValue:
    """The scores (batch, queries, keys) with the least number where no key is seen."""
    _, rows, keys = shape_of(scores) or (0, 0, 0)
    element = dtype_of(scores)
    assert element is not None
    every = make.call("full", make.constant(1, "bool"), shape=(rows, keys), dtype="bool")
    seen = make.call("trilu", every, make.constant(triangle.diagonal, "int32"), upper=False)
    return make.call("where", seen, scores, make.scalar(_least(scores), scores))


def _least(value: SSAValue) -> float:
    """The least number of the element type."""
    element = dtype_of(value)
    return -FLOAT_LIMITS.get(type_to_dtype(element) if element is not None else "", FLOAT_LIMITS["float32"])
