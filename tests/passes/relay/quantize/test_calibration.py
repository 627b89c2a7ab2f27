"""Ranges that bytes represent, by each method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mirstack.passes.relay.quantize.calibration import METHODS, Affine8, Calibration, Method


def calibrated(method: Method, values: np.ndarray) -> Affine8:
    calibration = Calibration(method)
    calibration.add(values)
    if calibration.needs_counts:
        calibration.count(values)
    return calibration.finish()


def restored(affine: Affine8, values: np.ndarray) -> np.ndarray:
    stored = np.clip(np.rint(values / affine.scale) + affine.zero_point, 0, 255)
    return (stored - affine.zero_point) * affine.scale


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40))
def test_zero_is_exact_and_the_range_is_covered(numbers: list[float]) -> None:
    values = np.array(numbers, np.float32)
    affine = calibrated("minmax", values)
    assert restored(affine, np.zeros(1)) == 0
    assert (np.abs(restored(affine, values) - values) <= affine.scale * 1.01 + 1e-30).all()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_but_zeros(method: Method) -> None:
    assert calibrated(method, np.zeros(9, np.float32)) == Affine8(1.0, 0)


@pytest.mark.parametrize("method", ["percentile", "entropy", "mse"])
def test_outliers_are_left_out(method: Method) -> None:
    values = np.random.default_rng(0).normal(0, 1, 200_000).astype(np.float32)
    values[0] = 20
    wide, narrow = calibrated("minmax", values), calibrated(method, values)
    assert narrow.scale < 0.9 * wide.scale
    usual = values[1:]
    assert ((restored(narrow, usual) - usual) ** 2).mean() < 0.9 * ((restored(wide, usual) - usual) ** 2).mean()


def test_the_square_error_is_least() -> None:
    values = np.random.default_rng(0).standard_cauchy(50_000).clip(-300, 300).astype(np.float32)
    errors = {method: ((restored(calibrated(method, values), values) - values) ** 2).mean() for method in METHODS}
    assert min(errors.values()) == pytest.approx(errors["mse"], rel=0.05)


@pytest.mark.parametrize("method", ["entropy", "mse"])
def test_an_even_distribution_keeps_its_range(method: Method) -> None:
    values = np.linspace(-1, 3, 100_000).astype(np.float32)
    assert calibrated(method, values).scale == pytest.approx(4 / 255, rel=0.05)
