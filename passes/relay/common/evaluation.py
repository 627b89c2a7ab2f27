"""Evaluation of operators on known values, by their meaning in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ....dialects.relay.operator import OperatorOp
from ....support.diagnostics import MirError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Value: TypeAlias = "NDArray[Any] | tuple[Value, ...]"
"""Of a tensor, or of a tuple."""


def evaluate_operator(op: OperatorOp, arguments: Sequence[Any]) -> Any:
    """Evaluates an operator to a `Value`; None if it fails, an error that the running program reports."""
    import numpy as np

    with np.errstate(all="ignore"):
        try:
            value = cast("Any", op.OPERATOR.numpy)(op.attrs(), *arguments)
        except (MirError, ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError):
            return None
    # Row by row, as in the interpreter: sums follow the order in memory.
    if isinstance(value, (tuple, list)):
        return tuple(np.asarray(part, order="C") for part in cast("Sequence[Any]", value))
    return np.asarray(value, order="C")
