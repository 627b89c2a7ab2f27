"""Vectors of bf16 of any length compile for every processor: LLVM sees their bits only."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest
from mirstack.lowering.llvm.jit.load import Target, emit_assembly
from mirstack.lowering.llvm.text.translation import translate

TARGETS = {
    **{cpu: Target("x86_64-unknown-linux-gnu", cpu) for cpu in ("znver4", "haswell", "x86-64")},
    "neoverse-v2": Target("aarch64-unknown-linux-gnu", "neoverse-v2"),
}
LENGTHS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33)


def moves(seed: int) -> str:
    """A function that loads vectors of odd lengths and takes lanes of them, as lowering does where rows do not fit."""
    rng = random.Random(seed)
    lines: list[str] = []
    values: list[tuple[str, int]] = []

    def add(length: int, text: str) -> None:
        name = f"%v{len(lines)}"
        lines.append(f"  {name} = {text}")
        values.append((name, length))

    def vector(length: int) -> str:
        return f"vector<{length}xbf16>"

    def take(name: str, length: int) -> None:
        first, last = rng.randrange(length), rng.choice(LENGTHS)
        lanes = [rng.choice([-1, 0, 1, 1, 1]) and (first + lane) % length for lane in range(last)]
        add(last, f"vector.shuffle {name}, {name} {lanes} : {vector(length)}, {vector(length)}")

    for _ in range(8):
        length = rng.choice(LENGTHS)
        lines.append(f"  %i{len(lines)} = arith.constant {rng.randrange(40)} : index")
        index = lines[-1].split()[0]
        add(length, f"vector.load %x[{index}] : memref<99xbf16>, {vector(length)}")
        name = values[-1][0]
        if rng.random() < 0.5:
            mask = ", ".join(rng.choice(["true", "false"]) for _ in range(length))
            lines.append(f"  %m{len(lines)} = arith.constant dense<[{mask}]> : vector<{length}xi1>")
            add(
                length,
                f"vector.maskedload %x[{index}], {lines[-1].split()[0]}, {name} : memref<99xbf16>, "
                f"vector<{length}xi1>, {vector(length)} into {vector(length)}",
            )
        take(*values[-1])
        name, length = values[-1]
        add(length, f"vector.insert %s, {name} [{rng.randrange(length)}] : bf16 into {vector(length)}")
        same = [value for value, size in values if size == length]
        add(length, f"arith.maximumf {rng.choice(same)}, {values[-1][0]} : {vector(length)}")
        take(*values[-1])
        lines.append(f"  vector.store {values[-1][0]}, %y[{index}] : memref<99xbf16>, {vector(values[-1][1])}")
    return "\n".join(
        ["func.func @f(%x: memref<99xbf16>, %y: memref<99xbf16>, %s: bf16) {", *lines, "  func.return", "}"]
    )


@pytest.mark.parametrize("cpu", TARGETS)
def test_lanes_of_any_vector(lower: Callable[[str], Any], cpu: str) -> None:
    """LLVM's code generator ended the process on one such program in ten where a processor has AVX512-BF16."""
    for seed in range(6):
        text = translate(lower(moves(seed)))
        assert "bfloat" not in text
        assert "f:" in emit_assembly(text, replace(TARGETS[cpu], opt_level=(0, 3)[seed % 2]))


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
def test_maxima_across_rows_then_along_them(cpu: str | None) -> None:
    """What the code generator was first seen to end on."""
    text = (
        "def @main(%x: Tensor[(1, 1, 17, 3), bfloat16]) { nn.max_pool2d(%x, pool_size=[4, 5], padding=[2, 2, 0, 4]) }"
    )
    x = np.random.default_rng(1).standard_normal((1, 1, 17, 3)).astype(ml_dtypes.bfloat16)
    wanted = mirstack.compile(mirstack.parse(text), "interp")(x)
    np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), cpu=cpu)(x), wanted)
