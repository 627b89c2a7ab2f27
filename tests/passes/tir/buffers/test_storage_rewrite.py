"""storage-rewrite on random programs: the results are the same, and less memory is asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from mirstack.dialects.tir import AllocateOp, DeclBufferOp, PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.tir.buffers.storage_rewrite import StorageRewrite
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

sys.path.insert(0, str(Path(__file__).parent))
from random_storage import SIZE, StorageWriter


def results(module: ModuleOp) -> list[np.ndarray]:
    """What the program leaves in `B`, for several sizes."""
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    found: list[np.ndarray] = []
    for n in (1, 3):
        generator = np.random.default_rng(n)
        buffers = {name: generator.integers(0, 10, SIZE).astype(np.int32) for name in "AB"}
        interpret_prim_func(func, {**buffers, "n": np.int32(n)}, module)
        found.append(buffers["B"])
    return found


def count(module: ModuleOp) -> int:
    """How often memory is asked for."""
    return sum(
        isinstance(op, AllocateOp) or (isinstance(op, DeclBufferOp) and op.source is None) for op in walk_ops(module)
    )


def check(seed: int) -> int:
    """One program; how many allocations went."""
    text = StorageWriter(seed).program()
    module = parse_mir(text)
    expected, before = results(module), count(module)
    StorageRewrite().apply(Context(), module)
    assert find_errors(module) == [], text
    after = print_mir(module)
    assert print_mir(parse_mir(after)) == after, text
    for ours, theirs in zip(results(module), expected, strict=True):
        assert np.array_equal(ours, theirs), f"before:\n{text}\nafter:\n{after}"
    return before - count(module)


def test_same_results() -> None:
    assert sum(map(check, range(15))) > 10


@pytest.mark.slow
def test_same_results_long() -> None:
    for seed in range(1000, 1300):
        check(seed)
