"""Shape arithmetic of ONNX graphs vanishes on import: only static reshapes stay, of open sizes, too."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")


def imported(nodes: list[Any], shape: list[Any], arrays: dict[str, Any]) -> list[str]:
    """Returns the lines of the imported function's body; `x` is the input, `y` the output."""
    helper = onnx.helper
    weights = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    given = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    graph = helper.make_graph(nodes, "g", [given], [helper.make_empty_tensor_value_info("y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    text = mirstack.from_onnx(model).astext()
    return [line.strip() for line in text.split("\n") if line.startswith("  ")]


def attention_heads(sizes: list[str]) -> list[Any]:
    """Returns Shape → Gather → Unsqueeze → Concat → Reshape, as exporters write a split into heads."""
    node = onnx.helper.make_node
    nodes = [node("Shape", ["x"], ["shape"])]
    for axis in (0, 1):
        nodes.append(node("Gather", ["shape", f"at{axis}"], [f"size{axis}"]))
        nodes.append(node("Unsqueeze", [f"size{axis}", "zero"], [f"dim{axis}"]))
    nodes.append(node("Concat", sizes, ["target"], axis=0))
    return [*nodes, node("Reshape", ["x", "target"], ["y"])]


ARRAYS = {
    "at0": np.array(0), "at1": np.array(1), "zero": np.array([0]), "heads": np.array([12]), "width": np.array([64]),
    "rest": np.array([-1]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "newshape"),
    [(["dim0", "dim1", "heads", "width"], "0, 0, 12, 64"), (["dim0", "rest", "width"], "0, -1, 64")],
)
def test_heads_are_split_statically(sizes: list[str], newshape: str) -> None:
    (line,) = imported(attention_heads(sizes), ["batch", "seq", 768], ARRAYS)
    assert line.startswith(f"reshape(%x, newshape=[{newshape}])"), line


def test_two_open_sizes_are_merged_and_split_statically() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "at0"], ["batch"]),
        node("Mul", ["batch", "heads"], ["many"]),
        node("Slice", ["shape", "two", "four"], ["last"]),
        node("Concat", ["many", "last"], ["target"], axis=0),
        node("Reshape", ["x", "target"], ["merged"]),
        node("Relu", ["merged"], ["z"]),
        node("Reshape", ["z", "shape"], ["y"]),
    ]
    arrays = {**ARRAYS, "two": np.array([2]), "four": np.array([4])}
    lines = imported(nodes, ["batch", 12, "seq", 64], arrays)
    assert [line.split("(")[0].split()[-1] for line in lines] == ["reshape", "nn.relu", "reshape"]
    assert "newshape=[-3, 0, 0]" in lines[0], lines
    assert "newshape=[-4, -1, 12, 0, 0]" in lines[2], lines


def test_a_slice_to_the_own_size_is_the_value_itself() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Slice", ["shape", "one", "two"], ["seq"]),
        node("Slice", ["x", "zero", "seq", "one"], ["z"]),
        node("Relu", ["z"], ["y"]),
    ]
    arrays = {"one": np.array([1]), "two": np.array([2]), "zero": np.array([0])}
    (line,) = imported(nodes, ["batch", "seq", 8], arrays)
    assert line.startswith("nn.relu(%x)")


def test_expansion_to_the_own_shape_is_the_value_itself() -> None:
    node = onnx.helper.make_node
    nodes = [node("Shape", ["x"], ["shape"]), node("Expand", ["x", "shape"], ["z"]), node("Relu", ["z"], ["y"])]
    (line,) = imported(nodes, ["batch", 1, 8], {})
    assert line.startswith("nn.relu(%x)")


def test_repeated_pixels_of_open_images_are_repeats() -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Resize", ["x", "", "scales"], ["y"], coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    ]
    arrays = {"scales": np.array([1, 1, 2, 2], np.float32)}
    lines = imported(nodes, ["batch", 8, "height", "width"], arrays)
    assert [line.split("(")[0].split()[-1] for line in lines] == ["repeat", "repeat"]


def test_the_shape_of_many_open_sizes_is_known() -> None:
    """The stand-ins of open sizes are large: a tensor of four and more would have more bytes than numpy counts."""
    node = onnx.helper.make_node
    for names in (["a", "b", "c", "d"], ["a", "b", "c", "d", "e", "f"]):
        nodes = [node("Shape", ["x"], ["s"]), node("Neg", ["x"], ["z"]), node("Reshape", ["z", "s"], ["y"])]
        lines = imported(nodes, [*names], {})
        assert [line.split("(")[0] for line in lines] == ["%0 = negative", "reshape"], lines


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_product_of_open_sizes_beyond_the_dtype(dtype: str) -> None:
    node = onnx.helper.make_node
    nodes = [
        node("Flatten", ["x"], ["f"], axis=0), node("Flatten", ["f"], ["g"], axis=0), node("Shape", ["g"], ["s"]),
        node("Size", ["x"], ["n"]), node("Add", ["s", "n"], ["t"]),
        node("Cast", ["t"], ["y"], to=onnx.TensorProto.INT32 if dtype == "int32" else onnx.TensorProto.INT64),
    ]  # fmt: skip
    assert imported(nodes, ["a", "b", "c", "d", "e", "f"], {})
