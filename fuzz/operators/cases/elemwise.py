"""Cases of elementwise and broadcasting operators; references by Python's math module or other numpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ....dialects.array import numpy_dtype
from ..sampling import ALL, FLOATS, INTS, array, broadcastable, case, shapes, use, values


def erf(x: np.ndarray) -> np.ndarray:
    """Returns the error function, element by element; numpy lacks it. Independent of the package's."""
    return np.vectorize(math.erf, otypes=[np.float64])(np.asarray(x, np.float64)).astype(x.dtype)


def half_away(x: np.ndarray) -> np.ndarray:
    """Returns the nearest integers, halves away from zero."""
    return np.vectorize(_round, otypes=[np.float64])(np.asarray(x, np.float64)).astype(x.dtype)


def _round(value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(math.floor(abs(value)) + (abs(value) % 1 >= 0.5), value)


def by_math(function: Callable[[float], float]) -> Callable[..., Any]:
    """Returns a function of Python floats, element by element."""
    raw = np.vectorize(function, otypes=[np.float64])
    return lambda attrs, x: raw(x.astype(np.float64)).astype(x.dtype)


for names, function, low, high in (
    ("exp fast_exp", math.exp, -3, 3),
    ("log", math.log, 0.1, 5),
    ("log2", math.log2, 0.1, 5),
    ("log10", math.log10, 0.1, 5),
    ("sqrt", math.sqrt, 0, 9),
    ("rsqrt", lambda x: 1 / math.sqrt(x), 0.2, 9),
    ("sin", math.sin, -4, 4),
    ("cos", math.cos, -4, 4),
    ("tan", math.tan, -1.2, 1.2),
    ("sinh", math.sinh, -3, 3),
    ("cosh", math.cosh, -3, 3),
    ("tanh fast_tanh", math.tanh, -3, 3),
    ("asin", math.asin, -0.95, 0.95),
    ("acos", math.acos, -0.95, 0.95),
    ("atan", math.atan, -3, 3),
    ("asinh", math.asinh, -3, 3),
    ("acosh", math.acosh, 1.1, 4),
    ("atanh", math.atanh, -0.9, 0.9),
    ("erf fast_erf", math.erf, -3, 3),
    ("sigmoid", lambda x: 1 / (1 + math.exp(-x)), -4, 4),
):
    case(names, use(array(dtypes=FLOATS, low=low, high=high)), by_math(function))
case("exp sqrt", use(array(dtypes=("int32", "int8"), low=1, high=4)), None)

case("floor", use(array()), by_math(math.floor))
case("ceil", use(array()), by_math(math.ceil))
case("trunc", use(array()), by_math(math.trunc))
case("round", use(array()), lambda a, x: half_away(x))
case("round", use(st.just(np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997], np.float32))), lambda a, x: np.array([1, -1, 2, 3, -3, 0], np.float32))  # fmt: skip
case("nearbyint", use(array()), by_math(round))
case(
    "nearbyint",
    use(st.just(np.array([0.5, -0.5, 1.5, 2.5, -2.5], np.float32))),
    lambda a, x: np.array([0, -0.0, 2, 2, -2], np.float32),
)
case("sign", use(array()), lambda a, x: np.sign(x.astype(np.float64)).astype(x.dtype))
case("abs", use(array()), lambda a, x: np.where(x < 0, np.zeros((), x.dtype) - x, x))
case("negative", use(array()), lambda a, x: (x.astype(np.float64) * -1).astype(np.int64).astype(x.dtype) if x.dtype.kind in "iu" else (x.astype(np.float64) * -1).astype(x.dtype))  # fmt: skip
case("logical_not", use(array(dtypes=("bool",))), lambda a, x: x == np.False_)
case("bitwise_not", use(array(dtypes=INTS)), lambda a, x: (-1 - x.astype(np.int64)).astype(x.dtype))
SPECIAL = st.sampled_from(FLOATS).map(lambda d: np.array([0.0, np.nan, np.inf, -np.inf, 1.0]).astype(numpy_dtype(d)))
case("isnan", use(SPECIAL), lambda a, x: x != x)
case("isinf", use(SPECIAL), lambda a, x: np.abs(x) == np.inf)
case("isfinite", use(SPECIAL), lambda a, x: x - x == 0)
case("copy device_copy", use(array(dtypes=ALL)), lambda a, x: x)
case("zeros_like", use(array(dtypes=ALL)), lambda a, x: np.zeros(x.shape, x.dtype))
case("ones_like", use(array(dtypes=ALL)), lambda a, x: np.ones(x.shape, x.dtype))
case("clip", use(array(), a_min=st.just(-1.5) | st.just(-1.0), a_max=st.just(2.0)), lambda a, x: _clip(a, x))


def _clip(attrs: Any, x: np.ndarray) -> np.ndarray:
    low = attrs.a_min if x.dtype.kind not in "iu" else math.trunc(max(attrs.a_min, float(np.iinfo(x.dtype).min)))
    return np.clip(x.astype(np.float64), low, attrs.a_max).astype(x.dtype)


case("cast", use(array(dtypes=ALL), dtype=st.sampled_from(ALL)), lambda a, x: _cast(x, a.dtype))
case("cast_like", use(array(dtypes=ALL), array(dtypes=ALL)), lambda a, x, like: _cast(x, like.dtype.name))


def _cast(x: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bool":
        return x != 0
    if np.dtype(numpy_dtype(dtype)).kind in "iu":
        bits, signed = int(dtype.lstrip("uint")), dtype.startswith("int")
        if x.dtype.kind not in "iub":
            # The nearest number that there is.
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
            return np.array([min(max(int(v), low), high) for v in x.astype(np.float64).reshape(-1)], dtype).reshape(
                x.shape
            )
        # Modulo 2^bits.
        flat = [int(v) % (1 << bits) for v in x.astype(np.float64).reshape(-1)]
        flat = [v - (1 << bits) if signed and v >= 1 << (bits - 1) else v for v in flat]
        return np.array(flat, dtype).reshape(x.shape)
    return x.astype(np.float64).astype(numpy_dtype(dtype))


case("reinterpret", use(array(dtypes=("float32",)), dtype="int32"), lambda a, x: np.frombuffer(x.tobytes(), np.int32).reshape(x.shape))  # fmt: skip
case("full_like", use(array(), array((), ("int32", "float32"))), lambda a, x, v: np.ones(x.shape, x.dtype) * _cast(v, x.dtype.name))  # fmt: skip
case(
    "fixed_point_multiply",
    use(array(dtypes=("int32",), low=-1000, high=1000), multiplier=st.integers(1 << 30, (1 << 31) - 1), shift=st.integers(-6, 4)),
    lambda a, x: np.vectorize(lambda v: math.floor(int(v) * a.multiplier * 2.0 ** (a.shift - 31) + 0.5), otypes=[np.int32])(x),
)  # fmt: skip


def _wrapped(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Wraps exact integer arithmetic, then reduces modulo the dtype's range."""

    def reference(attrs: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if a.dtype.kind not in "iu":
            return np.vectorize(function, otypes=[np.float64])(a.astype(np.float64), b.astype(np.float64)).astype(
                a.dtype
            )
        return _modulo(np.vectorize(lambda x, y: int(function(int(x), int(y))), otypes=[object])(a, b), a.dtype)

    return reference


def _modulo(x: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    bits = dtype.itemsize * 8
    low = np.vectorize(lambda v: int(v) % (1 << bits), otypes=[object])(x)
    return np.asarray(low, np.uint64 if bits == 64 else np.int64).astype(dtype)


BIG = broadcastable(2, low=-100, high=100)


def lists(strategy: st.SearchStrategy[list[Any]], **attributes: Any) -> Any:
    """Uses whose arguments are drawn together."""
    drawn = {n: a if isinstance(a, st.SearchStrategy) else st.just(a) for n, a in attributes.items()}
    return st.tuples(st.fixed_dictionaries(drawn), strategy)


case("add", lists(BIG), _wrapped(lambda a, b: a + b))
case("subtract", lists(BIG), _wrapped(lambda a, b: a - b))
case("multiply", lists(BIG), _wrapped(lambda a, b: a * b))
case("add", lists(broadcastable(2, ("bool",))), lambda attrs, a, b: a | b)


@st.composite
def _divisions(draw: Any, dtypes: Any = (*FLOATS, *INTS)) -> list[Any]:
    a, b = draw(broadcastable(2, dtypes, low=-20, high=20))
    return [a, np.where(b == 0, np.ones((), b.dtype), b)]


case("divide", lists(_divisions()), lambda attrs, a, b: _wrapped(lambda x, y: x / y)(attrs, a, b) if a.dtype.kind not in "iu" else np.trunc(a / b.astype(np.float64)).astype(a.dtype))  # fmt: skip
# Rounding what divides without remainder is a matter of the last bit: floats get exact quarters.
QUARTERS = ("float32", *INTS)


@st.composite
def _exact_divisions(draw: Any) -> list[Any]:
    a, b = draw(_divisions(QUARTERS))
    return [np.round(a), np.sign(b) * 4] if a.dtype.kind == "f" else [a, b]


case("trunc_divide", lists(_exact_divisions()), _wrapped(lambda a, b: math.trunc(a / b)))
case("floor_divide", lists(_exact_divisions()), _wrapped(lambda a, b: math.floor(a / b)))
case("mod trunc_mod", lists(_exact_divisions()), _wrapped(lambda a, b: a - math.trunc(a / b) * b))
case("floor_mod", lists(_exact_divisions()), _wrapped(lambda a, b: a - math.floor(a / b) * b))
case("power", lists(broadcastable(2, low=1, high=3)), _wrapped(lambda a, b: a**b))
case("maximum", lists(BIG), _wrapped(max))
case("minimum", lists(BIG), _wrapped(min))
case("left_shift", lists(broadcastable(2, INTS, low=0, high=5)), _wrapped(lambda a, b: a * 2**b))


@st.composite
def _shifts(draw: Any) -> list[Any]:
    a, b = draw(broadcastable(2, INTS, low=-100, high=100))
    return [a, np.abs(b) % 7]


case("right_shift", lists(_shifts()), _wrapped(lambda a, b: math.floor(a / 2**b)))
case("bitwise_and", lists(broadcastable(2, INTS, low=-100, high=100)), _wrapped(lambda a, b: a & b))
case("bitwise_or", lists(broadcastable(2, INTS, low=-100, high=100)), _wrapped(lambda a, b: a | b))
case("bitwise_xor", lists(broadcastable(2, INTS, low=-100, high=100)), _wrapped(lambda a, b: a ^ b))
BOOLS = broadcastable(2, ("bool",))
case("logical_and", lists(BOOLS), lambda attrs, a, b: a & b)
case("logical_or", lists(BOOLS), lambda attrs, a, b: a | b)
case("logical_xor", lists(BOOLS), lambda attrs, a, b: a != b)
for names, compare in (
    ("equal", lambda a, b: a == b),
    ("not_equal", lambda a, b: a != b),
    ("less", lambda a, b: a < b),
    ("less_equal", lambda a, b: a <= b),
    ("greater", lambda a, b: a > b),
    ("greater_equal", lambda a, b: a >= b),
):
    case(names, lists(broadcastable(2, low=-2, high=2)), lambda attrs, a, b, c=compare: np.vectorize(c, otypes=[bool])(a.astype(np.float64), b.astype(np.float64)))  # fmt: skip


@st.composite
def _choices(draw: Any) -> list[Any]:
    condition, x, y = draw(broadcastable(3))
    return [condition > 0, x, y]


case("where", lists(_choices()), lambda attrs, c, x, y: c * x + (1 - c.astype(x.dtype)) * y)
case("ewise_fma", lists(broadcastable(3)), lambda attrs, a, b, c: np.add(np.multiply(a, b), c))

SHAPE = shapes
DTYPE = st.sampled_from(ALL)
case("zeros", use(shape=SHAPE, dtype=DTYPE), lambda a: np.broadcast_to(np.zeros((), numpy_dtype(a.dtype)), a.shape))
case("ones", use(shape=SHAPE, dtype=DTYPE), lambda a: np.broadcast_to(np.ones((), numpy_dtype(a.dtype)), a.shape))
case("full", use(array(()), shape=SHAPE), lambda a, v: np.broadcast_to(v, a.shape))
case("shape_of", use(array(), dtype=st.sampled_from(("int32", "int64"))), lambda a, x: np.array(x.shape, a.dtype))
case("ndarray_size", use(array(), dtype="int32"), lambda a, x: np.array(math.prod(x.shape), np.int32))
RANGE = use(
    st.integers(-3, 3).map(lambda v: np.array(v, np.int32)),
    st.integers(4, 9).map(lambda v: np.array(v, np.int32)),
    st.integers(1, 3).map(lambda v: np.array(v, np.int32)),
    dtype="int32",
)
case("arange", RANGE, lambda a, start, stop, step: np.array(list(range(start, stop, step)), np.int32))
_ = values, erf
