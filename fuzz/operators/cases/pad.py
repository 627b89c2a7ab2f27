"""Cases of operators that pad, or move blocks of space to the batch or to channels."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import ALL, FLOATS, array, case, nonempty_shapes, retyped, seeds, values


@st.composite
def _pads(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ALL))
    mode = draw(st.sampled_from(("constant", "edge", "reflect")))
    width = tuple(tuple(draw(st.integers(0, 2 if mode != "reflect" else d - 1)) for _ in range(2)) for d in x.shape)
    return {"pad_width": width, "pad_mode": mode}, [x, np.array(draw(st.integers(-2, 2))).astype(x.dtype)]


def _padded_index(p: int, size: int, mode: str) -> int:
    if mode == "edge":
        return min(max(p, 0), size - 1)
    mirror = 0 if mode == "symmetric" else 1
    if p < 0:
        return -p - 1 + mirror
    return 2 * size - 1 - p - mirror if p >= size else p


def _pad_reference(mode: str, width: Any, x: np.ndarray, value: Any = 0) -> np.ndarray:
    result = np.empty([d + a + b for d, (a, b) in zip(x.shape, width, strict=True)], x.dtype)
    for place in np.ndindex(*result.shape):
        at = [p - w[0] for p, w in zip(place, width, strict=True)]
        inside = all(0 <= p < d for p, d in zip(at, x.shape, strict=True))
        if mode == "constant":
            result[place] = x[tuple(at)] if inside else value
        else:
            result[place] = x[tuple(_padded_index(p, d, mode) for p, d in zip(at, x.shape, strict=True))]
    return result


case("nn.pad", _pads(), lambda a, x, v: _pad_reference(a.pad_mode, a.pad_width, x, v))


@st.composite
def _mirrors(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ("float32",)))
    mode = draw(st.sampled_from(("SYMMETRIC", "REFLECT")))
    width = tuple(tuple(draw(st.integers(0, d - (mode == "REFLECT"))) for _ in range(2)) for d in x.shape)
    return {"mode": mode, "pad_width": width}, [x]


case("nn.mirror_pad", retyped(_mirrors()), lambda a, x: _pad_reference(a.mode.lower(), a.pad_width, x))


@st.composite
def _space_to_batch(draw: Any) -> Any:
    block = tuple(draw(st.integers(1, 3)) for _ in range(2))
    counts = [draw(st.integers(1, 2)) for _ in range(2)]
    paddings = tuple((draw(st.integers(0, 1)), 0) for _ in range(2))
    size = [max(b * c - p[0], 1) for b, c, p in zip(block, counts, paddings, strict=True)]
    paddings = tuple((p[0], -(n + p[0]) % b) for n, p, b in zip(size, paddings, block, strict=True))
    return {"block_shape": block, "paddings": paddings, "pad_value": 0.5}, [
        values((2, *size, 3), "float32", draw(seeds))
    ]


def _space_to_batch_reference(a: Any, x: np.ndarray) -> np.ndarray:
    x = np.pad(x, [(0, 0), *a.paddings, (0, 0)], constant_values=a.pad_value)
    b0, b1 = a.block_shape
    return np.concatenate([x[:, i::b0, j::b1] for i in range(b0) for j in range(b1)])


case("nn.space_to_batch_nd", retyped(_space_to_batch(), FLOATS), _space_to_batch_reference)


@st.composite
def _batch_to_space(draw: Any) -> Any:
    block = tuple(draw(st.integers(1, 3)) for _ in range(2))
    size = [draw(st.integers(1, 3)) for _ in range(2)]
    crops = tuple((draw(st.integers(0, b - 1)), 0) for b in block)
    return {"block_shape": block, "crops": crops}, [values((2 * block[0] * block[1], *size, 3), "float32", draw(seeds))]


def _batch_to_space_reference(a: Any, x: np.ndarray) -> np.ndarray:
    b0, b1 = a.block_shape
    n = len(x) // (b0 * b1)
    result = np.empty((n, x.shape[1] * b0, x.shape[2] * b1, x.shape[3]), x.dtype)
    for k in range(b0 * b1):
        result[:, k // b1 :: b0, k % b1 :: b1] = x[k * n : (k + 1) * n]
    (top, bottom), (left, right) = a.crops
    return result[:, top : result.shape[1] - bottom, left : result.shape[2] - right]


case("nn.batch_to_space_nd", retyped(_batch_to_space()), _batch_to_space_reference)


def _depth_places(x: np.ndarray, b: int) -> np.ndarray:
    return np.stack([x[:, :, i::b, j::b] for i in range(b) for j in range(b)], 1)


@st.composite
def _depths(draw: Any, to_depth: bool) -> Any:
    b, layout = draw(st.integers(1, 3)), draw(st.sampled_from(("NCHW", "NHWC")))
    shape = (1, 2, 2 * b, b) if to_depth else (1, 2 * b * b, 2, 3)
    attrs = {"block_size": b, "layout": layout, "mode": draw(st.sampled_from(("DCR", "CRD")))}
    x = values(shape, "float32", draw(seeds))
    return attrs, [x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))]


def _in_nchw(a: Any, x: np.ndarray, function: Any) -> np.ndarray:
    if a.layout == "NCHW":
        return function(x)
    return function(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)


def _space_to_depth(a: Any, x: np.ndarray) -> np.ndarray:
    def function(y: np.ndarray) -> np.ndarray:
        places = _depth_places(y, a.block_size)[0]
        ordered = places.swapaxes(0, 1) if a.mode == "CRD" else places
        return ordered.reshape(1, -1, *ordered.shape[2:])

    return _in_nchw(a, x, function)


def _depth_to_space(a: Any, x: np.ndarray) -> np.ndarray:
    b = a.block_size

    def function(y: np.ndarray) -> np.ndarray:
        n, c, h, w = y.shape
        outer = c // (b * b)
        result = np.empty((n, outer, h * b, w * b), y.dtype)
        for place in range(b * b):
            channels = slice(place * outer, (place + 1) * outer) if a.mode == "DCR" else slice(place, None, b * b)
            result[:, :, place // b :: b, place % b :: b] = y[:, channels]
        return result

    return _in_nchw(a, x, function)


case("nn.space_to_depth", retyped(_depths(True)), _space_to_depth)
case("nn.depth_to_space", retyped(_depths(False)), _depth_to_space)
