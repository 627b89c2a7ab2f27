"""Every executable TIR program of the corpus gives, in native code, what TVM computed."""

from __future__ import annotations

import mirstack
import pytest
from reference import OUT_OF_BOUNDS, UNDEFINED, Case, cases, corpus_dir

# What reaches outside of its buffers is not run: native code would write there.
CASES = [c for c in cases(corpus_dir("tir"), ".py") if c.executable and not c.name.startswith(OUT_OF_BOUNDS)]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_native(case: Case) -> None:
    module = mirstack.parse(case.text, case.name)
    arguments = case.inputs()
    mirstack.compile(module, entry=case.info["entry"])(*arguments)
    if not case.name.startswith(UNDEFINED):
        case.check(arguments)
