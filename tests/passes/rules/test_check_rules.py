"""What `--check-rules` says where no lit test can: without z3, and when z3 gives up."""

from __future__ import annotations

import sys

import pytest
from mirstack.dialects.rule import RewriteOp
from mirstack.parser import parse_mir
from mirstack.passes.rules.check import check_rules, integers
from mirstack.passes.rules.check.terminate import check_termination
from mirstack.support.diagnostics import MirError


def rules(text: str) -> list[RewriteOp]:
    return [op for op in parse_mir(text, "rules.mir").ops if isinstance(op, RewriteOp)]


def test_without_z3(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(MirError) as caught:
        check_rules(rules("rewrite @zero for tir { %x + 0 => %x }"))
    assert "rule @zero is proven by z3, which is not installed" in str(caught.value)
    assert "pip install 'mirstack[z3]'" in str(caught.value)


def test_z3_gives_up(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("z3")
    monkeypatch.setattr(integers, "WIDTHS", (64,))
    monkeypatch.setattr(integers, "TIMEOUT", 1)
    (hard,) = rules("rewrite @hard for tir { floormod(%x, %y) => %x - floordiv(%x, %y) * %y }")
    problem = integers.prove(hard)
    assert problem is not None
    assert problem.message.startswith("rule @hard could not be proven for 64 bits in 0 s")


@pytest.mark.parametrize(
    "text",
    [
        "rewrite @smaller { negative(negative(%x)) => %x }",
        "rewrite @copies { tan(%x) => divide(sin(%x), cos(%x)) }",
        "rewrite @inward { transpose(exp(%x)) => exp(transpose(%x)) }",
        "rewrite @a { power(%x, 2) => multiply(%x, %x) } rewrite @b { multiply(%x, 1) => %x }",
    ],
)
def test_measures_are_found(text: str):
    assert not check_termination(rules(text))


@pytest.mark.parametrize(
    "text",
    [
        "rewrite @grow { exp(%x) => exp(add(%x, 0)) }",
        "rewrite @a { tan(%x) => sin(%x) } rewrite @b { sin(%x) => cos(%x) } rewrite @c { cos(%x) => tan(%x) }",
        "rewrite @associate { add(add(%x, %y), %z) => add(%x, add(%y, %z)) }",
    ],
)
def test_cycles_are_found(text: str):
    assert check_termination(rules(text))
