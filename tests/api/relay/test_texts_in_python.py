"""Relay text with a module and nodes that the caller provides, expressions as they are written, forms of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mirstack import IRModule, ir, nd, relay, transform
from mirstack.support.diagnostics import MirError


def test_text_that_uses_a_module() -> None:
    before = relay.parse(
        "type Pair { Pair(int32, int32) }\ndef @swap(%p: Pair) { match (%p) { Pair(%a, %b) => Pair(%b, %a) } }"
    )
    after: Any = relay.parse("def @main() { @swap(Pair(1, 2)) }", init_module=before)
    assert [variable.name_hint for variable in after.get_global_vars()] == ["swap", "main"]
    assert after.get_global_type_var("Pair") is before.get_global_type_var("Pair")
    value = relay.create_executor("debug", mod=after).evaluate(after.get_global_var("main"))()
    assert [field.numpy() for field in value.fields] == [2, 1]
    with pytest.raises(MirError, match="swap' is defined twice"):
        relay.parse("def @swap() { 1 }", init_module=before)
    with pytest.raises(TypeError, match="init_module is an IRModule, not 1"):
        relay.parse("1", init_module=1)  # type: ignore[arg-type]


def test_nodes_of_the_caller() -> None:
    text = "def @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][1]) }"
    array = np.array([1, 2], "float32")
    for constant in (relay.const(array), nd.array(array), array):
        mod = relay.parse(text, init_meta_table={"relay.Constant": [relay.const(0), constant]})
        (found,) = relay.analysis.all_constants(mod["main"])
        assert (found.data.numpy() == array).all()
    text = "def @main(%x: Tensor[(4, 6), float32]) { split(%x, meta[relay.attrs.SplitAttrs][0]) }"
    mod = relay.parse(text, init_meta_table={"relay.attrs.SplitAttrs": [{"indices_or_sections": 2, "axis": 1}]})
    assert str(mod["main"].body.attrs["axis"]) == "1"
    with pytest.raises(
        MirError, match=r"init_meta_table\['relay.Constant'\]\[0\] is a constant, an array or a dictionary"
    ):
        relay.parse(text, init_meta_table={"relay.Constant": ["one"]})
    with pytest.raises(TypeError, match="init_meta_table is a dictionary of lists"):
        relay.parse(text, init_meta_table=[])  # type: ignore[arg-type]


def test_expressions_have_the_types_that_are_written() -> None:
    x = relay.var("x", shape=(2,))
    constant = relay.const(np.array([1, 2], "float32"))
    for expression in (
        relay.Function([x], relay.add(x, constant)),
        relay.Function([], relay.Tuple([constant, constant])),
        relay.Function([relay.var("untyped")], relay.const(1)),
        relay.If(relay.const(True), relay.const(0), relay.const(1)),
    ):
        assert ir.structural_equal(relay.parse_expr(expression.astext()), expression)
    free = relay.parse_expr("free_var %x: Tensor[(2), float32];\nfree_var %y;\nadd(%x, %y)")
    assert ir.structural_equal(free, relay.add(x, relay.var("y")), map_free_vars=True)
    assert free.checked_type_ is None  # type: ignore[attr-defined]
    with pytest.raises(MirError, match="from_string:2:1: error: add: arguments"):
        relay.parse_expr('add(ones(shape=[2], dtype="float32"), ones(shape=[3], dtype="float32"))')


def test_functions_in_parentheses() -> None:
    mod = relay.parse(
        "def @f(%g: (fn (int32) -> int32), %h: (fn (int32) -> int32,), %t: (int32)) -> (fn (int32) -> int32) { %g }"
    )
    shown = [str(param.checked_type) for param in mod["f"].params]
    assert shown == ["fn (int32) -> int32", "(fn (int32) -> int32,)", "(int32,)"]


def test_constructors_without_fields() -> None:
    mod: Any = relay.parse("type T { X(), Y(int32) }\ndef @main() { X() }")
    assert next(constructor.inputs for constructor in mod.get_type("T")[1:]) == ()


def test_data_types_of_a_module() -> None:
    mod, header = IRModule(), relay.GlobalTypeVar("Box")
    data = relay.TypeData(header, [], [relay.Constructor("Box", [relay.TensorType(())], header)])
    mod[header] = data
    assert mod[header] is data and header in mod and "Box" not in mod
    assert mod.get_constructor(data.constructors[0].tag) is data.constructors[0]
    # Passes keep what is the same.
    assert transform.InferType()(mod)[header] is data
    with pytest.raises(MirError, match="the module has no constructor of the tag 3"):
        mod.get_constructor(3)
    with pytest.raises(MirError, match="the data type Box cannot be put under the name Case"):
        mod["Case"] = data
    with pytest.raises(MirError, match="the module has no data type Case; it has Box"):
        mod[relay.GlobalTypeVar("Case")]
    with pytest.raises(TypeError, match="the name of a function is a str, a GlobalVar or a GlobalTypeVar, not 3"):
        mod[3]  # type: ignore[index]
    with pytest.raises(TypeError, match=r"the type Box is declared by a relay.TypeData, not by Var"):
        mod[header] = relay.var("x")
    # An expression becomes a function of its free variables.
    x = relay.var("x", shape=(2,))
    mod["main"] = relay.exp(x)
    assert mod["main"].params == (x,)


def test_types_of_calls() -> None:
    x, y = relay.var("x", shape=(10, 10)), relay.var("y", shape=(1, 10))
    assert relay.add(x, y).type_args == ()
    call: Any = relay.testing.run_infer_type(relay.add(x, y))
    assert call.type_args == (relay.TensorType((10, 10)), relay.TensorType((1, 10)))
    prelude = relay.Prelude()
    mod, n = prelude.mod, relay.var("n", "int32")
    mod["main"] = prelude.map(relay.Function([n], relay.const(1.0)), prelude.cons(relay.const(1), prelude.nil()))
    whole: Any = transform.InferType()(mod)["main"].body
    assert list(map(str, whole.type_args)) == ["int32", "float32"]
    assert list(map(str, whole.args[1].type_args)) == ["int32"]
    written = relay.Call(prelude.id, [relay.const(1)], type_args=[relay.TensorType((), "int32")])
    assert written.type_args == (relay.TensorType((), "int32"),)
    # What one argument does not tell, the result does; a function without type parameters has none.
    ref, pair = relay.TypeVar("A"), relay.TypeVar("B")
    generic = relay.FuncType([relay.ty.RefType(ref), relay.TupleType([ref])], relay.FuncType([pair], ref), [ref, pair])
    one = relay.TensorType((1,))
    given = [relay.ty.RefType(one), relay.TupleType([one])]
    assert relay.ty.instantiation(generic, given, relay.FuncType([relay.TensorType(())], one)) == (
        one,
        relay.TensorType(()),
    )
    assert relay.ty.instantiation(generic, [None, None], None) == ()
