"""Computes elementary functions for interpreters in float64, rounded to float32, then to 16 bits.

So results do not depend on which of its own functions numpy takes for the processor at hand, and they are those of native code under
strict-math: both are the exact number rounded, except where it is within about 2**-52 of itself of the middle between two adjacent
floats. In float64 numpy's functions and those of the C library may differ by a unit in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def in_float64(function: Callable[..., Any]) -> Callable[..., Array]:
    """Wraps `function` to compute in float64 and round to the floats' dtype, to 16 bits via float32."""

    def apply(*values: Any) -> Array:
        arrays = [np.asarray(value) for value in values]
        dtype = arrays[0].dtype
        result = np.asarray(function(*(array.astype(np.float64) for array in arrays)))
        return result if dtype == np.float64 else result.astype(np.float32).astype(dtype, copy=False)

    return apply


def float64_power(a: Any, b: Any) -> Any:
    """Computes powers of float64 as C's `pow`: (-inf) ** 0.5 is inf, and (-0.0) ** 0.5 is 0.

    numpy computes a square root, a square, … instead where one exponent is broadcast to all elements.
    """
    base, exponent = np.broadcast_arrays(a, b)
    return np.power(np.atleast_1d(base), np.array(np.atleast_1d(exponent))).reshape(base.shape)


exp, log, power = in_float64(np.exp), in_float64(np.log), in_float64(float64_power)
