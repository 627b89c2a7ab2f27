"""Equality saturation keeps the meaning, never makes a program costlier than it was or than rules in their order do, and scales."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.relay import FuncOp
from mirstack.dialects.relay.infer import infer_types
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.dialects.rule import RewriteOp, rewrites_of
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.rules.annex.check.terminate import check_termination
from mirstack.passes.rules.annex.egraph.cost import total_cost
from mirstack.passes.rules.annex.egraph.extract import scaled_cost
from mirstack.passes.rules.annex.egraph.saturate import SaturationLimits, saturate
from mirstack.passes.rules.annex.pdl.convert_rules_to_pdl import ConvertRulesToPDL
from mirstack.passes.rules.apply_rules import ApplyRules, rewrite_all, saturate_all
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.diagnostics import MirError, Sources
from mirstack.support.verify import verify
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.equivalence import Equivalence
from xdsl.dialects.func import Func
from xdsl.parser import Parser
from xdsl.transforms.apply_eqsat_pdl_interp import ApplyEqsatPDLInterpPass
from xdsl.transforms.convert_pdl_interp_to_eqsat_pdl_interp import ConvertPDLInterpToEqsatPDLInterpPass
from xdsl.transforms.convert_pdl_to_pdl_interp.conversion import ConvertPDLToPDLInterpPass
from xdsl.transforms.dead_code_elimination import dce
from xdsl.transforms.eqsat_add_costs import EqsatAddCostsPass
from xdsl.transforms.eqsat_create_eclasses import EqsatCreateEclassesPass
from xdsl.transforms.eqsat_extract import EqsatExtractPass

# True of integers that wrap, whatever the shapes.
RULES = (
    "rewrite @twice { add(%x, %x) => multiply(%x, const(2, %x.dtype)) }",
    "rewrite @sum { multiply(%x, 2) => add(%x, %x) }",
    "rewrite @commute { add(%x, %y) => add(%y, %x) }",
    "rewrite @left { add(%x, add(%y, %z)) => add(add(%x, %y), %z) }",
    "rewrite @factor { add(multiply(%x, %y), multiply(%x, %z)) => multiply(%x, add(%y, %z)) }",
    "rewrite @spread { multiply(%x, add(%y, %z)) => add(multiply(%x, %y), multiply(%x, %z)) }",
    "rewrite @zero { %r = add(%x, 0) => %x where %r.type == %x.type }",
    "rewrite @one { %r = multiply(%x, 1) => %x where %r.type == %x.type }",
    "rewrite @cancel { %r = subtract(add(%x, %y), %y) => %x where %r.type == %x.type }",
    "rewrite @minus { subtract(%x, %y) => add(%x, negative(%y)) }",
    "rewrite @plus { add(%x, negative(%y)) => subtract(%x, %y) }",
    "rewrite @negate { negative(negative(%x)) => %x }",
    "rewrite @fold { add(add(%x, %a), %b) => add(%x, fold(add(%a, %b))) where is_constant(%a), is_constant(%b) }",
    "rewrite @largest { maximum(%x, %x) => %x }",
)


@cache
def expressions(depth: int) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["%p", "%q", "%s", "0", "1", "2"])
    if not depth:
        return leaves
    inner = expressions(depth - 1)
    return st.one_of(
        leaves,
        st.builds("negative({})".format, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["add", "multiply", "subtract", "maximum"]), inner, inner),
    )


@st.composite
def bodies(draw: st.DrawFn) -> str:
    """Bodies of functions, some with what is used twice, a let, or branches that use what stands outside of them."""
    one, two, three = (draw(expressions(3)) for _ in range(3))
    return draw(
        st.sampled_from(
            [
                f"add({one}, {two})",
                f"%0 = add(%p, {one}); %1 = multiply(%0, {two}); ({three}, add(%0, %1), %0)",
                f"let %v = add(%p, {one}); add(multiply(%v, {two}), %v)",
                f"%0 = add(%p, {one}); if (%c) {{ add(%0, {two}) }} else {{ multiply(%0, {three}) }}",
            ]
        )
    )


def rules_of(texts: list[str]) -> list[RewriteOp]:
    return rewrites_of(parse_mir("\n".join(texts), "rules.mir"))


def program(body: str) -> ModuleOp:
    shape = "Tensor[(2, 3), int32]"
    module = parse_mir(f"def @main(%p: {shape}, %q: {shape}, %s: int32, %c: bool) {{ {body} }}", "program.mir")
    infer_types(module)
    return module


def results(module: ModuleOp) -> list[list[np.ndarray]]:
    made: list[list[np.ndarray]] = []
    for seed in range(2):
        generator = np.random.default_rng(seed)
        p, q = (generator.integers(-9, 9, (2, 3)).astype("int32") for _ in range(2))
        made.append(flatten(interpret(module, "main", [p, q, np.asarray(seed + 3, "int32"), np.asarray(seed == 1)])))
    return made


def price(module: ModuleOp) -> float:
    return total_cost(op for function in module.ops for op in walk_ops(function))


@given(st.lists(st.sampled_from(RULES), min_size=1, max_size=6, unique=True), bodies())
@settings(max_examples=120, deadline=None)
def test_meaning_stays_and_no_order_of_rules_is_cheaper(texts: list[str], body: str):
    rules = rules_of(texts)
    module = program(body)
    before, greedy, saturated = module.clone(), module.clone(), module.clone()
    with Sources().reading():
        saturate_all(saturated, rules, SaturationLimits(300, 6))
    verify(saturated)
    assert all(
        np.array_equal(a, b)
        for x, y in zip(results(before), results(saturated), strict=True)
        for a, b in zip(x, y, strict=True)
    )
    assert price(saturated) <= price(before) + 1e-6
    try:
        rewrite_all(greedy, rules)
    except MirError:
        return  # In their order these rules do not come to an end.
    if not check_termination(rules):
        assert price(saturated) <= price(greedy) + 1e-6


def test_a_value_that_comes_later_is_not_taken_before():
    # By the rule the sum is %x too, but what is added comes from a call that stands behind the first use.
    text = """
    def @effect(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%x) }
    def @main(%x: Tensor[(2), float32]) {
      let %a = @effect(exp(%x));
      let %b = @effect(log(subtract(add(exp(%x), %a), %a)));
      add(%a, %b)
    }
    """
    module = parse_mir(text, "program.mir")
    infer_types(module)
    rules = rules_of(
        [
            "rewrite @cancel { subtract(add(%x, %y), %y) => %x }",
            "rewrite @e { exp(%x) => negative(abs(%x)) where is_float(%x) }",
        ]
    )
    rewrite_all(module, rules, "saturate")
    verify(module)
    assert "subtract" not in print_mir(module)


def chain(count: int) -> ModuleOp:
    lines = ["%0 = add(%p, 0);"]
    lines += [f"%{k} = {'add' if k % 2 else 'multiply'}(%{k - 1}, {'%q' if k % 3 else '1'});" for k in range(1, count)]
    return program("\n".join([*lines, f"%{count - 1}"]))


def test_time_grows_with_the_program():
    rules = rules_of([*RULES[6:9], RULES[1]])

    def seconds(count: int) -> float:
        module = chain(count)
        (function,) = (op for op in module.ops if isinstance(op, FuncOp))
        return cpu_seconds(lambda: saturate(function, rules))

    assert in_deep_stack(lambda: growth(seconds, 200, 1_600, below=20)) < 20


def test_much_that_is_shared_has_a_cost():
    # As trees these are 2 to the power of 1,200 ops.
    body = "".join(f"%{k} = add(%{k - 1}, %{k - 1});" for k in range(1, 1_200))
    module = program(f"%0 = add(%p, 0); {body} add(%1199, 0)")
    in_deep_stack(lambda: rewrite_all(module, rules_of([RULES[6]]), "saturate"))
    assert ", 0" not in print_mir(module)


FUNCTION = """
func.func @main(%x: i32, %y: i32, %z: i32) -> i32 {
  %0 = arith.muli %x, %y : i32
  %1 = arith.muli %z, %x : i32
  %2 = arith.addi %0, %1 : i32
  %3 = arith.subi %2, %1 : i32
  func.return %3 : i32
}
"""
PLAIN = (
    "rewrite @factor for arith { addi(muli(%x, %y), muli(%x, %z)) => muli(%x, addi(%y, %z)) }"
    "rewrite @cancel for arith { subi(addi(%x, %y), %y) => %x }"
    "rewrite @commute for arith { addi(%x, %y) => addi(%y, %x) }"
)


def context() -> Context:
    made = Context()
    for dialect in (Builtin, Func, Arith, Equivalence):
        made.load_dialect(dialect)
    return made


def function() -> ModuleOp:
    return Parser(context(), FUNCTION).parse_module()


def test_the_same_as_xdsl_where_xdsl_can_run_the_rules(tmp_path: Path):
    rules = tmp_path / "rules.mir"
    rules.write_text(PLAIN)
    theirs, ours = function(), function()
    for each in (
        ConvertRulesToPDL(str(rules)), ConvertPDLToPDLInterpPass(), EqsatCreateEclassesPass(),
        ConvertPDLInterpToEqsatPDLInterpPass(), ApplyEqsatPDLInterpPass(), EqsatAddCostsPass(default=1), EqsatExtractPass(),
    ):  # fmt: skip
        each.apply(context(), theirs)
    ApplyRules(str(rules), mode="saturate").apply(context(), ours)
    count = [sum(op.name.startswith("arith.") for op in walk_ops(next(iter(each.ops)))) for each in (theirs, ours)]
    assert count == [1, 1]


def test_xdsl_extracts_the_cheapest_form_of_a_dump(tmp_path: Path):
    rules, dump = tmp_path / "rules.mir", tmp_path / "e.mlir"
    rules.write_text(PLAIN)
    ours = function()
    ApplyRules(str(rules), mode="saturate", dump_egraph=str(dump)).apply(context(), ours)
    extracted = Parser(context(), dump.read_text()).parse_module()
    assert "equivalence.class" in str(extracted)
    EqsatExtractPass().apply(context(), extracted)
    dce(extracted)
    verify(extracted)
    prices = [
        sum(scaled_cost(op) for op in walk_ops(each) if op.name.startswith("arith.")) for each in (ours, extracted)
    ]
    assert prices[0] == prices[1] == 200


def test_a_dump_that_cannot_be_written(tmp_path: Path):
    rules = tmp_path / "rules.mir"
    rules.write_text(PLAIN)
    where = tmp_path / "none" / "e.mlir"
    with pytest.raises(MirError, match=r"the e-graph cannot be written to .*: No such file or directory"):
        ApplyRules(str(rules), mode="saturate", dump_egraph=str(where)).apply(context(), function())
