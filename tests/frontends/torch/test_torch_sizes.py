"""Numbers computed from sizes, views by distances in memory, and shared heads, with open sizes and fixed ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
attention = torch.nn.functional.scaled_dot_product_attention

from mirstack.api.torch.backend import mirstack as backend  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def module_of(function: Callable[..., Any]) -> Any:
    class Module(torch.nn.Module):
        def forward(self, *inputs: Any) -> Any:
            return function(*inputs)

    return Module()


def interpreted(function: Callable[..., Any], example: Any, *inputs: Any, open_axis: int = 0) -> None:
    """Imports a function with an open axis and compares it with torch on inputs of other sizes."""
    size = torch.export.Dim("size", min=5, max=64)
    mod = mirstack.from_torch(module_of(function), (example,), dynamic_shapes=(({open_axis: size},),))
    run = mirstack.compile(mod, target="interp")
    for x in inputs:
        np.testing.assert_allclose(run(x.numpy()), function(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "factor",
    [
        lambda n: torch.sym_min(n, 5),
        lambda n: torch.sym_max(5, n) / 2,
        lambda n: math.ceil(n / 3) + math.floor(n * 1.5),
        lambda n: round(n / 2),  # To the even one of two, for 5 and 7.
        lambda n: torch.sym_sqrt(n) + math.trunc(n / 3),
        lambda n: torch.sym_ite(n == 7, n % 4, n + 1) - n // 2,
        lambda n: torch.sym_sum([n, n, 3]) * -n + torch.sym_float(n) ** 2,
        lambda n: torch.sym_ite(torch.sym_not((n > 5) & (n <= 8)), n * 2, n),
    ],
)
def test_numbers_that_are_computed_from_sizes(factor: Callable[[Any], Any]) -> None:
    interpreted(lambda x: x * factor(x.shape[0]), torch.ones(6, 2), *(torch.ones(n, 2) for n in (5, 7, 11)))


@pytest.mark.parametrize(
    "scatter",
    [
        lambda x: torch.select_scatter(x, x[:, 1] * 2, 1, 0),
        lambda x: torch.select_scatter(x, x[1] * 2, 0, -1),
        lambda x: torch.select_scatter(x, x[1] * 2, 0, 3),
        lambda x: torch.slice_scatter(x, x[1:3] * 2, 0, -4, -2),
        lambda x: torch.slice_scatter(x, x[2:] * 2, 0, 1, -1),
        lambda x: torch.slice_scatter(x, x[:, :1] * 2, 1, 1, 5),
    ],
)
def test_scatters_beside_open_sizes(scatter: Callable[[Any], Any]) -> None:
    interpreted(scatter, torch.rand(6, 2), *(torch.rand(n, 2) for n in (5, 7, 11)))


def test_fixed_dimensions_stay_known_beside_open_ones() -> None:
    layer = torch.nn.Linear(4, 6)
    run = torch.compile(lambda x: layer(x)[..., 2:] * 2, backend=backend, fullgraph=True, dynamic=True)
    with torch.no_grad():
        for rows, columns in ((3, 5), (2, 7)):
            x = torch.randn(rows, columns, 4)
            torch.testing.assert_close(run(x), layer(x)[..., 2:] * 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.as_strided(x.t() + 1, (6,), (1,)),  # In the order of x's memory, which x.t() + 1 has, too.
        lambda x: torch.as_strided(x.expand(1, 2, 3).transpose(0, 2) * 2, (2, 3), (3, 1)),
        lambda x: torch.as_strided(x * 1, (2, 2, 2), (1, 2, 1), 1),
        lambda x: torch.as_strided(torch.relu(x)[:, ::2], (2, 2), (2, 1)),  # Torch runs it: the view has gaps.
    ],
)
@pytest.mark.filterwarnings("ignore:the backend mirstack")
def test_views_by_distances_see_torch_s_memory(function: Callable[[Any], Any]) -> None:
    x = torch.randn(2, 3)
    run = torch.compile(function, backend=backend, fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(run(x), function(x))


def test_torch_runs_a_graph_whole_that_looks_at_memory_between_elements() -> None:
    run = torch.compile(lambda x: torch.as_strided(torch.relu(x)[:, ::2], (2, 2), (2, 1)) + 1, backend=backend)
    message = (
        "runs the whole graph by torch: aten.as_strided.default: the tensor has gaps between its elements in memory"
    )
    with torch.no_grad(), pytest.warns(UserWarning, match=message):
        run(torch.randn(2, 3))


def test_windows_of_open_sizes() -> None:
    interpreted(lambda x: x.unfold(1, 3, 2) * 2, torch.ones(2, 9, 2), torch.randn(2, 11, 2), open_axis=1)


def test_an_offset_of_an_open_size() -> None:
    interpreted(lambda x: torch.as_strided(x * 2, (3,), (1,), x.shape[0] - 3), torch.ones(6), torch.randn(9))


def test_queries_share_a_head_of_keys() -> None:
    """Keys and values of another batch or of one head are broadcast, with fixed sizes and an open one."""
    cases = (
        ((2, 4, 5, 8), (2, 1, 6, 8), (2, 1, 6, 8)), ((4, 5, 8), (2, 4, 6, 8), (6, 8)), ((1, 4, 5, 8), (3, 4, 6, 8), (3, 1, 6, 8)),
    )  # fmt: skip
    for shapes in cases:
        q, k, v = (torch.randn(shape) for shape in shapes)
        run = mirstack.compile(mirstack.from_torch(module_of(attention), (q, k, v)), target="interp")
        np.testing.assert_allclose(run(q.numpy(), k.numpy(), v.numpy()), attention(q, k, v).numpy(), atol=1e-5)
    batch = torch.export.Dim("batch", min=2, max=9)
    given = tuple(torch.randn(shape) for shape in cases[0])
    mod = mirstack.from_torch(module_of(attention), given, dynamic_shapes=(({0: batch},) * 3,))
    q, k, v = (torch.randn(3, *shape[1:]) for shape in cases[0])
    found = mirstack.compile(mod, target="interp")(q.numpy(), k.numpy(), v.numpy())
    np.testing.assert_allclose(found, attention(q, k, v).numpy(), atol=1e-5)


def test_queries_of_open_length_share_a_head_of_keys() -> None:
    batch, length = torch.export.Dim("batch", min=2, max=9), torch.export.Dim("length", min=2, max=64)
    heads = (4, 1, 1)
    given = tuple(torch.randn(2, head, 12, 8) for head in heads)
    mod = mirstack.from_torch(module_of(attention), given, dynamic_shapes=(({0: batch, 2: length},) * 3,))
    q, k, v = (torch.randn(3, head, 7, 8) for head in heads)
    found = mirstack.compile(mod, target="interp")(q.numpy(), k.numpy(), v.numpy())
    np.testing.assert_allclose(found, attention(q, k, v).numpy(), atol=1e-5)
