"""Training by compiled gradients: small classifiers learn the digits, and on bytes they classify as in floats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.examples.models.mobilenet import BLOCKS
from mirstack.examples.models.train_classifiers import Digits, classes, enlarged, load_digits, main, shifted, train

SIDE = 16
SIZES: dict[str, dict[str, Any]] = {
    "resnet18": {"units": (1, 1), "width": 0.25},
    "mobilenet": {"blocks": BLOCKS[:3], "width": 0.5},
}
"""Small ones of each kind: residual sums, and convolutions of single channels."""


@pytest.fixture(scope="module")
def digits() -> Digits:
    return load_digits(SIDE)


@pytest.mark.parametrize("name", SIZES)
def test_small_ones_agree_on_bytes(name: str, digits: Digits, tmp_path: Path) -> None:
    losses: list[str] = []
    model = train(name, digits, 10, rate=6e-3, report=losses.append, **SIZES[name])
    assert len(losses) == 10 and float(losses[-1].split()[3].rstrip(",")) < 0.4
    path = model.write(tmp_path, name)
    exact = classes(mirstack.compile(path), digits.test_images)
    assert (exact == digits.test_labels).mean() > 0.9
    result = mirstack.quantize(path, {"data": digits.images[:32]})
    found = classes(mirstack.compile(result.module), digits.test_images)
    assert (exact == found).mean() >= 0.98


def test_images_are_enlarged_between_their_pixels() -> None:
    image = np.zeros(64)
    image[9] = 16
    (found,) = enlarged(image[None], 16)
    assert found.shape == (3, 16, 16) and found.max() == np.float32(0.75 * 0.75)
    assert found[0, 1:5, 2].tolist() == pytest.approx([0.1875, 0.5625, 0.5625, 0.1875])


def test_images_are_moved_each_by_itself() -> None:
    images = np.random.default_rng(0).random((20, 3, 16, 16), dtype=np.float32)
    moved = shifted(images, np.random.default_rng(1))
    assert moved.shape == images.shape

    def offset(old: np.ndarray, new: np.ndarray) -> tuple[int, int]:
        inner = new[:, 1:-1, 1:-1]
        steps = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
        return next((dy, dx) for dy, dx in steps if (inner == old[:, 1 + dy : 15 + dy, 1 + dx : 15 + dx]).all())

    assert len({offset(old, new) for old, new in zip(images, moved, strict=True)}) > 3


def test_the_command_takes_models_that_it_knows(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["resnet17", "--out", "x"])
    assert "invalid choice: 'resnet17'" in capsys.readouterr().err
