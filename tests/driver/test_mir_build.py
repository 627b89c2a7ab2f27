"""`mir-build`: what it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mirstack.driver.mir_build import main
from mirstack.driver.mir_opt import main as mir_opt
from mirstack.driver.mir_run import main as mir_run

NET = "def @main(%x: Tensor[(?, 4), float32]) { nn.relu(%x) }\ndef @other(%x: Tensor[(2), float32]) { negative(%x) }\n"


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.mir"
    path.write_text(NET)
    return path


def test_a_package_is_run_and_shown(net: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["net.mir", "-o", "net.mirpkg"]) == 0
    assert capsys.readouterr().out.startswith("net.mirpkg: ")
    assert mir_run(["net.mirpkg", "--random", "1", "--size", "x.0=3", "--output", "out.npz"]) == 0
    assert "-> out0: float32[3, 4]" in capsys.readouterr().out
    assert mir_run(["net.mir", "--random", "1", "--size", "x.0=3", "--expect", "out.npz"]) == 0
    capsys.readouterr()
    assert mir_opt(["net.mirpkg"]) == 0
    assert "//   x: Tensor[(?, 4), float32]\n// result: Tensor[(?, 4), float32]" in capsys.readouterr().out
    assert mir_opt(["net.mirpkg", "-o", "net.txt"]) == 0 and Path("net.txt").read_text().startswith("// net.mirpkg")


def test_the_entry_and_its_shapes(net: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["net.mir", "-o", "net.mirpkg", "--entry", "other"]) == 0
    assert mir_run(["net.mirpkg", "--random", "1"]) == 0
    assert "other (relay) on cpu" in capsys.readouterr().out
    assert main(["net.mir", "-o", "net.mirpkg", "--shape", "x=2,4"]) == 0
    assert mir_opt(["net.mirpkg"]) == 0
    assert "//   x: Tensor[(2, 4), float32]" in capsys.readouterr().out


def test_a_library_in_text(net: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["net.mir", "-o", "net.ll", "--weights", "net.bin"]) == 0
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["net.ll", "net.h", "net.bin"]
    assert "int net_load(const char *path);" in Path("net.h").read_text()


def code_of(arguments: list[str]) -> object:
    """Returns the exit code; argparse ends the process where options are wrong."""
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code


def test_other_machines(net: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["net.mir", "-o", "net.o", "--target", "wasm32"]) == 0
    assert Path("net.o").read_bytes().startswith(b"\0asm")
    assert main(["net.mir", "-o", "net.o", "--triple", "arm64-apple-macosx", "--mcpu", "apple-m1"]) == 0
    # Mach-O of 64 bits.
    assert Path("net.o").read_bytes().startswith(b"\xcf\xfa\xed\xfe")
    assert main(["net.mir", "-o", "net.wasm", "--target", "wasm32", "--shape", "x=2,4"]) == 0


REFUSED = [
    (["net.mir", "-o", "net.txt"], 1, "net.txt: nothing is written to files that end in '.txt'"),
    (
        ["net.mir", "-o", "net.mirpkg", "--mcpu", "haswell,"],
        2,
        "'haswell,' is not a list of processors, such as haswell",
    ),
    (["net.mir", "-o", "net.mirpkg", "--mcpu", "haswell,haswell"], 2, "'haswell,haswell' is not a list of processors"),
    (["net.mir", "-o", "net.mirpkg", "--entry", "absent"], 1, "absent"),
    (["absent.mir", "-o", "net.mirpkg"], 2, "absent.mir: no such file"),
    (["net.mir"], 2, "the following arguments are required: -o"),
    (["net.mir", "-o", "net.mirpkg", "--weights", "net.bin"], 1, "a package holds its weights"),
    (["net.mir", "-o", "net.mirpkg", "--target", "wasm32"], 2, "--target wasm32: net.mirpkg is not written for it"),
    (["net.mir", "-o", "net.wasm", "--target", "cpu"], 2, "--target cpu: net.wasm is not written for it"),
    (
        ["net.mir", "-o", "net.mirpkg", "--triple", "aarch64-linux-gnu"],
        2,
        "--triple: net.mirpkg must be an .so, .o, .ll or .s file",
    ),
    (["net.mir", "-o", "net.o", "--triple", "z80-cpm"], 1, "nothing is known of processors of 'z80-cpm'"),
    (
        ["net.mir", "-o", "net.o", "--triple", "riscv64-linux-gnu", "--mcpu", "haswell"],
        1,
        "'haswell' is not a processor of 'riscv64-linux-gnu'",
    ),
    (
        ["net.mir", "-o", "net.so", "--triple", "arm64-apple-macosx"],
        1,
        "net.so: a shared library of arm64-apple-macosx is linked there",
    ),
]


@pytest.mark.parametrize("arguments, code, message", REFUSED, ids=[message[:40] for *_, message in REFUSED])
def test_what_is_refused(net: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str):
    assert code_of(arguments) == code
    assert message in capsys.readouterr().err
    assert not list(Path().glob("net.mirpkg"))


PACKAGES = [
    (mir_run, ["--mcpu", "haswell"], 2, "--mcpu: net.mirpkg is compiled already: mir-build takes this option"),
    (mir_run, ["-O", "1"], 2, "-O: net.mirpkg is compiled already: mir-build takes this option"),
    (mir_run, ["--target", "interp"], 2, "net.mirpkg: a package holds native code, which --target interp does not run"),
    (
        mir_opt,
        ["-p", "fold-constant"],
        2,
        "net.mirpkg: a package is compiled already: mir-opt only shows what it holds",
    ),
]


@pytest.mark.parametrize("command, options, code, message", PACKAGES, ids=[message[:40] for *_, message in PACKAGES])
def test_packages_are_compiled_already(
    net: Path, capsys: pytest.CaptureFixture[str], command, options: list[str], code: int, message: str
):
    assert main(["net.mir", "-o", "net.mirpkg"]) == 0
    assert command(["net.mirpkg", *options]) == code
    assert message in capsys.readouterr().err


def test_damaged_packages_end_in_an_error(net: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["net.mir", "-o", "net.mirpkg"]) == 0
    data = Path("net.mirpkg").read_bytes()
    Path("net.mirpkg").write_bytes(data[:-70])
    assert mir_run(["net.mirpkg", "--random", "1"]) == 1 and mir_opt(["net.mirpkg"]) == 1
    assert capsys.readouterr().err.count("error: net.mirpkg: is damaged or incomplete") == 2
    assert mir_run(["absent.mirpkg"]) == 2 and mir_opt(["absent.mirpkg"]) == 2
    assert capsys.readouterr().err.count("absent.mirpkg: no such file") == 2


def test_an_onnx_model_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    onnx = pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    helper = onnx.helper
    value = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", value[:1], value[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), "net.onnx")
    assert main(["net.onnx", "-o", "net.mirpkg", "--shape", "x=2,3"]) == 0
    np.savez("x.npz", x=np.array([[1, -1, 2], [3, -4, 5]], np.float32))
    np.savez("y.npz", y=np.array([[1, 0, 2], [3, 0, 5]], np.float32))
    assert mir_run(["net.mirpkg", "--input", "x.npz", "--expect", "y.npz"]) == 0
