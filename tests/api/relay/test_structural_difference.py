"""Structural equality as TVM's, the place of the first difference, and what passes keep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mirstack import IRModule, ir, parse, relay, transform
from mirstack.support.diagnostics import MirError

X, Y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))


def alike(one: object, other: object, map_free_vars: bool = False) -> bool:
    equal = ir.structural_equal(one, other, map_free_vars)
    if equal:
        assert ir.structural_hash(one, map_free_vars) == ir.structural_hash(other, map_free_vars)
        assert ir.get_first_structural_mismatch(one, other, map_free_vars) is None
    return equal


def softmax(axis: int, variable: relay.Var = X) -> Any:
    return relay.Function([variable], relay.nn.softmax(relay.exp(variable), axis=axis))


def test_place_of_the_first_difference() -> None:
    match = [relay.Match(X, [relay.Clause(relay.PatternWildcard(), value)]) for value in (X, Y)]
    lets = [relay.Let(X, relay.const(value), X) for value in (1, 2)]
    ifs = [relay.If(relay.const(True), X, value) for value in (X, relay.exp(X))]
    for one, other, place in (
        (softmax(0), softmax(-1), "<root>.body.attrs.axis"),
        (IRModule.from_expr(softmax(0)), IRModule.from_expr(softmax(1)), '<root>.functions[I.GlobalVar("main")].body.attrs.axis'),
        (relay.exp(X), relay.log(X), "<root>.op"),
        (relay.add(X, relay.const(1)), relay.add(X, relay.const(2)), "<root>.args[1].data"),
        (lets[0], lets[1], "<root>.value.data"),
        (ifs[0], ifs[1], "<root>.false_branch"),
        (relay.Tuple([X, relay.Tuple([])]), relay.Tuple([X, X]), "<root>.fields[1]"),
        (relay.TupleGetItem(X, 0), relay.TupleGetItem(X, 1), "<root>.index"),
        (match[0], relay.Match(X, [relay.Clause(relay.PatternWildcard(), relay.const(1))]), "<root>.clauses[0].rhs"),
        (relay.RefWrite(X, X), relay.RefWrite(X, relay.const(1)), "<root>.value"),
        (relay.RefRead(relay.const(1)), relay.RefRead(relay.const(2)), "<root>.ref.data"),
        (softmax(0), softmax(0, relay.var("x", shape=(3,))), "<root>.params[0]"),
        ([1, 2], [1, 3], "<root>[1]"),
        (IRModule.from_expr(softmax(0)), IRModule(), "<root>"),
    ):  # fmt: skip
        assert not alike(one, other)
        assert ir.get_first_structural_mismatch(one, other) == (place, place)
    with pytest.raises(
        ValueError, match=r"^not structurally equal: the first has at <root>.op\nOp\(exp\)\nand the second"
    ):
        ir.assert_structural_equal(relay.exp(X), relay.log(X))
    ir.assert_structural_equal(softmax(0), softmax(0, Y))


def test_sharing_counts() -> None:
    shared, constant = relay.exp(X), relay.const(np.ones(2, "float32"))
    assert not alike(relay.add(shared, shared), relay.add(relay.exp(X), relay.exp(X)))
    # Constants are compared by value.
    assert alike(relay.add(constant, constant), relay.add(constant, relay.const(np.ones(2, "float32"))))


def test_free_variables() -> None:
    assert not alike(relay.exp(X), relay.exp(Y)) and alike(relay.exp(X), relay.exp(Y), True)
    assert not alike(relay.add(X, X), relay.add(X, Y), True)
    # They have types.
    assert not alike(X, relay.var("x", shape=(3,)), True)


def test_patterns_and_data_types() -> None:
    assert alike(relay.PatternVar(X), relay.PatternVar(Y)) and not alike(relay.PatternVar(X), relay.PatternWildcard())
    assert alike(relay.Clause(relay.PatternVar(X), X), relay.Clause(relay.PatternVar(X), X))
    lists: list[Any] = []
    for name in "AB":
        header, variable = relay.GlobalTypeVar("L"), relay.TypeVar(name)
        lists.append(relay.TypeData(header, [variable], [relay.Constructor("One", [variable], header)]))
    assert alike(lists[0], lists[1])
    other = relay.TypeData(lists[0].header, [], [])
    assert not alike(lists[0], other)
    shape = relay.TypeVar("A", relay.TypeKind.ShapeVar)
    kind = relay.TypeVar("A")
    unit = relay.TupleType([])
    assert not alike(relay.FuncType([unit], unit, [shape]), relay.FuncType([unit], unit, [kind]))


PRIM = """
@T.prim_func
def f(a: T.handle):
    A = T.match_buffer(a, (4,), "float32"{more})
    for i in range(4):
        A[i] = A[i] * T.float32({number}) + T.float32(2)
"""


def prim(number: str = "0.5", more: str = "") -> Any:
    return IRModule.of_op(parse(PRIM.format(number=number, more=more)))["f"]


def test_numbers_near_each_other() -> None:
    assert alike(prim("0.5"), prim("0.5000000001")) and not alike(prim("0.5"), prim("0.50001"))
    assert alike(prim('"nan"'), prim('"nan"')) and not alike(prim('"inf"'), prim('"-inf"'))
    assert alike(relay.nn.leaky_relu(X, 0.1), relay.nn.leaky_relu(X, 0.1 + 1e-10))
    assert not alike(relay.nn.leaky_relu(X, 0.1), relay.nn.leaky_relu(X, 0.1 + 1e-8))


def test_what_buffers_only_promise() -> None:
    factors = [prim(more=f", offset_factor={factor}") for factor in (1, 2)]
    assert alike(*factors) and not alike(prim(), prim(more=', scope="shared"'))


def test_order_of_functions() -> None:
    one, two = relay.Function([X], X), relay.Function([X], relay.exp(X))
    assert alike(IRModule({"a": one, "b": two}), IRModule({"b": two, "a": one}))
    assert not alike(IRModule({"a": one, "b": two}), IRModule({"a": two, "b": one}))


def test_passes_keep_variables_and_types() -> None:
    # Two parameters of one name stay two.
    same = relay.var("x", shape=(2,))
    mod = transform.InferType()(IRModule.from_expr(relay.Function([X, same], relay.subtract(X, same))))
    assert mod["main"].params[0] is X and mod["main"].params[1] is same
    after = relay.transform.FoldConstant()(mod)
    assert after["main"].params == mod["main"].params and alike(after["main"].body, mod["main"].body)
    assert after.get_global_vars()[0] is mod.get_global_vars()[0]

    @relay.transform.function_pass(opt_level=1)
    def halve(func: Any, mod: Any, ctx: Any) -> Any:
        return relay.Function(func.params, relay.divide(func.body, relay.const(2.0)))

    halved = halve(mod)["main"]
    assert halved.checked_type == relay.FuncType([X.type_annotation] * 2, relay.TensorType((2,)))  # type: ignore[list-item]
    assert halved.body.checked_type == relay.TensorType((2,)) and halved.params[0] is X

    @relay.transform.function_pass(opt_level=1)
    def break_(func: Any, mod: Any, ctx: Any) -> Any:
        return relay.Function(func.params, relay.add(func.body, relay.const(np.ones(3, "float32"))))

    with pytest.raises(MirError, match=r"add: arguments .* do not broadcast"):
        break_(mod)


def test_difference_in_a_deep_program() -> None:
    deep: list[Any] = []
    for bottom in (relay.exp(X), relay.log(X)):
        value: Any = bottom
        for _ in range(3000):
            value = relay.add(value, X)
        deep.append(value)
    found = ir.get_first_structural_mismatch(*deep)
    assert found == ("<root>" + ".args[0]" * 3000 + ".op",) * 2
    # No part differs by itself: what differs is which values are shared.
    assert not alike(relay.Tuple([deep[0], deep[0]]), relay.Tuple([deep[0], relay.add(deep[0].args[0], X)]))


def test_place_in_functions_of_tir() -> None:
    place = "<root>.body.body.value.a.b.value"
    assert ir.get_first_structural_mismatch(prim(), prim("0.25")) == (place, place)
    place = place.replace(".body", "", 1)
    assert ir.get_first_structural_mismatch(prim().body, prim("0.25").body) == (place, place)
