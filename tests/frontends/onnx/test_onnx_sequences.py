"""ONNX operators on sequences and optionals inside of a graph: their structure is known on import."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")


def outputs(nodes: list[Any], results: list[str], arrays: dict[str, Any], x: Any) -> Any:
    """Returns what a graph of these nodes computes from `x`."""
    helper = onnx.helper
    weights = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", *x.shape[1:]])
    ends = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph(nodes, "g", [given], ends, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    found: Any = mirstack.compile(mirstack.from_onnx(model), target="interp")(x)
    return found if isinstance(found, tuple) else (found,)


X = np.arange(12, dtype=np.float32).reshape(2, 6)


def test_parts_are_inserted_erased_and_joined() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("SplitToSequence", ["x", "two"], ["parts"], axis=1),
        node("SequenceLength", ["parts"], ["count"]),
        node("SequenceAt", ["parts", "last"], ["end"]),
        node("SequenceErase", ["parts", "zero"], ["fewer"]),
        node("SequenceInsert", ["fewer", "end", "zero"], ["more"]),
        node("ConcatFromSequence", ["more"], ["y"], axis=1),
    ]
    count, y = outputs(nodes, ["count", "y"], {"two": np.array(2), "last": np.array(-1), "zero": np.array(0)}, X)
    assert np.asarray(count) == 3
    np.testing.assert_array_equal(np.asarray(y), np.concatenate([X[:, 4:], X[:, 2:4], X[:, 4:]], 1))


def test_a_graph_is_repeated_for_each_tensor() -> None:
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    inner = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"])], "body", [inner("a", float32, None), inner("b", float32, None)],
        [inner("c", float32, None)],
    )  # fmt: skip
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0),
        helper.make_node("SequenceMap", ["parts", "one"], ["sums"], body=body),
        helper.make_node("ConcatFromSequence", ["sums"], ["y"], axis=0, new_axis=1),
    ]
    (y,) = outputs(nodes, ["y"], {"one": np.array([10, 20], np.float32)}, X)
    np.testing.assert_array_equal(np.asarray(y), X.T + np.array([10, 20], np.float32))


def test_optionals_are_values_or_empty() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Optional", ["x"], ["some"]),
        node("OptionalHasElement", ["some"], ["has"]),
        node("OptionalHasElement", [], ["none"]),
        node("OptionalGetElement", ["some"], ["z"]),
        node("Relu", ["z"], ["y"]),
    ]
    has, none, y = (np.asarray(each) for each in outputs(nodes, ["has", "none", "y"], {}, X))
    assert has and not none
    np.testing.assert_array_equal(y, X)


def test_a_computed_position_selects_from_a_stack() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("SequenceConstruct", ["x", "x2"], ["parts"]),
        node("ReduceMin", ["x"], ["least"], keepdims=0),
        node("Cast", ["least"], ["place"], to=onnx.TensorProto.INT64),
        node("SequenceAt", ["parts", "place"], ["y"]),
    ]
    nodes.insert(0, node("Mul", ["x", "x"], ["x2"]))
    (y,) = outputs(nodes, ["y"], {}, X)
    np.testing.assert_array_equal(np.asarray(y), X)
    (y,) = outputs(nodes, ["y"], {}, X + 1)
    np.testing.assert_array_equal(np.asarray(y), (X + 1) ** 2)
