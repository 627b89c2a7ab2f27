"""Nodes of an ONNX graph that do not follow those that compute their inputs, as float16 converters append their casts."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[n] x, bool c) => (float[n] y) '


def test_nodes_are_ordered_by_what_they_use() -> None:
    model = onnx.parser.parse_model(
        HEAD + "{ y = Add (a, d) a = Neg (b) "
        "d = If (c) <then_branch = u () => (float[n] v) { v = Neg (w) w = Abs (a) }, "
        "else_branch = p () => (float[n] q) { q = Identity (b) }> b = Exp (x) }"
    )
    net: Any = mirstack.compile(mirstack.from_onnx(model), target="interp")
    x = np.array([0.5, -1], "float32")
    np.testing.assert_allclose(net(x, np.array(True)), -2 * np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(net(x, np.array(False)), [0, 0])


def test_nodes_that_use_each_other_are_refused() -> None:
    model = onnx.parser.parse_model(HEAD + "{ y = Add (a, x) a = Neg (y) }")
    with pytest.raises(mirstack.MirError, match="is not computed by any node before this one"):
        mirstack.from_onnx(model)


def test_many_nodes_in_the_wrong_order() -> None:
    count = 3000
    nodes = [onnx.helper.make_node("Neg", [f"v{k}"], [f"v{k + 1}"]) for k in range(count)]
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(nodes[::-1], "g", [info("v0", 1, [2])], [info(f"v{count}", 1, [2])])
    text = str(mirstack.from_onnx(onnx.helper.make_model(graph, ir_version=8)))
    assert text.count("negative(") == count
