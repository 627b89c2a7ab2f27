"""Constants of replacements: their dtypes, what they compute, and numbers that a dtype does not hold."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack import rules
from mirstack.dialects.relay import all_operators
from mirstack.dialects.relay.interpreter import interpret
from mirstack.dialects.rule import ConstantOp, RewriteOp
from mirstack.dialects.rule.dtypes import dtype_source
from mirstack.dialects.rule.levels import named_level
from mirstack.dialects.rule.numbers import why_not_held
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from xdsl.dialects.builtin import IntegerType, bf16, f16

X = np.array([-5, -2, 0, 3, 4], np.int32)


@pytest.mark.parametrize(
    ("replacement", "wanted"),
    [
        ("abs(%x) > const(3)", abs(X) > 3),
        ("3 >= abs(%x)", abs(X) <= 3),
        ("(abs(%x) > 1) == (2 + 1 < abs(%y))", (abs(X) > 1) == (abs(X) > 3)),
        ("where(%x > 0, abs(%x), 7) > 4", np.where(X > 0, abs(X), 7) > 4),
        ("(abs(%x) if %x.rank == 1 else 3) < 4", abs(X) < 4),
        ('cast(1, dtype="int32") < abs(%x)', abs(X) > 1),
        ("logical_and(abs(%x) > 2, True)", abs(X) > 2),
    ],
)
def test_constants_are_of_the_dtype_beside_them(replacement: str, wanted: object):
    text = f"rewrite @r {{ logical_not(equal(%x, %y)) => {replacement} }}"
    (rule,) = parse_mir(text).ops
    assert isinstance(rule, RewriteOp)
    program = parse_mir("def @main(%x: Tensor[(5,), int32]) { logical_not(equal(%x, %x)) }")
    module = rules.apply(mirstack.IRModule.of_op(program), [rule], mode="once")
    assert "logical_not" not in module.astext()
    assert np.array_equal(np.asarray(interpret(module.op, "main", [X])), np.asarray(wanted))


def test_a_constant_waits_for_no_value_that_uses_it():
    text = "rewrite @r { exp(%x) => %s where %c = const(1), %s = add(negative(%c), %c) }"
    (rule,) = parse_mir(text).ops
    constants = [op for op in rule.walk() if isinstance(op, ConstantOp)]
    assert [dtype_source(op) for op in constants] == [None]


def test_rules_in_python_report_numbers_that_do_not_fit():
    x = rules.values("x")
    with pytest.raises(MirError, match=r"70000\.0 does not fit into float16") as caught:
        rules.rewrite("half", rules.op.exp(x), rules.op.add(x, rules.const(70000.0, "float16")))
    assert "test_rule_constants.py:" in str(caught.value)
    rule = rules.rewrite("grow", rules.op.exp(x), rules.op.add(x, 1e300))
    module = mirstack.IRModule.of_op(parse_mir("def @main(%x: Tensor[(2,), float32]) { exp(%x) }"))
    with pytest.raises(MirError, match=r"1e\+300 does not fit into float32"):
        rules.apply(module, [rule])


def test_operators_of_one_dtype_are_those_that_broadcast():
    level = named_level("relay")
    for operator in all_operators().values():
        relation = getattr(operator.relation, "__name__", "")
        found = level.of_one_dtype(f"relay.{operator.name}")
        if relation in ("broadcast", "compare"):
            assert found == (tuple(range(len(operator.arguments))), relation == "broadcast"), operator.name
        else:
            assert found == (((1, 2), True) if operator.name == "where" else ((), False)), operator.name


def test_ranges():
    assert why_not_held(127, IntegerType(8)) is None
    assert why_not_held(128, IntegerType(8)) == "int8 holds -128 to 127"
    assert why_not_held(255, IntegerType(8), True) is None
    assert why_not_held(2, IntegerType(1)) is None
    assert why_not_held(float("inf"), IntegerType(1)) == "bool holds 0 to 1"
    assert why_not_held(65504, f16) is None
    assert why_not_held(1e39, bf16) is not None
    assert why_not_held(float("inf"), bf16) is None
