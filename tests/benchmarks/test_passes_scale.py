"""Every Relay pass takes a time that is linear in the size of the program."""

from __future__ import annotations

from functools import cache

import pytest
from mirstack.benchmarks.passes import PIPELINES, refused, seconds
from mirstack.benchmarks.programs import PROGRAMS
from mirstack.benchmarks.timing import growth
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

SIZES = (150, 1_200)
LARGE_SIZES = (1_000, 8_000)
SMALL = 100

IDLE = {
    "infer-type", "remove-unused-functions", "conv2d-to-winograd", "loop-invariant-code-motion", "narrow-weights",
    "quantized-channels-last", "quantize-weights",
}  # fmt: skip
"""Programs are typed when they are read, all functions may be entries, weights are inputs, and no function calls itself."""


@cache
def module(shape: str, size: int) -> ModuleOp:
    return parse_mir(PROGRAMS[shape](size))


MADE_FOR = {
    "unpacked": ("first-order-gradient", "fold-constant", "fuse-ops", "split-args", "to-mixed-precision"),
    "functions": ("dead-code-elimination", "inline", "lambda-lift", "remove-unused-functions", "to-graph-normal-form"),
    "closures": ("defunctionalization", "eta-expand", "lambda-lift", "monomorphize", "partial-evaluate"),
    "branches": ("partial-evaluate", "to-a-normal-form", "to-basic-block-normal-form", "to-mixed-precision"),
    "layers": (
        "alter-op-layout", "backward-fold-scale-axis", "canonicalize-cast", "canonicalize-ops", "combine-parallel-conv2d",
        "conv2d-to-winograd", "conv2d-transpose-to-depth-to-space", "convert-layout", "flatten-atrous-conv", "fold-explicit-padding", "forward-fold-scale-axis",
        "legalize", "simplify-inference",
    ),
    "quantized": ("fake-quantization-to-integer", "qnn-canonicalize-ops", "qnn-legalize"),
    "attention": ("fuse-attention",),
    "shared": ("group-batch-matmul",),
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
    assert growth(lambda size: seconds(pipeline, module(shape, size)), *SIZES, below=24) < 24


@pytest.mark.slow
@pytest.mark.parametrize("shape", PROGRAMS)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_pass_is_linear_in_every_program(pipeline: str, shape: str) -> None:
    if not refused(shape, pipeline):
        assert growth(lambda size: seconds(pipeline, module(shape, size)), *LARGE_SIZES, below=20) < 20


@pytest.mark.parametrize("shape", PROGRAMS)
def test_programs_are_of_the_size_that_is_asked_for(shape: str) -> None:
    for size in SIZES:
        assert 0.8 * size < sum(1 for _ in walk_ops(module(shape, size))) < 1.4 * size


def test_every_pass_has_something_to_do() -> None:
    """In one of the programs each pass leaves another program than it was given."""
    idle = set(PIPELINES)
    for shape, make in PROGRAMS.items():
        given = parse_mir(make(SMALL))
        before = print_mir(given)
        for pipeline in sorted(idle):
            if not refused(shape, pipeline):
                copy = given.clone()
                for module_pass in read_pipeline(pipeline, pass_factories()):
                    module_pass.apply(Context(), copy)
                if print_mir(copy) != before:
                    idle.remove(pipeline)
    assert idle <= IDLE
