"""What `--check-rules` says where no lit test can: without z3, and when z3 gives up."""

from __future__ import annotations

import sys

import pytest
from mirstack.dialects.rule import RewriteOp
from mirstack.fuzz.rules.samples import as_text
from mirstack.parser import parse_mir
from mirstack.passes.rules.annex.check import check_rules, integers
from mirstack.passes.rules.annex.check.scalars import check_scalars
from mirstack.passes.rules.annex.check.terminate import check_termination
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
    problem, _ = integers.prove(hard)
    assert problem is not None
    assert problem.message.startswith("rule @hard could not be proven for 64 bits in 0 s")


def test_z3_gives_up_on_many_bits(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("z3")
    monkeypatch.setattr(integers, "WIDTHS", (3, 64))
    monkeypatch.setattr(integers, "PATIENCE", 1)
    (hard,) = rules("rewrite @hard for tir { floormod(%x, %y) => %x - floordiv(%x, %y) * %y }")
    assert integers.prove(hard) == (None, "proven for 3 bits, not decided for 64")


REASONS = {
    "rewrite @r { exp(log(%x)) => %x }": "by the size of programs",
    "rewrite @r { tan(%x) => divide(sin(%x), cos(%x)) }": "as ops become others that weigh less",
    "rewrite @r { transpose(exp(%x)) => exp(transpose(%x)) }": "as transpose moves inward",
    "rewrite @r { add(exp(%x), %y) => add(sin(sin(sin(%x))), %y) } rewrite @s { sin(%x) => cos(%x) }": None,
    "rewrite @r { nn.matmul(nn.matmul(%a, %b), %c) => nn.matmul(%a, nn.matmul(%b, %c)) }": "by a path order",
    "rewrite @r { multiply(%x, add(%y, %z)) => add(multiply(%x, %y), multiply(%x, %z)) }": "by a path order, multiply > add",
    "rewrite @r { negative([add, multiply]$op(%x, %y)) => $op(negative(%x), negative(%y)) }": "by a path order, negative > add, negative > multiply",
    "rewrite @r { concatenate((%a..., add(%x, %y), %b...)) => add(concatenate((%a..., %x, %b...)), concatenate((%a..., %y, %b...))) }": "by a path order",
    "rewrite @r { exp(add(%x, 0)) => exp(exp(%x)) if %x.rank > 1 else exp(exp(%x)) where %x.rank > 0 }": None,
}


@pytest.mark.parametrize("text", REASONS)
def test_the_reason_is_told(text: str):
    reasons: dict[str, list[RewriteOp]] = {}
    assert not check_termination(rules(text), None, reasons)
    wanted = REASONS[text]
    assert sum(map(len, reasons.values())) == len(rules(text))
    if wanted is not None:
        assert any(reason.startswith(wanted) for reason in reasons), reasons


def test_conditions_that_exclude_each_other():
    text = (
        "rewrite @r for arith { cmpi(%x, %y, predicate=0) => cmpi(%y, %x, predicate=0)"
        " where is_constant(%x) and not is_constant(%y) }"
    )
    reasons: dict[str, list[RewriteOp]] = {}
    assert not check_termination(rules(text), None, reasons)
    assert list(reasons) == ["as what one makes never leads back to it"]
    assert check_termination(rules(text.replace("not is", "is")))
    # A sum's operands are matched in either order, so that this applies to what it makes.
    assert check_termination(rules(text.replace("cmpi", "addi").replace(", predicate=0", "")))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{ %x + 0 => %x }", "%x = -0.0"),
        ("{ not %x < %y => %x >= %y }", "True became False"),
        ("{ %x - %x => 0 }", "nan became"),
        ("{ (%x + %y) - %y => %x }", "became"),
        ("{ %x / %c => %x * const(1 / %c) where is_constant(%c), %c != 0, is_float(%x) }", "became"),
        ("{ %x * 0 => 0 where not %x == 0 }", "became"),
        ("fast { %x / %y => %x * %y where is_float(%x) }", "became"),
        ("fast { max(%x, %y) => %x where is_float(%x) }", "became"),
        ("{ floordiv(%x, 1) => %x }", "became"),
    ],
)
def test_wrong_rules_of_tir_on_floats(text: str, wanted: str):
    (rule,) = rules(as_text(text, "wrong").replace("@wrong", "@wrong for tir"))
    problem, _ = check_scalars(rule)
    assert problem is not None
    assert "@wrong changes the meaning of floats: " in problem.message
    assert wanted in problem.message
    assert rule.is_fast or "fast rewrite @" in problem.notes[0].message


@pytest.mark.parametrize(
    ("text", "tried"),
    [
        ("{ %x * 1 => %x }", True),
        ("{ %x > %y => %y < %x }", True),
        ("{ max(%x, %y) => select(%x > %y, %x, %y) where not is_float(%x) }", False),
        ('{ %x + %x => %x * 2 where %x.dtype != "bool" }', True),
        ("{ min(max(%x, %y), %x) => %x where not is_float(%x) }", False),
        ("{ not %x == %y => %x != %y }", True),
        ("fast { %x + 0 => %x }", True),
        ("fast { not %x < %y => %x >= %y }", True),
        ('fast { (%x + %y) - %y => %x where %x.dtype != "bool" }', True),
        ("{ %x + 0 => %x where not is_float(%x) }", False),
        ('{ %x - %x => 0 where %x.dtype == "int32" }', False),
        ("{ (%x and %y) or %x => %x }", False),
        ("{ floordiv(%x, 1) => %x where is_integer(%x) }", False),
    ],
)
def test_right_rules_of_tir_on_floats(text: str, tried: bool):
    (rule,) = rules(as_text(text, "right").replace("@right", "@right for tir"))
    problem, dtypes = check_scalars(rule)
    assert problem is None
    assert ("float32" in dtypes) == tried


DISTRIBUTE = "multiply(add(%x, %y), %z)", "add(multiply(%x, %z), multiply(%y, %z))"
BESIDE = {
    "two": (
        f"rewrite @a {{ {DISTRIBUTE[0]} => {DISTRIBUTE[1]} }} rewrite @b {{ {DISTRIBUTE[1]} => {DISTRIBUTE[0]} }}"
        " rewrite @relu { nn.relu(nn.relu(%x)) => nn.relu(%x) }",
        ["rules do not come to an end: @a → @b → @a"],
    ),
    "three": (
        "rewrite @relu { nn.relu(nn.relu(%x)) => nn.relu(%x) } rewrite @a { tan(%x) => sin(%x) } rewrite @b { sin(%x) => cos(%x) }"
        " rewrite @c { cos(%x) => tan(%x) } rewrite @far { cos(cos(%x)) => cos(%x) }",
        ["rules do not come to an end: @a → @b → @c → @a"],
    ),
    "one": (
        "rewrite @grow { exp(%x) => exp(add(%x, 0)) } rewrite @shrink { exp(exp(%x)) => exp(%x) }",
        ["rule @grow does not come to an end: it applies to what it makes"],
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_only_rules_of_the_cycle_are_blamed(name: str):
    text, wanted = BESIDE[name]
    assert [problem.message for problem in check_termination(rules(text))] == wanted


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


def test_constants_of_the_program_are_shown():
    (problem,) = check_rules(rules("rewrite @w { add(%x, %c) => %x where is_constant(%c), %c.rank == 1 }"))
    shown = str(MirError([problem]))
    assert "meta[relay.Constant][0] is [" in shown and "b64ndarrays" not in shown
