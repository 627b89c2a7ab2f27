"""Calibration: chooses the range that bytes represent from what a tensor holds for samples.

    Calibration("mse").add(x)…, .finish() -> (-0.5, 6.1) -> scale 0.0259, zero point 19

Ranges hold 0, which padding and relu produce. Values outside of a range are clipped to it: a range that leaves out a few of the largest
represents the others more finely. Method `minmax` leaves out none, `percentile` the outermost 0.01 %, `mse` and `entropy` as many as make
the mean square error, or the divergence of the distributions (Kullback and Leibler), least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Method = Literal["minmax", "percentile", "entropy", "mse"]
METHODS: tuple[Method, ...] = get_args(Method)
BINS = 2048
LEVELS = 256
PERCENTILE = 1e-4
"""The part of the values that `percentile` leaves out, half of it on each side."""
SHARES = 41
"""Ranges that `mse` and `entropy` try: from a fifth of the whole range to all of it."""
LEAST_SHARE = 0.2


@dataclass(frozen=True)
class Affine8:
    """Scale and zero point of unsigned bytes."""

    scale: float
    zero_point: int

    @staticmethod
    def of_range(low: float, high: float) -> Affine8:
        """Returns the parameters by which 0 to 255 represent a range, 0 exactly."""
        import numpy as np

        low, high = min(low, 0.0), max(high, 0.0)
        least = float(np.finfo(np.float32).tiny)
        scale = float(np.float32(max((high - low) / (LEVELS - 1), least)))
        if high == low:
            return Affine8(1.0, 0)
        return Affine8(scale, min(max(round(-low / scale), 0), LEVELS - 1))


@dataclass
class Calibration:
    """The range of one tensor: first `add` of all samples, then, for methods that need it, `count` of all."""

    method: Method
    low: float = 0.0
    high: float = 0.0
    counts: NDArray[np.float64] | None = field(default=None, repr=False)

    def add(self, values: NDArray[Any]) -> None:
        """Widens the range to these values."""
        if values.size:
            self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))

    @property
    def needs_counts(self) -> bool:
        """Returns whether the distribution of the values matters."""
        return self.method != "minmax" and self.high > self.low

    def count(self, values: NDArray[Any]) -> None:
        """Adds values, which are in the range, to its distribution."""
        import numpy as np

        found = np.histogram(values, BINS, (self.low, self.high))[0].astype(np.float64)
        self.counts = found if self.counts is None else self.counts + found

    def finish(self) -> Affine8:
        """Returns the scale and zero point of the range that the method chooses."""
        if self.counts is None or not self.needs_counts:
            return Affine8.of_range(self.low, self.high)
        if self.method == "percentile":
            return Affine8.of_range(*_percentile(self.counts, self.low, self.high))
        cost = {"mse": _square_error, "entropy": _divergence}[self.method]
        return _cheapest(self.counts, self.low, self.high, cost)


def _percentile(counts: NDArray[np.float64], low: float, high: float) -> tuple[float, float]:
    """Returns the range without the outermost values, half of PERCENTILE on each side."""
    import numpy as np

    share = np.cumsum(counts) / counts.sum()
    edges = np.linspace(low, high, BINS + 1)
    first = int(np.searchsorted(share, PERCENTILE / 2, side="right"))
    last = int(np.searchsorted(share, 1 - PERCENTILE / 2, side="left"))
    return float(edges[first]), float(edges[min(last, BINS - 1) + 1])


Cost = Callable[["NDArray[np.float64]", "NDArray[np.float64]", Affine8], float]
"""Of counts, the numbers counted, and the parameters that represent them."""


def _cheapest(counts: NDArray[np.float64], low: float, high: float, cost: Cost) -> Affine8:
    """Returns the parameters of least cost among those of shares of the range."""
    import numpy as np

    edges = np.linspace(low, high, BINS + 1)
    centers = (edges[1:] + edges[:-1]) / 2
    tried = [Affine8.of_range(low * share, high * share) for share in np.linspace(LEAST_SHARE, 1.0, SHARES)]
    return min(tried, key=lambda affine: cost(counts, centers, affine))


def _codes(centers: NDArray[np.float64], affine: Affine8) -> NDArray[np.int64]:
    import numpy as np

    return np.clip(np.rint(centers / affine.scale) + affine.zero_point, 0, LEVELS - 1).astype(np.int64)


def _square_error(counts: NDArray[np.float64], centers: NDArray[np.float64], affine: Affine8) -> float:
    real = (_codes(centers, affine) - affine.zero_point) * affine.scale
    return float((counts * (centers - real) ** 2).sum())


def _divergence(counts: NDArray[np.float64], centers: NDArray[np.float64], affine: Affine8) -> float:
    """Returns the divergence of the clipped distribution from the one that the levels can represent."""
    import numpy as np

    codes = _codes(centers, affine)
    # Zeros, of which relu makes many, are exact in any range.
    counts = np.where(codes == affine.zero_point, 0.0, counts)
    low, high = (edge - affine.zero_point for edge in (0, LEVELS - 1))
    inside = (centers >= (low - 0.5) * affine.scale) & (centers <= (high + 0.5) * affine.scale)
    clipped = np.where(inside, counts, 0.0)
    first, last = np.flatnonzero(inside)[[0, -1]]
    wanted = clipped.copy()
    wanted[first] += counts[:first].sum()
    wanted[last] += counts[last + 1 :].sum()
    # A level spreads what it holds evenly over the bins that hold anything.
    used = (clipped > 0).astype(np.float64)
    total, bins = (np.bincount(codes, weights, minlength=LEVELS) for weights in (clipped, used))
    spread = np.where(used > 0, (total / np.maximum(bins, 1.0))[codes], 0.0)
    p, q = wanted / max(wanted.sum(), 1.0), spread / max(spread.sum(), 1.0)
    shown = p > 0
    return float((p[shown] * np.log(p[shown] / np.maximum(q[shown], 1e-9))).sum())
