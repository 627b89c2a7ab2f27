"""`.pt2` files as programs: `mir-import`, `mir-run`, `mir-opt`, `mirstack.compile` and `mirstack.load` of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.driver import mir_import, mir_opt, mir_run

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
nn = torch.nn


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(1), nn.Linear(4 * 36, 5)).eval()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(network(), (torch.zeros(2, 3, 8, 8),), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "net.pt2")
    return tmp_path / "net.pt2"


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Writes the archive again with changed members, or without those for which `change` returns None."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            changed = change(name, data)
            if changed is not None:
                archive.writestr(name, changed)


def refusal(path: Path) -> str:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.load(path)
    return str(error.value)


def test_compile_and_load(file: Path) -> None:
    assert [op.name for op in mirstack.load(file).ops] == ["relay.func"]
    x = torch.randn(3, 3, 8, 8)
    for target in ("cpu", "interp"):
        for shapes in (None, {"input": (3, 3, 8, 8)}):
            got = mirstack.compile(file, target, shapes=shapes)(x.numpy())
            np.testing.assert_allclose(got, network()(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    fixed = mirstack.compile(file, "interp", shapes={"input": (3, None, None, None)})
    assert [param.shape for param in fixed.params] == [(3, 3, 8, 8)]


def test_import(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = file.with_suffix(".mir")
    assert mir_import.main([str(file), "-o", str(text), "--shape", "input=1,?,?,?"]) == 0
    assert capsys.readouterr().out == f"{text}: 4 arrays in net.safetensors, 0.00 MB\n"
    assert "%input: Tensor[(1, 3, 8, 8), float32]" in text.read_text()
    x = np.ones((1, 3, 8, 8), "float32")
    want = network()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(mirstack.compile(text, "interp")(x), want, rtol=1e-4, atol=1e-5)


def test_commands(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mir_run.main([str(file), "--random", "1", "--shape", "input=2,3,8,8"]) == 0
    assert "-> out0: float32[2, 5]" in capsys.readouterr().out
    assert mir_opt.main([str(file), "-p", "fuse-ops"]) == 0
    shown = capsys.readouterr()
    assert "Primitive=1" in shown.out
    assert shown.err == ""
    assert mir_run.main([str(file), "--custom", str(file)]) == 2
    refused = "--custom: operators of one's own are those of an ONNX model, and"
    assert refused in capsys.readouterr().err
    with pytest.raises(TypeError, match="custom holds operators of an ONNX file"):
        mirstack.compile(file, custom=str(file))


def test_a_program_that_the_cache_has_does_not_import_torch(file: Path) -> None:
    script = (
        "import sys, mirstack, numpy as np\n"
        f"net = mirstack.compile({str(file)!r})\n"
        "print(net(np.ones((2, 3, 8, 8), 'float32')).tolist())\n"
        "print('torch' in sys.modules)\n"
    )
    environment = {**os.environ, "MIRSTACK_CACHE": str(file.parent / "cache"), "MIRSTACK_CACHE_LIMIT": "1G"}
    results: list[list[str]] = []
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        results.append(run.stdout.splitlines())
    assert results[0][0] == results[1][0]
    assert [each[1] for each in results] == ["True", "False"]


def test_files_that_are_not_programs(tmp_path: Path, file: Path) -> None:
    data = file.read_bytes()
    other = tmp_path / "other.pt2"
    start = f"{other} is not a program of torch.export: "
    for content, reason in (
        (b"", "the file is empty"),
        (b"def @main", "it is not a zip archive"),
        (data[:3000], "the zip archive is damaged"),
        (data.replace(b"aten.relu", b"aten.gelu"), "the zip archive is damaged: "),
    ):
        other.write_bytes(content)
        assert start + reason in refusal(other)
    other.unlink()
    assert f"{other} cannot be read: No such file or directory" in refusal(other)
    torch.save({"a": torch.zeros(2)}, other)
    assert start + "it contains no program" in refusal(other)
    assert "note: torch.export.save(program, 'model.pt2') writes such a file" in refusal(other)


def test_every_byte_that_is_cut_off_is_noticed(file: Path) -> None:
    data = file.read_bytes()
    for length in range(0, len(data), len(data) // 40):
        file.write_bytes(data[:length])
        assert "is not a program of torch.export" in refusal(file)


def test_nothing_is_unpickled_or_evaluated(file: Path) -> None:
    data = file.read_bytes()
    evil = b"cos\nsystem\n(S'touch " + str(file.parent / "ran").encode() + b"'\ntR."

    def pickled(name: str, content: bytes) -> bytes:
        return content.replace(b'"use_pickle": false', b'"use_pickle": true') if "config" in name else content

    def inputs(name: str, content: bytes) -> bytes:
        return evil if "sample_inputs" in name else content

    def size(name: str, content: bytes) -> bytes:
        call = f"__import__('os').system('touch {file.parent / 'ran'}')"
        return _replaced(content, "expr_str", call) if name.endswith("model.json") else content

    def target(name: str, content: bytes) -> bytes:
        return (
            content.replace(b"torch.ops.aten.relu.default", b"torch.hub.load")
            if name.endswith("model.json")
            else content
        )

    for change, reason in (
        (pickled, "'0.weight' is a Python object, which could run code when it is read"),
        (inputs, "its sample inputs are not tensors and numbers alone"),
        (size, "is not the expression of a size"),
        (target, "it calls torch.hub.load, which is not an operator"),
        (lambda name, content: content if "model.json" not in name else b"[]", "is not an object of JSON"),
        (lambda name, content: content if "model.json" not in name else b"{", "model.json is not JSON: "),
        (lambda name, content: None if "weight_0" in name else content, f"torch {torch.__version__} cannot read it: "),
    ):
        file.write_bytes(data)
        rewrite(file, change)
        assert reason in refusal(file)
    assert not (file.parent / "ran").exists()


def _replaced(content: bytes, key: str, text: str) -> bytes:
    """Returns JSON with another text under each `key`."""

    def changed(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {name: text if name == key else changed(each) for name, each in tree.items()}
        return [changed(each) for each in tree] if isinstance(tree, list) else tree

    return json.dumps(changed(json.loads(content))).encode()
