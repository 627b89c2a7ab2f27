"""Long sums of half precision are made in float32, by the meaning of an operator and by native code: added one by one they would
come to rest where the next is less than half of the last place (at 2048 in float16, at 256 in bfloat16)."""

from __future__ import annotations

from typing import Any, Literal

import mirstack
import ml_dtypes
import numpy as np
import pytest

LENGTH = 4000
PAIR = np.array([1, 1.5])
"""The numbers that the inputs hold in turn, exact in either dtype."""
MEAN, SPREAD, SQUARES = PAIR.mean(), PAIR.var(), np.square(PAIR).mean()
LARGE = 512
"""A factor whose square float16 cannot hold."""

RESULTS: dict[str, Any] = {
    "sum(%x, axis=[1])": LENGTH * MEAN,
    "sum(%t, axis=[0])": LENGTH * MEAN,
    "prod(%p, axis=[0])": 1.5**8,
    "mean(%x, axis=[1])": MEAN,
    "mean(%t, axis=[0])": MEAN,
    "variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1])": SPREAD,
    "nn.softmax(%x)": np.exp(PAIR) / (LENGTH * np.exp(PAIR).mean()),
    "nn.log_softmax(%x)": PAIR - np.log(LENGTH * np.exp(PAIR).mean()),
    "nn.l2_normalize(%l, eps=0.001, axis=[1])": PAIR / np.sqrt(LENGTH * SQUARES),
    "nn.layer_norm(%l, %g, %z)": (PAIR - MEAN) / np.sqrt(SPREAD),
    "nn.instance_norm(reshape(%l, newshape=[1, 2, 4000]), %g2, %z2)": (PAIR - MEAN) / np.sqrt(SPREAD),
    "nn.group_norm(reshape(%l, newshape=[1, 2, 4000]), %g2, %z2, num_groups=2)": (PAIR - MEAN) / np.sqrt(SPREAD),
    "nn.global_avg_pool1d(reshape(%x, newshape=[1, 2, 4000]))": MEAN,
    "nn.avg_pool1d(reshape(%x, newshape=[1, 2, 4000]), pool_size=[3996], strides=[2])": MEAN,
    "nn.adaptive_avg_pool1d(reshape(%x, newshape=[1, 2, 4000]), output_size=[2])": MEAN,
    "collapse_sum_like(%t, sum(%t, axis=[0], keepdims=True))": LENGTH * MEAN,
}


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)], ids=str)
def test_long_sums(dtype: np.dtype[Any]) -> None:
    x = np.tile(PAIR, (2, LENGTH // 2)).astype(dtype)
    factors = np.where(np.arange(LENGTH) % (LENGTH // 8) == 0, 1.5, 1)
    inputs = {
        **{"x": x, "t": x.T.copy(), "p": factors.astype(dtype), "l": x * dtype.type(LARGE)},
        **{
            "g": np.ones(LENGTH, dtype),
            "z": np.zeros(LENGTH, dtype),
            "g2": np.ones(2, dtype),
            "z2": np.zeros(2, dtype),
        },
    }
    types = ", ".join(f"%{name}: Tensor[{array.shape}, {dtype}]" for name, array in inputs.items()).replace(",)", ")")
    program = mirstack.parse(f"def @main({types}) {{ ({', '.join(RESULTS)}) }}")
    for target in ("interp", "cpu"):
        results = mirstack.compile(program, target)(*inputs.values())
        for (text, wanted), got in zip(RESULTS.items(), results, strict=True):
            expected = np.resize(wanted, got.shape).astype(dtype).astype(np.float64)
            eps = float(ml_dtypes.finfo(dtype).eps)
            np.testing.assert_allclose(got.astype(np.float64), expected, rtol=2 * eps, err_msg=f"{text} by {target}")
            assert got.dtype == dtype


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolution(groups: int, target: Literal["interp", "cpu"]) -> None:
    """300 channels and, where strides are 1, nine taps of ones: 1350 or 2700, rounded once."""
    text = f"""def @main(%x: Tensor[(1, 300, 3, 3), bfloat16], %w: Tensor[(300, {4 // groups}, 3, 3), bfloat16]) {{
      nn.conv2d_transpose(%x, %w, groups={groups}, channels=4, kernel_size=[3, 3], kernel_layout="IOHW")
    }}"""
    x, w = (np.ones(shape, ml_dtypes.bfloat16) for shape in ((1, 300, 3, 3), (300, 4 // groups, 3, 3)))
    result = mirstack.compile(mirstack.parse(text), target)(x, w)
    assert result.max() == ml_dtypes.bfloat16(2700 / groups)
