"""Rules written in Python are the IR that their text gives, and rewrite modules."""

from __future__ import annotations

import mirstack
import pytest
from mirstack import rules
from mirstack.dialects.rule import FUNCTIONS, RewriteOp
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from xdsl.dialects.builtin import ModuleOp


def of_text(text: str) -> RewriteOp:
    (rule,) = parse_mir(text).ops
    assert isinstance(rule, RewriteOp)
    return rule


def make_rules() -> dict[str, RewriteOp]:
    """Rules made in Python, by the text that they are."""
    op = rules.op
    x, y, z = rules.values("x y z")
    a = rules.attr("a")
    m = op.multiply(x, y).named("m")
    r = op.add(x, 0).named("r")
    product = rules.let("n", rules.prod(x.shape[1:]), attribute=True)
    inverse = rules.let("i", rules.fold(op.divide(rules.const(1, y.dtype), y)))
    xs, ys = rules.run("xs"), rules.run("ys")
    return {
        "rewrite @fma { add(%m = multiply(%x, %y), %z) => ewise_fma(%x, %y, %z) where one_use(%m) }": rules.rewrite(
            "fma", op.add(m, z), op.ewise_fma(x, y, z), where=[rules.one_use(m)]
        ),
        "rewrite @zero { %r = add(%x, 0) => %x where %r.type == %x.type }": rules.rewrite(
            "zero", r, x, where=[r.type == x.type]
        ),
        "fast rewrite @inverse { exp(log(%x)) => %x }": rules.rewrite("inverse", op.exp(op.log(x)), x, fast=True),
        "rewrite @div benefit(2) { divide(%x, %y) => multiply(%x, %i) if $n > 4 else %x"
        ' where $n = prod(%x.shape[1:]), not %x.dtype == "bool" and %x.rank in [1, 2],'
        " %i = fold(divide(const(1, %y.dtype), %y)) }": rules.rewrite(
            "div",
            op.divide(x, y),
            rules.ifelse(product > 4, op.multiply(x, inverse), x),
            where=[product, ~(x.dtype == "bool") & x.rank.isin([1, 2]), inverse],
            benefit=2,
        ),
        "rewrite @any { [sum, max]$op(%x, axis=$a, **$rest) => $op(%x, axis=[$a[0]], **$rest) where len($a) == 1 }": (
            rules.rewrite(
                "any",
                rules.one_of("sum", "max", capture="op")(x, rules.rest("rest"), axis=a),
                rules.one_of(capture="op")(x, rules.rest("rest"), axis=[a[0]]),
                where=[rules.len(a) == 1],
            )
        ),
        "rewrite @runs { concatenate((%xs..., nn.relu(%x), %ys...)) => concatenate((%xs..., %x, %ys...)) }": rules.rewrite(
            "runs", op.concatenate(rules.tuple_of(xs, op.nn.relu(x), ys)), op.concatenate(rules.tuple_of(xs, x, ys))
        ),
        "rewrite @field { split(_, indices_or_sections=1).0 => 1 }": rules.rewrite(
            "field", op.split(rules.any_value(), indices_or_sections=1).field(0), 1
        ),
        "rewrite @roots { sin(%x), cos(%x) => %x, %x }": rules.rewrite("roots", [op.sin(x), op.cos(x)], [x, x]),
        "rewrite @tir for tir { (%x + %y) - %y => %x where %y > -1 or %y == %y }": rules.rewrite(
            "tir", (x + y) - y, x, where=[(y > -1) | (y == y)], level="tir"
        ),
    }


MADE = make_rules()


@pytest.mark.parametrize("text", MADE)
def test_same_ir(text: str):
    assert MADE[text].is_structurally_equivalent(of_text(text))


def test_ops_get_names_where_they_are_used_again():
    x, y = rules.values("x y")
    inner = rules.op.exp(x)
    made = rules.rewrite("r", rules.op.add(inner, y), rules.op.subtract(inner, y), where=[rules.one_use(inner)])
    text = "rewrite @r { add(%v0 = exp(%x), %y) => subtract(%v0, %y) where one_use(%v0) }"
    assert made.is_structurally_equivalent(of_text(text))


PROGRAM = "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) { add(multiply(%x, %y), %x) }"


def test_apply():
    module = mirstack.IRModule.of_op(parse_mir(PROGRAM))
    fma = next(iter(MADE.values())).clone()
    assert "ewise_fma(%x, %y, %x)" in rules.apply(module, [fma]).astext()
    several = rules.ruleset("several", [fma])
    assert "ewise_fma(%x, %y, %x)" in rules.apply(module, [several], name="several").astext()
    assert "multiply" in module.astext()


def test_own_function():
    @rules.function(name="is_short", arity=1, wants_values=True)
    def _is_short(value: object) -> bool:
        """whether a vector has less than three elements"""
        return FUNCTIONS["size"].call(value) < 3

    try:
        x = rules.values("x")
        twice = rules.rewrite(
            "twice", rules.op.add(x, rules.any_value()), rules.op.add(x, x), where=[rules.is_short(x)]
        )
        module = mirstack.IRModule.of_op(parse_mir(PROGRAM))
        assert "multiply" in rules.apply(module, [twice], mode="once").astext()
        with pytest.raises(ValueError, match="the function is_short is defined twice"):
            rules.function(name="is_short", arity=1)(lambda value: True)
    finally:
        del FUNCTIONS["is_short"]


def test_modes():
    x, y = rules.values("x y")
    double = rules.rewrite("double", rules.op.multiply(x, 2), rules.op.add(x, x))
    halve = rules.rewrite(
        "halve", rules.op.divide(rules.op.multiply(x, y), y), x, where=[rules.is_constant(y), y.rank == 0]
    )
    module = mirstack.IRModule.of_op(parse_mir("def @main(%x: Tensor[(2), float32]) { divide(multiply(%x, 2f), 2f) }"))
    assert "divide" in rules.apply(module, [double, halve]).astext()
    assert "divide" not in rules.apply(module, [double, halve], mode="saturate").astext()
    with pytest.raises(MirError, match="apply-rules: there is no mode 'often'"):
        rules.apply(module, [double], mode="often")


def test_errors_point_at_python():
    x = rules.values("x")
    with pytest.raises(MirError) as caught:
        rules.rewrite("bad", rules.op.expp(x), x)
    assert "test_rules_in_python.py:" in str(caught.value)
    assert "there is no op 'expp' in relay" in str(caught.value)
    with pytest.raises(TypeError, match=r"write &, \| and ~ for and, or and not"):
        bool(x > 1 and x < 2)
    with pytest.raises(AttributeError, match="no function 'one_uses'"):
        rules.one_uses  # noqa: B018  # pyright: ignore


def test_ruleset_prints():
    from mirstack.parser import print_mir

    text = print_mir(ModuleOp([rules.ruleset("all", [next(iter(MADE.values())).clone()], include=["rest"])]))
    assert "ruleset @all {\n  include @rest\n  rewrite @fma" in text
