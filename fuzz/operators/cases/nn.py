"""Cases of the dense layers, activations and norms, references by loops or einsum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ....dialects.array import numpy_dtype
from ..sampling import FLOATS, NUMBERS, array, case, in_float64, nonempty_shapes, retyped, seeds, use, values

MATMUL = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32")


def _out(attrs: Any, x: np.ndarray) -> Any:
    return numpy_dtype(attrs.out_dtype or x.dtype.name)


def _exact(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)


@st.composite
def _dense(draw: Any) -> Any:
    dtype = draw(st.sampled_from(MATMUL))
    outer = draw(st.lists(st.integers(1, 3), min_size=0, max_size=2))
    k, units = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    attrs: dict[str, Any] = {"units": draw(st.sampled_from((None, units)))}
    if dtype in ("int8", "uint8"):
        attrs["out_dtype"] = "int32"
    return attrs, [values([*outer, k], dtype, draw(seeds)), values([units, k], dtype, draw(seeds))]


case("nn.dense", _dense(), lambda a, x, w: np.einsum("...k,nk->...n", _exact(x), _exact(w)).astype(_out(a, x)), loose=3)


@st.composite
def _matmul(draw: Any) -> Any:
    attrs, (x, w) = draw(_dense())
    x = x.reshape(-1, x.shape[-1])
    ta, tb = draw(st.booleans()), draw(st.booleans())
    attrs |= {"transpose_a": ta, "transpose_b": tb}
    return attrs, [np.ascontiguousarray(x.T) if ta else x, w if tb else np.ascontiguousarray(w.T)]


def _matmul_reference(a: Any, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    left, right = "km" if a.transpose_a else "mk", "nk" if a.transpose_b else "kn"
    return np.einsum(f"{left},{right}->mn", _exact(x), _exact(w)).astype(_out(a, x))


case("nn.matmul", _matmul(), _matmul_reference, loose=3)


@st.composite
def _batch_matmul(draw: Any) -> Any:
    dtype = draw(st.sampled_from(MATMUL))
    b, m, k, n = (draw(st.integers(1, 4)) for _ in range(4))
    ta, tb = draw(st.booleans()), draw(st.booleans())
    one = draw(st.sampled_from(("x", "y", "")))
    x = values([1 if one == "x" else b, *((k, m) if ta else (m, k))], dtype, draw(seeds))
    y = values([1 if one == "y" else b, *((n, k) if tb else (k, n))], dtype, draw(seeds))
    attrs: dict[str, Any] = {"transpose_a": ta, "transpose_b": tb}
    if dtype in ("int8", "uint8"):
        attrs["out_dtype"] = "int32"
    return attrs, [x, y]


def _batch_reference(a: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    batch = max(len(x), len(y))
    x, y = (np.broadcast_to(_exact(v), (batch, *v.shape[1:])) for v in (x, y))
    left, right = "bkm" if a.transpose_a else "bmk", "bnk" if a.transpose_b else "bkn"
    return np.einsum(f"{left},{right}->bmn", x, y)


case("nn.batch_matmul", _batch_matmul(), lambda a, x, y: _batch_reference(a, x, y).astype(_out(a, x)), loose=3)


@st.composite
def _packed(draw: Any) -> Any:
    m, k, blocks, width = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(1, 3)), 4
    return (
        {"weight_layout": "NC4n"},
        [values((m, k), "float32", draw(seeds)), values((blocks, k, width), "float32", draw(seeds))],
    )


case(
    "nn.contrib_dense_pack",
    retyped(_packed(), (*FLOATS, "int32")),
    in_float64(lambda a, x, w: np.concatenate([x @ block for block in w], axis=1)),
    loose=3,
)

case("nn.relu", use(array()), lambda a, x: x * (x > 0).astype(x.dtype))
case(
    "nn.leaky_relu",
    use(array(dtypes=FLOATS), alpha=0.1),
    in_float64(lambda a, x: np.maximum(x, 0) + 0.1 * np.minimum(x, 0)),
)


@st.composite
def _per_channel(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, NUMBERS))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return {"axis": axis}, [x, values((x.shape[axis],), x.dtype.name, draw(seeds))]


case("nn.bias_add", _per_channel(), lambda a, x, b: np.moveaxis(np.moveaxis(x, a.axis, -1) + b, -1, a.axis))
case("nn.prelu", _per_channel(), lambda a, x, b: np.moveaxis((y := np.moveaxis(x, a.axis, -1)) * np.where(y > 0, 1, b), -1, a.axis))  # fmt: skip


@st.composite
def _softmax(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, FLOATS, -30, 30))
    return {"axis": draw(st.integers(-x.ndim, x.ndim - 1))}, [x]


def _softmax_reference(attrs: Any, x: np.ndarray) -> np.ndarray:
    wide = np.exp(x.astype(np.longdouble))
    return wide / wide.sum(axis=attrs.axis, keepdims=True)


case("nn.softmax nn.fast_softmax", _softmax(), lambda a, x: _softmax_reference(a, x).astype(x.dtype))
case("nn.log_softmax", _softmax(), lambda a, x: np.log(_softmax_reference(a, x)).astype(x.dtype))
case("nn.dropout", use(array(), rate=0.3), lambda a, x: (x, np.ones_like(x)))
case("nn.batch_flatten", use(array(nonempty_shapes)), lambda a, x: x.reshape(len(x), -1))


@st.composite
def _norms(draw: Any, vectors: int, rank: int = 2, extra: Any = None) -> Any:
    shape = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=4))
    axis = draw(st.integers(1, len(shape) - 1))
    if extra:
        shape[axis] = 4
    dtype = draw(st.sampled_from(FLOATS))
    attrs = {
        "axis": axis - len(shape) * draw(st.integers(0, 1)),
        "center": draw(st.booleans()),
        "scale": draw(st.booleans()),
    }
    given = [values((shape[axis],), dtype, draw(seeds), 0.5, 2) for _ in range(vectors)]
    return {**attrs, "epsilon": 1e-2, **(extra or {})}, [values(shape, dtype, draw(seeds)), *given]


def _affine(attrs: Any, y: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """`y` has its channels last."""
    return y * (gamma if attrs.scale else 1) + (beta if attrs.center else 0)


def _batch_norm(a: Any, x: Any, gamma: Any, beta: Any, mean: Any, var: Any) -> Any:
    y = np.moveaxis(x, a.axis, -1)
    y = _affine(a, (y - mean) / np.sqrt(var + 1e-2), gamma, beta)
    return np.moveaxis(y, -1, a.axis), mean, var


case("nn.batch_norm", _norms(4), in_float64(_batch_norm), loose=2)


def _statistics(x: np.ndarray) -> np.ndarray:
    return (x - np.mean(x)) / math.sqrt(np.var(x) + 1e-2)


def _layer_norm(a: Any, x: Any, gamma: Any, beta: Any) -> Any:
    y = np.moveaxis(x, a.axis, -1)
    return np.moveaxis(_affine(a, np.apply_along_axis(_statistics, -1, y), gamma, beta), -1, a.axis)


case("nn.layer_norm", _norms(2), in_float64(_layer_norm), loose=2)


def _group_norm(groups: int, a: Any, x: Any, gamma: Any, beta: Any) -> Any:
    y = np.moveaxis(x, a.axis, -1).copy()
    width = y.shape[-1] // groups
    for n in range(len(y)):
        for g in range(groups):
            part = (n, ..., slice(g * width, (g + 1) * width))
            y[part] = _statistics(y[part])
    return np.moveaxis(_affine(a, y, gamma, beta), -1, a.axis)


case("nn.instance_norm", _norms(2, 3), in_float64(lambda a, x, g, b: _group_norm(x.shape[a.axis], a, x, g, b)), loose=2)
case(
    "nn.group_norm", _norms(2, 3, {"num_groups": 2}), in_float64(lambda a, x, g, b: _group_norm(2, a, x, g, b)), loose=2
)


def _lrn(a: Any, x: np.ndarray) -> np.ndarray:
    y = np.moveaxis(x.astype(np.float64), a.axis, -1)
    result = np.empty_like(y)
    for c in range(y.shape[-1]):
        near = y[..., max(c - a.size // 2, 0) : c + a.size // 2 + 1]
        result[..., c] = y[..., c] / (a.bias + a.alpha / a.size * (near**2).sum(-1)) ** a.beta
    return np.moveaxis(result, -1, a.axis).astype(x.dtype)


case(
    "nn.lrn",
    use(
        array((2, 5, 3), FLOATS),
        size=st.sampled_from((3, 5, 11)),
        axis=st.integers(0, 2),
        alpha=0.5,
        bias=2.0,
        beta=st.sampled_from((0.5, 0.6, 0.75, 1.0)),
    ),
    _lrn,
)
case(
    "nn.l2_normalize",
    use(array((2, 3, 2), FLOATS), eps=1e-3, axis=st.just((1,)) | st.none() | st.just((0, 2))),
    in_float64(lambda a, x: x / np.sqrt(np.maximum((x**2).sum(axis=a.axis, keepdims=True), 1e-3))),
)
