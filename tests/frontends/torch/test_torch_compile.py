"""`torch.compile(model, backend="mirstack")`: results, dynamic shapes, parameters that change, training."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
nn = torch.nn

from mirstack.api.torch.backend import mirstack  # noqa: E402


def network() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)).eval()


def close(got: Any, want: Any) -> None:
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def test_the_backend_is_registered_by_name() -> None:
    found = [each for each in entry_points(group="torch_dynamo_backends") if each.name == "mirstack"]
    assert found[0].load() is mirstack
    model, x = network(), torch.randn(3, 8)
    with torch.no_grad():
        close(torch.compile(model, backend="mirstack", fullgraph=True)(x), model(x))


def test_dynamic_shapes() -> None:
    model = network()
    compiled = torch.compile(model, backend=mirstack, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for rows in (3, 5, 9):
            x = torch.randn(rows, 8)
            close(compiled(x), model(x))
            y = torch.randn(8, rows).t()  # Not contiguous.
            close(compiled(y), model(y))


def test_graph_breaks() -> None:
    def function(x: Any) -> Any:
        y = x.exp()
        torch._dynamo.graph_break()
        return y + x, x.shape[0], None

    with torch.no_grad():
        x = torch.randn(3, 4)
        got = torch.compile(function, backend=mirstack)(x)
    close(got[0], x.exp() + x)
    assert got[1:] == (3, None)


def test_parameters_that_change_are_read_again() -> None:
    model, x = network(), torch.randn(3, 8)
    compiled = torch.compile(model, backend=mirstack, fullgraph=True)
    with torch.no_grad():
        close(compiled(x), model(x))
        model[0].weight.mul_(2)
        close(compiled(x), model(x))
        model[3].bias = nn.Parameter(torch.randn(4))
        close(compiled(x), model(x))


def test_dtypes_and_writes() -> None:
    def function(x: Any, n: Any) -> Any:
        x.add_(1)
        return x.to(torch.bfloat16) * 2, n // 2, x > 0

    with torch.no_grad():
        x, n = torch.randn(3, 4), torch.arange(5)
        again = x.clone()
        got, want = torch.compile(function, backend=mirstack, fullgraph=True)(x, n), function(again, n)
    close(x, again)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.float().numpy(), b.float().numpy())


def test_training_is_left_to_torch_with_a_warning() -> None:
    model, x = network(), torch.randn(3, 8)
    compiled = torch.compile(model, backend=mirstack)
    with pytest.warns(UserWarning, match="the backend mirstack compiles inference alone"):
        compiled(x).sum().backward()
    assert model[0].weight.grad is not None
