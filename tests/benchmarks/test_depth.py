"""Compiling a deep network: its kernels are compiled once, and what grows with the depth grows no faster than it."""

from __future__ import annotations

from pathlib import Path

import mirstack
import pytest
from mirstack.benchmarks.depth import stages, written
from mirstack.lowering.pipeline import Options, lower_module
from mirstack.support.deep import in_deep_stack
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

SMALL, LARGE = 8, 32
"""Units of the one stage."""

OF_KERNELS = ("lower-te-to-tir", "default-schedule", "vectorize-loop", "lower-tir-to-scf", "lower-std-to-llvm", "LLVM")
OF_THE_GRAPH = ("parse and type", "fuse-ops", "lower-relay-to-te", "lower-relay-to-llvm")

SLACK = 2.5
"""How much a ratio of times may differ from that of the sizes: the machine does other things, too."""


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds by stage of the small network and of the large one; the lesser of two runs each."""
    folder = tmp_path_factory.mktemp("depth")
    small, large = written(SMALL, folder, stages=1), written(LARGE, folder, stages=1)
    in_deep_stack(lambda: stages(small))

    def least(path: Path) -> dict[str, float]:
        runs = [in_deep_stack(lambda: stages(path)) for _ in range(2)]
        return {name: min(run[name] for run in runs) for name in runs[0]}

    return least(small), least(large)


@pytest.mark.parametrize("stage", OF_KERNELS)
def test_what_kernels_cost_does_not_depend_on_the_depth(stage: str, seconds: tuple[dict[str, float], dict[str, float]]):
    small, large = seconds
    assert large[stage] < SLACK * small[stage]


@pytest.mark.parametrize("stage", OF_THE_GRAPH)
def test_what_the_graph_costs_is_linear_in_the_depth(stage: str, seconds: tuple[dict[str, float], dict[str, float]]):
    small, large = seconds
    assert large[stage] < SLACK * LARGE / SMALL * small[stage]


def test_all_units_of_a_stage_share_their_kernels(tmp_path: Path):
    kernels: list[int] = []

    def count(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "lower-relay-to-te":
            kernels.append(sum(op.name == "te.func" for op in module.ops))

    for units in (3, 6):
        lower_module(mirstack.load(written(units, tmp_path, stages=1)), Options(), (count,))
    assert kernels[0] == kernels[1] > 0
