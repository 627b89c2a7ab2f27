"""ONNX models that onnxruntime refuses, too: what is wrong is said, and nothing ends in a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import pytest
from extras import library

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")

TEXT = '<ir_version: 8, opset_import: ["" : 17]> g (float[n,3] x) => (float[n,3] y) <float[3] w = {1, 2, 3}> { '


def of_opset_99(model: Any) -> None:
    model.opset_import[0].version = 99


def of_elements_77(model: Any) -> None:
    model.graph.initializer[0].data_type = 77


def of_elements_0(model: Any) -> None:
    model.graph.initializer[0].data_type = 0


def of_negative_size(model: Any) -> None:
    model.graph.initializer[0].dims[0] = -3


def of_three_inputs(model: Any) -> None:
    model.graph.node[-1].input.append("x")


def of_an_attribute_of_elements_77(model: Any) -> None:
    model.graph.node[0].attribute[0].t.data_type = 77


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (of_opset_99, "model.onnx: error: the model is of opset 99, and the newest that the package onnx knows is "),
        (of_elements_77, "node 'w': error: the initializer cannot be read: no type of elements has the number 77"),
        (of_elements_0, "node 'w': error: the initializer cannot be read: no type of elements has the number 0"),
        (of_negative_size, "node 'w': error: the initializer cannot be read: a dimension is -3"),
        (of_three_inputs, "node 'y': error: Add: it has 3 inputs, and takes 2 at most"),
        (
            of_an_attribute_of_elements_77,
            "node 'c': error: Constant: attribute 'value' cannot be read: no type of elements has the number 77",
        ),
    ],
)
@pytest.mark.parametrize("is_file", [False, True])
def test_what_is_wrong_is_said(change: Callable[[Any], None], message: str, is_file: bool, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(TEXT + "c = Constant <value = float {1}> () a = Add (c, w) y = Add (x, a) }")
    change(model)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(path if is_file else model)
    assert message in str(error.value)


@pytest.mark.parametrize("given", [3, b"model"])
def test_from_onnx_takes_paths_and_models(given: Any) -> None:
    with pytest.raises(TypeError, match="from_onnx takes the path of a file or"):
        mirstack.from_onnx(given)
