"""Compiling a deep network: its kernels are compiled once, and what grows with the depth grows no faster than it."""

from __future__ import annotations

from pathlib import Path

import mirstack
import pytest
from mirstack.benchmarks.depth import stages, written
from mirstack.lowering.driver.build import lower_module
from mirstack.lowering.pipeline import Options
from mirstack.support.deep_stack import in_deep_stack
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

SMALL, LARGE = 8, 32
"""Units of the one stage."""

OF_KERNELS = ("lower-te-to-tir", "default-schedule", "vectorize-loop", "lower-tir-to-scf", "lower-std-to-llvm", "LLVM")
OF_THE_GRAPH = ("parse and type", "fuse-ops", "lower-relay-to-te", "lower-relay-to-llvm")

SLACK = 2.5
"""How much a ratio of times may differ from that of the sizes: the machine does other things, too."""


TRIES = 4
"""How often is measured at most, for the least of each time: other work on the machine only adds."""


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds by stage of the small network and of the large one."""
    folder = tmp_path_factory.mktemp("depth")
    networks = [written(size, folder, stages=1) for size in (SMALL, LARGE)]
    in_deep_stack(lambda: stages(networks[0]))
    small, large = (in_deep_stack(lambda path=path: stages(path)) for path in networks)
    for _ in range(TRIES - 1):
        if all(large[stage] < limit(stage) * small[stage] for stage in (*OF_KERNELS, *OF_THE_GRAPH)):
            break
        for least, path in zip((small, large), networks, strict=True):
            again = in_deep_stack(lambda path=path: stages(path))
            least.update({stage: min(least[stage], again[stage]) for stage in least})
    return small, large


def limit(stage: str) -> float:
    """What the large network may take times the small one."""
    return SLACK * (LARGE / SMALL if stage in OF_THE_GRAPH else 1)


@pytest.mark.parametrize("stage", OF_KERNELS)
def test_what_kernels_cost_does_not_depend_on_the_depth(stage: str, seconds: tuple[dict[str, float], dict[str, float]]):
    small, large = seconds
    assert large[stage] < limit(stage) * small[stage]


@pytest.mark.parametrize("stage", OF_THE_GRAPH)
def test_what_the_graph_costs_is_linear_in_the_depth(stage: str, seconds: tuple[dict[str, float], dict[str, float]]):
    small, large = seconds
    assert large[stage] < limit(stage) * small[stage]


def test_all_units_of_a_stage_share_their_kernels(tmp_path: Path):
    kernels: list[int] = []

    def count(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "lower-relay-to-te":
            kernels.append(sum(op.name == "te.func" for op in module.ops))

    for units in (3, 6):
        lower_module(mirstack.load(written(units, tmp_path, stages=1)), Options(), (count,))
    assert kernels[0] == kernels[1] > 0
