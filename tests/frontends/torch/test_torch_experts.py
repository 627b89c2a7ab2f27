"""What mixtures of experts compute, with an open number of rows: histograms, products of groups, writes at places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
aten = torch.ops.aten

from mirstack.frontends.torch.importer import import_graph  # noqa: E402
from mirstack.frontends.torch.tensors import to_numpy  # noqa: E402


def compare(function: Callable[..., Any], opened: Any, *inputs: tuple[Any, ...]) -> None:
    """Imports a function of which the first inputs are an example, and compares all of them with torch."""

    class Module(torch.nn.Module):
        def forward(self, *given: Any) -> Any:
            return function(*given)

    mod = mirstack.from_torch(Module(), inputs[0], dynamic_shapes=(opened,))
    for target in ("cpu", "interp"):
        run = mirstack.compile(mod, target=target)
        for given in inputs:
            want = function(*given).float()
            found = np.asarray(run(*given)).astype(np.float32)
            np.testing.assert_allclose(found, want.numpy(), rtol=1e-5, atol=1e-5 * max(1, want.abs().max().item()))


ROWS = torch.export.Dim("rows", min=2, max=64)


@pytest.mark.parametrize("limits", [(4, 0, 3), (7, -1.5, 2.25), (5,), (5, 2, 2)])
def test_histograms(limits: tuple[Any, ...]) -> None:
    edges = torch.tensor([0.0, 3, 1, 2, 1, 3, -1, 4])
    with_nan = torch.cat([edges, torch.tensor([torch.nan])])
    inputs = [torch.randn(20), torch.full((6,), 2.0), edges, *([with_nan] if limits[0] in (4, 7) else [])]
    compare(lambda x: torch.histc(x, *limits), ({0: ROWS},), *((each,) for each in inputs))


@pytest.fixture(scope="module")
def grouped() -> Any:
    """Returns the operator that transformers registers, on float32, by torch's own on bfloat16."""
    library_of = torch.library.Library("transformers", "FRAGMENT")
    library_of.define("grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor")

    def meaning(x: Any, weight: Any, ends: Any) -> Any:
        found = x.new_zeros(x.shape[0], weight.shape[2])
        begin = 0
        for each, end in zip(weight, ends.tolist(), strict=True):
            found[begin:end] = x[begin:end] @ each
            begin = end
        return found

    library_of.impl("grouped_mm_fallback", meaning, "CPU")
    library_of.impl("grouped_mm_fallback", lambda x, w, _: x.new_empty(x.shape[0], w.shape[2]), "Meta")
    yield torch.ops.transformers.grouped_mm_fallback
    library_of._destroy()


@pytest.mark.parametrize("is_transposed", [False, True])
def test_groups_of_rows(grouped: Any, is_transposed: bool) -> None:
    """Groups may be empty, and rows after the last one are 0."""
    weight = torch.randn(4, 6, 8).transpose(1, 2) if is_transposed else torch.randn(4, 8, 6)
    inputs = (
        (torch.randn(count, 8), torch.tensor(ends, dtype=torch.int32))
        for count, ends in ((10, [3, 3, 7, 10]), (5, [0, 1, 1, 4]), (9, [0, 0, 0, 0]))
    )
    compare(lambda x, ends: grouped(x, weight, ends), ({0: ROWS}, None), *inputs)


def test_groups_by_torch_s_operator() -> None:
    weight = torch.randn(2, 8, 16, dtype=torch.bfloat16)
    x, ends = torch.randn(9, 8, dtype=torch.bfloat16), torch.tensor([4, 9], dtype=torch.int32)
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(name) for name in ("x", "weight", "ends")]
    for node, value in zip(nodes, (x, weight, ends), strict=True):
        node.meta["val"] = value
    call = graph.call_function(aten._grouped_mm.default, tuple(nodes))
    want = call.meta["val"] = aten._grouped_mm.default(x, weight, ends)
    graph.output((call,))
    module = import_graph(torch.fx.GraphModule({}, graph), "test", {}).module
    assert module is not None
    found = mirstack.compile(module, target="interp")(*map(to_numpy, (x, weight, ends)))
    np.testing.assert_allclose(found.astype(np.float32), want.float().numpy(), rtol=2e-2, atol=2e-2)


def test_writes_at_places() -> None:
    count = torch.export.Dim("count", min=2, max=9)
    compare(
        lambda x, at, values: x.index_put((at,), values),
        ({0: ROWS}, {0: count}, {0: count}),
        (torch.zeros(9, 3), torch.tensor([1, 2, 8]), torch.randn(3, 3)),
        (torch.zeros(4, 3), torch.tensor([0, -1]), torch.randn(2, 3)),
    )
    compare(
        lambda x, at, values: aten.index_put(x, [None, at], values, True),
        ({0: ROWS}, None, None),
        (torch.zeros(9, 3, 2), torch.tensor([1, 2, 1]), torch.randn(2)),
        (torch.zeros(4, 3, 2), torch.tensor([0, -1, 0]), torch.randn(2)),
    )
    # Where a mask is true: as many places as the mask has at run time.
    compare(
        lambda x: aten.index_put(x, [x > 0], torch.tensor(2.0), True),
        ({0: ROWS},),
        (torch.randn(9, 3),),
        (torch.randn(4, 3),),
    )
