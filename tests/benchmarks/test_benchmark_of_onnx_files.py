"""`benchmarks.onnx_files` compares an ONNX file with onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from extras import library
from mirstack.benchmarks import onnx_files

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")
library("onnxruntime", "bench")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["rows", 4])
    k = helper.make_tensor_value_info("k", onnx.TensorProto.INT64, [])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["rows", 4])
    nodes = [
        helper.make_node(*each)
        for each in (("Cast", ["k"], ["f"]), ("Mul", ["x", "f"], ["z"]), ("Softmax", ["z"], ["y"]))
    ]
    nodes[0].attribute.append(helper.make_attribute("to", onnx.TensorProto.FLOAT))
    graph = helper.make_graph(nodes, "g", [x, k], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_a_file_is_measured(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G")
    monkeypatch.setenv("MIRSTACK_SPECIALIZE", "on")
    options = ["--seconds", "0.1", "--starts", "1", "--shape", "x=3,4", str(file)]
    onnx_files.main(options)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "file",
        "error",
        "ort",
        "ms",
        "open",
        "own",
        "fixed",
        "cold",
        "ms",
        "warm",
        "ms",
        "session",
    ]
    assert lines[1].startswith("m ") and len(lines[1].split()) == 9
    assert lines[2].startswith("geometric mean ")
    onnx_files.main(["--json", *options])
    (row,) = json.loads(capsys.readouterr().out).values()
    assert row["error"] < 1e-5
    assert 0 < row["warm"] < row["cold"]
    assert list(row["ratios"]) == ["open", "own", "fixed"] and all(each > 0 for each in row["ratios"].values())


def test_inputs_have_the_shapes_and_types_of_the_file(file: Path) -> None:
    session = onnx_files.session_of(file, 1)
    inputs = onnx_files.drawn(session, {"x": (5, 4)})
    assert {name: (each.shape, each.dtype.name) for name, each in inputs.items()} == {
        "x": ((5, 4), "float32"),
        "k": ((), "int64"),
    }
    assert onnx_files.drawn(session, {})["x"].shape == (1, 4)
    assert onnx_files.difference([np.array([1.0, 2.5])], [np.array([1.0, 2.0])]) == 0.25


def test_packages_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(onnx_files, "installed", dict)
    with pytest.raises(SystemExit):
        onnx_files.main([])
    assert "none of the packages is installed: rapidocr-onnxruntime, silero-vad, magika" in capsys.readouterr().err
