"""Every Relay pass on every executable Relay program of the corpus: what it computes stays, it is valid, prints as it
reads, and twice is as once."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.ir import CallGlobalOp
from mirstack.dialects.relay.operator import is_operator
from mirstack.driver.check_each import CheckEach, interpret
from mirstack.driver.run_inputs import draw
from mirstack.fuzz.relay.pipelines import NOT_IDEMPOTENT, PIPELINES, Pipeline
from mirstack.fuzz.relay.rounding import difference, run
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.pass_info import pass_info
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from reference import Case, cases, corpus_dir
from relay_reference import pass_cases, pass_id
from xdsl.dialects.builtin import AnyFloat, ModuleOp, TensorType
from xdsl.ir import SSAValue

CASES = {
    **{case.name: case for case in cases(corpus_dir("relay"), ".relay") if case.executable},
    **{pass_id(case): case for case in pass_cases() if case.text_suffix == ".in.relay"},
}
SAMPLE = 30
"""Of how many programs one is run by default."""

REFUSES = {
    "first-order-gradient": ("has no gradient", "takes functions of operators and tuples only"),
    "defunctionalization": ("has a field that is a function", "takes or gives a function"),
}
"""Passes that refuse some programs, and how their messages say it."""

ONE_UNIT = {"FakeQuantizationToInteger/038.in": "an interpolation of integers rounds where that of floats did not"}
"""Programs whose quantized results a pass that makes integers of floats may change by one unit, and why."""


@cache
def program(name: str) -> tuple[ModuleOp, str, list[Any], list[Any]]:
    """The program, its text as it is printed, its inputs and its results."""
    case: Case = CASES[name]
    module = parse_mir(case.text, case.name, directory=str(case.json_path.parent))
    inputs = case.inputs()
    return module, print_mir(module), inputs, run(module, inputs)


def rounds_to_integers(module: ModuleOp) -> bool:
    """Whether floats become integers in a program, where the least rounding may make a difference of 1."""
    casts = [op for op in walk_ops(module) if is_operator(op, "cast")]
    return any(not _is_float(op.results[0]) and _is_float(op.operands[0]) for op in casts)


def takes_turns(pipeline: Pipeline, module: ModuleOp) -> bool:
    """Whether a pass would go one turn further into functions that call themselves, were it run again on `module`."""
    return pipeline.name == "partial-evaluate" and any(isinstance(op, CallGlobalOp) for op in walk_ops(module))


def _is_float(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(value.type.element_type, AnyFloat)


def problem(name: str, pipeline: Pipeline) -> str | None:
    """What a pass does wrong to a program."""
    before, text, inputs, wanted = program(name)
    module = before.clone()
    try:
        pipeline.run(module)
    except MirError as error:
        message = error.diagnostics[0].message
        return None if any(part in message for part in REFUSES.get(pipeline.name, ())) else f"refuses: {message}"
    if (printed := print_mir(module)) == text:
        return None
    if errors := find_errors(module):
        return f"is not valid: {errors[0].message}"
    if print_mir(parse_mir(printed)) != printed:
        return "prints otherwise once read"
    if pipeline.name == "to-mixed-precision" and rounds_to_integers(before):
        return None
    got = run(module, inputs)
    if pipeline.name == "fake-quantization-to-integer" and name in ONE_UNIT:
        apart = np.abs(got[0].astype(np.int64) - wanted[0])
        return None if apart.max() <= 1 else "is more than one unit off"
    if pipeline.name == "first-order-gradient":
        got = got[: len(wanted)]
    changed = difference(before, inputs, wanted, got, pipeline.rounding)
    if changed is None and pipeline.name not in NOT_IDEMPOTENT and not takes_turns(pipeline, module):
        pipeline.run(module)
        if print_mir(module) != printed:
            return "is not idempotent"
    return changed


def problems(names: list[str], pipeline: Pipeline) -> str:
    found: list[str] = []
    for name in names:
        try:
            wrong = problem(name, pipeline)
        except MirError as error:
            wrong = f"then refused: {error.diagnostics[0].message}"
        if wrong is not None:
            found.append(f"{name}: {pipeline} {wrong}")
    return "\n".join(found)


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_pass(pipeline: Pipeline) -> None:
    assert not (found := problems(sorted(CASES)[::SAMPLE], pipeline)), found


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_pass_on_all(pipeline: Pipeline) -> None:
    assert not (found := problems(sorted(CASES), pipeline)), found


@cache
def drawn_results(name: str) -> dict[str, np.ndarray]:
    """What the program gives on inputs drawn from a seed, as `--check-each` draws them."""
    return interpret(program(name)[0], 0)


def told(name: str, pipeline: Pipeline) -> str | None:
    """What `--check-each` says of a pass on a program."""
    before, text, _, _ = program(name)
    if pipeline.name == "fake-quantization-to-integer" and name in ONE_UNIT:
        return None
    module = before.clone()
    try:
        pipeline.run(module)
    except MirError:
        return None  # As `problem` has checked.
    if print_mir(module) == text:
        return None
    check = CheckEach(interpret)
    check.results = drawn_results(name)
    try:
        check.run_after_pass(module, pass_info(pipeline.name, str(pipeline)))
    except MirError as error:
        message = error.diagnostics[0].message
        # Floats of 16 bits end at 65504, and a softmax of large numbers makes much of what their rounding leaves. It is right to
        # tell of both.
        if pipeline.name == "to-mixed-precision" and (
            re.search("now it is (-?inf|nan) ", message) or is_rounding(before, module, pipeline)
        ):
            return None
        return f"{name}: {message}"
    return None


def is_rounding(before: ModuleOp, after: ModuleOp, pipeline: Pipeline) -> bool:
    """Whether the arithmetic of the pass explains how results on drawn inputs differ, as measured by random roundings."""
    inputs = list(draw(mirstack.compile(before, "interp").params, {}, 0).values())
    return difference(before, inputs, run(before, inputs), run(after, inputs), pipeline.rounding) is None


@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_check_each(pipeline: Pipeline) -> None:
    assert not (found := list(filter(None, (told(name, pipeline) for name in sorted(CASES)[1::SAMPLE])))), found


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES, ids=str)
def test_check_each_on_all(pipeline: Pipeline) -> None:
    assert not (found := list(filter(None, (told(name, pipeline) for name in sorted(CASES))))), found
