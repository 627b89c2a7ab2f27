"""The example models: native code agrees with the interpreter at reduced size; their text, weights and command line."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.examples.models import __main__ as command
from mirstack.examples.models.builder import Model
from mirstack.examples.models.registry import MODELS, build, options_of
from mirstack.examples.models.summary import summarize
from safetensors.numpy import load_file

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "test_images.npz"
LENET_ACCURACY = 352 / 360

REDUCED: dict[str, dict[str, float]] = {
    "mlp": {"batch": 3, "image": 14},
    "lenet": {"batch": 5},
    "resnet18": {"image": 32, "width": 1 / 8, "classes": 10},
    "resnet50": {"image": 32, "width": 1 / 8, "classes": 10},
    "mobilenet": {"image": 32, "width": 1 / 8, "classes": 10},
    "squeezenet": {"image": 32, "width": 1 / 8, "classes": 10},
    "vgg16": {"image": 32, "width": 1 / 8, "classes": 10},
    "dcgan": {"batch": 2, "width": 1 / 16, "code": 20},
    "lstm": {"batch": 2, "sequence": 5, "inputs": 12, "hidden": 20},
    "bert": {"sequence": 16, "hidden": 48, "heads": 4, "layers": 2},
    "gpt": {"batch": 2, "sequence": 16, "hidden": 48, "heads": 4},
}
"""Sizes that compile in a second or two."""


def written(folder: Path, name: str, **sizes: float) -> Path:
    return build(name, 0, **sizes).write(folder, name)


def arguments(path: Path, seed: int = 0) -> list[np.ndarray]:
    params = mirstack.compile(path, "interp").params
    generator = np.random.default_rng(seed)
    return [generator.random([int(n) for n in param.shape]).astype(param.dtype) for param in params]


def results(path: Path, target: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
    found = mirstack.compile(path, target)(*inputs)
    return list(found) if isinstance(found, tuple) else [found]


def test_every_model_has_a_reduced_size():
    assert REDUCED.keys() == MODELS.keys()


@pytest.mark.parametrize("name", MODELS)
def test_native_agrees_with_the_interpreter(name: str, tmp_path: Path):
    path = written(tmp_path, name, **REDUCED[name])
    inputs = arguments(path)
    for native, meant in zip(results(path, "cpu", inputs), results(path, "interp", inputs), strict=True):
        assert np.isfinite(meant).all()
        assert meant.std() > 1e-4, "a model whose result does not vary tells nothing"
        np.testing.assert_allclose(native, meant, rtol=1e-4, atol=1e-5 * float(np.abs(meant).max()))


@pytest.mark.parametrize("name", MODELS)
def test_the_text_prints_as_itself(name: str, tmp_path: Path):
    """What mir-opt prints of a model reads as the same module."""
    from mirstack.parser import print_mir

    path = written(tmp_path, name, **REDUCED[name])
    printed = print_mir(mirstack.load(path))
    assert print_mir(mirstack.parse(printed, directory=tmp_path)) == printed


def test_published_sizes(tmp_path: Path):
    """Parameters as the papers' implementations count them; running means and variances are no parameters there."""
    counts = {
        "mlp": 109_386,
        "resnet18": 11_689_512,
        "resnet50": 25_557_032,
        "mobilenet": 4_231_976,
        "squeezenet": 1_235_496,
        "bert": 7_087_872,
        "gpt": 7_087_872,
    }
    for name, count in counts.items():
        weights = build(name).weights
        learned = (a.size for w, a in weights.items() if a.dtype.kind == "f" and "moving" not in w)
        assert sum(learned) == count, name


def test_arithmetic(tmp_path: Path):
    """Multiplications and additions of the published sizes, by the formulas of each layer."""
    model = build("lstm")
    found = summarize(model, mirstack.load(model.write(tmp_path, "lstm")))
    assert (found.flops, found.calls) == (2 * 4 * 256 * (128 + 256), 32)
    model = build("bert")
    found = summarize(model, mirstack.load(model.write(tmp_path, "bert")))
    assert found.flops == 2 * 128 * 768 * 768 * 12 + 2 * 2 * 12 * 128 * 128 * 64
    model = build("mlp")
    found = summarize(model, mirstack.load(model.write(tmp_path, "mlp")))
    assert (found.flops, found.ops, found.calls) == (2 * (784 * 128 + 128 * 64 + 64 * 10), 10, 1)


def test_one_seed_is_one_model():
    first, same, other = (build("mlp", seed).weights["fc1_weight"] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_weights_are_a_safetensors_file(tmp_path: Path):
    model = build("gpt", 0, **REDUCED["gpt"])
    model.write(tmp_path, "gpt")
    read = load_file(tmp_path / "gpt.safetensors")
    assert read.keys() == model.weights.keys()
    for name, array in model.weights.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_a_weight_has_one_name():
    model = Model()
    model.normal("bias", 4)
    with pytest.raises(ValueError, match="there are two weights called bias"):
        model.normal("bias", 4)


def test_lenet_is_as_accurate_as_its_trainer_measured(tmp_path: Path):
    data = np.load(DIGITS, allow_pickle=False)
    images, labels = data["images"], data["labels"]
    path = written(tmp_path, "lenet", batch=len(images))
    pixels = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    predictions = mirstack.compile(path)(pixels).argmax(axis=1)
    assert (predictions == labels).mean() == pytest.approx(LENET_ACCURACY)


def test_a_token_does_not_see_those_after_it(tmp_path: Path):
    path = written(tmp_path, "gpt", **REDUCED["gpt"])
    model = mirstack.compile(path)
    (x,) = arguments(path)
    changed = x.copy()
    changed[:, 9:] += 1
    before, after = model(x).copy(), model(changed)
    np.testing.assert_array_equal(before[:, :9], after[:, :9])
    assert (before[:, 9:] != after[:, 9:]).any(axis=-1).all()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "new"
    assert command.main(["resnet18", "--out", str(folder), "--image", "32", "--width", "0.125", "--seed", "7"]) == 0
    assert "parameters, 71 operators" in capsys.readouterr().out
    assert {path.name for path in folder.iterdir()} == {"resnet18.mir", "resnet18.safetensors"}
    text = (folder / "resnet18.mir").read_text()
    assert text == build("resnet18", 7, image=32, width=0.125).text("resnet18.safetensors")
    assert "nn.batch_norm(%0, meta[relay.Constant][bn0_gamma]" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["lenet", "--out", "x", "--image", "32"], "unrecognized arguments: --image 32"),
        (["vgg16", "--out", "x", "--image", "0"], "'0' is not a whole number above 0"),
        (["vgg16", "--out", "x", "--width", "wide"], "'wide' is not a number above 0"),
        (["bert", "--out", "x", "--heads", "7"], "7 heads do not divide a hidden size of 768"),
        (["bert", "--out", "/dev/null/x"], "cannot be written: Not a directory"),
        (["mlp"], "the following arguments are required: --out"),
    ],
)
def test_a_wrong_command_line_is_told(given: list[str], message: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        command.main(given)
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_options_are_documented():
    for name in MODELS:
        for option in options_of(name):
            assert option.help
            assert f"`--{option.name}`" in (Path(inspect.getfile(command)).parent / "README.md").read_text()
