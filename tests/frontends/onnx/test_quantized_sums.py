"""Sums and means between DequantizeLinear and QuantizeLinear are rounded once, exactly as onnxruntime rounds them."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
onnxruntime = library("onnxruntime", "onnx")

CONSTANTS = (
    "".join(
        f"s{k} = Constant <value = float {{{scale}}}> () z{k} = Constant <value = uint8 {{{zero}}}> () "
        for k, (scale, zero) in enumerate([(0.021, 120), (0.034, 131), (0.0411, 117)])
    )
    + "".join(
        f"{name} = Constant <value = float {{{value}}}> () "
        # The last two are steps of the first scale, as nearly as float32 says.
        for name, value in (("c", 1.2345), ("d", -0.777), ("l", -0.42), ("m", 0.63))
    )
    + "pads = Constant <value = int64[8] {0,0,1,1,0,0,1,1}> () "
)


@pytest.mark.parametrize(
    "nodes",
    [
        "t = Add (p, q)",
        "t = Sub (p, q)",
        "u = Add (p, q) t = Relu (u)",
        "u = Add (p, q) t = GlobalAveragePool (u)",
        "u = Add (p, q) t = AveragePool <kernel_shape = [3, 3]> (u)",
        "u = Concat <axis = 1> (p, q) t = ReduceMean <axes = [2, 3]> (u)",
        "t = Add (p, c)",
        "t = Mul (c, p)",
        "u = Mul (p, q) t = Add (u, p)",
        "u = Add (p, q) v = Sub (u, c) t = Add (v, p)",
        "u = Mul (p, c) v = Max (u, q) t = Relu (v)",
        "t = Max (p, c)",
        "u = Sigmoid (p) t = Mul (p, u)",
        "t = Clip (p, d, c)",
        "t = Clip (p, l, m)",
        't = Pad <mode = "constant"> (p, pads, c)',
        "u = Mul (p, q) t = MaxPool <kernel_shape = [3, 3]> (u)",
    ],
)
def test_a_sum_is_rounded_once(nodes: str) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (uint8[n,4,9,9] a, uint8[n,4,9,9] b) => (uint8[n,c,h,w] y) { '
        + CONSTANTS + "p = DequantizeLinear (a, s0, z0) q = DequantizeLinear (b, s1, z1) " + nodes
        + " y = QuantizeLinear (t, s2, z2) }"
    )  # fmt: skip
    random = np.random.default_rng(0)
    a, b = (random.integers(0, 256, (2, 4, 9, 9)).astype("uint8") for _ in range(2))
    (wanted,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"a": a, "b": b})
    made: Any = mirstack.compile(mirstack.from_onnx(model))
    np.testing.assert_array_equal(made(a, b), wanted)
