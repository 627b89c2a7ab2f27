"""What the errors of rules say to write instead."""

from __future__ import annotations

import pytest
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError

HINTS = {
    "add(%x, %y) -> %x": "the sides of a rule are separated by '=>'",
    "=> %x": "a rule is: lhs => rhs where condition",
    "exp(%x) =>": "write what the pattern becomes: lhs => rhs",
    "sum(%x, **rest) => %x": "all other attributes are **$rest, or **_ where they do not matter",
    "add(%x, %y) => %x if %x.rank == 1": "write what it is otherwise: a if condition else b",
    "add(%x, %y) => %x where one_use(%x) && one_use(%y)": "conditions are joined by and, or and not",
    "concatenate((%xs...)) => %xs...": "a tuple of them is (%xs...)",
    "exp(%x) => %x where %x": "ask something of it, such as all(%x > 0)",
    "mul(%x, %y) => %x": "did you mean 'multiply'?",
    "dense(%x, %y) => %x": "did you mean 'nn.dense'?",
    "transpose(%x, [1, 0]) => %x": "an op's attributes are given by name: axis=1",
    "exp(%x) => transpose(%x, [1, 0])": "an op's attributes are given by name: axis=1",
    "exp(%x) => add(%x, %x.rank)": "a number of the program is const(%x.rank)",
    "cast(%x, dtype=int8) => %x": 'a captured value is %int8, an attribute $int8, an op int8(…), a string "int8"',
}


@pytest.mark.parametrize("text", HINTS)
def test_hint(text: str):
    with pytest.raises(MirError) as caught:
        parse_mir(f"rewrite @a {{ {text} }}", "rule.mir")
    assert f"note: {HINTS[text]}" in str(caught.value)


def test_hint_of_a_benefit():
    with pytest.raises(MirError) as caught:
        parse_mir("rewrite @a benefit 3 { exp(%x) => %x }", "rule.mir")
    assert "note: write benefit(2)" in str(caught.value)
