"""Random rules: text to IR to text, and through MLIR's form, give the same rule again."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.driver.modules import register_dialects
from mirstack.parser import parse_mir, print_mir
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.parser import Parser

VALUES = ("x", "y")
ATTRS = ("a", "b")
numbers = st.sampled_from(["0", "1", "-1", "0.5", "-2.5", "1e-05", "1e999", "-1e999", "True"])


def _joined(items: list[str]) -> str:
    return ", ".join(items)


@cache
def patterns(depth: int) -> st.SearchStrategy[str]:
    """Texts that match a value."""
    leaves = st.one_of(st.sampled_from([f"%{name}" for name in VALUES]), st.just("_"), numbers)
    if not depth:
        return leaves
    inner = patterns(depth - 1)
    return st.one_of(
        leaves,
        st.builds("exp({})".format, inner),
        st.builds("add({}, {})".format, inner, inner),
        st.builds("({} * {})".format, inner, inner),
        st.builds("-exp({})".format, inner),
        st.builds("sum({}, axis={}, keepdims=True)".format, inner, st.sampled_from(["$a", "[1]", "[]", "None"])),
        st.builds("concatenate(({}, {},), axis=$b)".format, inner, inner),
        st.builds("concatenate((%xs..., {}, %ys...))".format, inner),
        st.builds("split({}, indices_or_sections=2).1".format, inner),
        st.builds("[sqrt, rsqrt]({})".format, inner),
    )


@cache
def conditions(depth: int, attrs: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Texts of conditions over %x and captured attributes."""
    leaves = st.sampled_from(
        ["%x.rank", "%x.shape", "%x.dtype", "one_use(%x)", "-1", "[1, 2]", '"float32"', "None", *attrs]
    )
    if not depth:
        return leaves
    inner = conditions(depth - 1, attrs)
    infix = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", "==", "!=", "and", "or", "in", "not in"])
    return st.one_of(
        leaves,
        st.builds("({}) {} ({})".format, inner, infix, inner),
        st.builds("not ({})".format, inner),
        st.builds("-({})".format, inner),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({})[{}:]".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("max({}, {})".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
    )


@cache
def replacements(depth: int, attrs: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Texts of what is made of %x and captured attributes."""
    leaves = st.one_of(st.just("%x"), numbers, st.just('const(2, "int8")'), st.just("const(%x.rank, %x.dtype)"))
    if not depth:
        return leaves
    inner = replacements(depth - 1, attrs)
    return st.one_of(
        leaves,
        st.builds("exp({})".format, inner),
        st.builds("({} / {})".format, inner, inner),
        st.builds("({}, {})".format, inner, inner),
        st.builds("({}, {}).0".format, inner, inner),
        st.builds("fold({})".format, inner),
        st.builds("({} if {} else {})".format, inner, conditions(1, attrs), inner),
        st.builds("sum({}, axis={})".format, inner, conditions(1, attrs)),
    )


@st.composite
def rules(draw: st.DrawFn) -> str:
    """The text of a rule."""
    lhs = f"add(%x, {draw(patterns(3))})"
    attrs = tuple(f"${name}" for name in ATTRS if f"=${name}" in lhs)
    where: list[str] = []
    if draw(st.booleans()):
        where.append(draw(conditions(2, attrs)))
    if draw(st.booleans()):
        where.append(f"$c = {draw(conditions(2, attrs))}")
        attrs = (*attrs, "$c")
    if draw(st.booleans()):
        where.append(f"%s = log({draw(replacements(2, attrs))})")
    rhs = draw(replacements(3, attrs))
    if where and where[-1].startswith("%s"):
        rhs = draw(st.sampled_from(["%s", f"add(%s, {rhs})", f"({rhs}, %s, %s)"]))
    header = draw(st.sampled_from(["", " benefit(3)", " benefit(0)"]))
    return f"rewrite @r{header} {{ {lhs} => {rhs}{' where ' if where else ''}{_joined(where)} }}"


def _context() -> Context:
    context = Context()
    register_dialects(context)
    return context


CONTEXT = _context()


@given(rules())
@settings(max_examples=100, deadline=None)
def test_round_trip(text: str):
    module = parse_mir(text, "rule.mir")
    assert not find_errors(module)
    printed = print_mir(module)
    again = parse_mir(printed, "again.mir")
    assert print_mir(again) == printed
    # What the text cannot tell apart may differ once; then it is the same op by op.
    third = parse_mir(print_mir(again), "third.mir")
    assert again.is_structurally_equivalent(third)
    mlir = Parser(CONTEXT, str(module)).parse_module()
    assert mlir.is_structurally_equivalent(module)
    assert print_mir(mlir) == printed


@cache
def tir_sides(depth: int, leaves: tuple[str, ...]) -> st.SearchStrategy[str]:
    """TIR expressions in parentheses throughout."""
    leaf = st.sampled_from(leaves)
    if not depth:
        return leaf
    inner = tir_sides(depth - 1, leaves)
    infix = st.sampled_from(["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"])
    return st.one_of(
        leaf,
        st.builds("({} {} {})".format, inner, infix, inner),
        st.builds("(not {})".format, inner),
        st.builds("floordiv({}, {})".format, inner, inner),
    )


@given(tir_sides(4, ("%x", "%y", "2", "-1", "_")), tir_sides(4, ("%x", "%z", "-3", "(%x if 1 < 2 else %z)")))
@settings(max_examples=150, deadline=None)
def test_operators_of_tir_keep_their_grouping(lhs: str, rhs: str):
    module = parse_mir(f"rewrite @r for tir {{ (%x + %z) * {lhs} => {rhs} }}", "rule.mir")
    printed = print_mir(module)
    again = parse_mir(printed, "again.mir")
    assert again.is_structurally_equivalent(module)
    assert print_mir(again) == printed
    assert "add(" not in printed and "not_(" not in printed
