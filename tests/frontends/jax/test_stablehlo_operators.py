"""StableHLO's operators against JAX: functions of jnp, lax and jax.nn, interpreted, at drawn shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.extra
jax = library("jax", "jax")
library("jax.export", "jax")

from against_jax import agree, check, drawn  # noqa: E402

jnp, lax, nn = jax.numpy, jax.lax, jax.nn

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = ("int32", "int8", "uint8", "uint32", "int16")

some = settings(
    max_examples=3, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)
shapes = st.lists(st.integers(1, 4), max_size=3)

UNARY: dict[str, tuple[Callable[..., Any], float, float]] = {
    "abs": (jnp.abs, -3, 3), "cbrt": (jnp.cbrt, -3, 3), "ceil": (jnp.ceil, -3, 3), "cos": (jnp.cos, -3, 3), "exp": (jnp.exp, -3, 3),
    "expm1": (jnp.expm1, -2, 2), "floor": (jnp.floor, -3, 3), "isfinite": (jnp.isfinite, -3, 3), "log": (jnp.log, 0.1, 3),
    "log1p": (jnp.log1p, -0.5, 3), "logistic": (lax.logistic, -3, 3), "negative": (jnp.negative, -3, 3), "round": (jnp.round, -3, 3),
    "round_away": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), -3, 3), "rsqrt": (lax.rsqrt, 0.1, 3), "sign": (jnp.sign, -3, 3),
    "sin": (jnp.sin, -3, 3), "sqrt": (jnp.sqrt, 0, 3), "tan": (jnp.tan, -1, 1), "tanh": (jnp.tanh, -3, 3), "acos": (jnp.arccos, -1, 1),
    "acosh": (jnp.arccosh, 1.1, 3), "asin": (jnp.arcsin, -1, 1), "asinh": (jnp.arcsinh, -3, 3), "atan": (jnp.arctan, -3, 3),
    "atanh": (jnp.arctanh, -0.9, 0.9), "cosh": (jnp.cosh, -3, 3), "sinh": (jnp.sinh, -3, 3), "erf": (lax.erf, -3, 3), "square": (jnp.square, -3, 3),
    "erfc": (lax.erfc, -2, 2), "erf_inv": (lax.erf_inv, -0.9, 0.9), "lgamma": (lax.lgamma, 0.5, 4), "isinf": (jnp.isinf, -3, 3),
    "relu": (nn.relu, -3, 3), "relu6": (nn.relu6, -9, 9), "gelu": (nn.gelu, -3, 3), "gelu_exact": (lambda x: nn.gelu(x, approximate=False), -3, 3),
    "silu": (nn.silu, -3, 3), "elu": (nn.elu, -3, 3), "softplus": (nn.softplus, -3, 3), "sigmoid": (nn.sigmoid, -3, 3), "mish": (nn.mish, -3, 3),
    "hard_swish": (nn.hard_swish, -4, 4), "clip": (lambda x: jnp.clip(x, -1, 2), -3, 3), "to_int": (lambda x: x.astype("int8"), -3, 3),
    "to_bool": (lambda x: x.astype(bool), -3, 3), "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), -3, 3),
}  # fmt: skip


IN_32_BITS = ("lgamma", "erf_inv", "erfc", "acosh", "tan")
"""Functions whose steps are rounded in other places in 16 bits."""


@pytest.mark.parametrize(
    ("dtype", "shape"), [("float32", (3, 4)), ("float32", ()), ("float16", (2, 1, 3)), ("bfloat16", (5,))]
)
def test_functions_of_floats(dtype: str, shape: tuple[int, ...]) -> None:
    names = [name for name in UNARY if dtype == "float32" or name not in IN_32_BITS]
    given = [drawn(*shape, dtype=dtype, low=UNARY[name][1], high=UNARY[name][2]) for name in names]
    check(lambda *values: [UNARY[name][0](x) for name, x in zip(names, values, strict=True)], *given)


BINARY: dict[str, Callable[..., Any]] = {
    "add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "maximum": jnp.maximum, "minimum": jnp.minimum,
    "less": jnp.less, "less_equal": jnp.less_equal, "greater": jnp.greater, "greater_equal": jnp.greater_equal,
    "equal": jnp.equal, "not_equal": jnp.not_equal, "where": lambda x, y: jnp.where(x > y, x, y + y),
    "clamp": lambda x, y: lax.clamp(jnp.minimum(x, y), x + y, jnp.maximum(x, y)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("other", [(), (2, 3), (3, 1), (1, 1, 3)])
def test_operators_of_all_dtypes(dtype: str, other: tuple[int, ...]) -> None:
    names = [name for name in BINARY if dtype != "bool" or name != "subtract"]
    shape = (1, 1, 3) if other == (2, 3) else (2, 3, 3)
    x, y = drawn(*shape, dtype=dtype), drawn(*other, dtype=dtype, seed=1)
    check(lambda x, y: [BINARY[name](x, y) for name in names], x, y)


OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "and": jnp.bitwise_and, "or": jnp.bitwise_or, "xor": jnp.bitwise_xor, "not": lambda x, y: ~x, "shift_left": jnp.left_shift,
    "shift_right": jnp.right_shift, "shift_right_logical": lax.shift_right_logical, "divide": lambda x, y: lax.div(x, y + y * 0 + 1),
    "remainder": lambda x, y: lax.rem(x, jnp.maximum(y, 1)), "floor_divide": lambda x, y: x // jnp.maximum(y, 1),
    "modulo": lambda x, y: x % jnp.maximum(y, 1), "power": lambda x, y: x**2 + lax.integer_pow(y, 3), "sign": lambda x, y: jnp.sign(x),
    "bits": lambda x, y: lax.bitcast_convert_type(x, "uint8" if x.dtype == "int8" else x.dtype),
}  # fmt: skip


@pytest.mark.parametrize("dtype", INTEGERS)
def test_operators_of_integers(dtype: str) -> None:
    x, y = drawn(3, 5, dtype=dtype, high=40), drawn(3, 5, dtype=dtype, seed=1, low=0, high=6)
    check(lambda x, y: [each(x, y) for each in OF_INTEGERS.values()], x, y)


@pytest.mark.parametrize("shape", [(), (4, 3)])
def test_operators_of_floats(shape: tuple[int, ...]) -> None:
    x, y = drawn(*shape, low=0.2), drawn(*shape, seed=1)
    check(lambda x, y: (x / y, jnp.power(x, y), jnp.arctan2(y, x), jnp.fmod(y, x), y % x, jnp.hypot(x, y)), x, y)


def test_truth_values() -> None:
    x, y = drawn(2, 5, dtype="bool"), drawn(2, 5, dtype="bool", seed=1)
    check(lambda x, y: (x & y, x | y, x ^ y, ~x, x < y, x.astype("float32"), x.sum(), x.all(0), x.any(1)), x, y)


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": jnp.sum, "prod": jnp.prod, "max": jnp.max, "min": jnp.min, "mean": jnp.mean, "var": jnp.var, "logsumexp": nn.logsumexp,
    "softmax": nn.softmax, "log_softmax": nn.log_softmax, "all": jnp.all, "any": jnp.any, "norm": lambda x, axis: jnp.linalg.norm(x, axis=axis),
}  # fmt: skip


@pytest.mark.parametrize("shape", [(3,), (2, 4), (3, 1, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_reductions(dtype: str, shape: tuple[int, ...]) -> None:
    names = [*REDUCTIONS] if dtype == "float32" else ["sum", "max", "min", "all", "any"]
    x = drawn(*shape, dtype=dtype)
    check(lambda x: [REDUCTIONS[name](x, axis=axis) for name in names for axis in range(len(shape))], x)
    check(
        lambda x: [REDUCTIONS[name](x, axis=None) for name in names if name not in ("softmax", "log_softmax", "norm")],
        x,
    )


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_places_of_extremes(dtype: str) -> None:
    x = np.round(np.asarray(drawn(3, 5, dtype=dtype)))
    check(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), lax.argmax(x, 0, "uint8")), x.astype(dtype))


def test_a_reduction_of_pairs() -> None:
    def both(x: Any, y: Any) -> Any:
        return lax.reduce(
            (x, y), (jnp.float32(0), jnp.float32(-9)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)
        )

    check(both, drawn(3, 4), drawn(3, 4, seed=1))


CUMULATIVE: dict[str, Callable[..., Any]] = {
    "cumsum": lax.cumsum,
    "cumprod": lax.cumprod,
    "cummax": lax.cummax,
    "cummin": lax.cummin,
}


@pytest.mark.parametrize("name", CUMULATIVE)
@pytest.mark.parametrize("reverse", [False, True])
def test_running_results(name: str, reverse: bool) -> None:
    check(
        lambda x: (CUMULATIVE[name](x, axis=0, reverse=reverse), CUMULATIVE[name](x, axis=1, reverse=reverse)),
        drawn(5, 3),
    )
    check(lambda x: CUMULATIVE[name](x, axis=1, reverse=reverse), drawn(2, 7, dtype="int32"))


def test_sorts() -> None:
    x = drawn(4, 5)
    check(
        lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(x, descending=True), jnp.argsort(x, 0, descending=True)),
        x,
    )
    check(lambda x: (lax.top_k(x, 2), lax.top_k(x, 0), jnp.median(x, 1)), x)
    keys = drawn(3, 8, dtype="int32", high=1)
    check(lambda k: (jnp.lexsort((k[0], k[1], k[2])), lax.sort((k[0], k[1], k[2]), num_keys=2)), keys)
    check(lambda x: (jnp.sort(x), lax.top_k(x.astype("int8"), 3)), drawn(6, dtype="bool"))
    check(lambda x: jnp.sort(x, 0), np.array([3, np.nan, -0.0, 0.0, -np.inf, 1], "float32"))


@some
@given(st.data())
def test_products(data: st.DataObject) -> None:
    axes = "abcd"
    first = data.draw(st.permutations(axes).map(lambda p: "".join(p[:3])))
    second = data.draw(st.permutations(axes).map(lambda p: "".join(p[:3])))
    both = [axis for axis in axes if axis in first + second]
    result = "".join(data.draw(st.permutations(both))[: data.draw(st.integers(0, len(both)))])
    sizes = dict(zip(axes, (2, 3, 4, 5), strict=True))
    x, y = (drawn(*(sizes[axis] for axis in each), seed=k) for k, each in enumerate((first, second)))
    check(lambda x, y: jnp.einsum(f"{first},{second}->{result}", x, y), x, y)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
    ],
)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(jnp.matmul, drawn(*a), drawn(*b))


def test_products_of_other_dtypes() -> None:
    def product(x: Any, y: Any) -> Any:
        return lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="int32")

    check(product, drawn(3, 4, dtype="int8"), drawn(4, 5, dtype="int8"))
    check(
        lambda x, y: (x.astype("bfloat16") @ y.astype("bfloat16"), x.astype("float16") @ y.astype("float16")),
        drawn(3, 4),
        drawn(4, 5),
    )
    check(
        lambda x, y: lax.dot(x.astype("bfloat16"), y.astype("bfloat16"), preferred_element_type="float32"),
        drawn(3, 4),
        drawn(4, 5),
    )


@pytest.mark.parametrize("rank", [1, 2, 3])
@some
@given(st.data())
def test_convolutions(rank: int, data: st.DataObject) -> None:
    spatial = "DHW"[3 - rank :]
    orders = st.permutations("NC" + spatial), st.permutations("OI" + spatial), st.permutations("NC" + spatial)
    layouts = tuple("".join(data.draw(each)) for each in orders)
    if data.draw(st.booleans()):
        layouts = f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"
    groups = data.draw(st.sampled_from((1, 1, 2)))
    sizes = {"N": 2, "C": 2 * groups, "O": 3 * groups, "I": 2, **dict.fromkeys(spatial, 6)}
    window = {**sizes, **dict.fromkeys(spatial, 3)}
    pairs = st.tuples(st.integers(-1, 3), st.integers(-1, 3))
    ints = st.lists(st.integers(1, 2), min_size=rank, max_size=rank)
    options: dict[str, Any] = {
        "window_strides": data.draw(ints), "padding": data.draw(st.lists(pairs, min_size=rank, max_size=rank)),
        "lhs_dilation": data.draw(ints), "rhs_dilation": data.draw(ints), "feature_group_count": groups, "dimension_numbers": layouts,
    }  # fmt: skip
    x, w = drawn(*(sizes[axis] for axis in layouts[0])), drawn(*(window[axis] for axis in layouts[1]))
    check(lambda x, w: lax.conv_general_dilated(x, w, **options), x, w)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("strides", [(2, 2), (1, 3)])
def test_transposed_convolutions(padding: str, strides: tuple[int, int]) -> None:
    text = check(lambda x, w: lax.conv_transpose(x, w, strides, padding), drawn(2, 4, 5, 3), drawn(4, 3, 3, 2)).astext()
    assert "nn.conv2d_transpose(" in text


def test_reversed_windows() -> None:
    def gradient(x: Any, w: Any) -> Any:
        return jax.grad(lambda x: (lax.conv(x, w, (1, 1), "SAME") ** 2).sum())(x)

    check(gradient, drawn(1, 2, 5, 5), drawn(3, 2, 3, 3))


@some
@given(st.data())
def test_windows(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(4, 6)) for _ in range(data.draw(st.integers(1, 4)))]
    window = [data.draw(st.integers(1, 3)) for _ in shape]
    strides = [data.draw(st.integers(1, 2)) for _ in shape]
    padding = [data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2))) for _ in shape]
    base, dilation = ([data.draw(st.sampled_from((1, 1, 2))) for _ in shape] for _ in range(2))
    is_int = data.draw(st.booleans())
    start: Any = np.int32(-(2**31)) if is_int else -np.inf

    def pooled(x: Any) -> Any:
        return (
            lax.reduce_window(x, start, lax.max, window, strides, padding, base, dilation),
            lax.reduce_window(x, np.zeros((), x.dtype), lax.add, window, strides, padding, base, dilation),
        )

    check(pooled, drawn(*shape, dtype="int32" if is_int else "float32"))


def test_a_mean_of_windows_is_a_pooling() -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4

    text = check(pooled, drawn(1, 4, 4, 3)).astext()
    assert "nn.avg_pool2d(" in text and "divide" not in text


@some
@given(st.data())
def test_padding(data: st.DataObject) -> None:
    shape = [data.draw(st.integers(2, 4)) for _ in range(data.draw(st.integers(1, 3)))]
    widths = [
        (data.draw(st.integers(-1, 2)), data.draw(st.integers(-1, 2)), data.draw(st.integers(0, 2))) for _ in shape
    ]
    check(lambda x: lax.pad(x, np.float32(0.5), widths), drawn(*shape))


SHAPES: dict[str, Callable[..., Any]] = {
    "slices": lambda x, i: (x[1:5:2, ::-1], x[2], x[-1, 1:], x[None, :, 1], x[..., 0]),
    "reshapes": lambda x, i: (x.reshape(3, 8), x.T.reshape(-1), x[:, None], jnp.squeeze(x[:1]), jnp.moveaxis(x, 0, 1)),
    "joined": lambda x, i: (jnp.concatenate([x, x * 2], 1), jnp.stack([x, x]), jnp.tile(x, (2, 1)), jnp.repeat(x, 2, 0), jnp.flip(x, 1), jnp.roll(x, 1, 0)),
    "created": lambda x, i: (x + jnp.arange(3.0), jnp.eye(3) + x[:3], jnp.linspace(0, 1, 5), jnp.tril(x), nn.one_hot(i, 8), jnp.full((2, 3), 7)),
    "split": lambda x, i: (jnp.split(x, 2), jnp.array_split(x, 3, 1)),
    "indexed": lambda x, i: (x[i], x[:, i % 3], x[i, i % 3], x[i][:, None], x[i[:, None], i % 3], x[1, i % 3], x[i, :2]),
    "taken": lambda x, i: (jnp.take(x, i, axis=0), jnp.take(x, i * 9, axis=0, mode="clip"), jnp.take_along_axis(x, jnp.argsort(x, 1), 1)),
    "missing": lambda x, i: (jnp.take(x, i * 5, axis=0, fill_value=-1.0), x.at[i * 9].get(mode="fill", fill_value=3)),
    "dynamic": lambda x, i: (lax.dynamic_slice(x, (i[1], i[0]), (3, 2)), lax.dynamic_slice(x, (0, i[1]), (8, 1)), lax.dynamic_index_in_dim(x, i[0], 0)),
    "updated": lambda x, i: (lax.dynamic_update_slice(x, x[:2, :2] * 0, (i[1], i[0])), lax.dynamic_update_slice(x, x[:2], (3, 0)), lax.dynamic_update_slice(x, x[:, :1], (0, i[1]))),
    "set": lambda x, i: (x.at[i].set(1.0), x.at[1:3].set(7), x.at[:, 1].set(x[:, 0]), x.at[0, i % 3].set(9), x.at[i * 9].set(0), x.at[2].set(0)),
    "combined": lambda x, i: (x.at[i].add(2.0), x.at[i, 0].multiply(3.0), x.at[:, 1].min(0.0), x.at[0, 1].max(9), x.at[i].add(x[:3], mode="drop")),
    "segments": lambda x, i: (jax.ops.segment_sum(x[:3], i % 2, 2), jnp.zeros(5, "int32").at[i % 5].add(1), jnp.bincount(i % 4, length=4)),
    "truth": lambda x, i: ((x > 0)[i], (x > 0).at[i].set(True), jnp.zeros((8,), bool).at[i].max(True)),
    "batched": lambda x, i: (jax.vmap(lambda row, k: row[k])(x[:3], i % 3), jax.vmap(lambda row, k: row.at[k].add(1.0))(x[:3], i % 3), jax.vmap(lambda row, k: lax.dynamic_slice(row, (k,), (2,)))(x[:3], i % 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_places(name: str) -> None:
    check(SHAPES[name], drawn(8, 3), np.array([0, 5, -1], "int32"))


def test_places_natively() -> None:
    for name in ("updated", "batched"):
        check(SHAPES[name], drawn(8, 3), np.array([0, 5, -1], "int32"), target="cpu")


def test_gathers_of_any_axes() -> None:
    x, at = drawn(4, 5, 6), np.array([[0, 3], [2, 1], [3, 9]], "int32")
    for offsets, collapsed, sizes in (
        ((1, 2), (1,), (2, 1, 6)),
        ((0, 2, 3), (), (2, 2, 3)),
        ((0,), (0, 2), (1, 3, 1)),
        ((1, 2, 3), (), (4, 5, 6)),
    ):
        numbers = lax.GatherDimensionNumbers(
            offset_dims=offsets, collapsed_slice_dims=collapsed, start_index_map=(2, 0)
        )
        check(lambda x, at, numbers=numbers, sizes=sizes: lax.gather(x, at, numbers, sizes, mode="clip"), x, at)


def test_constants_of_all_dtypes() -> None:
    values = [[1, 0], [3, 1]]
    names = (*FLOATS, *INTEGERS, "bool")

    def constants(x: Any) -> Any:
        few = [
            x.astype(name) + jnp.asarray(values, name) if name != "bool" else jnp.asarray(values, name)
            for name in names
        ]
        special = [jnp.asarray([jnp.inf, -jnp.inf, -0.0, 1.5], name) for name in FLOATS]
        many = [jnp.asarray(np.arange(300) % 7, name) for name in names]
        return few, special, many, jnp.full((3, 4), 2, "bfloat16")

    exported = jax.export.export(jax.jit(constants))(np.ones((2, 2), "float32"))
    x = drawn(2, 2, low=0)
    agree(mirstack.compile(mirstack.from_jax(exported), target="interp")(np.asarray(x)), constants(x))
