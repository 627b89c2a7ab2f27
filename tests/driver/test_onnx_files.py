"""ONNX files as programs: `mir-import`, `mir-run`, `mir-opt`, `mirstack.compile` and `mirstack.load` of them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.driver import mir_import, mir_opt, mir_run

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")

W = np.arange(12, dtype="float32").reshape(3, 4)


def model(weights: Any = W) -> Any:
    """Returns x·wᵀ, and what is left of it above 0."""
    helper = onnx.helper
    nodes = [helper.make_node("Add", ["x", "w"], ["logits"]), helper.make_node("Relu", ["logits"], ["scores"])]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3, 4])
    results = [helper.make_empty_tensor_value_info(name) for name in ("scores", "logits")]
    return helper.make_model(helper.make_graph(nodes, "g", [x], results, [onnx.numpy_helper.from_array(weights, "w")]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    onnx.save(model(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def refusal(path: Path) -> str:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.load(path)
    return str(error.value)


def test_compile_and_load(file: Path) -> None:
    assert [op.name for op in mirstack.load(file).ops] == ["relay.func"]
    executable = mirstack.compile(file, "interp", shapes={"x": (2, "?", None)})
    assert [param.shape for param in executable.params] == [(2, 3, 4)]
    results = executable.run({"x": -np.ones((2, 3, 4), "float32")})
    assert list(results) == ["scores", "logits"]
    np.testing.assert_array_equal(results["logits"][0], W - 1)


def test_import(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = file.with_suffix(".mir")
    assert mir_import.main([str(file), "-o", str(text)]) == 0
    assert capsys.readouterr().out == f"{text}: 1 array in m.safetensors, 0.00 MB\n"
    assert 'constants = "m.safetensors"' in text.read_text()
    x = np.ones((5, 3, 4), "float32")
    np.testing.assert_array_equal(mirstack.compile(text, "interp")(x)[1], x + W)


def test_import_to_standard_output(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mir_import.main([str(file), "--shape", "x=2,3,4"]) == 0
    text = capsys.readouterr().out
    assert 'constants = "m.onnx"' in text and "Tensor[(2, 3, 4), float32]" in text
    module = mirstack.parse(text, directory=file.parent)
    np.testing.assert_array_equal(mirstack.compile(module, "interp")(np.ones((2, 3, 4), "float32"))[1][0], W + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--weights", "w.safetensors"], "--weights: without -o no weights are written"),
        (["-o", "m.txt"], "-o: 'm.txt' is not a .mir file"),
        (
            ["-o", "m.mir", "--weights", "a/w.safetensors"],
            "is not the name of a .safetensors file in the folder of m.mir",
        ),
        (["-o", "none/m.mir"], "none/m.safetensors: cannot be written: No such file or directory"),
    ],
)
def test_wrong_options_of_import(
    file: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    assert mir_import.main(["m.onnx", *options]) == 2
    assert message in capsys.readouterr().err


def test_run_names_results(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = file.with_name("out.npz")
    arguments = [str(file), "--target", "interp", "--random", "1", "--shape", "x=1,3,4", "--output", str(output)]
    assert mir_run.main(arguments) == 0
    assert "-> scores: float32[1, 3, 4]" in capsys.readouterr().out
    assert sorted(np.load(output)) == ["logits", "scores"]


def test_opt(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mir_opt.main([str(file), "-p", "fuse-ops", "--shape", "x=1,3,4"]) == 0
    assert "Primitive=1" in capsys.readouterr().out


def test_other_names_of_files(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = file.rename(file.with_suffix(".pb"))
    assert mir_opt.main(["-f", "onnx", str(other)]) == 0
    assert mir_opt.main([str(other)]) == 2
    assert (
        "not a .mir, .mlir, .onnx or .pt2 file: tell its format with -f mir, -f mlir, -f onnx or -f pt2"
        in capsys.readouterr().err
    )
    assert mir_run.main(["-f", "onnx", "-"]) == 2
    assert "a model is read from a .onnx file, not from standard input" in capsys.readouterr().err
    assert mir_run.main(["none.onnx"]) == 2
    assert "none.onnx: no such file" in capsys.readouterr().err


def test_the_cache_knows_the_bytes(file: Path, tmp_path: Path) -> None:
    """A model in the cache is compiled without onnx; one with other weights is another."""
    program = """
import sys
import mirstack
import numpy as np

print(float(mirstack.compile("m.onnx")(np.zeros((1, 3, 4), "float32"))[1].sum()), "onnx" in sys.modules)
"""
    environment = {**os.environ, "MIRSTACK_CACHE": str(tmp_path / "cache"), "MIRSTACK_CACHE_LIMIT": "1G"}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
        )
        return done.stdout.strip()

    assert [run(), run()] == ["66.0 True", "66.0 False"]
    onnx.save(model(W + 1), file)
    assert run() == "78.0 True"


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    x = np.ones((1, 3, 4), "float32")
    np.testing.assert_array_equal(mirstack.compile(path, "interp")(x)[1][0], W + 1)
    (tmp_path / "w.bin").write_bytes(b"1234")
    assert "its external data ends at byte 48 of 'w.bin', which has 4" in refusal(path)
    (tmp_path / "w.bin").unlink()
    assert "its external data 'w.bin' cannot be read: No such file or directory" in refusal(path)


def test_external_data_of_an_attribute(tmp_path: Path) -> None:
    tensor = onnx.helper.make_tensor("c", onnx.TensorProto.FLOAT, [3, 4], W.tobytes(), raw=True)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Constant", [], ["y"], value=tensor)],
        "g",
        [],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [3, 4])],
    )
    value = graph.node[0].attribute[0].t
    onnx.external_data_helper.set_external_data(value, "c.bin", 4, 48)
    value.ClearField("raw_data")
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    (tmp_path / "c.bin").write_bytes(b"1234" + W.tobytes()[:-4])
    assert f"{path}: tensor 'c': its external data ends at byte 52 of 'c.bin', which has 48" in refusal(path)
    (tmp_path / "c.bin").unlink()
    assert "tensor 'c': its external data 'c.bin' cannot be read: No such file or directory" in refusal(path)
    value.external_data[0].value = "../c.bin"
    path.write_bytes(onnx.helper.make_model(graph).SerializeToString())
    assert "its external data is in '../c.bin', which is not in the folder of the model" in refusal(path)


def test_files_that_are_not_models(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"hello world")
    assert "m.onnx is not an ONNX model: byte 2 does not begin a field" in refusal(path)
    path.write_bytes(model().SerializeToString()[:40])
    assert "m.onnx is not an ONNX model: a part of " in refusal(path)
    path.write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    assert "m.onnx is not an ONNX model: it has no graph" in refusal(path)
    assert "cannot be read: No such file or directory" in refusal(tmp_path / "none.onnx")


def test_a_tensor_that_claims_too_much(tmp_path: Path) -> None:
    broken = model()
    broken.graph.initializer[0].dims[0] = 1 << 40
    (tmp_path / "m.onnx").write_bytes(broken.SerializeToString())
    assert "m.onnx: node 'w': error: the initializer cannot be read: " in refusal(tmp_path / "m.onnx")


def test_without_the_package_onnx(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "reading ONNX models needs the package onnx: pip install 'mirstack[onnx]'" in refusal(file)


def test_the_backend_without_the_package_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "mirstack.api.onnx.backend", raising=False)
    with pytest.raises(mirstack.MirError) as error:
        import_module("mirstack.api.onnx.backend")
    assert "the ONNX backend needs the package onnx: pip install 'mirstack[onnx]'" in str(error.value)
