"""Operators of one's own: TE and TIR functions that are given along with an ONNX model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack import te
from mirstack.driver import mir_import, mir_run
from mirstack.frontends.onnx.onnx_file import OnnxFile
from mirstack.lowering.driver.cache.file_digests import FileDigests

pytestmark = pytest.mark.extra
onnx = library("onnx", "onnx")

FUNCTION = """
@te.func
def Soften():
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((n, m), name="x")
    bias = te.placeholder((1,), name="bias")
    y = te.compute((n, m), lambda i, j: te.Select(x[i, j] > bias[0], x[i, j], bias[0]) + bias[0], name="y")
    return [x, bias, y]
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    node = onnx.helper.make_node("Soften", ["x"], ["y"], domain="own", bias=[0.5])
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 3])
    graph = onnx.helper.make_graph([node], "g", [x], [onnx.helper.make_empty_tensor_value_info("y")])
    sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("own", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=sets), tmp_path / "m.onnx")
    (tmp_path / "ops.mir").write_text(FUNCTION)
    return tmp_path


X = np.array([[-1, 0, 1], [2, 0.25, 3]], "float32")


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_a_function_is_called(files: Path, target: Any) -> None:
    mod = mirstack.from_onnx(files / "m.onnx", custom=files / "ops.mir")
    np.testing.assert_array_equal(mirstack.compile(mod, target)(X), np.maximum(X, 0.5) + 0.5)
    model = onnx.load(files / "m.onnx")
    mod = mirstack.from_onnx(model, {"x": (2, 3)}, custom=[files / "ops.mir"])
    np.testing.assert_array_equal(mirstack.compile(mod, target)(X), np.maximum(X, 0.5) + 0.5)


def test_a_file_is_compiled_with_its_functions(files: Path) -> None:
    program = mirstack.compile(files / "m.onnx", custom=files / "ops.mir")
    np.testing.assert_array_equal(program(X), np.maximum(X, 0.5) + 0.5)
    program = mirstack.compile(files / "m.onnx", "interp", custom=[files / "ops.mir"], shapes={"x": (2, 3)})
    np.testing.assert_array_equal(program(X), np.maximum(X, 0.5) + 0.5)
    with pytest.raises(
        TypeError, match="custom holds operators of an ONNX file; other programs have their functions in themselves"
    ):
        mirstack.compile(files / "ops.mir", custom=files / "ops.mir")


def test_commands(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(files / "m.onnx"), "--custom", str(files / "ops.mir")]
    assert mir_import.main(arguments) == 0
    assert "call_tir(@Soften, %x, meta[relay.Constant][0]" in capsys.readouterr().out
    assert mir_run.main([*arguments, "--random", "1", "--size", "x.0=2"]) == 0
    assert "-> y: float32[2, 3]" in capsys.readouterr().out


def test_without_the_function(files: Path) -> None:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_onnx(files / "m.onnx")
    assert "an operator of your own is a function of a .mir file that is given along: --custom ops.mir" in str(
        error.value
    )


OPERATOR = """
@T.prim_func
def soften(x: T.handle, bias: T.Buffer((1,), "float32"), y: T.handle):
    n = T.int32()
    m = T.int32()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.max(X[vi, vj], bias[0]) + bias[0]

operator own.Soften(%x: Tensor, bias: floats) -> Tensor { compute @soften }
"""


def test_an_operator_of_ones_own_converts_a_node(files: Path) -> None:
    (files / "ops.mir").write_text(OPERATOR)
    for target in ("interp", "cpu"):
        program = mirstack.compile(files / "m.onnx", target, custom=files / "ops.mir")
        np.testing.assert_array_equal(program(X), np.maximum(X, 0.5) + 0.5)
    assert "own.Soften(" in str(mirstack.from_onnx(files / "m.onnx", custom=files / "ops.mir"))
    (files / "ops.mir").write_text(OPERATOR.replace("bias: floats", "bias: floats, slope: float"))
    with pytest.raises(mirstack.MirError, match=r"own\.Soften needs the attribute 'slope'"):
        mirstack.from_onnx(files / "m.onnx", custom=files / "ops.mir")


@pytest.mark.usefixtures("no_extensions")
def test_an_operator_of_python_converts_a_node_and_is_not_cached(files: Path) -> None:
    file = OnnxFile.of(files / "m.onnx")
    assert file.key(FileDigests(None)) is not None
    mirstack.register_operator(
        "own.Soften", ("x",), attributes={"bias": [1.0]}, element=lambda x, bias: te.max(x, bias[0]) + bias[0]
    )
    assert file.key(FileDigests(None)) is None
    np.testing.assert_array_equal(mirstack.compile(files / "m.onnx", "interp")(X), np.maximum(X, 0.5) + 0.5)
