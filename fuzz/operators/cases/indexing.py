"""Cases of operators that take, place or mask elements by index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import ALL, FLOATS, array, case, nonempty_shapes, retyped, seeds, shapes, use, values

INDEX = ("int32", "int64")


@st.composite
def _takes(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ALL))
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    mode = draw(st.sampled_from(("clip", "wrap", "fast")))
    size = x.size if axis is None else x.shape[axis]
    low, high = (0, size - 1) if mode == "fast" else (-6, 8)
    return {"axis": axis, "mode": mode}, [x, draw(array(shapes, INDEX, low, high))]


case("take", _takes(), lambda a, x, i: np.take(x, i, a.axis, mode="wrap" if a.mode == "wrap" else "clip"))
case(
    "take",
    use(array((2, 3, 4), ALL), array((2, 2), INDEX, 0, 2), axis=1, batch_dims=1),
    lambda a, x, i: np.stack([x[b][i[b]] for b in range(2)]),
)


@st.composite
def _gathers(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ALL))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape)
    shape[axis] = draw(st.integers(1, 5))
    return {"axis": axis}, [x, draw(array(tuple(shape), INDEX, 0, x.shape[axis] - 1))]


def _gather_reference(a: Any, x: np.ndarray, i: np.ndarray) -> np.ndarray:
    result = np.empty(i.shape, x.dtype)
    for place in np.ndindex(*i.shape):
        source = list(place)
        source[a.axis] = i[place]
        result[place] = x[tuple(source)]
    return result


case("gather", _gathers(), _gather_reference)


@st.composite
def _gather_nds(draw: Any) -> Any:
    x = draw(array(st.lists(st.integers(1, 4), min_size=2, max_size=4).map(tuple), ALL))
    batch = draw(st.integers(0, 1))
    depth = draw(st.integers(1, x.ndim - batch))
    places = (*x.shape[:batch], *draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    rows = [draw(array(places, INDEX, 0, x.shape[batch + k] - 1)) for k in range(depth)]
    return {"batch_dims": batch, "index_rank": depth}, [x, np.stack([r.astype(np.int32) for r in rows])]


def _gather_nd_reference(a: Any, x: np.ndarray, i: np.ndarray) -> np.ndarray:
    result = [
        x[(*place[: a.batch_dims], *(int(v) for v in i[(slice(None), *place)]))] for place in np.ndindex(*i.shape[1:])
    ]
    return np.array(result).reshape(*i.shape[1:], *x.shape[len(i) + a.batch_dims :])


case("gather_nd", _gather_nds(), _gather_nd_reference, unknown=False)
SUMMED = (*FLOATS, "int32", "int64")
COMBINE = {
    "update": lambda old, new: new[-1],
    "add": lambda old, new: old + sum(new),
    "mul": lambda old, new: old * math.prod(new),
    "min": lambda old, new: min(old, *new),
    "max": lambda old, new: max(old, *new),
    "mean": lambda old, new: (old + sum(new)) / (1 + len(new)),
}


def _scattered(x: np.ndarray, targets: list[tuple[tuple[int, ...], Any]], mode: str) -> np.ndarray:
    result = x.astype(np.float64)
    groups: dict[tuple[int, ...], list[Any]] = {}
    for target, value in targets:
        groups.setdefault(target, []).append(value)
    for target, new in groups.items():
        result[target] = COMBINE[mode](np.float64(x[target]), [np.float64(v) for v in new])
    return result.astype(x.dtype)


@st.composite
def _scatters(draw: Any) -> Any:
    attrs, (x, i) = draw(_gathers())
    attrs["reduction"] = draw(st.sampled_from(tuple(COMBINE)))
    x = x.astype(np.float32)
    return attrs, [x, i, values(i.shape, x.dtype.name, draw(seeds))]


def _scatter_reference(a: Any, x: np.ndarray, i: np.ndarray, updates: np.ndarray) -> np.ndarray:
    targets = []
    for place in np.ndindex(*i.shape):
        target = list(place)
        target[a.axis] = int(i[place])
        targets.append((tuple(target), updates[place]))
    return _scattered(x, targets, a.reduction)


case("scatter_elements", retyped(_scatters(), SUMMED), _scatter_reference)


@st.composite
def _scatter_nds(draw: Any) -> Any:
    _attrs, (x, i) = draw(_gather_nds().filter(lambda u: u[0]["batch_dims"] == 0))
    x = x.astype(np.float32)
    updates = values((*i.shape[1:], *x.shape[len(i) :]), "float32", draw(seeds))
    return {"mode": draw(st.sampled_from(tuple(COMBINE)))}, [x, i, updates]


def _scatter_nd_reference(a: Any, x: np.ndarray, i: np.ndarray, updates: np.ndarray) -> np.ndarray:
    targets = []
    for place in np.ndindex(*updates.shape):
        count = i.ndim - 1
        at = tuple(int(v) for v in i[(slice(None), *place[:count])])
        targets.append(((*at, *place[count:]), updates[place]))
    return _scattered(x, targets, a.mode)


case("scatter_nd", retyped(_scatter_nds(), SUMMED), _scatter_nd_reference, unknown=False)


@st.composite
def _one_hots(draw: Any) -> Any:
    i = draw(array(dtypes=INDEX, low=-1, high=4))
    on, off = (values((), "float32", draw(seeds)) for _ in range(2))
    axis = draw(st.integers(-1, i.ndim))
    return {
        "depth": draw(st.integers(1, 4)),
        "axis": axis,
        "dtype": draw(st.sampled_from((*FLOATS, "int32", "int8", "uint8"))),
    }, [i, on, off]


def _one_hot_reference(a: Any, i: np.ndarray, on: np.ndarray, off: np.ndarray) -> np.ndarray:
    rows = [[on if v == d else off for d in range(a.depth)] for v in i.reshape(-1)]
    return np.moveaxis(np.array(rows).reshape(*i.shape, a.depth), -1, a.axis).astype(a.dtype)


case("one_hot", _one_hots(), _one_hot_reference)


@st.composite
def _masks(draw: Any) -> Any:
    x = draw(array(st.lists(st.integers(1, 4), min_size=2, max_size=3).map(tuple), ("float32",)))
    axis = draw(st.integers(0, 1))
    lengths = values((x.shape[1 - axis],), "int32", draw(seeds), 0, x.shape[axis])
    return {"axis": axis, "mask_value": -1.0}, [x, lengths]


def _mask_reference(a: Any, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    result = x.copy()
    for n, length in enumerate(lengths):
        np.moveaxis(result, a.axis, 1)[n, length:] = a.mask_value
    return result


case("sequence_mask", retyped(_masks(), (*FLOATS, "int8", "int16", "int32", "int64")), _mask_reference)


@st.composite
def _reversals(draw: Any) -> Any:
    x = draw(array(st.lists(st.integers(1, 4), min_size=2, max_size=3).map(tuple), ("float32",)))
    seq, batch = draw(st.permutations(range(x.ndim)))[:2]
    return {"seq_axis": seq, "batch_axis": batch}, [x, values((x.shape[batch],), "int32", draw(seeds), 0, x.shape[seq])]


def _reverse_reference(a: Any, x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    result = x.copy()
    view = np.moveaxis(result, (a.batch_axis, a.seq_axis), (0, 1))
    for n, length in enumerate(lengths):
        view[n, :length] = view[n, :length][::-1].copy()
    return result


case("reverse_sequence", retyped(_reversals()), _reverse_reference)
case(
    "unravel_index",
    use(array(dtypes=INDEX, low=0, high=23), st.just(np.array([2, 3, 4], np.int32))),
    lambda a, x, s: np.array([x // 12, x // 4 % 3, x % 4]),
)


@st.composite
def _sparse(draw: Any) -> Any:
    count = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=count, max_size=count, unique=True))
    return {"output_shape": (3, 4)}, [
        np.array(rows, np.int32),
        values((count,), "float32", draw(seeds)),
        values((), "float32", 7),
    ]


def _sparse_reference(a: Any, at: np.ndarray, v: np.ndarray, default: np.ndarray) -> np.ndarray:
    result = np.zeros(a.output_shape, v.dtype) + default
    for (row, column), value in zip(at, v, strict=True):
        result[row, column] = value
    return result


case("sparse_to_dense", retyped(_sparse()), _sparse_reference)
case("sparse_to_dense", st.just(({"output_shape": (5,)}, [np.array(3, np.int32), np.array(2.0, np.float32), np.array(1.0, np.float32)])), lambda a, i, v, d: np.array([1, 1, 1, 2, 1], np.float32))  # fmt: skip


@st.composite
def _sets(draw: Any) -> Any:
    x = draw(array((4, 5), ("float32",)))
    bounds = [sorted((draw(st.integers(0, d)), draw(st.integers(0, d)))) for d in x.shape]
    begin, end = (np.array(v, np.int64) for v in zip(*bounds, strict=True))
    strides = np.array([draw(st.integers(1, 2)) for _ in x.shape], np.int64)
    counts = [len(range(b, e, s)) for (b, e), s in zip(bounds, strides.tolist(), strict=True)]
    return {}, [x, values(counts, "float32", draw(seeds)), begin, end, strides]


def _set_reference(a: Any, x: Any, v: Any, begin: Any, end: Any, strides: Any) -> np.ndarray:
    result = x.copy()
    rows, columns = (list(range(b, e, s)) for b, e, s in zip(begin, end, strides, strict=True))
    for m, row in enumerate(rows):
        for n, column in enumerate(columns):
            result[row, column] = v[m, n]
    return result


case("strided_set", retyped(_sets()), _set_reference)


@st.composite
def _diagonals(draw: Any) -> Any:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    k1 = draw(st.integers(1 - rows, columns - 1))
    k2 = draw(st.integers(k1, columns - 1))
    lengths = [min(columns - max(k, 0), rows + min(k, 0)) for k in range(k1, k2 + 1)]
    shape = (2, max(lengths)) if k1 == k2 else (2, k2 - k1 + 1, max(lengths))
    attrs = {
        "k1": k1,
        "k2": k2,
        "super_diag_right_align": draw(st.booleans()),
        "sub_diag_right_align": draw(st.booleans()),
    }
    return attrs, [values((2, rows, columns), "float32", draw(seeds)), values(shape, "float32", draw(seeds))]


def _diagonal_reference(a: Any, x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    result = x.copy()
    _, rows, columns = x.shape
    for k in range(a.k1, a.k2 + 1):
        cells = [(i, i + k) for i in range(rows) if 0 <= i + k < columns]
        row = diagonal if a.k1 == a.k2 else diagonal[:, a.k2 - k]
        right = a.super_diag_right_align if k >= 0 else a.sub_diag_right_align
        shift = row.shape[-1] - len(cells) if right else 0
        for n, (i, j) in enumerate(cells):
            result[:, i, j] = row[:, n + shift]
    return result


case("matrix_set_diag", retyped(_diagonals()), _diagonal_reference)
