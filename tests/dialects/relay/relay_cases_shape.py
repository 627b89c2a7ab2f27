"""Cases of operators that reshape, move and index elements."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
from hypothesis import strategies as st
from relay_cases import (
    ALL,
    FLOATS,
    NUMBERS,
    array,
    case,
    nonempty_shapes,
    retyped,
    seeds,
    shapes,
    use,
    values,
)

ANYTHING = ALL


@st.composite
def _reshapes(draw: Any) -> Any:
    """A shape that is split into runs of dimensions, each written with one of the special values."""
    runs: list[int] = []
    shape: list[int] = []
    inferred = False
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from((0, -1, -3, -4, 5)))
        if kind == -1 and inferred:
            kind = 0
        if kind == 0 or kind == -1:
            shape.append(draw(st.integers(1, 4)))
            runs.append(kind)
            inferred = inferred or kind == -1
        elif kind == -3:
            shape += [draw(st.integers(1, 3)), draw(st.integers(1, 3))]
            runs.append(-3)
        elif kind == -4:
            a, b = draw(st.integers(1, 3)), draw(st.integers(1, 3))
            shape.append(a * b)
            runs += [-4, *draw(st.sampled_from(((a, b), (-1, b), (a, -1))))]
        else:
            shape.append(draw(st.integers(1, 4)))
            runs.append(shape[-1])
    if draw(st.booleans()):
        shape += [2, 3]
        runs.append(-2)
    return {"newshape": tuple(runs)}, [values(shape, draw(st.sampled_from(ANYTHING)), draw(seeds))]


def _reshape_reference(attrs: Any, x: np.ndarray) -> np.ndarray:
    dims, source, runs = [], list(x.shape), list(attrs.newshape)
    while runs:
        v = runs.pop(0)
        if v == -2:
            dims, source = dims + source, []
        elif v == -3:
            dims.append(source.pop(0) * source.pop(0))
        elif v == -4:
            a, b, whole = runs.pop(0), runs.pop(0), source.pop(0)
            dims += [whole // b if a == -1 else a, whole // a if b == -1 else b]
        else:
            dims.append(source.pop(0))  # every 0, -1 and number stands for one dimension in these samples
    return x.reshape(dims)


case("reshape", _reshapes(), _reshape_reference)
case("reshape", use(array((2, 3, 4), ANYTHING), newshape=st.sampled_from(((-1,), (4, -1), (24,), (6, 4), (-1, 12)))), lambda a, x: x.reshape(a.newshape))  # fmt: skip
case(
    "contrib_reverse_reshape", use(array((2, 3, 4), ANYTHING), newshape=st.just((-1, 0))), lambda a, x: x.reshape(6, 4)
)
case(
    "contrib_reverse_reshape", use(array((2, 3, 4), ANYTHING), newshape=st.just((-3, 0))), lambda a, x: x.reshape(6, 4)
)
case("reshape_like", use(array((2, 3, 4), ANYTHING), array((6, 4))), lambda a, x, y: x.reshape(6, 4))
case("reshape_like", use(array((2, 3, 4), ANYTHING), array((9, 6, 7)), lhs_begin=0, lhs_end=2, rhs_begin=1, rhs_end=2), lambda a, x, y: x.reshape(6, 4))  # fmt: skip


@st.composite
def _squeezes(draw: Any) -> Any:
    x = draw(array(st.lists(st.sampled_from((1, 1, 2, 3)), max_size=4).map(tuple), ANYTHING))
    ones = [a for a, d in enumerate(x.shape) if d == 1]
    axes = draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    return {"axis": draw(st.sampled_from((None, tuple(axes)))) if axes else None}, [x]


def _squeeze_reference(a: Any, x: np.ndarray) -> np.ndarray:
    gone = range(x.ndim) if a.axis is None else [v % x.ndim for v in a.axis]
    return x.reshape([d for n, d in enumerate(x.shape) if n not in gone or d != 1])


# With None, what is squeezed depends on dimensions: unknown ones are taken to stay.
case("squeeze", _squeezes().filter(lambda u: u[0]["axis"] is not None), _squeeze_reference)
case("squeeze", _squeezes().filter(lambda u: u[0]["axis"] is None), _squeeze_reference, unknown=False)


@st.composite
def _expansions(draw: Any) -> Any:
    x = draw(array(dtypes=ANYTHING))
    return {"axis": draw(st.integers(-x.ndim - 1, x.ndim)), "num_newaxis": draw(st.integers(0, 3))}, [x]


def _expand_reference(a: Any, x: np.ndarray) -> np.ndarray:
    for _ in range(a.num_newaxis):
        x = np.expand_dims(x, a.axis)
    return x


case("expand_dims", _expansions().filter(lambda u: u[0]["axis"] >= 0 or u[0]["num_newaxis"] <= 1), _expand_reference)


@st.composite
def _transposes(draw: Any) -> Any:
    x = draw(array(dtypes=ALL))
    axes = draw(st.none() | st.permutations(range(x.ndim)))
    return {"axes": None if axes is None else tuple(axes)}, [x]


case("transpose", _transposes(), lambda a, x: np.einsum(x, list(range(x.ndim)), a.axes or list(range(x.ndim))[::-1]))


@st.composite
def _concatenations(draw: Any) -> Any:
    shape = list(draw(nonempty_shapes))
    axis = draw(st.integers(0, len(shape) - 1))
    dtype = draw(st.sampled_from(ANYTHING))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        shape[axis] = draw(st.integers(1, 3))
        parts.append(values(shape, dtype, draw(seeds)))
    return {"axis": axis - len(shape) * draw(st.integers(0, 1))}, [tuple(parts)]


def _concatenate_reference(a: Any, xs: Any) -> np.ndarray:
    moved = [list(np.moveaxis(x, a.axis, 0)) for x in xs]
    return np.moveaxis(np.array(functools.reduce(operator.iadd, moved, [])), 0, a.axis)


case("concatenate", _concatenations(), _concatenate_reference)


@st.composite
def _stacks(draw: Any) -> Any:
    shape, dtype = draw(shapes), draw(st.sampled_from(ANYTHING))
    parts = tuple(values(shape, dtype, draw(seeds)) for _ in range(draw(st.integers(1, 4))))
    return {"axis": draw(st.integers(-len(shape) - 1, len(shape)))}, [parts]


case("stack", _stacks(), lambda a, xs: np.concatenate([np.expand_dims(x, a.axis) for x in xs], a.axis))


@st.composite
def _splits(draw: Any) -> Any:
    shape = list(draw(nonempty_shapes))
    axis = draw(st.integers(0, len(shape) - 1))
    if draw(st.booleans()):
        parts: Any = draw(st.integers(1, 4))
        shape[axis] = parts * draw(st.integers(1, 3))
    else:
        parts = tuple(sorted(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3, unique=True))))
        shape[axis] = parts[-1] + draw(st.integers(1, 2))
    x = values(shape, draw(st.sampled_from(ANYTHING)), draw(seeds))
    return {"indices_or_sections": parts, "axis": axis - len(shape) * draw(st.integers(0, 1))}, [x]


case("split", _splits(), lambda a, x: tuple(np.split(x, a.indices_or_sections, a.axis)))
case("tile", use(array(dtypes=ANYTHING), reps=st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)), lambda a, x: np.tile(x, a.reps))  # fmt: skip


@st.composite
def _with_axis(draw: Any, none: bool = False, **extra: Any) -> Any:
    x = draw(array(nonempty_shapes, ANYTHING))
    axis = draw(st.integers(-x.ndim, x.ndim - 1) | st.none() if none else st.integers(-x.ndim, x.ndim - 1))
    return {"axis": axis, **{n: draw(s) for n, s in extra.items()}}, [x]


def _repeat_reference(a: Any, x: np.ndarray) -> np.ndarray:
    x, axis = (x.reshape(-1), 0) if a.axis is None else (x, a.axis)
    return x.take([p for p in range(x.shape[axis]) for _ in range(a.repeats)], axis)


case("repeat", _with_axis(none=True, repeats=st.integers(1, 3)), _repeat_reference)
case("reverse", _with_axis(), lambda a, x: x.take(range(x.shape[a.axis])[::-1], a.axis))


@st.composite
def _stretches(draw: Any) -> Any:
    shape = draw(shapes)
    kept = [1 if draw(st.booleans()) else d for d in shape][draw(st.integers(0, len(shape))) :]
    return shape, values(kept, draw(st.sampled_from(NUMBERS)), draw(seeds))


case("broadcast_to", _stretches().map(lambda s: ({"shape": s[0]}, [s[1]])), lambda a, x: x + np.zeros(a.shape, x.dtype))
case(
    "broadcast_to_like",
    st.tuples(_stretches(), st.sampled_from((None, "float64"))).map(
        lambda s: ({}, [s[0][1], np.zeros(s[0][0], s[1] or s[0][1].dtype)])
    ),
    lambda a, x, y: (x + np.zeros(y.shape, x.dtype)).astype(y.dtype),
)


def _collapse_reference(x: np.ndarray, shape: Any) -> np.ndarray:
    result = np.zeros(shape, np.float64)
    for place in np.ndindex(*x.shape):
        tail = place[x.ndim - len(shape) :]
        result[tuple(0 if d == 1 else p for p, d in zip(tail, shape, strict=True))] += x[place]
    return result.astype(x.dtype)


@st.composite
def _collapses(draw: Any) -> Any:
    shape, small = draw(_stretches())
    return values(shape, small.dtype.name, draw(seeds)), small


case(
    "collapse_sum_to",
    st.tuples(_collapses(), st.sampled_from((None, "bfloat16"))).map(
        lambda c: ({"shape": c[0][1].shape, "dtype": c[1]}, [c[0][0], np.array(c[0][1].shape, np.int32)])
    ),
    lambda a, x, shape: _collapse_reference(x, a.shape).astype(a.dtype or x.dtype),
)
case(
    "collapse_sum_like",
    st.tuples(_collapses(), st.sampled_from((None, "bfloat16"))).map(
        lambda c: ({}, [c[0][0], c[0][1] if c[1] is None else c[0][1].astype(c[1])])
    ),
    lambda a, x, y: _collapse_reference(x, y.shape).astype(y.dtype),
    unknown=False,
)


@st.composite
def _slices(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ANYTHING))
    axes = draw(st.none() | st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True).map(tuple))
    count = x.ndim if axes is None else len(axes)
    numbers = st.lists(st.integers(-6, 6), min_size=count, max_size=count).map(tuple)
    steps = st.lists(st.sampled_from((1, 1, 2, -1, -2)), min_size=count, max_size=count).map(tuple)
    return {"begin": draw(numbers), "end": draw(numbers), "strides": draw(steps), "axes": axes}, [x]


def _slice_reference(a: Any, x: np.ndarray) -> np.ndarray:
    for n, axis in enumerate(range(x.ndim) if a.axes is None else a.axes):
        x = x.take(range(x.shape[axis])[a.begin[n] : a.end[n] : a.strides[n]], axis)
    return x


case("strided_slice", _slices(), _slice_reference)


@st.composite
def _sized_slices(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ANYTHING))
    begin = tuple(draw(st.integers(0, d - 1)) for d in x.shape)
    size = tuple(draw(st.sampled_from((-1, draw(st.integers(1, d - b))))) for b, d in zip(begin, x.shape, strict=True))
    return {"begin": begin, "end": size, "strides": (1,) * x.ndim, "slice_mode": "size"}, [x]


def _sized_reference(a: Any, x: np.ndarray) -> np.ndarray:
    return x[tuple(slice(b, None if n < 0 else b + n) for b, n in zip(a.begin, a.end, strict=True))]


case("strided_slice", _sized_slices(), _sized_reference)


@st.composite
def _slice_likes(draw: Any) -> Any:
    x = draw(array(nonempty_shapes, ANYTHING))
    axes = draw(st.none() | st.lists(st.integers(0, x.ndim - 1), min_size=1, unique=True).map(tuple))
    like = tuple(draw(st.integers(1, d)) for d in x.shape)
    return {"axes": axes}, [x, np.zeros(like, np.float32)]


def _slice_like_reference(a: Any, x: np.ndarray, like: np.ndarray) -> np.ndarray:
    for axis in a.axes or range(x.ndim):
        x = x.take(range(like.shape[axis]), axis)
    return x


case("slice_like", _slice_likes(), _slice_like_reference)
LAYOUT_PAIRS = st.sampled_from(
    (("NCHW", "NHWC"), ("NCHW", "NCHW2c"), ("NHWC", "NCHW4c"), ("OIHW", "OIHW2i4o"), ("OIHW", "HWIO"))
)


@st.composite
def _layouts(draw: Any) -> Any:
    from relay_cases_conv import pack

    axes, target = draw(LAYOUT_PAIRS)
    x = values((4, 8, 3, 2) if axes == "OIHW" else (2, 4, 3, 8), "float32", draw(seeds))
    packed = pack(x, axes, target)
    if draw(st.booleans()):
        return {"src_layout": axes, "dst_layout": target}, [x]
    return {"src_layout": target, "dst_layout": axes}, [packed]


def _layout_reference(a: Any, x: np.ndarray) -> np.ndarray:
    from relay_cases_conv import pack, unpack

    plain = "".join(c for c in a.src_layout if c.isupper())
    return pack(unpack(x, plain, a.src_layout), plain, a.dst_layout)


case("layout_transform", retyped(_layouts()), _layout_reference)

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
    }, [
        i,
        on,
        off,
    ]


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
    attrs = {"block_size": b, "layout": layout, **({} if to_depth else {"mode": draw(st.sampled_from(("DCR", "CRD")))})}
    x = values(shape, "float32", draw(seeds))
    return attrs, [x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))]


def _in_nchw(a: Any, x: np.ndarray, function: Any) -> np.ndarray:
    if a.layout == "NCHW":
        return function(x)
    return function(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)


def _space_to_depth(a: Any, x: np.ndarray) -> np.ndarray:
    return _in_nchw(a, x, lambda y: np.concatenate(list(_depth_places(y, a.block_size)[0])[:], 0)[None])


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
