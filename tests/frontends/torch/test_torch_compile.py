"""`torch.compile(model, backend="mirstack")`: results, dynamic shapes, parameters that change, training."""

from __future__ import annotations

import warnings
from importlib.metadata import entry_points
from typing import Any

import numpy as np
import pytest
from extras import library

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
nn = torch.nn

from mirstack.api.torch import program  # noqa: E402
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


def test_inputs_that_are_views() -> None:
    compiled = torch.compile(lambda x, y: x * 2 + y.sum(), backend=mirstack, fullgraph=True)
    x = torch.randn(3, 4, dtype=torch.complex64)
    with torch.no_grad():
        negative = x.conj().imag
        assert negative.is_neg()
        for each in (negative, torch.randn(4, 3).t(), torch.randn(1, 4).expand(3, 4), torch.randn(6, 8)[::2, 1::2]):
            close(compiled(each, torch.ones(0, 4)), each * 2)
        leaf = torch.randn(3, 4, requires_grad=True)
        close(compiled(leaf, torch.ones(2, 4)), leaf * 2 + 8)


class Cache(nn.Module):
    """Keeps the last rows in a buffer, which each call writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 8, 4))

    def forward(self, x: Any, place: Any) -> Any:
        self.rows.index_copy_(1, place, x[:, None])
        return self.rows.sum(1)


def count_programs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list to which each program that is compiled appends how many constants it has."""
    found: list[int] = []
    read = program.Program.read

    def counted(self: Any) -> None:
        found.append(len(self.places))
        read(self)

    monkeypatch.setattr(program.Program, "read", counted)
    return found


def test_buffers_that_calls_write_to_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = count_programs(monkeypatch)
    model, other = Cache(), Cache()
    compiled = torch.compile(model, backend=mirstack, fullgraph=True)
    with torch.no_grad():
        for place in range(4):
            x, index = torch.randn(2, 4), torch.tensor([place])
            close(compiled(x, index), other(x, index))
    close(model.rows, other.rows)
    assert count == [0]


def test_a_parameter_that_changes_often_becomes_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    count = count_programs(monkeypatch)
    model = nn.Linear(4, 4)
    compiled = torch.compile(model, backend=mirstack, fullgraph=True)
    with torch.no_grad():
        for _ in range(6):
            model.weight.add_(1.0)
            x = torch.randn(2, 4)
            close(compiled(x), model(x))
    assert count == [2, 2, 2, 1]


def test_statistics_of_batches_in_training_mode() -> None:
    model, other = nn.BatchNorm2d(3).train(), nn.BatchNorm2d(3).train()
    compiled = torch.compile(model, backend=mirstack, fullgraph=True)
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(2, 3, 4, 4)
            close(compiled(x), other(x))
    close(model.running_var, other.running_var)
    assert int(model.num_batches_tracked) == 2


class Masked(nn.Module):
    """Attends in layers that torch has a kernel of its own for."""

    def __init__(self, norm_first: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            8, 2, 16, batch_first=True, norm_first=norm_first, activation="gelu" if norm_first else "relu"
        )
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x: Any, mask: Any, padding: Any) -> Any:
        return self.layers(x, mask), self.layers(x, src_key_padding_mask=padding), self.layers(x, mask, padding)


@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder(norm_first: bool) -> None:
    model = Masked(norm_first).eval()
    mask = torch.triu(torch.ones(5, 5), 1).bool()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad():
        x = torch.randn(2, 5, 8)
        got = torch.compile(model, backend=mirstack, fullgraph=True)(x, mask, padding)
        for a, b in zip(got, model(x, mask, padding), strict=True):
            close(a, b)


def attend(*tensors: Any, **options: Any) -> Any:
    return nn.functional.scaled_dot_product_attention(*tensors, **options)


@pytest.mark.parametrize(
    "function",
    [
        lambda q, k: attend(q, k, k, enable_gqa=True, scale=0.3),
        lambda q, k: attend(q, q, q, torch.zeros(2, 1, 6, 6).bool()),
        lambda q, k: attend(q, q, q, torch.full((6, 6), float("-inf")).triu(-1)),
        lambda q, k: [each * 2 for each in q.chunk(2, 2)],
        lambda q, k: nn.functional.adaptive_max_pool2d(q, (3, 5), return_indices=True),
        lambda q, k: nn.functional.normalize(q, dim=-1) * torch.tensor(2.0),
        lambda q, k: (q.std(1), q.flatten(2).unfold(2, 3, 2), torch.bucketize(q, torch.tensor([-1.0, 0.0, 1.0]))),
        lambda q, k: nn.functional.bilinear(q, q, torch.ones(3, 8, 8)),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.filterwarnings("ignore:the backend mirstack leaves operators to torch")
def test_functions(function: Any, dynamic: bool) -> None:
    q, k = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 7, 8)
    with torch.no_grad():
        got = torch.compile(function, backend=mirstack, fullgraph=True, dynamic=dynamic)(q, k)
        want = function(q, k)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple | list) else [(got, want)]:
        close(a, b)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.reshape(x.shape[0] * x.shape[1])[1:],
        lambda x: x.reshape(x.shape[0] * x.shape[1]).unfold(0, 3, 2),
        lambda x: x.reshape(x.shape[0], 2, x.shape[1] // 2).chunk(2, 2)[1].transpose(0, 2),
    ],
)
def test_results_that_are_views_of_inputs(view: Any, dynamic: bool) -> None:
    """They share the input's memory, with its strides; what is computed from them is compiled."""
    run = torch.compile(lambda x: (view(x), view(x) + 1), backend=mirstack, fullgraph=True, dynamic=dynamic)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for rows in (4, 6):
            x = torch.randn(rows, 8)
            got, more = run(x)
            want = view(x)
            assert torch.equal(got, want) and got.stride() == want.stride() and got.data_ptr() == want.data_ptr()
            close(more, want + 1)


def test_an_option_that_there_is_not() -> None:
    with pytest.raises(
        Exception,
        match=r"the backend mirstack has no option 'thread'; its options are those of mirstack.compile: .*threads",
    ):
        torch.compile(network(), backend=mirstack, options={"thread": 1})(torch.randn(2, 8))
