"""`mirstack.quantize`: results close to the float graph's, layers kept in floats, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import MirError
from mirstack.api.quantize import Quantized
from mirstack.dialects.side_file import write_safetensors
from mirstack.examples.models.registry import build

ROOT = Path(__file__).parents[2]
IMAGES = np.load(ROOT / "examples/digits/test_images.npz")
PIXELS = (IMAGES["images"] / 16).astype("float32")

BLOCK = """
#[version = "0.0.5"]
#[constants = "block.npz"]
def @main(%x: Tensor[(1, 4, 8, 8), float32]) {
  %0 = nn.conv2d(%x, meta[relay.Constant][w0], padding=[1, 1, 1, 1], kernel_size=[3, 3], channels=8);
  %1 = nn.batch_norm(%0, meta[relay.Constant][s], meta[relay.Constant][b], meta[relay.Constant][m], meta[relay.Constant][s]);
  %2 = nn.max_pool2d(nn.relu(%1.0), pool_size=[2, 2], strides=[2, 2]);
  %3 = add(nn.conv2d(%2, meta[relay.Constant][w1], kernel_size=[1, 1], channels=8), meta[relay.Constant][c]);
  %4 = nn.relu(add(%3, %2));
  %5 = add(%4, meta[relay.Constant][c]);
  %6 = nn.conv2d(%5, meta[relay.Constant][w1], kernel_size=[1, 1], channels=8);
  %7 = nn.batch_flatten(nn.global_avg_pool2d(concatenate((%6, %4), axis=1)));
  nn.matmul(%7, meta[relay.Constant][w2])
}
"""


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("block")
    rng = np.random.default_rng(3)

    def drawn(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)

    np.savez(
        folder / "block.npz", w0=drawn(8, 4, 3, 3), w1=drawn(8, 8, 1, 1), w2=drawn(16, 5), m=drawn(8), b=drawn(8),
        s=rng.uniform(0.5, 2, 8).astype(np.float32), c=rng.standard_normal((8, 1, 1)).astype(np.float32),
    )  # fmt: skip
    return mirstack.parse(BLOCK, directory=folder)


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    return np.random.default_rng(4).standard_normal((24, 4, 8, 8)).astype(np.float32)


def operators(found: Quantized) -> set[str]:
    return {op.name.removeprefix("relay.") for op in found.module.walk()}


def test_a_block_is_computed_on_bytes(block: Any, samples: np.ndarray) -> None:
    found = mirstack.quantize(block, {"x": samples}, metric="error")
    assert found.drop == found.error < 0.03 and found.samples == 24
    assert [layer.kept for layer in found.layers] == [False] * 4
    assert [layer.error for layer in found.layers] == sorted((layer.error for layer in found.layers), reverse=True)
    assert {"nn.conv2d", "nn.dense", "nn.matmul", "nn.relu", "add"}.isdisjoint(operators(found))
    assert {"qnn.conv2d", "qnn.dense", "qnn.add", "qnn.concatenate"} <= operators(found)
    exact, bytes_ = mirstack.compile(block), mirstack.compile(found.module)
    wanted, got = (np.concatenate([np.asarray(p(x[None])) for x in samples]) for p in (exact, bytes_))
    assert np.linalg.norm(wanted - got) / np.linalg.norm(wanted) == pytest.approx(found.error, rel=1e-5)


def test_the_interpreter_and_native_code_agree(block: Any, samples: np.ndarray) -> None:
    found = mirstack.quantize(block, {"x": samples})
    native, meant = mirstack.compile(found.module), mirstack.compile(found.module, target="interp")
    for x in samples[:4]:
        np.testing.assert_allclose(np.asarray(native(x[None])), np.asarray(meant(x[None])), rtol=1e-6)


@pytest.mark.parametrize("method", ["minmax", "percentile", "entropy", "mse"])
def test_digits_are_classified_as_in_floats(method: Any, tmp_path: Path) -> None:
    model = build("lenet")
    write_safetensors(tmp_path / "lenet.safetensors", model.weights)
    module = mirstack.parse(model.text("lenet.safetensors"), directory=tmp_path)
    found = mirstack.quantize(module, {"data": PIXELS.reshape(-1, 1, 8, 8)}, calibrate=method)
    assert found.metric == "agreement" and found.drop <= 0.02 and found.samples == 360


def test_labels_measure_accuracy() -> None:
    path = ROOT / "examples/digits/digits.mir"
    found = mirstack.quantize(path, {"image": PIXELS.reshape(-1, 64)}, labels=IMAGES["labels"], max_drop=0.005)
    assert found.metric == "accuracy" and found.drop <= 0.005


def test_the_fewest_layers_stay_in_floats(block: Any, samples: np.ndarray) -> None:
    everything = mirstack.quantize(block, {"x": samples}, metric="error")
    limit = everything.error * 0.8
    found = mirstack.quantize(block, {"x": samples}, metric="error", max_drop=limit)
    assert 0 < sum(layer.kept for layer in found.layers) < 4 and found.error <= limit
    none = mirstack.quantize(block, {"x": samples}, metric="error", max_drop=0)
    assert all(layer.kept for layer in none.layers) and none.error == 0 and "nn.conv2d" in operators(none)


@pytest.mark.parametrize(("weights", "most"), [("int8", 0.01), ("int4", 0.15)])
def test_weights_alone(weights: Any, most: float) -> None:
    path = ROOT / "examples/digits/digits.mir"
    found = mirstack.quantize(path, {"image": PIXELS[:32].reshape(32, 1, 64)}, weights=weights, group=16)
    assert 0 < found.error < most and "nn.matmul_nbits" in operators(found) and len(found.layers) == 3
    blind = mirstack.quantize(path, weights=weights, group=16)
    assert blind.samples == 0 and "nn.matmul_nbits" in operators(blind)


def test_open_batches_are_slices_of_the_samples() -> None:
    x = mirstack.relay.var("x", shape=(mirstack.relay.Any(), 8))
    weight = mirstack.relay.const(np.eye(8, dtype=np.float32))
    module = mirstack.IRModule.from_expr(mirstack.relay.nn.dense(x, weight))
    samples = np.random.default_rng(0).random((5, 8), dtype=np.float32)
    found = mirstack.quantize(module, {"x": samples})
    assert found.samples == 5 and found.error < 0.01
    np.testing.assert_allclose(np.asarray(mirstack.compile(found.module)(samples)), samples, atol=0.01)


REFUSED = [
    ({}, "there are no samples for parameter 'x'"),
    ({"y": np.zeros((2, 4, 8, 8))}, "there is no parameter 'y'"),
    ({"x": np.zeros((2, 4, 8))}, "the samples of 'x' are of shape [2, 4, 8], not (samples, 1, 4, 8, 8)"),
    ({"x": np.full((2, 4, 8, 8), np.nan)}, "the samples of 'x' hold numbers that are not finite"),
    ({"x": np.zeros((0, 4, 8, 8))}, "the data have no samples"),
]


@pytest.mark.parametrize(("data", "message"), REFUSED)
def test_data_that_do_not_fit(block: Any, data: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(MirError) as error:
        mirstack.quantize(block, data)
    assert message in str(error.value)


def test_parameters_with_different_numbers_of_samples() -> None:
    x, y = (mirstack.relay.var(name, shape=(1, 4)) for name in "xy")
    weight = mirstack.relay.const(np.eye(4, dtype=np.float32))
    module = mirstack.IRModule.from_expr(mirstack.relay.nn.dense(mirstack.relay.add(x, y), weight))
    with pytest.raises(MirError, match="parameters have different numbers of samples: 2 for 'x', 3 for 'y'"):
        mirstack.quantize(module, {"x": np.zeros((2, 4)), "y": np.zeros((3, 4))})


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.zeros((2, 4)), "the samples of 'x' are of dtype float64, not int32"),
        (np.full((2, 4), 1 << 40), "the samples of 'x' hold numbers that int32 does not represent"),
        (np.full((2, 4), "a"), "the samples of 'x' are of dtype <U1, not int32"),
    ],
)
def test_samples_of_another_dtype(samples: np.ndarray, message: str) -> None:
    x = mirstack.relay.var("x", shape=(1, 4), dtype="int32")
    real = mirstack.relay.cast(x, "float32")
    weight = mirstack.relay.const(np.eye(4, dtype=np.float32))
    module = mirstack.IRModule.from_expr(mirstack.relay.nn.dense(real, weight))
    with pytest.raises(MirError, match=message):
        mirstack.quantize(module, {"x": samples})


def test_graphs_without_layers() -> None:
    module = mirstack.parse("def @main(%x: Tensor[(1, 4), float32]) { nn.relu(%x) }")
    with pytest.raises(
        MirError,
        match="no layer of 'main' can be quantized: it has no convolution or dense layer with a constant weight",
    ):
        mirstack.quantize(module, {"x": np.zeros((2, 4))})
    with pytest.raises(
        MirError, match="no layer of 'main' can be quantized: it has no dense layer with a constant weight"
    ):
        mirstack.quantize(module, weights="int4")


def test_functions_of_tir_are_refused() -> None:
    module = mirstack.parse('@T.prim_func\ndef f(A: T.Buffer((4,), "float32")):\n    A[0] = 1.0\n')
    with pytest.raises(MirError, match="'f' is not a function of Relay"):
        mirstack.quantize(module, {"A": np.zeros((2, 4))})


def test_labels_that_do_not_fit(block: Any, samples: np.ndarray) -> None:
    with pytest.raises(MirError, match="there are 2 labels for 24 samples"):
        mirstack.quantize(block, {"x": samples}, labels=[0, 1])
    with pytest.raises(MirError, match="accuracy is measured by labels, and there are none"):
        mirstack.quantize(block, {"x": samples}, metric="accuracy")


def test_wrong_arguments(block: Any) -> None:
    wrong: Any
    for wrong, message in (
        ({"calibrate": "minmix"}, "there is no calibration 'minmix'; did you mean 'minmax'"),
        ({"metric": "acuracy"}, "there is no metric 'acuracy'; did you mean 'accuracy'"),
        ({"weights": "int3"}, "weights are int8 or int4, not 'int3'"),
        ({"max_drop": -1}, "max_drop is a part, such as 0.005, not -1"),
    ):
        with pytest.raises(ValueError, match=message):
            mirstack.quantize(block, {}, **wrong)
    with pytest.raises(MirError, match="there are no samples to calibrate on"):
        mirstack.quantize(block)
    with pytest.raises(MirError, match="groups of 48 numbers cannot be stored"):
        mirstack.quantize(block, weights="int4", group=48)
