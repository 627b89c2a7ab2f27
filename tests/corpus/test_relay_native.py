"""Every Relay program of the corpus that has numbers gives, in native code, what TVM computed."""

from __future__ import annotations

import mirstack
import pytest
from mirstack.lowering.driver.loading.executable import flatten
from reference import Case
from relay_reference import NOT_THE_PROGRAM, check_outputs, pass_cases, pass_id, relay_cases

# Programs before and after a pass have most kernels in common.
pytestmark = pytest.mark.usefixtures("kept_kernels")


def run(case: Case, opt_level: int) -> None:
    module = mirstack.parse(case.text, case.name, directory=str(case.json_path.parent))
    check_outputs(case, module, flatten(mirstack.compile(module, entry="main", opt_level=opt_level)(*case.inputs())))


@pytest.mark.parametrize("opt_level", [3, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", relay_cases(), ids=lambda c: c.name)
def test_native(case: Case, opt_level: int) -> None:
    if case.name in NOT_THE_PROGRAM:
        pytest.skip(NOT_THE_PROGRAM[case.name])
    run(case, opt_level)


@pytest.mark.parametrize("opt_level", [3, pytest.param(0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", pass_cases(), ids=pass_id)
def test_pass_program_native(case: Case, opt_level: int) -> None:
    """Programs before and after TVM's passes."""
    if (excuse := NOT_THE_PROGRAM.get(pass_id(case).split(".")[0])) is not None:
        pytest.skip(excuse)
    run(case, opt_level)
