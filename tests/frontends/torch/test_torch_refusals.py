"""Operators and forms that `mirstack.from_torch` refuses: each with its reason."""

from __future__ import annotations

import sys
from operator import getitem
from typing import Any

import mirstack
import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")

from mirstack.frontends.torch.importer import SHOWN_NODES, import_graph  # noqa: E402
from mirstack.frontends.torch.tensors import require_torch  # noqa: E402

aten = torch.ops.aten
IMAGE = torch.zeros(1, 2, 4, 4)


def refused(op: Any, *arguments: Any, used: int | None = None) -> str:
    """Imports one operator; returns the reason why it cannot be."""
    graph = torch.fx.Graph()

    def as_node(value: Any) -> Any:
        if isinstance(value, list):
            return [as_node(each) for each in value]
        if not isinstance(value, torch.Tensor):
            return value
        node = graph.placeholder(f"x{len(graph.nodes)}")
        node.meta["val"] = value
        return node

    named = dict(arguments[-1]) if isinstance(arguments[-1], dict) else {}
    given = arguments[:-1] if named else arguments
    call = graph.call_function(op, tuple(as_node(each) for each in given), named)
    call.meta["val"] = op(*given, **named)
    result = call
    if used is not None:
        result = graph.call_function(getitem, (call, used))
        result.meta["val"] = call.meta["val"][used]
    graph.output((result,))
    with pytest.raises(mirstack.MirError) as error:
        import_graph(torch.fx.GraphModule({}, graph), "test", {})
    return str(error.value)


CONV = ([1, 1], [0, 0], [1, 1])
DROPOUT = "dropout while training draws random numbers; call eval() before"


@pytest.mark.parametrize(
    ("op", "arguments", "used", "reason"),
    [
        (aten.native_dropout.default, (torch.ones(3), 0.5, True), 0, DROPOUT),
        (aten.nonzero.default, (torch.tensor(1.0),), None, "the places of a number cannot be computed here"),
        (
            aten.as_strided.default, (torch.zeros(4)[:2], [4], [1]), None,
            "its view has places beyond the tensor",
        ),
        (
            aten.as_strided.default, (torch.zeros(4)[::2], [2], [1]), None,
            "the tensor has gaps between its elements in memory",
        ),
        (
            aten._embedding_bag.default, (torch.zeros(3, 2), torch.tensor([0, 1]), torch.tensor([0])), 2,
            "of an embedding of bags only the first result can be computed here",
        ),
        (
            aten.convolution_backward.default,
            (torch.zeros(1, 2, 2), torch.zeros(1, 2, 4), torch.zeros(2, 2, 3), [2], [1], [0], [1], False, [0], 1, [True, True, True]), 0,
            "only gradients of convolutions over two axes can be computed here",
        ),
        (
            aten.convolution_backward.default,
            (torch.zeros(1, 2, 6, 6), IMAGE, torch.zeros(2, 2, 3, 3), [2], *CONV, True, [0, 0], 1, [True, True, True]), 0,
            "gradients of transposed convolutions cannot be computed here",
        ),
        (
            aten.avg_pool2d_backward.default, (torch.zeros(1, 2, 2, 2), IMAGE, [2, 2], [2, 2], [0, 0], False, False, 3), None,
            "another divisor with ceil_mode, or where padding does not count",
        ),
        (
            aten.view_as_complex.default, (torch.zeros(3, 2),), None,
            "has elements of torch.complex64, which tensors here cannot have",
        ),
        (aten.abs.default, (torch.zeros(3, device="meta"),), None, "input 'x0' is on the device meta, and programs here run on the CPU"),
        (aten.quantize_per_tensor.default, (torch.zeros(3), 0.1, 0, torch.qint8), None, "its result has elements of torch.qint8"),
        (aten.view_as_complex.default, (torch.zeros(3, 2, dtype=torch.float16),), None, "its result has elements of torch.complex32"),
        (aten.to_dense.default, (torch.zeros(3).to_sparse(),), None, "input 'x0' has the layout torch.sparse_coo, which tensors here cannot have"),
        (aten.abs.default, (torch.zeros(3, dtype=torch.complex64),), None, "input 'x0' has elements of torch.complex64, which tensors here cannot have"),
        (aten.view.dtype, (torch.zeros(3), torch.int32), None, "aten.view.dtype: there is no such overload here"),
        (
            aten.scatter.value_reduce, (torch.zeros(3), 0, torch.tensor([0, 1]), 2.0, {"reduce": "add"}), None,
            "aten.scatter.value_reduce: there is no such overload here",
        ),
        (aten.round.decimals, (torch.zeros(3), {"decimals": 2}), None, "aten.round.decimals: no rule takes this form"),
        (aten.rsub.Scalar, (torch.zeros(3), 1, 2), None, "no rule takes this form"),
        (
            aten.index_put.default, (torch.zeros(3, 3), [torch.ones(3, dtype=torch.bool), torch.eye(3)[0] > 0], torch.zeros(1), True),
            None, "indices of several open sizes cannot be broadcast here",
        ),
        (
            aten._grouped_mm.default,
            (torch.zeros(2, 8, 8, dtype=torch.bfloat16), torch.zeros(2, 8, 8, dtype=torch.bfloat16)), None,
            "only groups of rows, each with a matrix of its own, can be multiplied here",
        ),
    ],
)  # fmt: skip
def test_reasons(op: Any, arguments: tuple[Any, ...], used: int | None, reason: str) -> None:
    assert reason in refused(op, *arguments, used=used)


@pytest.mark.parametrize(
    "schema",
    [
        "cumsum.{}(Tensor x, int dim, Tensor other) -> Tensor",
        "cat.{}(Tensor[] tensors, int dim, str order) -> Tensor",
        "flip.{}(Tensor x, int dim) -> Tensor",
        "index_put.{}(Tensor x, Tensor values) -> Tensor",
        "sigmoid.{}(Tensor x, *, bool fast) -> Tensor",
        "sum.{}(Tensor x, Tensor dim) -> Tensor",
    ],
)
def test_overloads_that_no_converter_takes(schema: str) -> None:
    """A later torch may have overloads that these converters do not know."""
    name, overload = schema.partition(".")[0], "made_up"
    library = torch.library.Library("aten", "FRAGMENT")
    library.define(schema.format(overload))
    library.impl(f"{name}.{overload}", lambda x, *_, **__: torch.zeros(3), "CompositeExplicitAutograd")
    try:
        x = torch.zeros(3)
        arguments = {
            "cumsum": (x, 0, x), "cat": ([x, x], 0, "up"), "flip": (x, 0), "index_put": (x, x), "sigmoid": (x, {"fast": True}), "sum": (x, x),
        }[name]  # fmt: skip
        text = refused(getattr(getattr(aten, name), overload), *arguments)
    finally:
        library._destroy()
    assert (
        f"aten.{name}.{overload}: {'no rule takes this form' if name == 'sigmoid' else 'there is no such overload here'}"
        in text
    )


class Complex(torch.nn.Module):
    """Converts to a dtype that tensors here cannot have."""

    def forward(self, x: Any) -> Any:
        return x.to(torch.complex64)


class Many(torch.nn.Module):
    """Has more operators that cannot be imported than an error lists."""

    def forward(self, x: Any) -> Any:
        return [torch.linalg.det(x + k) for k in range(SHOWN_NODES + 2)]


class Diagonal(torch.nn.Module):
    """Takes the diagonal of an open matrix."""

    def forward(self, x: Any) -> Any:
        return x.diagonal()


class Shared(torch.nn.Module):
    """Attends with an open number of heads that share keys."""

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(x, x, x, enable_gqa=True)


class Resized(torch.nn.Module):
    """Resizes an image to a size that is computed."""

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.interpolate(x, size=(x.shape[2] + 1, 8), mode="nearest")


OPEN = torch.export.Dim("open", min=2)


@pytest.mark.parametrize(
    ("model", "shape", "axis", "reason"),
    [
        (Complex(), [3, 4], None, "result '_to_copy' has elements of torch.complex64, which tensors here cannot have"),
        (Many(), [3, 3], None, "2 more nodes cannot be imported"),
        (Diagonal(), [3, 4], 0, "the tensor has dimensions that are known only at run time"),
        (Shared(), [1, 2, 4, 8], 1, "shared heads of open sizes cannot be computed here"),
        (Resized(), [1, 2, 4, 4], 2, "a computed size of the result; give a factor of scale"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reasons_in_models(model: Any, shape: list[int], axis: int | None, reason: str) -> None:
    shapes = None if axis is None else ({axis: OPEN},)
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_torch(model.eval(), (torch.ones(shape),), shapes)
    assert reason in str(error.value)


def test_torch_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    require_torch.cache_clear()
    with pytest.raises(mirstack.MirError, match="the package torch is not installed"):
        require_torch()


class Branches(torch.nn.Module):
    """Branches on what its input holds, which `torch.export` does not follow."""

    def forward(self, x: Any) -> Any:
        chosen = x[x > 0.5]
        return chosen * 2 if chosen.numel() > 3 else chosen


def test_a_module_that_torch_does_not_export() -> None:
    with pytest.raises(mirstack.MirError) as caught:
        mirstack.from_torch(Branches(), (torch.rand(8),))
    text = str(caught.value)
    assert text.startswith(
        "error: Branches: torch.export does not export it: GuardOnDataDependentSymNode: Could not guard on"
    )
    assert "\nnote: at " in text and "test_torch_refusals.py" in text
    assert text.endswith(
        "note: torch.export.draft_export lists all that it does not export;"
        ' torch.compile(model, backend="mirstack") leaves such parts to torch'
    )


def test_a_call_of_a_module_that_fails() -> None:
    with pytest.raises(mirstack.MirError, match=r"Linear: torch.export does not export it: \w+: .{1,300}"):
        mirstack.from_torch(torch.nn.Linear(3, 4), (torch.zeros(2, 5),))


def test_a_step_along_an_open_dimension() -> None:
    class Scatter(torch.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return torch.slice_scatter(x, y, 0, 0, 5, 2)

    shapes = {"x": {0: torch.export.Dim("n", min=6)}, "y": None}
    with pytest.raises(mirstack.MirError, match="a step of 2 along a dimension that is known only at run time"):
        mirstack.from_torch(Scatter(), (torch.zeros(8, 2), torch.zeros(3, 2)), dynamic_shapes=shapes)
