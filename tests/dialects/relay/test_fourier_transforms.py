"""Fourier transforms are their definition's sums: of exact waves, and of infinities and NaN as of other numbers."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from numpy.typing import NDArray

TYPES = ("float16", "float32", "float64")


def agree(text: str, *arrays: NDArray[np.floating]) -> list[NDArray[np.floating]]:
    """The interpreter's results, which native code's are compared with."""

    def results(target: str, opt_level: int = 3) -> list[NDArray[np.floating]]:
        found = mirstack.compile(mirstack.parse(text), target, opt_level=opt_level)(*arrays)  # type: ignore[call-overload]
        return list(found) if isinstance(found, tuple) else [found]

    wanted = results("interp")
    for level in (0, 3):
        for old, new in zip(wanted, results("cpu", level), strict=True):
            bound = 1e-2 if old.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(new.astype(np.float64), old.astype(np.float64), bound, bound)
    return wanted


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("special", [0.0, np.inf, -np.inf, np.nan])
def test_transforms_of_special_values(dtype: str, special: float) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 2, 6)).astype(dtype)
    a[0, 3] = special
    signal = f"Tensor[(2, 6), {dtype}]"
    for inverse in ("False", "True"):
        real, _ = agree(f"def @main(%a: {signal}, %b: {signal}) {{ dft(%a, %b, inverse={inverse}) }}", a, b)
        assert np.isfinite(real[1]).all()
        assert np.isfinite(real[0]).all() == np.isfinite(special)
    agree(
        f"def @main(%a: {signal}, %w: Tensor[(3), {dtype}]) {{ stft(%a, %w, n_fft=3, hop_length=2, win_length=3) }}",
        a, b[0, :3],
    )  # fmt: skip


def test_transform_of_unknown_length() -> None:
    a, b = np.random.default_rng(1).standard_normal((2, 2, 7)).astype(np.float32)
    signal = "Tensor[(2, ?), float32]"
    real, imaginary = agree(f"def @main(%a: {signal}, %b: {signal}) {{ dft(%a, %b) }}", a, b)
    np.testing.assert_allclose(real + 1j * imaginary, np.fft.fft(a + 1j * b), 1e-4, 1e-4)


def test_waves_are_exact() -> None:
    """The sine of half a period is that of float64's π, far below what float32's is off by."""
    ones = np.ones(8, np.float32)
    text = "def @main(%x: Tensor[(8), float32]) { stft(%x, %x, n_fft=8, hop_length=8, win_length=8, onesided=False) }"
    result = mirstack.compile(mirstack.parse(text))(ones)
    np.testing.assert_allclose(result[1:, 0, 1], 0, atol=1e-6)
    assert result[4, 0, 1] == 0
