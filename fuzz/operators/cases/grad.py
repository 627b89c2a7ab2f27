"""Cases of losses and of gradients that are operators, element by element."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import case, seeds, values
from .conv import pack, padding_of, unpack


@st.composite
def _pairs(draw: Any, low: float) -> Any:
    shape, dtype = (draw(st.integers(1, 3)), draw(st.integers(1, 4))), draw(st.sampled_from(("float32", "float64")))
    return {}, [values(shape, dtype, draw(seeds), low, 3), values(shape, dtype, draw(seeds), 0, 1)]


def _entropy(logits: bool) -> Any:
    def reference(a: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        rows = [
            sum(float(t) * (float(v) if logits else math.log(v)) for v, t in zip(*row, strict=True))
            for row in zip(x, y, strict=True)
        ]
        return np.array(-sum(rows) / len(rows), x.dtype)

    return reference


case("nn.cross_entropy", _pairs(0.1), _entropy(False))
case("nn.cross_entropy_with_logits", _pairs(-3), _entropy(True))


@st.composite
def _likelihoods(draw: Any) -> Any:
    classes, dtype = draw(st.integers(2, 4)), draw(st.sampled_from(("float32", "float64")))
    places = draw(st.sampled_from(((), (3,), (2, 3), (2, 1, 2))))
    shape = (*places[:1], classes, *places[1:])
    targets = values(places, "int32", draw(seeds), 0, classes - 1)
    # Weights above zero: the mean must have something to divide by.
    ignored = -1 if places == () else draw(st.sampled_from((-1, int(targets.reshape(-1)[0]))))
    kept = (targets != ignored).any()
    attrs = {"reduction": draw(st.sampled_from(("mean", "sum", "none"))), "ignore_index": ignored if kept else -1}
    return attrs, [values(shape, dtype, draw(seeds)), targets, values((classes,), dtype, draw(seeds), 0.5, 2)]


def _likelihood_reference(a: Any, x: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    losses, total = np.zeros(targets.shape, x.dtype), 0.0
    for place in np.ndindex(*targets.shape):
        target = int(targets[place])
        if target != a.ignore_index:
            losses[place] = -x[(*place[:1], target, *place[1:])] * weights[target]
            total += float(weights[target])
    if a.reduction == "none":
        return losses
    return np.array(losses.sum() / (total if a.reduction == "mean" else 1), x.dtype)


case("nn.nll_loss", _likelihoods(), _likelihood_reference)


@st.composite
def _dilations(draw: Any) -> Any:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    attrs = {
        "strides": tuple(draw(st.integers(1, 3)) for _ in shape),
        "dilation_value": draw(st.sampled_from((0.0, 2.0))),
    }
    return attrs, [values(shape, draw(st.sampled_from(("float32", "int8", "float16"))), draw(seeds))]


def _dilation_reference(a: Any, x: np.ndarray) -> np.ndarray:
    result = np.full([(d - 1) * s + 1 for d, s in zip(x.shape, a.strides, strict=True)], a.dilation_value, x.dtype)
    for place in np.ndindex(*x.shape):
        result[tuple(p * s for p, s in zip(place, a.strides, strict=True))] = x[place]
    return result


case("nn.dilate", _dilations(), _dilation_reference)


@st.composite
def _buffers(draw: Any) -> Any:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    new = list(shape)
    new[axis] = draw(st.integers(1, shape[axis]))
    return {"axis": axis}, [values(new, "float32", draw(seeds)), values(shape, "float32", draw(seeds))]


def _buffer_reference(a: Any, x: np.ndarray, buffer: np.ndarray) -> np.ndarray:
    both = [*np.moveaxis(buffer, a.axis, 0), *np.moveaxis(x, a.axis, 0)]
    return np.moveaxis(np.array(both[-buffer.shape[a.axis] :]), 0, a.axis)


case("nn.fifo_buffer", _buffers(), _buffer_reference)


@st.composite
def _pools(draw: Any, is_max: bool) -> Any:
    layout = draw(st.sampled_from(("NCHW", "NHWC")))
    attrs: dict[str, Any] = {
        "pool_size": (draw(st.integers(1, 3)), 2), "strides": (draw(st.integers(1, 3)), 1), "layout": layout,
        "padding": draw(st.sampled_from(((0, 0), (1, 0), (0, 0, 1, 1)))), "ceil_mode": draw(st.booleans()),
        "dilation": (draw(st.sampled_from((1, 1, 2))), 1),
    }  # fmt: skip
    if not is_max:
        attrs["count_include_pad"] = draw(st.booleans())
    data = values((draw(st.integers(1, 2)), 2, 5, 4), "float32", draw(seeds))
    if is_max:
        data = np.round(data)
    (top, left), (bottom, right) = padding_of(attrs["padding"], 2)
    sizes = []
    for n, (size, more) in enumerate(zip((5, 4), (top + bottom, left + right), strict=True)):
        free = size + more - attrs["dilation"][n] * (attrs["pool_size"][n] - 1) - 1
        sizes.append((math.ceil if attrs["ceil_mode"] else math.floor)(free / attrs["strides"][n]) + 1)
    gradient = values((*data.shape[:2], *sizes), "float32", draw(seeds))
    return attrs, [pack(gradient, "NCHW", layout), pack(data, "NCHW", layout)]


def _pool_reference(is_max: bool) -> Any:
    def reference(a: Any, gradient: np.ndarray, x: np.ndarray) -> np.ndarray:
        given, data = unpack(gradient, "NCHW", a.layout), unpack(x, "NCHW", a.layout)
        (top, left), _ = padding_of(a.padding, 2)
        result = np.zeros(data.shape, np.float64)
        for n, c, i, j in np.ndindex(*given.shape):
            window = [
                (i * a.strides[0] - top + p * a.dilation[0], j * a.strides[1] - left + q * a.dilation[1])
                for p, q in product(*map(range, a.pool_size))
            ]
            inside = [(y, z) for y, z in window if 0 <= y < data.shape[2] and 0 <= z < data.shape[3]]
            if is_max:
                if inside:
                    best = max(inside, key=lambda p, n=n, c=c: data[(n, c, *p)])
                    result[(n, c, *best)] += given[n, c, i, j]
                continue
            count = len(window) if a.count_include_pad else max(len(inside), 1)
            for place in inside:
                result[(n, c, *place)] += given[n, c, i, j] / count
        return pack(result.astype(np.float32), "NCHW", a.layout)

    return reference


for _is_max in (True, False):
    case(f"nn.{'max' if _is_max else 'avg'}_pool2d_grad", _pools(_is_max), _pool_reference(_is_max))


@st.composite
def _weights(draw: Any) -> Any:
    groups = draw(st.sampled_from((1, 2)))
    layouts = draw(st.sampled_from((("NCHW", "OIHW"), ("NHWC", "HWIO"))))
    attrs: dict[str, Any] = {
        "strides": (draw(st.integers(1, 2)), 1), "padding": draw(st.sampled_from(((0, 0), (1, 1), (0, 1, 1, 0)))),
        "dilation": (1, draw(st.integers(1, 2))), "groups": groups, "channels": 4, "kernel_size": (2, 2),
        "data_layout": layouts[0], "kernel_layout": layouts[0], "out_layout": layouts[1],
    }  # fmt: skip
    (top, left), (bottom, right) = padding_of(attrs["padding"], 2)
    rows = (5 + top + bottom - 2) // attrs["strides"][0] + 1
    columns = 4 + left + right - attrs["dilation"][1]
    data, gradient = values((2, 2, 5, 4), "float32", draw(seeds)), values((2, 4, rows, columns), "float32", draw(seeds))
    return attrs, [pack(gradient, "NCHW", layouts[0]), pack(data, "NCHW", layouts[0])]


def _weight_reference(a: Any, gradient: np.ndarray, x: np.ndarray) -> np.ndarray:
    given, data = unpack(gradient, "NCHW", a.data_layout), unpack(x, "NCHW", a.kernel_layout)
    (top, left), (bottom, right) = padding_of(a.padding, 2)
    data = np.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    inner, outer = data.shape[1] // a.groups, given.shape[1] // a.groups
    result = np.zeros((given.shape[1], inner, 2, 2))
    for o, k, p, q in np.ndindex(*result.shape):
        for i, j in product(*map(range, given.shape[2:])):
            pixel = data[:, o // outer * inner + k, i * a.strides[0] + p, j * a.strides[1] + q * a.dilation[1]]
            result[o, k, p, q] += float(np.dot(pixel.astype(np.float64), given[:, o, i, j]))
    return pack(result.astype(np.float32), "OIHW", a.out_layout)


case("nn.conv2d_backward_weight", _weights(), _weight_reference)
