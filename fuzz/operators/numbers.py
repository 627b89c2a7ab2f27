"""Functions that numpy lacks, written apart from the ones of the package."""

from __future__ import annotations

import math

import numpy as np


def erf(x: np.ndarray) -> np.ndarray:
    """The error function, element by element."""
    return np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x, np.float64)).astype(x.dtype)


def half_away(x: np.ndarray) -> np.ndarray:
    """The nearest integers, halves away from zero."""
    return np.vectorize(_round, otypes=[np.float64])(np.asarray(x, np.float64)).astype(x.dtype)


def _round(value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(math.floor(abs(value)) + (abs(value) % 1 >= 0.5), value)
