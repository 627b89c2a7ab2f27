"""topk by a heap of what is chosen, by classes, or by a network: order, equal elements, NaN, any axis, on one thread and several."""

import mirstack
import numpy as np
import pytest


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("shape", "count", "axis", "ascending"),
    [
        ((7, 333), 1, -1, True),
        ((3, 50, 5), 7, 1, False),
        ((3, 50, 5), 25, 1, True),
        ((40, 2000), 16, -1, False),
        ((100,), 49, 0, False),
        ((5, 17), 3, -1, False),
        ((3, 400), 9, -1, True),
        ((2, 1500), 90, -1, False),
        ((300, 21), 5, 0, False),
        ((33, 70), 40, -1, True),
        ((2, 900), 200, -1, False),
        ((700, 3), 90, 0, True),
        ((5000,), 5, 0, False),
    ],
)
def test_chosen(shape, count, axis, ascending, threads):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 40, shape).astype("float32") if count < 10 else rng.standard_normal(shape, dtype=np.float32)
    x.reshape(-1)[::61] = np.nan
    text = f"""def @main(%x: Tensor[({", ".join(map(str, shape))}{"," * (len(shape) == 1)}), float32]) {{
      topk(%x, k={count}, axis={axis}, is_ascend={ascending}, dtype="int32") }}"""
    values, indices = mirstack.compile(mirstack.parse(text), threads=threads)(x)
    # NaN counts as the largest number.
    key = np.where(np.isnan(x), np.inf, x) * (1 if ascending else -1)
    order = np.argsort(key, axis=axis, kind="stable").take(range(count), axis=axis)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
@pytest.mark.parametrize("ascending", [True, False])
def test_selected_by_classes(dtype, ascending):
    """Few classes with many elements each, one with all of them, and the least and greatest numbers."""
    rng = np.random.default_rng(1)
    low, high = (0 if dtype.startswith("u") else -100), 100
    x = rng.integers(low, high, (3, 600)).astype(dtype)
    x[1] = 7
    if dtype.startswith("float"):
        x[2, ::7], x[2, 1], x[2, 2], x[2, 3:5] = np.nan, np.inf, -np.inf, (0.0, -0.0)
    else:
        x[2, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    text = f"""def @main(%x: Tensor[(3, 600), {dtype}]) {{ topk(%x, k=150, is_ascend={ascending}, dtype="int64") }}"""
    values, indices = mirstack.compile(mirstack.parse(text))(x)
    wide = x.astype("float64" if dtype.startswith("float") else "int64" if dtype != "int64" else dtype)
    # NaN is the largest number, behind infinity.
    key = np.where(np.isnan(wide), np.inf, np.clip(wide, -1e300, 1e300)) if dtype.startswith("float") else wide
    if not ascending:
        key = -key if dtype.startswith("float") else ~key
    order = np.argsort(key, axis=1, kind="stable")[:, :150]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))
