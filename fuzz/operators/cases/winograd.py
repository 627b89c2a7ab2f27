"""Cases of Winograd convolutions.

Transformed weights are compared with products of polynomials, convolutions with direct ones.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import padding_of

POINTS = {2: (0, -1, 1), 4: (0, -1, 1, Fraction(1, 2), -2)}


def filters(tile: int) -> np.ndarray:
    """Returns the filter transform G: its polynomial at each point, over the differences to the others."""
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
    """Returns the weight (O, I, …) transformed, the depth of a flat kernel left alone."""
    g, rank = filters(tile), w.ndim - 2
    flat = rank == 3 and w.shape[2] == 1
    letters = "dhw"[3 - rank :]
    moved = letters[1:] if flat else letters
    terms = [f"{c.upper()}{c}" for c in moved]
    target = "".join(c.upper() for c in moved) + ("d" if flat else "") + "oi"
    return np.einsum(
        ",".join(["oi" + letters, *terms]) + "->" + target, w.astype(np.float64), *[g] * len(moved)
    ).astype(w.dtype)


def outputs(tile: int) -> np.ndarray:
    """Returns the points' powers: what the products are multiplied with."""
    return np.array([*[[float(p) ** j for j in range(tile)] for p in POINTS[tile]], [0.0] * (tile - 1) + [1.0]])


def data(tile: int) -> np.ndarray:
    """Returns the data transform B, solved for from the other two: y[i] = sum of w[r] * d[i + r]."""
    size, a, g = tile + 2, outputs(tile), filters(tile)
    known = np.concatenate([a.T * g[:, r] for r in range(3)])
    wanted = np.concatenate([np.eye(size)[r : r + tile] for r in range(3)])
    return np.linalg.lstsq(known, wanted, rcond=None)[0].T


@st.composite
def _halves(draw: Any) -> Any:
    attrs, (w,) = draw(_weights(2))
    attrs["padding"] = draw(st.sampled_from(((0, 0), (1, 1), (0, 1, 2, 0))))
    shape = (draw(st.integers(1, 2)), w.shape[1], draw(st.integers(3, 6)), draw(st.integers(3, 6)))
    return attrs, [values(shape, "float32", draw(seeds)), w]


def _products(a: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    tile, turn = a.tile_size, data(a.tile_size)
    before, after = padding_of(a.padding, 2)
    tiles = [-(-(d + low + high - 2) // tile) for d, low, high in zip(x.shape[2:], before, after, strict=True)]
    height, width = tiles[0] * tile + 2, tiles[1] * tile + 2
    whole = np.zeros((*x.shape[:2], height, width))
    part = x[:, :, : height - before[0], : width - before[1]]
    whole[:, :, before[0] :, before[1] :][:, :, : part.shape[2], : part.shape[3]] = part
    result = np.zeros((len(x), tile + 2, tile + 2, tiles[0] * tiles[1], len(w)))
    for place, (row, column) in enumerate(product(*map(range, tiles))):
        cut = whole[:, :, row * tile :, column * tile :][:, :, : tile + 2, : tile + 2]
        turned = np.einsum("ncpq,pa,qb->nabc", cut, turn, turn)
        result[:, :, :, place] = np.einsum("nabc,aboc->nabo", turned, transformed(w.astype(np.float64), tile))
    return result.astype(x.dtype)


@st.composite
def _outputs(draw: Any) -> Any:
    tile = draw(st.sampled_from((2, 4)))
    size = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    count = -(-size[0] // tile) * -(-size[1] // tile)
    shape = (draw(st.integers(1, 2)), tile + 2, tile + 2, count, draw(st.integers(1, 3)))
    return {"tile_size": tile, "output_size": size}, [values(shape, "float32", draw(seeds))]


def _output(a: Any, products: np.ndarray) -> np.ndarray:
    tile, (height, width) = a.tile_size, a.output_size
    back, columns = outputs(tile), -(-width // tile)
    result = np.zeros((len(products), products.shape[4], height, width))
    for y, x in product(range(height), range(width)):
        place = products[:, :, :, y // tile * columns + x // tile].astype(np.float64)
        result[:, :, y, x] = np.einsum("nabo,a,b->no", place, back[:, y % tile], back[:, x % tile])
    return result.astype(products.dtype)


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
    """Returns the direct convolution: the spatial weight comes back by the pseudoinverse of the transform."""
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
case("nn.contrib_conv2d_winograd_products", _halves(), _products, loose=20, unknown=False)
case("nn.contrib_conv2d_winograd_output_transform", _outputs(), _output, loose=20, unknown=False)
