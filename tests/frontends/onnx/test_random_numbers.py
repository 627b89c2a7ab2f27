"""Operators of ONNX that draw random numbers: their distribution, and that a seed determines them."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")


def drawn(graph: str, *inputs: Any, target: Any = "interp") -> Any:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {graph}')
    return mirstack.compile(mirstack.from_onnx(model), target)(*inputs)


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_normal_and_uniform(target: Any) -> None:
    normal = drawn(
        "() => (float[200,50] y) { y = RandomNormal <shape = [200,50], mean = 3.0, scale = 2.0, seed = 1.5> () }", target=target
    )  # fmt: skip
    assert normal.shape == (200, 50) and normal.dtype == np.float32
    assert abs(normal.mean() - 3) < 0.1 and abs(normal.std() - 2) < 0.1
    # Within one deviation of the mean are 68.3 % of the numbers.
    assert abs((np.abs(normal - 3) < 2).mean() - 0.683) < 0.02
    graph = "() => (double[9999] y) { y = RandomUniform <shape = [9999], low = -1.0, high = 3.0, seed = 7.0, dtype = 11> () }"
    uniform = drawn(graph, target=target)
    assert uniform.dtype == np.float64 and uniform.min() >= -1 and uniform.max() < 3
    quarters = np.histogram(uniform, 4, (-1, 3))[0] / 9999
    assert np.abs(quarters - 0.25).max() < 0.03


def test_like_a_tensor() -> None:
    zeros = np.zeros((300, 20), np.float16)
    found = drawn("(float16[300,20] x) => (float16[300,20] y) { y = RandomUniformLike <seed = 7.0> (x) }", zeros)
    assert found.shape == zeros.shape and found.dtype == np.float16 and abs(found.mean() - 0.5) < 0.03
    found = drawn(
        "(int64[300,20] x) => (float[300,20] y) { y = RandomNormalLike <seed = 7.0, dtype = 1> (x) }",
        zeros.astype("int64"),
    )
    assert found.dtype == np.float32 and abs(found.std() - 1) < 0.05


def test_bernoulli_and_multinomial() -> None:
    chances = np.repeat(np.array([0.1, 0.5, 0.9], np.float32), 5000)
    found = drawn("(float[15000] x) => (int32[15000] y) { y = Bernoulli <seed = 7.0, dtype = 6> (x) }", chances)
    assert found.dtype == np.int32 and set(np.unique(found)) == {0, 1}
    assert np.abs(found.reshape(3, -1).mean(-1) - [0.1, 0.5, 0.9]).max() < 0.03
    weights = np.log(np.array([[1, 2, 7], [4, 4, 2]], np.float32))
    found = drawn(
        "(float[2,3] x) => (int64[2,5000] y) { y = Multinomial <seed = 3.0, sample_size = 5000, dtype = 7> (x) }", weights
    )  # fmt: skip
    shares = [np.bincount(row, minlength=3) / 5000 for row in found]
    assert found.dtype == np.int64 and np.abs(np.array(shares) - [[0.1, 0.2, 0.7], [0.4, 0.4, 0.2]]).max() < 0.03


def test_a_seed_determines_the_numbers() -> None:
    graph = "() => (float[50] y) { y = RandomNormal <shape = [50], seed = SEED> () }"
    first, again, other = (drawn(graph.replace("SEED", seed)) for seed in ("1.0", "1.0", "1.25"))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_dropout_without_a_ratio_in_training() -> None:
    x = np.arange(6, dtype=np.float32)
    graph = "(float[6] x, bool t) => (float[6] y) { r = Constant <value_float = 0.0> () y = Dropout (x, r, t) }"
    np.testing.assert_array_equal(drawn(graph, x, np.array(True)), x)
