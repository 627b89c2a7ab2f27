"""Types that double from value to value are refused before anything grows with them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import mirstack
import pytest
from mirstack import relay
from mirstack.dialects.relay.infer.unify import MAX_PARTS
from mirstack.support.diagnostics import MirError, source_position

Chain = Callable[[str], str]


def lets(of: Chain, count: int = 40, name: str = "x") -> str:
    """`count` lets, each of the one before, the first of `%x`."""
    names = [name, *(f"{name}{k}" for k in range(count))]
    return "\n".join(
        f"let %{new} = {of('%' + old)};" for old, new in pairwise(names)
    )  # fmt: skip


def pair(x: str) -> str:
    return f"({x}, {x})"


TEXTS = {
    "tuples": f"def @main(%x: int32) {{\n{lets(pair)}\n0 }}",
    "data types": f"type Both[A, B] {{ Make(A, B) }} def @main(%x: int32) {{\n{lets(lambda x: f'Make({x}, {x})')}\n0 }}",
    "generic functions": f"def @f[A](%x: A) -> (A, A) {{ (%x, %x) }} def @main(%x: int32) {{\n{lets(lambda x: f'@f({x})')}\n0 }}",
    "functions": f"def @main(%x: int32) {{\n{lets(lambda x: f'fn (%_) {{ ({x}, {x}) }}')}\n0 }}",
    "of a parameter without a type": f"def @main() {{ let %f = fn (%x) {{\n{lets(pair)}\n0 }}; 0 }}",
    "put together": (
        f"def @main(%c: bool) {{ let %f = fn (%x, %y) {{\n{lets(pair, 14)} {lets(pair, 14, 'y')}\n"
        "let %z = if (%c) { %y13 } else { %x }; 0 }; 0 }"
    ),
}


@pytest.mark.parametrize("what", TEXTS)
def test_doubling_types_are_refused_where_they_grow(what: str):
    with pytest.raises(MirError) as refused:
        mirstack.parse(TEXTS[what], "chain.mir")
    first = refused.value.diagnostics[0]
    assert first.message == f"the type of this value has more than {MAX_PARTS} parts"
    assert first.notes[0].message.startswith("each part counts as often as it is there")
    position = source_position(first.location)
    assert position is not None and (what == "put together" or 15 <= position[1] <= 19)


def test_doubling_tuples_of_python():
    x = relay.var("x", shape=(4,))
    pairs: relay.Expr = x
    for _ in range(40):
        pairs = relay.Tuple([pairs, pairs])
    module = mirstack.IRModule.from_expr(pairs)
    assert str(module).count("\n") == 42
    with pytest.raises(MirError, match="the type of this value has more than"):
        mirstack.transform.InferType()(module)


def test_a_wide_tuple_is_none():
    parts = MAX_PARTS // 2
    assert mirstack.parse(f"def @main(%x: int32) {{ let %t = ({'%x, ' * parts}); 0 }}")
