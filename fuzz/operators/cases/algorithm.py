"""Cases of sorting, scans, einsum and operators of data-dependent shape; references in plain Python."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import ALL, FLOATS, NUMBERS, array, case, in_float64, nonempty_shapes, retyped, seeds, use, values

VALUES = NUMBERS


@st.composite
def _sorts(draw: Any, **extra: Any) -> Any:
    x = draw(array(nonempty_shapes, VALUES))
    return {"axis": draw(st.integers(-x.ndim, x.ndim - 1)), "is_ascend": draw(st.booleans()), **{n: draw(s) for n, s in extra.items()}}, [x]  # fmt: skip


def _ordered(a: Any, row: np.ndarray) -> list[int]:
    return sorted(range(len(row)), key=lambda n: float(row[n]) if a.is_ascend else -float(row[n]))


def _rows(a: Any, x: np.ndarray, function: Any, dtype: Any) -> np.ndarray:
    moved = np.moveaxis(x, a.axis, -1)
    flat = [function(row) for row in moved.reshape(-1, moved.shape[-1])]
    return np.moveaxis(np.array(flat, dtype).reshape(*moved.shape[:-1], -1), -1, a.axis)


case("sort", _sorts(), lambda a, x: _rows(a, x, lambda r: r[_ordered(a, r)], x.dtype))
case(
    "argsort",
    _sorts(dtype=st.sampled_from(("int32", "float32"))),
    lambda a, x: _rows(a, x, lambda r: _ordered(a, r), a.dtype),
)


def _topk_reference(a: Any, x: np.ndarray, k: Any = None) -> Any:
    count = int(a.k if k is None else k)
    count = min(count, x.shape[a.axis]) if count > 0 else x.shape[a.axis]
    top = _rows(a, x, lambda r: r[_ordered(a, r)[:count]], x.dtype)
    places = _rows(a, x, lambda r: _ordered(a, r)[:count], a.dtype)
    return {"both": (top, places), "values": top, "indices": places}[a.ret_type]


RET = st.sampled_from(("both", "values", "indices"))
case("topk", _sorts(k=st.integers(0, 5), ret_type=RET, dtype=st.just("int64")), _topk_reference, unknown=False)
DYN_TOPK = _sorts(ret_type=RET, dtype=st.just("int32")).flatmap(
    lambda u: st.integers(0, 4).map(lambda k: (u[0], [*u[1], np.array(k, np.int32)]))
)
case("dyn.topk", DYN_TOPK, _topk_reference)


@st.composite
def _scans(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, (*FLOATS, "int32", "int64"), -2, 2))
    return {"axis": draw(st.none() | st.integers(-x.ndim, x.ndim - 1)), "exclusive": draw(st.booleans())}, [x]


def _scan_reference(start: float, step: Any) -> Any:
    def reference(a: Any, x: np.ndarray) -> np.ndarray:
        x, axis = (x.reshape(-1), 0) if a.axis is None else (x, a.axis)
        result = np.moveaxis(np.empty(x.shape, np.float64), axis, 0)
        state: Any = np.full(result.shape[1:], start)
        for n, row in enumerate(np.moveaxis(x, axis, 0).astype(np.float64)):
            before, state = state, step(state, row)
            result[n] = before if a.exclusive else state
        return np.moveaxis(result, 0, axis).astype(x.dtype)

    return reference


case("cumsum", _scans(), _scan_reference(0, lambda s, v: s + v))
case("cumprod", _scans(), _scan_reference(1, lambda s, v: s * v))
case("argwhere", use(array(nonempty_shapes, ALL, -1, 1)), lambda a, x: np.array([p for p in np.ndindex(*x.shape) if x[p]], np.int32).reshape(-1, x.ndim))  # fmt: skip


@st.composite
def _searches(draw: Any) -> Any:
    rows = np.sort(draw(array(st.sampled_from(((5,), (2, 4))), ("int32",), -3, 3)), -1)
    shape = (2, 3) if rows.ndim == 2 else draw(nonempty_shapes)
    return {"right": draw(st.booleans()), "dtype": "int32"}, [rows, values(shape, "int32", draw(seeds), -4, 4)]


def _search_reference(a: Any, rows: np.ndarray, v: np.ndarray) -> np.ndarray:
    find = bisect.bisect_right if a.right else bisect.bisect_left
    if rows.ndim == 1:
        return np.vectorize(lambda x: find(rows.tolist(), x), otypes=[np.int32])(v)
    return np.array([[find(row.tolist(), x) for x in line] for row, line in zip(rows, v, strict=True)], np.int32)


case("searchsorted", _searches(), _search_reference)


def _unique_reference(a: Any, x: np.ndarray) -> Any:
    items = x.tolist()
    distinct = sorted(set(items)) if a.sorted else list(dict.fromkeys(items))
    parts = [[items.index(d) for d in distinct], [distinct.index(v) for v in items], [len(distinct)]]
    parts += [[items.count(d) for d in distinct]] if a.return_counts else []
    return np.array(distinct, x.dtype), *(np.array(p, np.int32) for p in parts)


case("unique", use(array((6,), VALUES, 0, 4), sorted=st.booleans(), return_counts=st.booleans()), _unique_reference)


def _inverse(a: Any, x: np.ndarray) -> np.ndarray:
    result = np.empty_like(x)
    for n, place in enumerate(x):
        result[place] = n
    return result


case("invert_permutation", use(st.permutations(range(6)).map(lambda p: np.array(p, np.int32))), _inverse)
VECTORS = st.lists(array(st.sampled_from(((), (2,), (3,))), ("float32",)), min_size=1, max_size=3).map(tuple)


def _grid_reference(a: Any, xs: Any) -> Any:
    dims = [x.size for x in xs]
    grids = [np.broadcast_to(x.reshape([-1 if m == n else 1 for m in range(len(xs))]), dims) for n, x in enumerate(xs)]
    return tuple(np.swapaxes(g, 0, 1) if a.indexing == "xy" and len(xs) > 1 else g for g in grids)


case("meshgrid", retyped(use(VECTORS, indexing=st.sampled_from(("ij", "xy")))), _grid_reference)
for _equation, _shapes in (
    ("ij,jk->ik", ((2, 3), (3, 4))), ("ij,jk", ((2, 3), (3, 4))), ("...ab,...cb->...ac", ((2, 3, 4), (2, 5, 4))),
    ("ii->i", ((3, 3),)), ("ij->", ((2, 3),)), ("...i->...", ((2, 3, 4),)), ("i,j->ji", ((2,), (3,))),
    ("b...i,b...j->b...ij", ((2, 3, 4), (2, 3, 2))),
):  # fmt: skip
    case(
        "einsum",
        retyped(
            use(st.tuples(*(array(s, ("float32",)) for s in _shapes)), equation=_equation), (*FLOATS, "int32", "int64")
        ),
        in_float64(lambda a, xs: np.einsum(a.equation, *xs)),
        unknown=_equation != "ii->i",
    )


def _triangle(a: Any, x: np.ndarray, k: np.ndarray) -> np.ndarray:
    result = x.copy()
    for place in np.ndindex(*x.shape):
        distance = place[-1] - place[-2]
        if distance < k if a.upper else distance > k:
            result[place] = 0
    return result


case("trilu", use(array((2, 3, 4), VALUES), st.integers(-3, 3).map(lambda k: np.array(k, np.int32)), upper=st.booleans()), _triangle)  # fmt: skip

# Shapes that are arguments.


def _shape(*dims: int) -> Any:
    return st.just(np.array(dims, np.int64))


X = array((2, 3, 4), VALUES)
case("dyn.reshape", use(X, st.sampled_from(((6, 4), (-1, 2), (4, 6))).map(lambda s: np.array(s, np.int64))), lambda a, x, s: x.reshape(s), unknown=False)  # fmt: skip
case("dyn.broadcast_to", use(array((3, 1), VALUES), _shape(2, 3, 4)), lambda a, x, s: x + np.zeros((2, 3, 4), x.dtype), unknown=False)  # fmt: skip
case("dyn.tile", use(array((2, 3), VALUES), _shape(2, 1, 3)), lambda a, x, r: np.concatenate([np.concatenate([x] * 3, 1)[None]] * 2), unknown=False)  # fmt: skip
case("dyn.zeros", use(_shape(2, 3), dtype="int32"), lambda a, s: np.zeros((2, 3), np.int32), unknown=False)
case("dyn.ones", use(_shape(2, 3), dtype="float32"), lambda a, s: np.ones((2, 3), np.float32), unknown=False)
case("dyn.full", use(array((), VALUES), _shape(2, 3)), lambda a, v, s: np.zeros((2, 3), v.dtype) + v, unknown=False)
case(
    "dyn.one_hot",
    use(
        array((3,), ("int32",), 0, 3),
        array((), ("float32",)),
        array((), ("float32",)),
        st.just(np.array(4, np.int32)),
        dtype="float32",
    ),
    lambda a, i, on, off, d: np.array([[on if v == k else off for k in range(4)] for v in i], np.float32),
)
case("dyn.squeeze", use(array((1, 3, 1), VALUES), _shape(0, 2)), lambda a, x, s: x.reshape(3), unknown=False)
case(
    "dyn.expand_dims",
    use(array((2, 3), VALUES), st.just(np.array(1, np.int32)), num_newaxis=2),
    lambda a, x, s: x.reshape(2, 1, 1, 3),
)
case(
    "dyn.strided_slice", use(X, _shape(0, 1, -1), _shape(2, 3, -5), _shape(1, 1, -2)), lambda a, x, *s: x[:, 1:3, ::-2]
)
case(
    "dyn.strided_slice",
    use(X, _shape(0, 1, 1), _shape(-1, 2, 2), _shape(1), slice_mode="size"),
    lambda a, x, *s: x[:, 1:3, 1:3],
)
case(
    "dyn.nn.pad",
    use(array((2, 3), VALUES), st.just(np.array([[1, 0], [0, 2]])), array((), ("int32",))),
    lambda a, x, w, v: _padded(x, v),
)


def _padded(x: np.ndarray, value: np.ndarray) -> np.ndarray:
    result = np.full((3, 5), value.astype(x.dtype))
    result[1:, :3] = x
    return result


case(
    "dyn.image.resize2d",
    use(array((1, 2, 2, 3), FLOATS), _shape(4, 6), st.just(np.zeros(4, np.float32)), method="nearest_neighbor", coordinate_transformation_mode="asymmetric"),
    lambda a, x, s, r: x.repeat(2, 2).repeat(2, 3),
)  # fmt: skip
case(
    "dyn.sparse_to_dense",
    use(st.just(np.array([[0, 1], [2, 0]])), array((2,), ("float32",)), array((), ("float32",)), _shape(3, 2)),
    lambda a, i, v, d, s: np.array([[d, v[0]], [d, d], [v[1], d]], np.float32),
    unknown=False,
)


def _factor(value: float) -> st.SearchStrategy[np.ndarray]:
    return st.just(np.array(value, np.float32))


case(
    "dyn.nn.upsampling",
    use(array((1, 2, 2, 3), FLOATS), _factor(2), _factor(3)),
    lambda a, x, h, w: x.repeat(2, 2).repeat(3, 3),
)
case(
    "dyn.nn.upsampling3d",
    use(
        array((1, 2, 2, 3, 1), FLOATS), _factor(2), _factor(1), _factor(2), coordinate_transformation_mode="asymmetric"
    ),
    lambda a, x, d, h, w: x.repeat(2, 2).repeat(2, 4),
)
