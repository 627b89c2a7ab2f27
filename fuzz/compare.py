"""Compares results: integers exactly, floats within the rounding that is possible.

```text
int32, bool             equal
float32  1.0 ~ 1.0000001   within some units in the last place of the largest that was summed
NaN ~ NaN, inf ~ inf    the same kind of number in the same place
```
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

ULPS = 64
"""How many units in the last place of the largest magnitude a result may be off before it is asked how far rounding carries."""


def unit(dtype: np.dtype) -> float:
    """Returns the unit in the last place of 1."""
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps)


def smallest(dtype: np.dtype) -> float:
    """Returns the smallest number above 0."""
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).smallest_subnormal)


def wrong_places(wanted: np.ndarray, got: np.ndarray, scale: float, limits: np.ndarray | None = None) -> np.ndarray:
    """Returns a mask of the elements that differ by more than rounding, of arrays of one shape and dtype.

    `scale` is the largest magnitude that took part, `limits` the deviations that are allowed besides.
    """
    if wanted.dtype.kind in "iub":
        differ = wanted != got
        return differ if limits is None else differ & (apart(wanted, got) > limits)
    old = wanted.astype(np.float64)
    allowed = ULPS * unit(wanted.dtype) * np.maximum(np.abs(np.where(np.isfinite(old), old, 0.0)), scale)
    allowed += 4 * smallest(wanted.dtype)
    if limits is not None:
        allowed = allowed + limits
    return ~(same(wanted, got) | (apart(wanted, got) <= allowed))


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns a mask of the elements that agree; NaN agrees with NaN."""
    if a.dtype.kind in "iub":
        return np.asarray(a == b)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    return np.asarray((wide == other) | (np.isnan(wide) & np.isnan(other)))


def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns the distance of each element, in float64."""
    with np.errstate(all="ignore"):
        return np.abs(b.astype(np.float64) - a.astype(np.float64))


def deviation(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Returns how far each element has moved: 0 where both agree, infinity where one is NaN."""
    moved = apart(old, new)
    return np.where(same(old, new), 0.0, np.where(np.isnan(moved), np.inf, moved))


def magnitude(arrays: Mapping[str, np.ndarray]) -> float:
    """Returns the largest finite magnitude among floats."""
    largest = 0.0
    for array in arrays.values():
        if array.dtype.kind not in "iub" and array.size:
            wide = np.abs(array.astype(np.float64))
            largest = max(largest, float(wide.max(initial=0.0, where=np.isfinite(wide))))
    return largest


def difference(
    wanted: Mapping[str, np.ndarray],
    got: Mapping[str, np.ndarray],
    scale: float = 0.0,
    limits: Mapping[str, np.ndarray] | None = None,
) -> str | None:
    """Describes the difference between results; None where they agree."""
    if list(wanted) != list(got):
        return f"results {', '.join(got) or 'none'} instead of {', '.join(wanted) or 'none'}"
    for name, old in wanted.items():
        new = got[name]
        if old.shape != new.shape or old.dtype != new.dtype:
            return f"{name} is {new.dtype}{list(new.shape)} instead of {old.dtype}{list(old.shape)}"
        wrong = wrong_places(old, new, scale, None if limits is None else limits[name])
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return f"{name}{list(at) if at else ''} is {new[at]} instead of {old[at]} ({int(wrong.sum())} of {wrong.size} differ)"
    return None
