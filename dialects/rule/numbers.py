"""Verifies that a dtype holds the numbers of a rule."""

from __future__ import annotations

from functools import lru_cache
from math import inf, isfinite
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, IntegerType, Signedness
from xdsl.ir import Attribute, Operation, SSAValue

from ...support.diagnostics import Diagnostic, MirError, error_at, location_of
from ..tir.types import dtype_to_type
from .functions import dtype_name


def check_number(
    op: Operation, number: Any, dtype: object, level: str, is_literal: bool, replaced: SSAValue | None = None
) -> None:
    """Raises MirError, at the rule's op, for a constant that its dtype cannot hold.

    `dtype` is a name or an element type.
    A literal must be in the range of the dtype. Computed integers wrap, as the program's do; infinities and NaN are no integers.
    `replaced` is the value that the rule replaces.
    """
    if isinstance(dtype, str):
        try:
            dtype = dtype_to_type(dtype)
        except MirError as error:
            raise error_at(op, error.diagnostics[0].message) from error
    if not isinstance(dtype, Attribute):
        raise error_at(op, f"a constant's dtype is a string, not {dtype!r}", 'such as const(1, "int32")')
    if isinstance(number, bool):
        return
    if isinstance(number, int | float):
        is_signless = level not in ("relay", "tir")
        reason = why_not_held(number, dtype, is_signless) if is_literal or not isfinite(number) else None
        if reason is not None:
            raise _misfit(op, number, dtype, reason, replaced)
        return
    import numpy as np

    array = np.asarray(number)
    if array.dtype.kind in "OUSM":
        raise error_at(op, f"{number!r} is not a number or an array of numbers")
    if array.dtype.kind == "f" and isinstance(dtype, IntegerType) and not np.isfinite(array).all():
        wrong = float(array[~np.isfinite(array)].flat[0])
        raise _misfit(op, wrong, dtype, why_not_held(wrong, dtype) or "", replaced)


def _misfit(op: Operation, number: float, element: Attribute, reason: str, replaced: SSAValue | None) -> MirError:
    shown = {inf: "1e999", -inf: "-1e999"}.get(number, repr(number))
    diagnostic = Diagnostic(f"{shown} does not fit into {dtype_name(element)}", op.location).with_note(reason)
    if replaced is not None:
        diagnostic = diagnostic.with_note("where the rule was applied", location_of(replaced))
    return MirError(diagnostic)


@lru_cache(1 << 10)
def why_not_held(number: float, element: Attribute, is_signless: bool = False) -> str | None:
    """Returns which numbers a dtype holds if a number is not one of them, otherwise None.

    A float is rounded, an integer's fraction dropped, and a bool is whether a number is not 0. Integers are signed unless their type says
    otherwise; `is_signless` ones, as MLIR has, hold the numbers of both kinds.
    """
    if isinstance(element, IntegerType):
        bits = element.width.data
        is_signed = bits > 1 and element.signedness.data is not Signedness.UNSIGNED
        low = -(1 << (bits - 1)) if is_signed else 0
        high = (1 << (bits - 1 if is_signed and not is_signless else bits)) - 1
        if isfinite(number) and (bits == 1 or low <= int(number) <= high):
            return None
        return f"{dtype_name(element)} holds {low} to {high}"
    if isinstance(element, AnyFloat) and isfinite(number):
        import numpy as np

        from ..array import numpy_dtype

        dtype = numpy_dtype(dtype_name(element))
        with np.errstate(over="ignore"):
            is_held = bool(np.isfinite(np.asarray(number, np.float64).astype(dtype)))
        if not is_held:
            import ml_dtypes

            greatest = float(cast("Any", ml_dtypes.finfo(dtype)).max)
            return f"the greatest number of {dtype_name(element)} is {greatest:g}, and infinity is 1e999"
    return None
