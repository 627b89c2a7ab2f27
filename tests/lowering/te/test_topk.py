"""topk by a heap of what is chosen, or by a network: order, equal elements, NaN, any axis, on one thread and several."""

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
