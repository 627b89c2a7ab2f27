"""Every Relay pass takes a time that is linear in the size of the program."""

from __future__ import annotations

from functools import cache

import pytest
from mirstack.benchmarks.passes import PIPELINES, by_size, refused
from mirstack.benchmarks.programs import PROGRAMS
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

SIZES = (250, 2000)
SMALL = 100

IDLE = {"infer-type", "remove-unused-functions"}
"""Programs are typed when they are read, and all functions may be entries."""


@cache
def modules(shape: str) -> list[ModuleOp]:
    return [parse_mir(PROGRAMS[shape](size)) for size in SIZES]


MADE_FOR = {
    "unpacked": ("fold-constant", "fuse-ops", "split-args", "to-mixed-precision"),
    "functions": ("dead-code-elimination", "inline", "lambda-lift", "remove-unused-functions", "to-graph-normal-form"),
    "closures": ("defunctionalization", "eta-expand", "lambda-lift", "monomorphize", "partial-evaluate"),
    "branches": ("partial-evaluate", "to-a-normal-form", "to-basic-block-normal-form", "to-mixed-precision"),
    "layers": (
        "alter-op-layout", "backward-fold-scale-axis", "canonicalize-cast", "canonicalize-ops", "combine-parallel-conv2d",
        "convert-layout", "flatten-atrous-conv", "fold-explicit-padding", "forward-fold-scale-axis",
        "legalize", "simplify-inference",
    ),
    "quantized": ("fake-quantization-to-integer", "qnn-canonicalize-ops", "qnn-legalize"),
    "constants": ("defuse-ops", "dynamic-to-static", "fold-constant", "partial-evaluate"),
}  # fmt: skip
"""Which passes have something to do in programs other than chains and wide ones."""

CASES = [(pipeline, shape) for shape in ("chain", "wide") for pipeline in PIPELINES] + [
    (pipeline, shape)
    for shape, names in MADE_FOR.items()
    for pipeline in PIPELINES
    if pipeline.partition("{")[0] in names
]


@pytest.mark.parametrize(("pipeline", "shape"), CASES)
def test_linear(pipeline: str, shape: str) -> None:
    """Eight times the ops take about eight times as long; a square would take sixty-four."""
    small, large = by_size(pipeline, modules(shape), runs=2)
    assert large < 24 * max(small, 0.003)


@pytest.mark.parametrize("shape", PROGRAMS)
def test_programs_are_of_the_size_that_is_asked_for(shape: str) -> None:
    for size, module in zip(SIZES, modules(shape), strict=True):
        assert 0.8 * size < sum(1 for _ in walk_ops(module)) < 1.4 * size


def test_every_pass_has_something_to_do() -> None:
    """In one of the programs each pass leaves another program than it was given."""
    idle = set(PIPELINES)
    for shape, make in PROGRAMS.items():
        module = parse_mir(make(SMALL))
        before = print_mir(module)
        for pipeline in sorted(idle):
            if not refused(shape, pipeline):
                copy = module.clone()
                for module_pass in read_pipeline(pipeline, pass_factories()):
                    module_pass.apply(Context(), copy)
                if print_mir(copy) != before:
                    idle.remove(pipeline)
    assert idle <= IDLE
