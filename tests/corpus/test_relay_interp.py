"""Every Relay program of the corpus that has numbers gives, interpreted, what TVM computed."""

from __future__ import annotations

import pytest
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.parser import parse_mir
from reference import Case
from relay_reference import NOT_THE_PROGRAM, check_outputs, pass_cases, pass_id, relay_cases


def run(case: Case) -> None:
    module = parse_mir(case.text, case.name, directory=str(case.json_path.parent))
    check_outputs(case, module, flatten(interpret(module, "main", case.inputs())))


@pytest.mark.parametrize("case", relay_cases(), ids=lambda c: c.name)
def test_interpreted(case: Case) -> None:
    if case.name in NOT_THE_PROGRAM:
        pytest.skip(NOT_THE_PROGRAM[case.name])
    run(case)


@pytest.mark.parametrize("case", pass_cases(), ids=pass_id)
def test_pass_program_interpreted(case: Case) -> None:
    """Programs before and after TVM's passes."""
    if (excuse := NOT_THE_PROGRAM.get(pass_id(case).split(".")[0])) is not None:
        pytest.skip(excuse)
    run(case)
