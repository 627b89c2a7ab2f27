"""Graphs with operators that cannot be imported: torch runs these, the parts between are compiled, and a warning lists them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")

from mirstack.api.torch import program  # noqa: E402
from mirstack.api.torch.backend import mirstack  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Compiles a function, calls it twice from the same state of the random generator, and compares with torch."""
    run = torch.compile(function, backend=mirstack, fullgraph=True, **options)
    with torch.no_grad():
        with pytest.warns(
            UserWarning, match="leaves operators to torch, and compiles the parts between them: "
        ) as found:
            run(*inputs)
        torch.manual_seed(1)
        got = run(*inputs)
        torch.manual_seed(1)
        want = function(*inputs)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)
    return str(found[0].message), run


def test_an_operator_between_others() -> None:
    def function(x: Any) -> Any:
        y = (x * 2).relu()
        z = torch.special.bessel_j0(y)
        return z + y.sum(), y, None, x.shape[0]

    text, _ = compiled(function, torch.randn(5, 7))
    assert text.endswith("aten.special_bessel_j0.default: there is no such operator here")


def test_compiled_parts_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    read = program.Program.read

    def counted(self: Any) -> None:
        read(self)
        counts.append(len(self.module.graph.nodes))

    monkeypatch.setattr(program.Program, "read", counted)
    compiled(lambda x: torch.special.bessel_j0(x.exp() + 1).cos() * x.sum(), torch.randn(9))
    assert counts == [
        5,
        5,
    ]  # x, exp, add, sum, and the results; that of bessel_j0 and the sum, cos, mul, and the results.


def test_random_numbers_are_drawn_as_torch_draws_them() -> None:
    def function(x: Any) -> Any:
        a = torch.rand(4) + x
        b = torch.bernoulli(x.abs().clamp(max=1))
        return a, b, torch.randn(2) * 2, torch.randperm(5), torch.nn.functional.dropout(x, 0.5, training=True)

    text, _ = compiled(function, torch.randn(3, 4))
    assert "aten.rand.default: there is no such operator here" in text
    assert "dropout while training draws random numbers" in text


def test_complex_numbers() -> None:
    def turned(x: Any, c: Any) -> Any:
        return torch.view_as_real(torch.view_as_complex(x.reshape(2, 3, 2, 2)) * c).flatten(2) + 1

    def shared(x: Any) -> Any:
        found = torch.fft.rfft(x * 2)
        return (
            found.abs() + 1,
            found,
            torch.logdet(torch.view_as_real(torch.fft.fft(x)).sum(0)[:2].abs() + torch.eye(2)),
        )

    text, _ = compiled(shared, torch.randn(3, 8))
    assert "result '_fft_r2c' has elements of torch.complex64, which tensors here cannot have" in text
    assert "aten.abs.default: operators that torch runs take or return its complex tensors" in text
    assert "aten.view_as_real" not in text
    text, _ = compiled(turned, torch.randn(2, 3, 4), torch.polar(torch.ones(3, 2), torch.arange(6.0).reshape(3, 2)))
    assert "has elements of torch.complex64, which tensors here cannot have" in text


def test_several_results_and_open_sizes() -> None:
    def function(x: Any) -> Any:
        values, places = (x + 1).kthvalue(2, dim=1)
        return values * x.shape[0], places + 1, x.shape[1] * 2, x.reshape(x.shape[0] * x.shape[1])

    _, run = compiled(function, torch.randn(5, 7), dynamic=True)
    with torch.no_grad():
        for rows, columns in ((2, 9), (8, 3)):
            x = torch.randn(rows, columns)
            torch.testing.assert_close(run(x), function(x))


def test_sizes_that_data_decides() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        compiled(lambda x: torch.unique(x.round()) * 2 + 1, torch.randn(9))


def test_branches() -> None:
    def function(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x * 2,)) * 3

    compiled(function, torch.randn(4))


def test_many_reasons_are_counted() -> None:
    def function(x: Any) -> Any:
        special = torch.special
        many = (
            special.i1, special.i1e, special.i0e, special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1,
            special.erfcx, torch.lgamma, torch.digamma, special.modified_bessel_i0, special.modified_bessel_k0,
        )  # fmt: skip
        return [each(x) for each in many]

    text, _ = compiled(function, torch.rand(4) + 0.5)
    assert text.endswith(" more") and text.count(";") == program.SHOWN_REASONS
