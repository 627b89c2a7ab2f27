"""`--check-rules` finds every wrong rule of a table, and accuses no right one."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.dialects.rule import RewriteOp
from mirstack.fuzz.rules.samples import RIGHT, WRONG, as_text, right_rules, wrong_rules
from mirstack.parser import parse_mir
from mirstack.passes.rules.annex.check import equal
from mirstack.support.diagnostics import Diagnostic
from mirstack.support.verify import verify


def problem_of(text: str) -> Diagnostic | None:
    module = parse_mir(text, "rules.mir")
    verify(module)
    (rule,) = module.ops
    assert isinstance(rule, RewriteOp)
    with np.errstate(all="ignore"):
        return equal.check_meaning(rule)


@pytest.fixture(autouse=True)
def _without_a_clock(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(equal, "SECONDS", 1e9)
    monkeypatch.setattr(equal, "PATIENCE", 1e9)


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_rules_are_found(fault: str):
    missed: list[str] = []
    for text in (text for kind, text in wrong_rules() if kind == fault):
        problem = problem_of(text)
        if problem is None or not any(
            word in problem.message for word in ("changes the meaning", "change the type", "does not fit here")
        ):
            missed.append(text)
    assert not missed


def test_right_rules_are_not_accused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(equal, "WANTED", 5)
    monkeypatch.setattr(equal, "MOST_RUNS", 4)
    accused = {text: problem.message for text in right_rules() if (problem := problem_of(text)) is not None}
    assert not accused


def test_the_mark_is_suggested():
    problem = problem_of("rewrite @log { exp(log(%x)) => %x where is_float(%x) }")
    assert problem is not None
    assert any("says so: fast rewrite @" in note.message for note in problem.notes)
    problem = problem_of('rewrite @less { add(%x, %y) => subtract(%x, %y) where %x.dtype == "int32" }')
    assert problem is not None
    assert not any("fast" in note.message for note in problem.notes)


def test_a_marked_rule_holds_for_integers():
    text = '{ divide(multiply(%x, 2), 2) => %x where %x.dtype == "int8", %x.rank > 0 }'
    assert problem_of(as_text(f"fast {text}", "half")) is not None


def test_the_tables_are_as_large_as_promised():
    assert sum(map(len, WRONG.values())) >= 60
    assert len(RIGHT) >= 60
