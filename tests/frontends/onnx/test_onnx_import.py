"""`mirstack.from_onnx`: inputs, open sizes, shape arithmetic, errors."""

from __future__ import annotations

import importlib
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.support.diagnostics import place_of_node
from mirstack.support.walk import walk_ops

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")


def model(
    nodes: list[Any], inputs: dict[str, list[Any]], outputs: list[str], arrays: dict[str, Any] | None = None
) -> Any:
    """Returns a model of float32 inputs."""
    helper = onnx.helper
    given = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    weights = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in (arrays or {}).items()]
    return helper.make_model(helper.make_graph(nodes, "g", given, results, weights))


def test_a_model_becomes_a_function() -> None:
    node = onnx.helper.make_node
    nodes = [node("Relu", ["x"], ["a"], name="first"), node("Add", ["a", "w"], ["y"])]
    mod = mirstack.from_onnx(model(nodes, {"x": ["n", 3]}, ["y"], {"w": np.ones(3, "float32")}))
    assert "def @main(%x: Tensor[(?, 3), float32]" in mod.astext()
    places = [place_of_node(op.location) for op in walk_ops(mod.op)]
    assert "model.onnx: node 'first'" in places and "model.onnx: node 'y'" in places
    np.testing.assert_array_equal(mirstack.compile(mod)(np.array([[-1, 2, 3]], "float32")), [[1, 3, 4]])


def test_shapes_fix_open_dimensions() -> None:
    graph = model([onnx.helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, ["y"])
    assert "Tensor[(2, 3), float32]" in mirstack.from_onnx(graph, {"x": (2, 3)}).astext()


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": (2, 3)}, "model.onnx has no input 'z'"),
        ({"x": (2,)}, "model.onnx: error: input 'x' has 2 dimensions, and the given shape 1"),
        ({"x": (2, 4)}, "model.onnx: error: dimension 1 of input 'x' is 3 in the model, not 4"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, Any], message: str) -> None:
    graph = model([onnx.helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 3]}, ["y"])
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph, shapes)
    assert message in str(error.value)


def test_all_nodes_that_cannot_be_imported_are_listed() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Reluu", ["x"], ["a"], name="one"),
        node("Relu", ["a"], ["b"]),
        node("Foo", ["b"], ["y"], name="two", domain="own"),
    ]
    graph = model(nodes, {"x": [2, 3]}, ["y"])
    graph.opset_import.append(onnx.helper.make_opsetid("own", 3))
    graph.graph.value_info.append(onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [2, 3]))
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph)
    text = str(error.value)
    assert (
        f"model.onnx: node 'one': error: Reluu: there is no operator Reluu in opset {onnx.defs.onnx_opset_version()}"
        in text
    )
    assert "model.onnx: node 'two': error: Foo: there is no operator own.Foo in opset 3" in text


def test_an_operator_of_a_later_opset() -> None:
    graph = model([onnx.helper.make_node("RMSNormalization", ["x", "w"], ["y"])], {"x": [2, 3], "w": [3]}, ["y"])
    graph.opset_import[0].version = 22
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph)
    message = "RMSNormalization is supported from opset 23 on, and the model imports opset 22"
    assert f"model.onnx: node 'y': error: RMSNormalization: {message}" in str(error.value)


def test_a_sequence_of_given_shapes_is_several_parameters() -> None:
    helper = onnx.helper
    element = helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, ["n"])
    info = helper.make_value_info("s", helper.make_sequence_type_proto(element))
    graph = helper.make_model(helper.make_graph([helper.make_node("Identity", ["s"], ["y"])], "g", [info], []))
    graph.graph.output.append(helper.make_value_info("y", helper.make_sequence_type_proto(element)))
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph)
    assert "model.onnx: error: the length of input 's', a sequence, is not known" in str(error.value)
    assert "note: give the shapes of its elements: from_onnx(model, shapes={'s': [(2, 3), (4, 3)]})" in str(error.value)
    compiled = mirstack.compile(mirstack.from_onnx(graph, {"s": [(2,), (3,)]}))
    assert [param.name for param in compiled.params] == ["s.0", "s.1"]
    one, other = compiled(np.ones(2, "float32"), np.zeros(3, "float32"))
    assert (one.shape, other.shape) == ((2,), (3,))
    # The backend compiles for the shapes that it is called with.
    prepared = importlib.import_module("mirstack.onnx.backend").prepare(graph)
    assert [[each.shape for each in prepared.run([[np.ones(count, "float32")] * 2]).y] for count in (1, 4)] == [
        [(1,), (1,)],
        [(4,), (4,)],
    ]


def test_inputs_without_a_known_type() -> None:
    helper = onnx.helper
    graph = model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"])
    graph.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph)
    assert "model.onnx: error: input 'x' has no shape" in str(error.value)
    graph.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph)
    assert "model.onnx: error: input 'x' has elements of a type that tensors here cannot have" in str(error.value)
    graph.graph.input[0].type.map_type.key_type = onnx.TensorProto.INT64
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(graph)
    assert "model.onnx: error: input 'x' is neither a tensor nor a sequence of tensors" in str(error.value)
