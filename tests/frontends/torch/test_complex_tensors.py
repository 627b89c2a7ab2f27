"""Fourier transforms and complex numbers between them, imported as pairs of real tensors: against torch."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
fft = torch.fft

WINDOW = torch.hann_window(4)
TURNS = torch.polar(torch.ones(3, 8), torch.arange(24.0).reshape(3, 8))

CASES: dict[str, Callable[[Any], Any]] = {
    "abs": lambda x: fft.rfft(x).abs(),
    "add": lambda x: (fft.rfft(x) + 1 - fft.rfft(x * x) * 2).real,
    "add_scaled": lambda x: torch.add(fft.fft(x), fft.fft(x * x), alpha=2).imag,
    "angle": lambda x: fft.fft2(x).angle(),
    "cat": lambda x: torch.view_as_real(torch.cat([fft.rfft(x), x[:, :2]], 1)),
    "complex": lambda x: torch.view_as_real(torch.complex(x, x + 1) * 2j),
    "conj": lambda x: fft.fft(x).conj().imag + fft.fft(x).conj_physical().imag,
    "constant": lambda x: torch.view_as_real(x * TURNS),
    "divide": lambda x: torch.view_as_real(fft.fft(x) / (fft.fft(x * x) + 1j) + fft.fft(x) / 3 + 1 / fft.fft(x + 4)),
    "exp": lambda x: torch.view_as_real(torch.exp(fft.fft(x) / 8)),
    "fftshift": lambda x: torch.view_as_real(fft.fftshift(fft.fft2(x, norm="forward"))),
    "hfft": lambda x: fft.hfft(fft.fft(x)),
    "ifft": lambda x: torch.view_as_real(fft.ifft(x + 0j, norm="forward")),
    "ihfft": lambda x: fft.ihfft(x, norm="ortho").imag,
    "irfft2": lambda x: fft.irfft2(fft.rfft2(x, norm="ortho"), s=(3, 7), norm="backward"),
    "istft": lambda x: torch.istft(torch.stft(x, 4, window=WINDOW, return_complex=True), 4, window=WINDOW),
    "length": lambda x: fft.rfft(x, n=11, dim=0).real + fft.fft(x, n=2, dim=0)[:1].imag,
    "log": lambda x: torch.view_as_real(torch.log(fft.fft(x))),
    "matmul": lambda x: torch.view_as_real(fft.rfft(x) @ fft.rfft(x).mT.conj() @ x[:, :3].to(torch.complex64)),
    "one_axis": lambda x: fft.fft(x, dim=0).imag,
    "pad": lambda x: torch.view_as_real(torch.nn.functional.pad(fft.fft(x), (1, 2), value=3.0)),
    "polar": lambda x: torch.view_as_real(torch.polar(x, x)),
    "power": lambda x: (fft.rfft(x) ** 3).imag,
    "rotary": lambda x: torch.view_as_real(torch.view_as_complex(x.reshape(3, 4, 2)) * TURNS[:, :4]).flatten(1),
    "sgn": lambda x: torch.view_as_real(torch.sgn(fft.fft(x - x.mean(0)))),
    "shapes": lambda x: torch.view_as_real(fft.rfft(x).unsqueeze(0).expand(2, 3, 5).permute(1, 2, 0)[:, 1:, 0].flip(0)),
    "split": lambda x: torch.view_as_real(sum(fft.fft(x).split(4, 1))),
    "stack": lambda x: torch.stack([fft.rfft(x), fft.rfft(x * 2)]).sum(0).abs(),
    "stft": lambda x: torch.view_as_real(torch.stft(x, 4, window=WINDOW, return_complex=True, normalized=True)),
    "wide": lambda x: fft.fft(x.double()).to(torch.complex64).imag,
    "where": lambda x: torch.view_as_real(torch.where(x > 0, fft.fft(x), x + 0j)),
}


class Model(torch.nn.Module):
    """Computes a function."""

    def __init__(self, function: Callable[[Any], Any]):
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def agree(got: Any, want: Any, tolerance: float = 2e-5) -> None:
    want = want.resolve_neg().numpy()
    got = np.asarray(got)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * max(abs(want).max(), 1))


@pytest.mark.parametrize("name", sorted(CASES))
def test_equals_torch(name: str) -> None:
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(1))
    model = Model(CASES[name])
    agree(mirstack.compile(mirstack.from_torch(model, (x,)), "interp")(x.numpy()), model(x))


def test_magnitudes_do_not_overflow() -> None:
    x = torch.tensor([[3e30, 4e30], [3e-30, 4e-30], [0.0, 0.0], [float("inf"), 1.0]])
    model = Model(lambda x: torch.view_as_complex(x).abs())
    agree(mirstack.compile(mirstack.from_torch(model, (x,)))(x.numpy()), model(x), 1e-6)


def test_open_sizes() -> None:
    def function(x: Any) -> Any:
        spectrum = fft.rfft(x)
        return spectrum.abs(), fft.irfft(spectrum), fft.irfft2(fft.rfft2(x, norm="ortho"), s=x.shape, norm="ortho")

    rows, columns = torch.export.Dim("rows", min=2), torch.export.Dim("columns", min=4)
    program = mirstack.compile(mirstack.from_torch(Model(function), (torch.randn(3, 8),), ({0: rows, 1: columns},)))
    compiled = torch.compile(function, backend="mirstack", fullgraph=True, dynamic=True)
    for shape in ((3, 8), (5, 7), (2, 4)):
        x = torch.randn(shape)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.filterwarnings("error", message="the backend mirstack")
            for got, again, want in zip(program(x), compiled(x), function(x), strict=True):
                agree(got, want)
                agree(again, want)


def test_constants_that_are_written_to() -> None:
    model = Model(lambda x: torch.view_as_real(x * TURNS))
    model.register_buffer("turns", TURNS.clone())
    model.function = lambda x: torch.view_as_real(x * model.turns)
    compiled = torch.compile(model, backend="mirstack", fullgraph=True)
    x = torch.randn(3, 8)
    for _ in range(4):
        with torch.no_grad():
            agree(compiled(x), model(x))
            model.turns.mul_(2)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: torch.sin(fft.fft(x)).real, "aten.sin.default: there is no such operator here for complex tensors"),
        (lambda x: (fft.fft(x) ** 0.5).real, "of complex tensors only the powers 1, 2, 3 and 4 can be computed here"),
        (
            lambda x: torch.slice_scatter(fft.fft(x), x, 0).real,
            "of a real and a complex tensor it cannot be computed here",
        ),
        (lambda x: fft.fft(x + 1), "has elements of torch.complex64, which tensors here cannot have"),
    ],
)
def test_refusals(function: Callable[[Any], Any], reason: str) -> None:
    with pytest.raises(mirstack.MirError, match=re.escape(reason)):
        mirstack.from_torch(Model(function), (torch.randn(3, 8),))
