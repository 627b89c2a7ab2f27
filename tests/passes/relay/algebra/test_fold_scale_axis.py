"""Scales into weights: which values may pass, where the results come from, and how long it takes."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.relay.operator import OperatorOp
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp

FORWARD, BACKWARD = "forward-fold-scale-axis", "backward-fold-scale-axis"


def run(name: str, module: ModuleOp) -> None:
    pass_factories()[name]()().apply(Context(), module)


def names(module: ModuleOp) -> list[str]:
    return [op.OPERATOR.name for op in walk_ops(module) if isinstance(op, OperatorOp)]


def layers(name: str, count: int) -> str:
    """Dense layers, an activation and a scale behind or in front of each."""
    lines: list[str] = []
    for i in range(count):
        if name == FORWARD:
            lines.append(f"%{i + 1} = nn.dense(nn.relu(multiply(%{i}, 2f)), %w);")
        else:
            lines.append(f"%{i + 1} = multiply(nn.relu(nn.dense(%{i}, %w)), 2f);")
    body = " ".join(lines)
    return f"def @main(%x: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {{ %0 = exp(%x); {body} %{count} }}"


@pytest.mark.parametrize("name", [FORWARD, BACKWARD])
def test_linear(name: str) -> None:
    """Eight times the ops take about eight times as long; a square would take sixty-four."""

    def seconds(count: int) -> float:
        module = parse_mir(layers(name, count))
        return cpu_seconds(lambda: run(name, module))

    assert growth(seconds, 100, 800, below=20) < 20


@pytest.mark.parametrize("name", [FORWARD, BACKWARD])
def test_every_layer_once(name: str) -> None:
    before, module = parse_mir(layers(name, 3), "layers.mir"), parse_mir(layers(name, 3), "layers.mir")
    run(name, module)
    assert find_errors(module) == []
    assert names(module).count("multiply") == 3
    assert [op.name for op in walk_ops(module) if op is not module and op.location == UNKNOWN_LOC] == []
    once = print_mir(module)
    assert print_mir(parse_mir(once)) == once
    run(name, module)
    assert print_mir(module) == once
    inputs = [np.array([[0.5, -1.0], [2.0, 0.25]], np.float32), np.array([[1.5, -0.5], [0.25, 1.0]], np.float32)]
    (wanted,), (got,) = (flatten(interpret(m, "main", inputs)) for m in (before, module))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("scale", "relu", "sum_", "folded"),
    [
        ("2f", "nn.relu", "add", True),
        ("0f", "nn.relu", None, True),
        ("0f", None, "add", False),
        ("-2f", None, "add", True),
        ("-2f", "nn.relu", None, False),
        ("1e-42f", None, "subtract", False),  # Has no finite inverse.
        ("reshape(2f, newshape=[1])", "nn.leaky_relu", None, False),  # One value, but not one for each channel.
        ("repeat(reshape(2f, newshape=[1]), repeats=2, axis=0)", "nn.relu", "add", True),
        ("exp(2f)", None, None, True),
        ("exp(2f)", None, "add", False),
        ("exp(2f)", "nn.relu", None, False),
    ],
)
def test_forward_needs(scale: str, relu: str | None, sum_: str | None, folded: bool) -> None:
    text = f"multiply(%x, {scale})"
    text = f"{relu}({text})" if relu else text
    text = f"{sum_}({text}, %b)" if sum_ else text
    types = "%x: Tensor[(3, 2), float32], %w: Tensor[(4, 2), float32], %b: Tensor[(2), float32]"
    module = parse_mir(f"def @main({types}) {{ nn.dense({text}, %w) }}")
    before = print_mir(module)
    run(FORWARD, module)
    assert (print_mir(module) != before) == folded


def test_of_several_scales_one() -> None:
    """As in TVM, which asks each layer once: the nearest one."""
    types = "%x: Tensor[(3, 2), float32], %w: Tensor[(2, 2), float32]"
    module = parse_mir(f"def @main({types}) {{ nn.dense(multiply(multiply(%x, 2f), 3f), %w) }}")
    run(FORWARD, module)
    assert "multiply(%x, 2f" in print_mir(module) and names(module).count("multiply") == 2
    module = parse_mir(f"def @main({types}) {{ multiply(multiply(nn.dense(%x, %w), 2f), 3f) }}")
    run(BACKWARD, module)
    assert "3f" in print_mir(module).splitlines()[-2] and names(module).count("multiply") == 2


def test_across_branches() -> None:
    """A product outside of branches is folded by the layers inside; a layer outside is not scaled for one branch."""
    types = "%c: bool, %x: Tensor[(3, 2), float32], %w: Tensor[(2, 2), float32]"
    module = parse_mir(
        f"def @main({types}) {{ let %s = 1; %0 = multiply(%x, 2f);"
        " if (%c) { nn.dense(%0, %w) } else { nn.dense(nn.relu(%0), %w) } }"
    )
    run(FORWARD, module)
    assert names(module).count("multiply") == 2
    module = parse_mir(
        f"def @main({types}) {{ let %f = nn.dense(%x, %w); if (%c) {{ multiply(%f, 2f) }} else {{ %x }} }}"
    )
    before = print_mir(module)
    run(BACKWARD, module)
    assert print_mir(module) == before


@pytest.mark.parametrize(
    ("weight", "scale", "folds"),
    [
        ("meta[relay.Constant][0]", "stack((2f, 0.5f))", True),
        ("%w", "stack((2f, 0.5f))", False),
        ("meta[relay.Constant][0]", "%s", False),
        ("meta[relay.Constant][0]", "tanh(%s)", False),
    ],
)
@pytest.mark.parametrize("name", [FORWARD, BACKWARD])
def test_constants_only(name: str, weight: str, scale: str, folds: bool) -> None:
    """With the option nothing is scaled that is known only when the program runs."""
    weight = weight.replace("meta[relay.Constant][0]", "stack((stack((1f, 2f)), stack((3f, 4f))))")
    scaled = (
        f"nn.dense(multiply(%x, {scale}), {weight})"
        if name == FORWARD
        else f"multiply(nn.dense(%x, {weight}), {scale})"
    )
    module = parse_mir(
        f"def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32], %s: Tensor[(2), float32]) {{ {scaled} }}"
    )
    pass_factories()["fold-constant"]()().apply(Context(), module)
    for step in read_pipeline(f"{name}{{constants-only=true}}", pass_factories()):
        step.apply(Context(), module)
    operators = [op for op in walk_ops(module) if isinstance(op, OperatorOp)]
    (dense,) = (op for op in operators if op.OPERATOR.name == "nn.dense")
    assert (dense.args[1].owner in operators) == folds
    assert names(module).count("multiply") == 1
