"""Passes on random TIR programs: what comes out is well formed, reads back, and computes the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.driver.pipeline import read_pipeline
from mirstack.fuzz.tir.loops import SIZE, LoopWriter
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

# Pipelines, and whether running them twice is running them once on every program. (simplify may find more in what it has
# written shorter.)
PIPELINES: dict[str, bool] = {
    "simplify": False,
    "simplify{transitively-prove-inequalities=true apply-constraints-to-boolean-branches=true}": False,
    "simplify{convert-boolean-to-and-of-ors=true propagate-knowns-to-prove-conditional=true}": False,
    "remove-no-op{use-dataflow-analysis=true}": False,
    "unroll-loop{auto-max-step=12 auto-max-extent=2}": False,
    "loop-partition{partition-const-loop=true}": False,
    "hoist-if-then-else": False,
    "common-subexpr-elim-tir": False,
    "rewrite-unsafe-select": False,
    "renormalize-split-pattern": False,
    "narrow-data-type{target-bits=16}": False,
    "common-subexpr-elim-tir{identify-equiv-terms=true}": False,
    "loop-partition{partition-const-loop=true},simplify,remove-no-op": False,
}

SIZES = [(5, 3), (0, 1), (8, -2)]


def results(module: ModuleOp) -> list[np.ndarray]:
    """What the program makes of its buffers, for several sizes."""
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    found: list[np.ndarray] = []
    for n, m in SIZES:
        generator = np.random.default_rng(n)
        buffers = {name: generator.integers(0, 10, SIZE).astype(np.int32) for name in "AB"}
        interpret_prim_func(func, {**buffers, "n": np.int32(n), "m": np.int32(m)}, module)
        found += buffers.values()
    return found


@cache
def program(seed: int) -> tuple[str, ModuleOp, list[np.ndarray]]:
    """The program of a seed: its text, its module and its results. All pipelines start from the same."""
    text = LoopWriter(seed).program()
    module = parse_mir(text)
    return text, module, results(module)


def check(seed: int, pipeline: str, idempotent: bool) -> None:
    """One program; raises AssertionError with it."""
    text, original, expected = program(seed)
    module = original.clone()
    passes = read_pipeline(pipeline, pass_factories())
    for module_pass in passes:
        module_pass.apply(Context(), module)
    assert find_errors(module) == [], text
    after = print_mir(module)
    assert print_mir(parse_mir(after)) == after, text
    for ours, theirs in zip(results(module), expected, strict=True):
        assert np.array_equal(ours, theirs), f"{pipeline}\nbefore:\n{text}\nafter:\n{after}"
    if idempotent:
        for module_pass in passes:
            module_pass.apply(Context(), module)
        assert print_mir(module) == after, f"{text}\nonce:\n{after}\ntwice:\n{print_mir(module)}"


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_same_results(pipeline: str) -> None:
    for seed in range(25):
        check(seed, pipeline, PIPELINES[pipeline])


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_same_results_long(pipeline: str) -> None:
    for seed in range(1000, 1800):
        check(seed, pipeline, PIPELINES[pipeline])
