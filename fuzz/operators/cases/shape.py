"""Cases of operators that reshape, join, cut and rearrange tensors."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ..sampling import ALL, NUMBERS, array, case, nonempty_shapes, retyped, seeds, shapes, use, values

ANYTHING = ALL


@st.composite
def _reshapes(draw: Any) -> Any:
    """Returns a shape that is split into runs of dimensions, each written with one of the special values."""
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
            dims.append(source.pop(0))  # every 0, -1 and number is for one dimension in these samples
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
    from .conv import pack

    axes, target = draw(LAYOUT_PAIRS)
    x = values((4, 8, 3, 2) if axes == "OIHW" else (2, 4, 3, 8), "float32", draw(seeds))
    packed = pack(x, axes, target)
    if draw(st.booleans()):
        return {"src_layout": axes, "dst_layout": target}, [x]
    return {"src_layout": target, "dst_layout": axes}, [packed]


def _layout_reference(a: Any, x: np.ndarray) -> np.ndarray:
    from .conv import pack, unpack

    plain = "".join(c for c in a.src_layout if c.isupper())
    return pack(unpack(x, plain, a.src_layout), plain, a.dst_layout)


case("layout_transform", retyped(_layouts()), _layout_reference)
