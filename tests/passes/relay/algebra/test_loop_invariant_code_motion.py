"""Products of a loop's slices in front of it: the same results, natively, for axes, batches and what follows the product."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.relay.algebra.loop_invariant_code_motion import LoopInvariantCodeMotion
from xdsl.context import Context

W = "%w: Tensor[(5, 3), float32]"
H = "%h: Tensor[({batch}, 5), float32]"

CASES: dict[str, tuple[tuple[int, ...], str]] = {
    "a product": ((6, 2, 3), "nn.dense(take(%xs, %i, axis=0), %w, units=5)"),
    "one row": ((6, 1, 3), "nn.dense(take(%xs, %i, axis=0), %w, units=5)"),
    "another axis": ((2, 6, 3), "nn.dense(take(%xs, %i, axis=1), %w, units=5)"),
    "an axis from behind": ((2, 6, 3), 'nn.dense(take(%xs, %i, axis=-2, mode="wrap"), %w, units=5)'),
    "the last axis": ((2, 3, 6), "nn.dense(take(%xs, %i, axis=2), %w, units=5)"),
    "fewer turns than slices": ((11, 2, 3), "nn.dense(take(%xs, %i, axis=0), %w, units=5)"),
    "more turns than slices": ((4, 2, 3), "nn.dense(take(%xs, %i, axis=0), %w, units=5)"),
    "bias and scale": (
        (6, 2, 3),
        "multiply(nn.bias_add(nn.dense(negative(take(%xs, %i, axis=0)), %w, units=5), %b), 0.5f)",
    ),
    "a row for all": ((6, 2, 3), "add(nn.dense(take(%xs, %i, axis=0), %w, units=5), expand_dims(%b, axis=0))"),
    "two of one slice": (
        (6, 2, 3),
        "subtract(nn.dense(take(%xs, %i, axis=0), %w, units=5), tanh(nn.dense(take(%xs, %i, axis=0), %w, units=5)))",
    ),
    "what stays besides": ((6, 2, 3), "add(nn.dense(take(%xs, %i, axis=0), %w, units=5), sum(take(%xs, %i, axis=0)))"),
}


def text(case: str) -> tuple[str, tuple[int, ...]]:
    shape, value = CASES[case]
    batch = shape[1] if "%i, axis=0" in value else shape[0]
    params = f"%xs: Tensor[{shape}, float32], {W}, %b: Tensor[(5), float32], {H.format(batch=batch)}"
    return (
        f"""def @loop(%i: int32, {params}) -> Tensor[({batch}, 5), float32] {{
          if (less(%i, 6)) {{
            let %y = {value};
            @loop(add(%i, 1), %xs, %w, %b, tanh(add(%y, %h)))
          }} else {{ %h }}
        }}
        def @main({params}) {{ @loop(0, %xs, %w, %b, %h) }}""",
        (batch, 5),
    )


@pytest.mark.parametrize("case", CASES)
def test_results_stay(case: str) -> None:
    source, state = text(case)
    module = parse_mir(source)
    LoopInvariantCodeMotion().apply(Context(), module)
    module.verify()
    assert "@loop_loop(" in print_mir(module)
    rng = np.random.default_rng(0)
    shapes = (CASES[case][0], (5, 3), (5,), state)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    want = mirstack.compile(mirstack.parse(source), "interp", entry="main")(*arrays)
    for program in (
        mirstack.compile(module, "interp", entry="main"),
        mirstack.compile(mirstack.parse(source), entry="main", threads=1),
    ):
        np.testing.assert_allclose(program(*arrays), want, rtol=1e-5, atol=1e-6)


LEFT = {
    "the counter goes by two": ("add(%i, 1)", "add(%i, 2)"),
    "it begins elsewhere": ("@loop(0,", "@loop(1,"),
    "it is not compared first": ("less(%i, 6)", "less(sum(%h), 6f)"),
    "few of the slices": ("(%i, 6)", "(%i, 2)"),
    "the tensor changes": ("%xs, %w, %b, tanh", "negative(%xs), %w, %b, tanh"),
    "the weight changes": ("%xs, %w, %b, tanh", "%xs, negative(%w), %b, tanh"),
    "no product": ("nn.dense(take(%xs, %i, axis=0), %w, units=5)", "sum(take(%xs, %i, axis=0))"),
    "the product of something else": ("%i, axis=0", "subtract(%i, 1), axis=0"),
    "nobody calls it": ("@loop(0, %xs, %w, %b, %h)", "%h"),
    "it is handed on": ("@loop(0, %xs, %w, %b, %h)", "(@loop(0, %xs, %w, %b, %h), @loop)"),
}


@pytest.mark.parametrize("case", LEFT)
def test_other_functions_stay(case: str) -> None:
    source, _ = text("a product")
    old, new = LEFT[case]
    assert old in source
    module: Any = parse_mir(source.replace(old, new))
    LoopInvariantCodeMotion().apply(Context(), module)
    assert "_loop" not in print_mir(module)
