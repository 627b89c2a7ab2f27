"""Cases of products with weights of few bits; the reference takes each number out of its byte."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values


@st.composite
def _products(draw: Any) -> Any:
    bits, block = draw(st.sampled_from((2, 4, 8))), draw(st.sampled_from((16, 32)))
    outer = draw(st.lists(st.integers(1, 3), min_size=0, max_size=2))
    inner, units = draw(st.integers(1, 40)), draw(st.sampled_from((1, 3, 65)))
    groups, seed = -(-inner // block), draw(seeds)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 256, (units, groups, block * bits // 8)).astype(np.uint8)
    scales = values((units, groups), draw(st.sampled_from(("float32", "float16"))), seed, 0.01, 0.1)
    shape, dtype = draw(
        st.sampled_from((((), "uint8"), ((units, -(-groups * bits // 8)), "uint8"), ((units, groups), "float32")))
    )
    zero_points = rng.integers(0, 1 << bits if dtype != "uint8" or not shape else 256, shape).astype(dtype)
    data = values([*outer, inner], draw(st.sampled_from(("float32", "float32", "float16"))), seed)
    return {"bits": bits, "block_size": block}, [data, weight, scales, np.asarray(zero_points)]


def _product(a: Any, x: np.ndarray, weight: np.ndarray, scales: np.ndarray, zero_points: np.ndarray) -> np.ndarray:
    mask = (1 << a.bits) - 1
    result = np.zeros((*x.shape[:-1], len(weight)))

    def packed(row: np.ndarray, place: int) -> int:
        return int(row[place * a.bits // 8]) >> place * a.bits % 8 & mask

    for n, row in enumerate(weight):
        for k in range(x.shape[-1]):
            group, place = divmod(k, a.block_size)
            if zero_points.ndim == 0:
                zero = float(zero_points)
            elif zero_points.dtype == np.uint8:
                zero = packed(zero_points[n], group)
            else:
                zero = float(zero_points[n, group])
            result[..., n] += x[..., k].astype(float) * (packed(row[group], place) - zero) * float(scales[n, group])
    return result.astype(x.dtype)


case("nn.matmul_nbits", _products(), _product, loose=8)
