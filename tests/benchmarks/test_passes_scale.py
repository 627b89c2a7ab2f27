"""Every Relay pass takes a time that is linear in the size of the program."""

from __future__ import annotations

from functools import cache

import pytest
from mirstack.benchmarks.passes import PIPELINES, SHAPES, by_size
from mirstack.parser import parse_mir
from xdsl.dialects.builtin import ModuleOp

SIZES = (250, 2000)


@cache
def modules(shape: str) -> list[ModuleOp]:
    return [parse_mir(SHAPES[shape](size)) for size in SIZES]


@pytest.mark.parametrize("shape", ["chain", "wide"])
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_linear(pipeline: str, shape: str) -> None:
    """Eight times the ops take about eight times as long; a square would take sixty-four."""
    small, large = by_size(pipeline, modules(shape), runs=2)
    assert large < 24 * max(small, 0.003)
