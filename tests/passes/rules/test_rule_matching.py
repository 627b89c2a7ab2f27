"""Compiled rules match what a plain backtracking matcher, written from the language's description, matches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.dialects import rule
from mirstack.dialects.relay import ConstantOp, FuncOp, OperatorOp, TupleOp
from mirstack.dialects.relay.infer import infer_types
from mirstack.parser import parse_mir
from mirstack.passes.rules.engine.program import compile_rule
from xdsl.ir import Operation, SSAValue

COMMUTATIVE = ("add", "multiply")
Bindings = dict[Any, Any]


@cache
def programs(depth: int) -> st.SearchStrategy[str]:
    """Relay expressions of (2,)-shaped values; equal parts are one value, as after common subexpression elimination."""
    leaves = st.sampled_from(["%p", "%q", "0f", "1f"])
    if not depth:
        return leaves
    inner = programs(depth - 1)
    return st.one_of(
        leaves,
        st.builds("exp({})".format, inner),
        st.builds("add({}, {})".format, inner, inner),
        st.builds("multiply({}, {})".format, inner, inner),
        st.builds("subtract({}, {})".format, inner, inner),
    )


@cache
def patterns(depth: int) -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["%x", "%y", "_", "0", "1"])
    if not depth:
        return leaves
    inner = patterns(depth - 1)
    return st.one_of(
        leaves,
        st.builds("exp({})".format, inner),
        st.builds("add({}, {})".format, inner, inner),
        st.builds("multiply({}, {})".format, inner, inner),
        st.builds("subtract({}, {})".format, inner, inner),
        st.builds("[add, subtract]({}, {})".format, inner, inner),
    )


def matches(pattern: SSAValue, value: SSAValue, bound: Bindings) -> Iterator[Bindings]:
    """Every way in which `value` is of the form of `pattern`."""
    if pattern in bound:
        if _same(bound[pattern], value):
            yield bound
        return
    bound = {**bound, pattern: value}
    match pattern.owner:
        case rule.AnyOp():
            yield bound
        case rule.LiteralOp() as op:
            owner = value.owner
            if isinstance(owner, ConstantOp) and (owner.value.array == op.value.value.data).all():  # pyright: ignore
                yield bound
        case rule.MatchOp() as op:
            owner = value.owner
            if isinstance(owner, Operation) and owner.name in [name.data for name in op.names.data]:
                yield from _operands(op, list(owner.operands), bound)
        case _:
            raise TypeError(pattern)


def _operands(op: rule.MatchOp, operands: list[SSAValue], bound: Bindings) -> Iterator[Bindings]:
    names = [name.data.removeprefix("relay.") for name in op.names.data]
    orders = [operands]
    if len(operands) == 2 and all(name in COMMUTATIVE for name in names):
        orders.append(operands[::-1])
    for order in orders:
        for split in _splits([arg.type == rule.RUN for arg in op.args], order):
            yield from _each(list(zip(op.args, split, strict=True)), bound)


def _splits(runs: list[bool], operands: list[SSAValue]) -> Iterator[list[Any]]:
    if not runs:
        if not operands:
            yield []
    elif runs[0]:
        for count in range(len(operands) + 1):
            for rest in _splits(runs[1:], operands[count:]):
                yield [tuple(operands[:count]), *rest]
    elif operands:
        for rest in _splits(runs[1:], operands[1:]):
            yield [operands[0], *rest]


def _each(pairs: list[tuple[SSAValue, Any]], bound: Bindings) -> Iterator[Bindings]:
    if not pairs:
        yield bound
        return
    (pattern, value), *rest = pairs
    if pattern.type == rule.RUN:
        if pattern not in bound or _same(bound[pattern], value):
            yield from _each(rest, {**bound, pattern: value})
        return
    for found in matches(pattern, value, bound):
        yield from _each(rest, found)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    if a is b:
        return True
    x, y = a.owner, b.owner
    return isinstance(x, ConstantOp) and isinstance(y, ConstantOp) and x.value == y.value


def check(rule_text: str, body: str) -> int:
    """Compares both matchers at each op of a program; how many ops match."""
    rules = parse_mir(rule_text, "rule.mir")
    (rewrite,) = rules.body.block.ops
    assert isinstance(rewrite, rule.RewriteOp)
    program = parse_mir(f"def @main(%p: Tensor[(2), float32], %q: Tensor[(2), float32]) {{ {body} }}", "program.mir")
    infer_types(program)
    (function,) = program.body.block.ops
    assert isinstance(function, FuncOp)
    compiled = compile_rule(rewrite)
    last = rewrite.body.block.last_op
    assert isinstance(last, rule.ReplaceOp)
    count = 0
    for op in function.body.block.ops:
        if not isinstance(op, OperatorOp | TupleOp) or op.name not in compiled.root_names:
            continue
        found = compiled.match(op)
        naive = list(matches(last.roots[0], op.results[0], {}))
        assert (found is not None) == bool(naive), op
        if found is not None:
            count += 1
            places = _places(compiled, rewrite)
            ours = {key: found.slots[place] for key, place in places.items()}
            assert any(all(_same(ours[key], each[key]) for key in ours if key in each) for each in naive), op
    return count


def _places(compiled: Any, rewrite: rule.RewriteOp) -> dict[Any, int]:
    """The slots of pattern values: the compiler numbers results in order."""
    results = [result for op in rewrite.body.block.ops for result in op.results]
    return {r: i for i, r in enumerate(results) if isinstance(r.owner, rule.AnyOp)}


@given(st.builds("add({}, {})".format, patterns(2), patterns(2)), programs(4))
@settings(max_examples=300, deadline=None)
def test_matches_as_the_naive_matcher(pattern: str, body: str):
    check(f"rewrite @r {{ {pattern} => 0 }}", body)


RUNS = st.lists(st.sampled_from(["%a...", "%b...", "exp(%x)", "%x", "%y", "0"]), min_size=1, max_size=5)
FIELDS = st.lists(st.sampled_from(["%p", "%q", "exp(%p)", "exp(%q)", "0f"]), min_size=1, max_size=6)


@given(RUNS, FIELDS)
@settings(max_examples=300, deadline=None)
def test_runs_match_as_the_naive_matcher(pattern: list[str], fields: list[str]):
    check(f"rewrite @r {{ ({', '.join(pattern)},) => 0 }}", f"({', '.join(fields)},)")


def test_some_match():
    assert check("rewrite @r { add(%x, multiply(%x, 0)) => %x }", "add(multiply(0f, %p), %p)") == 1
    assert check("rewrite @r { (%a..., exp(%x), %a...) => 0 }", "(%p, %q, exp(%p), %p, %q)") == 1
    assert check("rewrite @r { (%a..., exp(%x), %a...) => 0 }", "(%p, %q, exp(%p), %q, %p)") == 0
