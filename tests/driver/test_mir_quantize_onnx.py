"""`mir-quantize` of ONNX files: layers by their nodes, open sizes, several inputs, data that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.driver.mir_quantize import main

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")

RNG = np.random.default_rng(7)
SAMPLES, SIDE = 12, 8
IMAGES = RNG.standard_normal((SAMPLES, 3, SIDE, SIDE)).astype(np.float32)
SHIFTS = RNG.standard_normal((SAMPLES, 16)).astype(np.float32)


def weight(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two convolutions, a batch norm and two products with open batch, and a second input."""
    helper, tensor = onnx.helper, onnx.TensorProto
    weights = {
        "w0": weight(8, 3, 3, 3), "w1": weight(16, 8, 3, 3), "w2": weight(64, 16).T.copy(), "w3": weight(5, 64),
        "b3": weight(5, 1)[:, 0], "scale": np.abs(weight(8, 1))[:, 0] + 1, "mean": weight(8, 1)[:, 0],
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c0", "scale", "mean", "mean", "scale"], ["n0"], "norm"),
        helper.make_node("Relu", ["n0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1"], ["c1"], "second", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["c1"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Add", ["f", "shift"], ["s"]),
        helper.make_node("MatMul", ["s", "w2"], ["m"], "product"),
        helper.make_node("Gemm", ["m", "w3", "b3"], ["y"], "scores", transB=1),
    ]
    inputs = [
        helper.make_tensor_value_info("x", tensor.FLOAT, ["n", 3, SIDE, SIDE]),
        helper.make_tensor_value_info("shift", tensor.FLOAT, ["n", 16]),
    ]
    kept = [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()]
    result = [helper.make_tensor_value_info("y", tensor.FLOAT, ["n", 5])]
    path = tmp_path_factory.mktemp("onnx") / "m.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", inputs, result, kept)), path)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.npz"
    np.savez(path, x=IMAGES, shift=SHIFTS)
    return path


def results(source: Any) -> np.ndarray:
    return np.asarray(mirstack.compile(source)(IMAGES, SHIFTS))


def test_layers_are_shown_by_their_nodes(
    model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "q.mir"
    assert main([str(model), "--data", str(data), "-o", str(out)]) == 0
    rows = capsys.readouterr().out.splitlines()
    shown = {row.split("  ")[0]: row.split()[-1] for row in rows[1:5]}
    assert set(shown) == {f"{model}: node '{name}'" for name in ("first", "second", "product", "scores")}
    errors = [float(error.removesuffix("%")) for error in shown.values()]
    assert errors == sorted(errors, reverse=True) and rows[5] == "4 layers, 4 quantized, 0 in floats"
    wanted, found = results(model), results(out)
    assert np.linalg.norm(wanted - found) < 0.05 * np.linalg.norm(wanted)


@pytest.mark.parametrize(("weights", "group", "most"), [("int8", 64, 0.01), ("int4", 32, 0.2), ("int4", 128, 0.2)])
def test_weights_of_products_alone(
    weights: str, group: int, most: float, model: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "w.mir"
    assert main([str(model), "--data", str(data), "--weights", weights, "--group", str(group), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"{model}: node 'product'" in printed and "2 layers, 2 quantized" in printed
    wanted, found = results(model), results(out)
    assert 0 < np.linalg.norm(wanted - found) < most * np.linalg.norm(wanted)


def test_weights_that_nodes_compute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    helper, tensor = onnx.helper, onnx.TensorProto
    half = onnx.numpy_helper.from_array(np.array([0.5], np.float32))
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"], "filled", value=half),
        helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
    ]
    values = [helper.make_tensor_value_info(name, tensor.FLOAT, [1, size]) for name, size in (("x", 1024), ("y", 1024))]
    kept = [onnx.numpy_helper.from_array(np.array([1024, 1024], np.int64), "shape")]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], kept)), tmp_path / "c.onnx")
    assert main([str(tmp_path / "c.onnx"), "--weights", "int4", "-o", str(tmp_path / "c.mir")]) == 0
    assert "c.onnx: node 'product'" in capsys.readouterr().out
    assert "nn.matmul_nbits" in (tmp_path / "c.mir").read_text()


def test_the_fewest_layers_stay_in_floats(model: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model), "--data", str(data), "--metric", "error", "--max-drop", "0"]) == 0
    assert "4 layers, 0 quantized, 4 in floats" in capsys.readouterr().out


WRONG = [
    ({"y": IMAGES, "shift": SHIFTS}, "there is no parameter 'y'", "there are x, shift"),
    ({"x": IMAGES}, "there are no samples for parameter 'shift'", "the data are for x"),
    ({"x": IMAGES[:, :1], "shift": SHIFTS}, f"the samples of 'x' are of shape [{SAMPLES}, 1, {SIDE}, {SIDE}]", ""),
    ({"x": IMAGES, "shift": SHIFTS[:3]}, f"different numbers of samples: {SAMPLES} for 'x', 3 for 'shift'", ""),
]


@pytest.mark.parametrize(("arrays", "message", "note"), WRONG)
def test_data_that_do_not_fit(
    arrays: dict[str, Any],
    message: str,
    note: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "wrong.npz"
    np.savez(path, **arrays)
    assert main([str(model), "--data", str(path)]) == 1
    error = capsys.readouterr().err
    assert message in error and note in error
