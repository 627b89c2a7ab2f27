"""`mir-quantize`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.driver.mir_quantize import main

ROOT = Path(__file__).parents[2]
MODEL = str(ROOT / "examples/digits/digits.mir")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images = np.load(ROOT / "examples/digits/test_images.npz")
    path = tmp_path_factory.mktemp("samples") / "samples.npz"
    np.savez(path, image=(images["images"][:40] / 16).astype("float32"), labels=images["labels"][:40])
    return path


def test_what_is_written_runs(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "q.mir"
    assert main([MODEL, "--data", str(data), "--max-drop", "0.5%", "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert (
        "3 layers, 3 quantized, 0 in floats" in printed and "40 samples: accuracy drops by 0 (at most 0.005)" in printed
    )
    assert f"wrote {out} and {tmp_path / 'q.safetensors'}" in printed
    image = np.load(data)["image"][:1]
    exact, found = mirstack.compile(MODEL), mirstack.compile(out)
    np.testing.assert_allclose(np.asarray(found(image)), np.asarray(exact(image)), atol=0.02)


def test_several_files_are_one(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([MODEL, "--data", str(data), "--data", str(data), "--metric", "error"]) == 0
    assert "80 samples: error drops by" in capsys.readouterr().out


def test_weights_need_no_samples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "w.mir"
    assert main([MODEL, "--weights", "int8", "--group", "64", "-o", str(out)]) == 0
    assert " samples: " not in capsys.readouterr().out and out.read_text().count("nn.matmul_nbits") == 3


def test_usage(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, picture=np.zeros((2, 64), "float32"))
    odd = tmp_path / "odd.npz"
    np.savez(odd, image=np.zeros((2, 9), "float32"), labels=np.zeros(2))
    for arguments, message in (
        ([MODEL], "samples are missing: --data FILE.npz, with an array for each parameter"),
        ([MODEL, "--data", "none.npz"], "none.npz: no such file"),
        ([MODEL, "--data", str(data), "--data", str(other)], f"{other}: holds picture, and {data} image, labels"),
        ([MODEL, "--data", str(data), "--data", str(odd)], f"{odd}: its arrays do not go with those of {data}"),
        ([MODEL, "--data", str(data), "-o", "q.onnx"], "q.onnx: the result is a .mir file in a folder that exists"),
        ([MODEL, "--max-drop", "two"], "'two' is not a part, such as 0.5% or 0.005"),
        ([MODEL, "--calibrat"], "expected one argument"),
    ):
        try:
            code = main(arguments)
        except SystemExit as error:
            code = error.code
        assert code == 2 and message in capsys.readouterr().err


def test_samples_that_do_not_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, picture=np.zeros((2, 64), "float32"))
    assert main([MODEL, "--data", str(other)]) == 1
    error = capsys.readouterr().err
    assert "error: there is no parameter 'picture'" in error and "note: there are image" in error


def test_a_folder_that_cannot_be_written(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.safetensors").mkdir()
    assert main([MODEL, "--weights", "int4", "-o", str(tmp_path / "q.mir")]) == 2
    assert "cannot be written: Is a directory" in capsys.readouterr().err
