"""Every executable TIR program of the corpus gives, in native code, what TVM computed."""

from __future__ import annotations

import mirstack
import pytest
from reference import Case, cases, corpus_dir

CASES = [c for c in cases(corpus_dir("tir"), ".py") if c.executable]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_native(case: Case) -> None:
    module = mirstack.parse(case.text, case.name)
    arguments = case.inputs()
    mirstack.compile(module, entry=case.info["entry"])(*arguments)
    case.check(arguments)
