"""The rules of `rewrite_simplify` are true of numbers, and results are in the form that TVM's tests expect."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
from mirstack import arith, te, tir
from mirstack.api.ir.structural import structural_equal
from mirstack.dialects.arith.rewrite_simplify import RewriteRule, RuleTerm, rules

x, y, z = (te.var(name) for name in "xyz")
fld, flm, tdiv, tmod = te.floordiv, te.floormod, te.truncdiv, te.truncmod
low, high = te.min, te.max


def _truncdiv(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_COMPUTE: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "floormod": operator.mod,
    "truncdiv": _truncdiv, "truncmod": lambda a, b: a - _truncdiv(a, b) * b, "min": min, "max": max, "not": operator.not_,
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "select": lambda c, a, b: a if c else b, "prove": bool,
}  # fmt: skip


def _value(term: RuleTerm, values: dict[str, int]) -> Any:
    match term.kind:
        case "bool":
            return bool(term.value)
        case "number" if not term.operands:
            return term.value
        case "number":  # A rule is true whether or not an operand is a number.
            return True
        case "known":
            return values[term.operands[0].kind] == _value(term.operands[1], values)
        case name if not term.operands:
            return values[name]
        case name:
            return _COMPUTE[name](*(_value(operand, values) for operand in term.operands))


def _names(term: RuleTerm) -> set[str]:
    if term.kind == "number" and not term.operands:
        return set()
    return {term.kind} if not term.operands else set[str]().union(*map(_names, term.operands))


def _conditions(rule: RewriteRule) -> RuleTerm:
    """Returns a condition without the negations that ask for the form of an operand."""
    term = rule.condition or RuleTerm("bool", (), 1)

    def plain(term: RuleTerm) -> RuleTerm:
        if term.kind == "not":
            return RuleTerm("bool", (), 1)
        return RuleTerm(term.kind, tuple(map(plain, term.operands)), term.value) if term.operands else term

    return plain(term)


def test_rules_are_true_of_numbers() -> None:
    draw = random.Random(0).randint
    tried = 0
    for rule in (rule for group in rules().values() for rule in group):
        condition = _conditions(rule)
        names = sorted(_names(rule.pattern) | (_names(condition) - {"bool"}))
        fitting = 0
        for _ in range(3000):
            values: dict[str, int] = {name: draw(-6, 6) if name in "abc" else draw(-12, 12) for name in names}
            if all(operand.kind in "xyzw" for operand in rule.pattern.operands) and rule.pattern.kind in ("and", "or"):
                values = {name: value > 0 for name, value in values.items()}
            try:
                if not _value(condition, values):
                    continue
                before = _value(rule.pattern, values)
            except ZeroDivisionError:
                continue
            fitting += 1
            after = _value(rule.result, values)
            is_truth = isinstance(before, bool) or isinstance(after, bool)
            assert (bool(before) == bool(after)) if is_truth else before == after, (rule, values)
            if fitting == 60:
                break
        assert fitting, rule
        tried += 1
    assert tried > 200


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (low(x, y - z) + z, low(x + z, y)),
        (high(x, y + 2) + (-2), high(x + (-2), y)),
        (high(2 - x * 4, 0) + x * 4, high(x * 4, 2)),
        ((x + 10) - z + (z - x), 10),
        (y * x + x * 10, x * (y + 10)),
        (x + 2 + 3 + 4 + x * 3, x * 4 + 9),
        (fld(x, 8) * 8 + flm(x, 8), x),
        (low(x, y) - y, low(x - y, 0)),
        (x - low(z, x + y), high(x - z, 0 - y)),
        (low(x + 10, y + 1) - low(x, y - 9), 10),
        (y * 5 - tdiv(y - z, 2) * 10, (tmod(y - z, 2) + z) * 5),
        (fld(y - 6, 5) * 5 - y, -6 - flm(y + (-6), 5)),
        ((x - y) * (-2), (y - x) * 2),
        (fld(x * 8 + 39, 16), fld(x, 2) + 2),
        (fld(low(y, x * 6), 2), low(fld(y, 2), x * 3)),
        (flm(x + y * 10, 2), flm(x, 2)),
        (low(high(x, y), high(x, z)), high(low(y, z), x)),
        (low(3 - x, 2), 3 - high(x, 1)),
        (low(fld(x + 3, 4) * 4, x), x),
        (te.Select(x < 0, y, 0) + te.Select(x < 0, 1, z), te.Select(x < 0, y + 1, z)),
        (tir.EQ(x * y, 0), tir.Or(tir.EQ(x, 0), tir.EQ(y, 0))),
        (x + 1 < high(8, x), x < 7),
        (fld(x, 2) < 3, x < 6),
        (tir.And(x <= 1, tir.LE(1, x)), tir.EQ(x, 1)),
        (tir.Or(x <= 10, tir.LE(11, x)), te.const(True)),
        (x, x),
    ],
)
def test_rewrite_simplify(given: tir.PrimExpr, expected: object) -> None:
    assert structural_equal(arith.Analyzer().rewrite_simplify(given), te.convert(expected))


def test_comparisons_as_tvm_has_them() -> None:
    module: Any = tir.expr  # type: ignore[attr-defined]
    assert isinstance(x == y, module.EqualOp) and isinstance(x != y, module.NotEqualOp)
    assert structural_equal((x == y).asobject(), tir.EQ(x, y))  # type: ignore[union-attr]
    assert module.FloorDiv is tir.FloorDiv
    with pytest.raises(AttributeError, match="has no attribute 'EqualsOp'"):
        _ = module.EqualsOp
