"""The standard prelude: its text, its names in Python, and what its functions compute; natural numbers; gradient cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from mirstack import IRModule, relay
from mirstack.support.diagnostics import MirError

count, make_nat_expr, make_nat_value = relay.testing.count, relay.testing.make_nat_expr, relay.testing.make_nat_value
PRELUDE = relay.Prelude()
relay.testing.add_nat_definitions(PRELUDE)
P: Any = PRELUDE


def listed(*elements: Any) -> Any:
    """An expression of a list."""
    result = P.nil()
    for element in reversed(elements):
        result = P.cons(relay.const(element) if isinstance(element, int) else element, result)
    return result


def numbers(value: Any) -> list[Any]:
    """The numbers in a value that is a list."""
    result: list[Any] = []
    while value.constructor.name_hint == "Cons":
        result.append(plain(value.fields[0]))
        value = value.fields[1]
    return result


def plain(value: Any) -> Any:
    return tuple(map(plain, value)) if isinstance(value, Sequence) else value.numpy().item()


def evaluate(expr: Any) -> Any:
    return relay.create_executor("debug", mod=PRELUDE.mod).evaluate(expr)


def function(text: str) -> Any:
    return relay.parse(f"def @f{text}", init_module=PRELUDE.mod)["f"]


DOUBLE = function("(%x: int32) { %x * 2 }")
MINUS = function("(%x: int32, %y: int32) { %x - %y }")
# (state, element) → (state + element, state)
SUMS = function("(%s: int32, %x: int32) { (%s + %x, %s) }")
# n → n - 1 and n, until 0
DOWN = function("(%n: int32) -> Option[(int32, int32)] { if (%n == 0) { None } else { Some((%n - 1, %n)) } }")


def test_lists() -> None:
    three = listed(1, 2, 3)
    assert plain(evaluate(P.hd(three))) == 1 and numbers(evaluate(P.tl(three))) == [2, 3]
    assert plain(evaluate(P.nth(three, relay.const(2)))) == 3 and plain(evaluate(P.length(three))) == 3
    assert numbers(evaluate(P.update(three, relay.const(1), relay.const(9)))) == [1, 9, 3]
    assert numbers(evaluate(P.map(DOUBLE, three))) == [2, 4, 6]
    assert plain(evaluate(P.foldl(MINUS, relay.const(10), three))) == ((10 - 1) - 2) - 3
    assert plain(evaluate(P.foldr(MINUS, relay.const(10), three))) == 1 - (2 - (3 - 10))
    assert plain(evaluate(P.foldr1(MINUS, three))) == 1 - (2 - 3)
    assert plain(evaluate(P.sum(three))) == 6
    assert numbers(evaluate(P.concat(three, listed(4)))) == [1, 2, 3, 4]
    assert numbers(evaluate(P.filter(function("(%x: int32) { %x > 1 }"), three))) == [2, 3]
    assert numbers(evaluate(P.zip(three, listed(7, 8)))) == [(1, 7), (2, 8)]
    assert numbers(evaluate(P.rev(three))) == [3, 2, 1]
    state, values = evaluate(P.map_accumr(SUMS, relay.const(0), three))
    assert plain(state) == 6 and numbers(values) == [5, 3, 0]
    state, values = evaluate(P.map_accuml(SUMS, relay.const(0), three))
    assert plain(state) == 6 and numbers(values) == [3, 1, 0]
    assert numbers(evaluate(P.unfoldr(DOWN, relay.const(3)))) == [3, 2, 1]
    assert numbers(evaluate(P.unfoldl(DOWN, relay.const(3)))) == [1, 2, 3]


def test_functions_of_functions() -> None:
    assert plain(evaluate(P.id(relay.const(4)))) == 4
    assert plain(evaluate(relay.Call(P.compose(DOUBLE, DOUBLE), [relay.const(3)]))) == 12
    assert plain(evaluate(relay.Call(P.flip(MINUS), [relay.const(3), relay.const(5)]))) == 2
    assert plain(evaluate(relay.Call(P.iterate(DOUBLE, relay.const(4)), [relay.const(1)]))) == 16


def test_trees() -> None:
    leaf = P.rose(relay.const(5), P.nil())
    tree = P.rose(relay.const(1), listed(leaf, P.rose(relay.const(2), listed(leaf))))
    assert plain(evaluate(P.size(tree))) == 4
    doubled = evaluate(P.tmap(DOUBLE, tree))
    assert plain(doubled.fields[0]) == 2 and plain(doubled.fields[1].fields[0].fields[0]) == 10


def test_names() -> None:
    assert P.l is PRELUDE.mod.get_global_type_var("List") and P.cons.belong_to is P.l
    assert [P.some.name_hint, P.none.name_hint] == ["Some", "None"] and str(P.l) == "List"
    assert P.map.name_hint == "map" and str(P.map.checked_type) == "fn [A, B](fn (A) -> B, List[A]) -> List[B]"
    # A module has the prelude once, with its own types.
    again: Any = relay.Prelude(PRELUDE.mod)
    assert again.l is P.l and again.cons is P.cons
    assert PRELUDE.get_name("tensor_t", "int8") == "tensor_int8_t"
    with pytest.raises(MirError, match="the module has no function @tensor_array_int8"):
        PRELUDE.get_global_var("tensor_array", "int8")
    with pytest.raises(MirError, match="the module has no data type tensor_int8_t; it has List, Option, Tree, nat"):
        PRELUDE.get_type("tensor_t", "int8")
    with pytest.raises(MirError, match="the data type List has no constructor cons_int8") as error:
        PRELUDE.get_ctor("List", "cons", "int8")
    assert error.value.diagnostics[0].notes[0].message == "it has Cons, Nil"


def test_natural_numbers() -> None:
    assert count(PRELUDE, make_nat_expr(PRELUDE, 3)) == 3 and count(PRELUDE, make_nat_value(PRELUDE, 4)) == 4
    assert count(PRELUDE, evaluate(P.nat_double(make_nat_expr(PRELUDE, 4)))) == 8
    assert count(PRELUDE, evaluate(P.nat_add(make_nat_expr(PRELUDE, 4), make_nat_expr(PRELUDE, 1)))) == 5
    with pytest.raises(MirError, match="a natural number is made of S and Z, not of 1"):
        count(PRELUDE, relay.const(1))


@pytest.mark.parametrize(
    ("left", "right", "product", "total"),
    [("Zero", "Raw", 0, 3), ("One", "Raw", 3, 4), ("Raw", "One", 3, 4), ("Raw", "Raw", 9, 6), ("Raw", "Zero", 0, 3)],
)
def test_gradient_cells(left: str, right: str, product: int, total: int) -> None:
    mod: Any = IRModule()
    mod.import_from_std("gradient.rly")
    cells = {"Zero": "Zero(fn () { 0f })", "One": "One(fn () { 1f })", "Raw": "Raw(3f)"}
    text = f"""
    def @both() {{
      (@FromGradCell(@MultiplyGradCell(fn (%a: float32, %b: float32) {{ %a * %b }}, {cells[left]}, {cells[right]})),
       @FromGradCell(@AddGradCell(fn (%a: float32, %b: float32) {{ %a + %b }}, {cells[left]}, {cells[right]})))
    }}"""
    whole = relay.parse(text, init_module=mod)
    result = relay.create_executor("debug", mod=whole).evaluate(whole.get_global_var("both"))()
    assert plain(result) == (product, total)


def test_files() -> None:
    mod = IRModule()
    mod.import_from_std("core.rly")
    assert [variable.name_hint for variable in mod.get_global_type_vars()] == ["Storage"]
    with pytest.raises(MirError, match=r"the standard library has no file 'preludes.rly'") as error:
        mod.import_from_std("preludes.rly")
    assert error.value.diagnostics[0].notes[0].message == "it has core.rly, gradient.rly, nat.rly, prelude.rly"


def test_import_of_a_file(tmp_path: Any) -> None:
    file = tmp_path / "more.rly"
    file.write_text("def @two() { 2 }\ntype Pair { Pair(int32, int32) }")
    mod = relay.parse("def @two() { 1 }\ntype Pair { Two(int32, int32) }")
    mod.import_(str(file))
    # Functions are replaced; a type that is there stays.
    assert plain(relay.create_executor("debug", mod=mod).evaluate(mod.get_global_var("two"))()) == 2
    assert repr(mod[mod.get_global_type_var("Pair")]) == "type Pair { Two(int32, int32) }"
