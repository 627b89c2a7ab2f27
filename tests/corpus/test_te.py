"""The corpus of TE programs with schedules: what they compute, what they are refused for, and how they are lowered."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import mirstack as tvm
from mirstack import te
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.structural_key import structural_key
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from reference import Case, cases, corpus_dir

CASES = list(cases(corpus_dir("te"), ".py"))
EXECUTABLE = [case for case in CASES if case.executable]
REFUSED = [case for case in CASES if "error" in case.info]


def program(case: Case) -> tuple[Any, list[Any]]:
    """The schedule and the parameters that the program makes."""
    names: dict[str, Any] = {"tvm": tvm, "te": te}
    exec(compile(case.text, str(case.json_path.with_suffix(".py")), "exec"), names)
    return names["s"], names["args"]


@pytest.mark.parametrize("target", ["interp", "llvm"])
@pytest.mark.parametrize("case", EXECUTABLE, ids=[case.name for case in EXECUTABLE])
def test_recorded_result(case: Case, target: str):
    schedule, args = program(case)
    module = tvm.lower(schedule, args, simple_mode=True)
    values = [np.array(v) if isinstance(v, np.ndarray) else v for v in case.inputs()]
    tvm.build(module, target=target)["main"](*values)
    case.check(values)


@pytest.mark.parametrize("case", REFUSED, ids=[case.name for case in REFUSED])
def test_refused(case: Case):
    with pytest.raises(MirError):
        schedule, args = program(case)
        tvm.lower(schedule, args, simple_mode=True)


LOWERED = [case for case in CASES if case.info.get("lowered")]
DIFFERENT = {
    "049_reduce_crossthread": "threads beyond the tensor store nothing here; TVM lets them write past its end",
}
"""What prints otherwise than TVM, and why."""


def alpha(text: str) -> str:
    """The text of a module's function with its names numbered."""
    function = next(op for op in parse_mir(text).ops if isinstance(op, PrimFuncOp))
    return structural_key(function)


@pytest.mark.parametrize("case", LOWERED, ids=[case.name for case in LOWERED])
def test_printed_form(case: Case):
    if case.name in DIFFERENT:
        pytest.skip(DIFFERENT[case.name])
    schedule, args = program(case)
    assert alpha(tvm.lower(schedule, args, simple_mode=True).script()) == alpha(case.info["lowered"])
