"""`mirstack.from_torch`: inputs, open sizes, shared memory, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.dialects.relay import ConstantOp
from mirstack.support.diagnostics import place_of_node
from mirstack.support.walk import walk_ops

pytestmark = pytest.mark.extra
torch = library("torch", "torch")
nn = torch.nn

from mirstack.frontends.torch.tensors import to_numpy  # noqa: E402


class Layers(nn.Module):
    """A layer of each common kind."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        y = nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        return self.last(y.mean((2, 3)))


def agree(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_module_becomes_a_function_with_named_open_dimensions() -> None:
    model, x = Layers().eval(), torch.randn(2, 3, 8, 8)
    shapes = ({0: torch.export.Dim("batch"), 2: torch.export.Dim("height", min=4)},)
    mod = mirstack.from_torch(model, (x,), shapes)
    assert "def @main(%x: Tensor[(?, 3, ?, 8), float32]" in mod.astext()
    assert any("conv.convolution" in str(place_of_node(op.location)) for op in walk_ops(mod.op))
    program = mirstack.compile(mod)
    for size in ((2, 3, 8, 8), (5, 3, 12, 8)):
        x = torch.randn(*size)
        agree(program(x), model(x))


def test_weights_share_the_memory_of_torch() -> None:
    model = nn.Linear(64, 64)
    mod = mirstack.from_torch(model, (torch.randn(2, 64),))
    arrays = [op.value.array for op in walk_ops(mod.op) if isinstance(op, ConstantOp)]
    assert any(np.shares_memory(array, model.weight.detach().numpy()) for array in arrays)


def test_bfloat16() -> None:
    model, x = nn.Linear(8, 4).to(torch.bfloat16), torch.randn(2, 8, dtype=torch.bfloat16)
    got = mirstack.compile(mirstack.from_torch(model, (x,)))(to_numpy(x))
    np.testing.assert_allclose(
        np.asarray(got).astype("float32"), model(x).detach().float().numpy(), rtol=0.05, atol=0.05
    )


def test_an_exported_program_from_a_file(tmp_path: Path) -> None:
    model, x = Layers().eval(), torch.randn(2, 3, 8, 8)
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(model, (x,)), path)
    agree(mirstack.compile(mirstack.from_torch(torch.export.load(path)))(x), model(x))


class Sizes(nn.Module):
    """Computes shapes from sizes."""

    def forward(self, x: Any) -> Any:
        rows, columns = x.shape
        y = torch.cat([x, torch.zeros(rows, 2 * columns)], 1).reshape(rows, 3, columns)
        return y[:, 1:, : columns - 1].transpose(1, 2), torch.arange(rows), x.new_full((rows, 2), 3.0)


def test_arithmetic_of_sizes() -> None:
    model = Sizes()
    dims = ({0: torch.export.Dim("rows"), 1: torch.export.Dim("columns", min=3)},)
    program = mirstack.compile(mirstack.from_torch(model, (torch.randn(3, 5),), dims))
    for size in ((3, 5), (7, 4)):
        x = torch.randn(*size)
        for got, want in zip(program(x), model(x), strict=True):
            agree(got, want)


class Attention(nn.Module):
    """Attends, with or without a mask."""

    def forward(self, q: Any, k: Any, v: Any, mask: Any) -> Any:
        attend = nn.functional.scaled_dot_product_attention
        return attend(q, k, v), attend(q, k, v, is_causal=True), attend(q, k, v, attn_mask=mask)


@pytest.mark.parametrize("is_open", [False, True])
def test_attention(is_open: bool) -> None:
    q, k, v = (torch.randn(2, 4, 16, 8) for _ in range(3))
    mask = torch.ones(16, 16, dtype=torch.bool).tril()
    length = torch.export.Dim("length")
    dims = ({2: length}, {2: length}, {2: length}, {0: length, 1: length}) if is_open else None
    program = mirstack.compile(mirstack.from_torch(Attention(), (q, k, v, mask), dims))
    for got, want in zip(program(q, k, v, mask), Attention()(q, k, v, mask), strict=True):
        agree(got, want)


class Unknown(nn.Module):
    """Two operators that cannot be imported."""

    def forward(self, x: Any) -> Any:
        return torch.linalg.det(x) + torch.special.bessel_j0(x).sum()


def test_all_operators_that_cannot_be_imported_are_listed() -> None:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_torch(Unknown(), (torch.randn(3, 3),))
    text = str(error.value)
    assert "aten._linalg_det.default: there is no such operator here" in text
    assert "aten.special_bessel_j0.default: there is no such operator here" in text


class Counts(nn.Module):
    """Writes to a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return x


def test_what_is_written_is_refused() -> None:
    with pytest.raises(mirstack.MirError, match="Counts writes to calls"):
        mirstack.from_torch(Counts(), (torch.randn(3),))


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match=r"from_torch takes a torch.nn.Module or an ExportedProgram, not int"):
        mirstack.from_torch(3)
    with pytest.raises(TypeError, match=r"from_torch needs example_inputs, a tuple of what the module takes"):
        mirstack.from_torch(nn.ReLU())
    program = torch.export.export(nn.ReLU(), (torch.randn(3),))
    with pytest.raises(
        TypeError, match="an exported program has its inputs and shapes already; give the program alone"
    ):
        mirstack.from_torch(program, (torch.randn(3),))
