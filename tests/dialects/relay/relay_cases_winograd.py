"""Cases of Winograd convolutions: transformed weights against products of polynomials, convolutions against direct ones."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from relay_cases import case, seeds, values
from relay_cases_conv import padding_of

POINTS = {2: (0, -1, 1), 4: (0, -1, 1, Fraction(1, 2), -2)}


def filters(tile: int) -> np.ndarray:
    """What three taps are multiplied with: the filter's polynomial at each point, over the differences to the others."""
    points = POINTS[tile]
    rows = []
    for p in points:
        scale = Fraction(1)
        for q in points:
            scale *= p - q if q != p else 1
        scale = abs(scale) if p == 0 else scale
        rows.append([float(Fraction(p) ** j / scale) for j in range(3)])
    return np.array([*rows, [0.0, 0.0, 1.0]])


def transformed(w: np.ndarray, tile: int) -> np.ndarray:
    """The weight (O, I, …) transformed, the depth of a flat kernel left alone."""
    g, rank = filters(tile), w.ndim - 2
    flat = rank == 3 and w.shape[2] == 1
    letters = "dhw"[3 - rank :]
    moved = letters[1:] if flat else letters
    terms = [f"{c.upper()}{c}" for c in moved]
    target = "".join(c.upper() for c in moved) + ("d" if flat else "") + "oi"
    return np.einsum(
        ",".join(["oi" + letters, *terms]) + "->" + target, w.astype(np.float64), *[g] * len(moved)
    ).astype(w.dtype)


@st.composite
def _weights(draw: Any, rank: int) -> Any:
    depth = draw(st.sampled_from(((1,), (3,)))) if rank == 3 else ()
    w = values((draw(st.integers(1, 3)), draw(st.integers(1, 2)), *depth, 3, 3), "float32", draw(seeds))
    return {"tile_size": draw(st.sampled_from((2, 4)))}, [w]


@st.composite
def _convolutions(draw: Any, rank: int) -> Any:
    attrs, (w,) = draw(_weights(rank))
    pads = draw(st.sampled_from((0, 1)))
    attrs |= {"padding": (pads,) * rank, "channels": len(w), "kernel_size": w.shape[2:]}
    shape = (draw(st.integers(1, 2)), w.shape[1], *(draw(st.integers(3, 5)) for _ in range(rank)))
    return attrs, [values(shape, "float32", draw(seeds)), transformed(w, attrs["tile_size"])]


def _convolution(a: Any, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The direct convolution: the spatial weight comes back by the pseudoinverse of the transform."""
    rank = x.ndim - 2
    inverse, flat = np.linalg.pinv(filters(a.tile_size)), rank == 3 and a.kernel_size[0] == 1
    w = weight.astype(np.float64)
    for axis in range(2 if flat or rank == 2 else 3):
        w = np.moveaxis(np.moveaxis(w, axis, -1) @ inverse.T, -1, axis)
    w = np.moveaxis(w, 2, 0) if flat else w
    before, after = padding_of(a.padding, rank)
    x = np.pad(x, ((0, 0), (0, 0), *zip(before, after, strict=True)))
    places = [d - k + 1 for d, k in zip(x.shape[2:], a.kernel_size, strict=True)]
    result = np.zeros((len(x), a.channels, *places))
    for tap in product(*map(range, a.kernel_size)):
        part = x[(slice(None), slice(None), *(slice(t, t + p) for t, p in zip(tap, places, strict=True)))]
        result += np.einsum("nc...,oc->no...", part, w[tap])
    return result.astype(np.float32)


for _rank in (2, 3):
    _name = f"nn.contrib_conv{_rank}d_winograd"
    case(f"{_name}_weight_transform", _weights(_rank), lambda a, w: transformed(w, a.tile_size), unknown=False)
    case(f"{_name}_without_weight_transform", _convolutions(_rank), _convolution, loose=20)
