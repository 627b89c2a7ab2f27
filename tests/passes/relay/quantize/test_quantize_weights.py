"""Weights of few bits: what is packed represents the weight as closely as its groups allow."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.operators.nn.matmul_nbits import dequantize_nbits
from mirstack.passes.relay.quantize.quantize_weights import QuantizeWeights, pack_weight
from xdsl.context import Context


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("columns", [32, 50])
def test_each_number_is_within_a_step(bits: int, columns: int) -> None:
    weight = np.random.default_rng(bits).standard_normal((6, columns)).astype(np.float32)
    weight[2] = 0
    packed, scales, zero = pack_weight(weight, bits, 16)
    again = dequantize_nbits(packed, scales, np.array(zero, np.uint8), bits, columns)
    steps = np.repeat(np.abs(scales), 16, axis=1)[:, :columns]
    assert (np.abs(again - weight) <= 1.001 * steps).all() and (again[2] == 0).all()


def test_the_largest_number_of_a_group_is_exact() -> None:
    weight = np.array([[0.25] * 15 + [-2.0]], np.float32)
    packed, scales, zero = pack_weight(weight, 4, 16)
    assert scales == 0.25 and dequantize_nbits(packed, scales, np.array(zero, np.uint8), 4, 16)[0, 15] == -2


@pytest.mark.parametrize("rows", [1, 3, 16, "?"])
def test_quantized_layers_run_natively(rows: int | str) -> None:
    weight = np.random.default_rng(1).standard_normal((70, 48)).astype(np.float32)
    x = mirstack.relay.var("x", shape=(mirstack.relay.Any() if rows == "?" else rows, 48))
    dense = mirstack.relay.nn.dense(x, mirstack.relay.const(weight))
    module = mirstack.IRModule.from_expr(mirstack.relay.nn.relu(dense)).copy_op()
    QuantizeWeights(bits=4, group=16).apply(Context(), module)
    assert "nn.matmul_nbits" in str(module)
    program = mirstack.compile(module)
    again = dequantize_nbits(*pack_weight(weight, 4, 16)[:2], np.array(8, np.uint8), 4, 48)
    for count in [rows] if isinstance(rows, int) else [1, 7, 8, 9, 20]:
        data = np.random.default_rng(2).standard_normal((count, 48)).astype(np.float32)
        wanted = np.maximum(data.astype(np.float64) @ again.astype(np.float64).T, 0)
        np.testing.assert_allclose(np.asarray(program(data)), wanted, atol=2e-5 * np.abs(wanted).max())
