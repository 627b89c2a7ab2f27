"""Every Relay pass on random programs: what they compute stays, they are valid and print as they read, twice is as once."""

from __future__ import annotations

import random
from functools import cache
from importlib import import_module
from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.gradient import all_gradients
from mirstack.dialects.relay.operator import all_operators
from mirstack.fuzz.operators.sampling import flat
from mirstack.fuzz.relay.graphs import GRAPHS_FOR_ALL, Graph, random_graph
from mirstack.fuzz.relay.pipelines import NOT_IDEMPOTENT, PIPELINES, Pipeline
from mirstack.fuzz.relay.rounding import Rounding, difference, run
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.passes import ModulePass

SEEDS = range(GRAPHS_FOR_ALL)
MANY = range(1000)

REFUSES = {"first-order-gradient": ("has no gradient", "takes functions of operators and tuples only")}
"""Passes that refuse some programs, and how their messages say it."""


@cache
def graph_of(seed: int, only: tuple[str, ...] = ()) -> tuple[Graph, str, list[np.ndarray]]:
    """The program, its text and its results."""
    graph = random_graph(seed, only=only)
    return graph, print_mir(graph.module), run(graph.module, graph.inputs)


def problem(seed: int, pipeline: Pipeline, only: tuple[str, ...] = ()) -> str | None:
    """What a pipeline does wrong to the program of a seed."""
    graph, text, wanted = graph_of(seed, only)
    module = graph.module.clone()
    try:
        pipeline.run(module)
    except MirError as error:
        if any(part in error.diagnostics[0].message for part in REFUSES.get(pipeline.name, ())):
            return None
        return f"refuses: {error.diagnostics[0].message}"
    errors = find_errors(module)
    if errors:
        return f"is not valid: {errors[0].message}"
    printed = print_mir(module)
    if printed == text:
        return None
    again = print_mir(parse_mir(printed))
    if again != printed:
        return f"prints otherwise once read:\n{first_change(printed, again)}"
    got = run(module, graph.inputs)
    if pipeline.name == "first-order-gradient":
        got = got[: len(wanted)]
    changed = difference(graph.module, graph.inputs, wanted, got, pipeline.rounding)
    if changed is not None:
        return changed
    if pipeline in PIPELINES and pipeline.name not in NOT_IDEMPOTENT:
        pipeline.run(module)
        twice = print_mir(module)
        if twice != printed:
            return f"is not idempotent:\n{first_change(printed, twice)}"
    return None


def first_change(before: str, after: str) -> str:
    """The first line that differs, in both texts."""
    for a, b in zip(before.splitlines(), after.splitlines(), strict=False):
        if a != b:
            return f"  {a.strip()}\n  {b.strip()}"
    return "  lines more or less at the end"


def problems(seeds: range, pipeline: Pipeline, only: tuple[str, ...] = ()) -> str:
    found: list[str] = []
    for seed in seeds:
        try:
            wrong = problem(seed, pipeline, only)
        except MirError as error:
            wrong = f"then refused: {error.diagnostics[0].message}"
        if wrong is not None:
            found.append(f"seed {seed}: {pipeline} {wrong}")
    return "\n".join(found)


def test_every_operator_comes_up() -> None:
    used = {name for seed in SEEDS for name in graph_of(seed)[0].operators}
    assert used == set(all_operators())


def test_programs_read_as_they_print() -> None:
    for seed in SEEDS:
        text = graph_of(seed)[1]
        assert print_mir(parse_mir(text)) == text, seed


def test_every_pass_is_tested() -> None:
    """Every file in passes/relay that is a pass is registered, and in the pipelines."""
    folder = Path(mirstack.__file__).parent / "passes" / "relay"
    passes = {path.stem.replace("_", "-") for path in folder.rglob("*.mir")}
    for path in folder.glob("*/*.py"):
        module = import_module(f"mirstack.passes.relay.{path.parent.name}.{path.stem}")
        passes |= {
            made.name
            for made in vars(module).values()
            if isinstance(made, type) and issubclass(made, ModulePass) and made.__module__ == module.__name__
        }
    assert len(passes) >= 40
    assert {pipeline.name for pipeline in PIPELINES} >= passes


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_pass(pipeline: Pipeline) -> None:
    """A third of the programs for each pass, by turns."""
    assert not (found := problems(SEEDS[PIPELINES.index(pipeline) % 3 :: 3], pipeline)), found


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_pass_on_many(pipeline: Pipeline) -> None:
    assert not (found := problems(MANY, pipeline)), found


GRADIENT = Pipeline("first-order-gradient", None)
DIFFERENTIABLE = tuple(sorted(all_gradients()))


def test_gradients() -> None:
    """Of programs that have them."""
    assert not (found := problems(SEEDS, GRADIENT, DIFFERENTIABLE)), found


@pytest.mark.slow
def test_gradients_of_many() -> None:
    assert not (found := problems(MANY, GRADIENT, DIFFERENTIABLE)), found


def two_passes(seed: int) -> Pipeline:
    """Two passes one after the other, chosen by the seed."""
    first, second = random.Random(seed).sample([p for p in PIPELINES if p.name not in NOT_IDEMPOTENT], 2)
    roundings = [p.rounding for p in (first, second) if p.rounding is not None]
    both = Rounding(
        2 * max(r.ulps for r in roundings),
        2 * max(r.unit for r in roundings),
        2 * max(r.absolute for r in roundings),
        min(r.largest for r in roundings),
    ) if roundings else None  # fmt: skip
    return Pipeline(f"{first.text},{second.text}", both)


TWO = [two_passes(seed) for seed in range(240)]


@pytest.mark.parametrize("which", range(0, 60, 12))
def test_two_passes(which: int) -> None:
    found = [
        problems(range(seed % GRAPHS_FOR_ALL, seed % GRAPHS_FOR_ALL + 1), TWO[seed])
        for seed in range(which, which + 12)
    ]
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.slow
@pytest.mark.parametrize("which", range(len(TWO)))
def test_two_passes_on_more(which: int) -> None:
    assert not (found := problems(range(which, which + 4), TWO[which])), found


def native_problem(seed: int) -> str | None:
    """Where native code at the highest optimization level differs from the interpreter."""
    graph, _, wanted = graph_of(seed)
    got = flat(mirstack.compile(graph.module.clone(), "cpu", entry="main", opt_level=3, threads=1)(*graph.inputs))
    return difference(graph.module, graph.inputs, wanted, got, Rounding(ulps=4))


@pytest.mark.parametrize("seed", range(0, GRAPHS_FOR_ALL, 10))
def test_native(seed: int) -> None:
    assert native_problem(seed) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_native_by_many(seed: int) -> None:
    assert native_problem(seed) is None
