"""Bindings that plainly are digits of their loops: what is taken for such takes each combination of its values, however it is made."""

from __future__ import annotations

import random
from itertools import product

import pytest
from mirstack.dialects import tir
from mirstack.parser import parse_mir
from mirstack.passes.schedule.analysis.block_kind import _are_digits  # pyright: ignore[reportPrivateUsage]
from mirstack.passes.schedule.analysis.structure import loops_above
from mirstack.support.walk import walk_ops

EXTENTS = {"f": 24, "g": 6, "k": 4}
PARTS = (
    "f",
    "f // 6",
    "f % 6",
    "f // 2 % 3",
    "f % 12 // 4",
    "f // 5",
    "f % 7",
    "f // 24",
    "g",
    "g // 2",
    "g % 2",
    "k",
    "k // 4",
)


def block_of(bindings: list[str]) -> tir.BlockOp:
    """A block in three loops with these bindings."""
    axes = "\n".join(f"            v{n} = T.axis.spatial(999, {each})" for n, each in enumerate(bindings))
    names = ", ".join(f"v{n}" for n in range(len(bindings)))
    text = f"""
@T.prim_func
def main(A: T.Buffer({(999,) * len(bindings)}, "float32")):
    for f, g, k in T.grid({", ".join(map(str, EXTENTS.values()))}):
        with T.block("B"):
{axes}
            A[{names}] = T.float32(1)
"""
    return next(op for op in walk_ops(parse_mir(text, "digits.mir")) if isinstance(op, tir.BlockOp))


def are_independent(bindings: list[str]) -> bool:
    """Whether the bindings take each combination of the values that each takes."""
    turns = [dict(zip(EXTENTS, turn, strict=True)) for turn in product(*map(range, EXTENTS.values()))]
    points = {tuple(eval(each, {}, turn) for each in bindings) for turn in turns}
    return points == set(product(*map(set, zip(*points, strict=True))))


@pytest.mark.parametrize(
    "bindings",
    [
        ["f // 6", "f % 6", "k"],
        ["f // 12", "f // 4 % 3 * 4 + f % 4", "g"],
        ["f % 12 // 4 * 4 + k", "f // 12 * 6 + g", "f % 4"],
    ],
)
def test_parts_of_fused_loops_are_digits(bindings: list[str]) -> None:
    block = block_of(bindings)
    assert _are_digits(block.bindings, loops_above(block)) and are_independent(bindings)


@pytest.mark.parametrize(
    "bindings", [["f // 5", "f % 5"], ["f // 6", "f % 7"], ["f", "f % 6"], ["f // 6 + k"], ["f % 6 % 4"]]
)
def test_what_meets_is_none(bindings: list[str]) -> None:
    block = block_of(bindings)
    assert not _are_digits(block.bindings, loops_above(block))


def test_random_digits_take_each_combination() -> None:
    draw = random.Random(5)
    found = 0
    for _ in range(60):
        bindings = [
            " + ".join(
                part if n == 0 else f"{part} * {draw.choice((2, 4, 6, 12))}"
                for n, part in enumerate(draw.sample(PARTS, draw.choice((1, 1, 2))))
            )
            for _ in range(draw.choice((1, 2, 3)))
        ]
        block = block_of(bindings)
        if _are_digits(block.bindings, loops_above(block)):
            found += 1
            assert are_independent(bindings), bindings
    assert found > 10
