"""Nodes of `tvm.ir`: attributes, relations, places, names of functions, modules with attributes; JSON."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import MirError, ir, relay, te, tir, transform


def round_trip(node: Any) -> Any:
    back = ir.load_json(ir.save_json(node))
    ir.assert_structural_equal(back, node, map_free_vars=True)
    return back


def test_attributes_by_name() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute .unit.; did you mean"):
        ir.make_node("relay.attrs.DenseAttrs", unit=1)
    with pytest.raises(AttributeError, match=r"the attribute .axis. is an integer"):
        ir.make_node("attrs.TestAttrs", axis=100, name="x")
    with pytest.raises(AttributeError, match=r"the attribute .name. must be given"):
        ir.make_node("attrs.TestAttrs")
    with pytest.raises(MirError, match=r"there is no node .relay.Nothing. to make by name"):
        ir.make_node("relay.Nothing")
    made = ir.make_node("attrs.TestAttrs", name="x", padding=(3, 4))
    assert (made.axis, made.name, [each.value for each in made.padding]) == (10, "x", [3, 4])
    assert ir.make_node("relay.attrs.Conv2DAttrs", channels=8).data_layout == "NCHW"
    assert ir.make_node("IntImm", dtype="int32", value=10).value == 10


def test_dictionary_of_attributes() -> None:
    attrs = round_trip(ir.make_node("DictAttrs", x=1, name="xyz", padding=(0, 0)))
    assert isinstance(attrs, ir.DictAttrs) and attrs.x.value == 1 and attrs["name"] == "xyz"
    assert len(attrs) == len(attrs.items()) == 3 and "padding" in attrs
    assert (attrs.get_int("x"), attrs.get_str("name"), attrs.get_int_tuple("padding")) == (1, "xyz", (0, 0))
    assert ir.structural_equal(ir.make_node("DictAttrs", x=1, y=2), ir.make_node("DictAttrs", y=2, x=1))
    assert not ir.structural_equal(ir.make_node("DictAttrs", x=1), ir.make_node("DictAttrs", x=2))
    with pytest.raises(AttributeError, match=r"there is no attribute .nam."):
        attrs.nam  # noqa: B018


def test_types_and_relations() -> None:
    parameter, tensor = ir.TypeVar("t"), ir.TensorType([1, 2], "float32")
    function = ir.FuncType([tensor], ir.TupleType([]), [], [])
    for type in (parameter, tensor, function, ir.TupleType([parameter, function, tensor])):
        assert str(round_trip(type)) == str(type)
    assert ir.load_json(ir.save_json(ir.PrimType("int32"))) == ir.PrimType("int32")
    broadcast = ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    relation = ir.TypeRelation(broadcast, [parameter, tensor], 1, ir.make_node("DictAttrs", x=1))
    assert round_trip(relation).num_inputs == 1 and "TypeRelation" in str(relation)
    calls: list[Any] = [broadcast]
    with pytest.raises(TypeError, match=r"is called by type inference alone"):
        calls[0]()
    with pytest.raises(ValueError, match=r"num_inputs is an integer from 0 to 2"):
        ir.TypeRelation(broadcast, [parameter, tensor], 3)
    affine = ir.TensorAffineType(relay.const(1.0), relay.const(0), "int8")
    assert round_trip(ir.TupleAffineType([affine])).types[0].dtype == "int8"


def test_lists_and_mappings() -> None:
    assert round_trip(mirstack.convert([1, 2, 3]))[1].value == 2
    named = ir.load_json(ir.save_json(mirstack.convert({te.var("a"): 2, te.var("b"): 3})))
    assert {key.name: value.value for key, value in named.items()} == {"a": 2, "b": 3}


def test_programs() -> None:
    x, v = te.var("x"), relay.var("v", shape=(2, 3))
    shared = relay.nn.dense(v, relay.const(np.ones((4, 3), "float32")))
    for node in (
        tir.Max(x, 5) + 1,
        te.exp(te.var("f", "float32")),
        relay.Function([v], relay.Tuple([shared, shared])),
    ):
        round_trip(node)
    module = mirstack.IRModule()
    relay.Prelude(module)
    assert round_trip(module).get_type("List")[1].name_hint == module.get_type("List")[1].name_hint
    deep = x
    for _ in range(3000):
        deep = deep + x
    round_trip(deep)


def test_functions_of_loops() -> None:
    a, i = tir.decl_buffer((8,), "float32", "A"), te.var("i")
    double = tir.PrimFunc([a], tir.For(i, 0, 8, 0, tir.BufferStore(a, a[i] * 2.0, [i])))
    assert (
        round_trip(mirstack.IRModule({"main": double}))["main"].script()
        == mirstack.IRModule({"main": double})["main"].script()
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting"),
        ("[1]", "list indices"),
        ('{"mirstack": 2}', "its version is 2, not 1"),
        ('{"mirstack": 1, "root": {"node": 7}, "nodes": []}', "list index out of range"),
        ('{"mirstack": 1, "root": {"thing": 7}, "nodes": []}', "'thing' is not a kind of value"),
        (
            '{"mirstack": 1, "root": 0, "nodes": [{"kind": "os.system", "fields": {}}]}',
            "there is no kind of node 'os.system'",
        ),
        (
            '{"mirstack": 1, "root": 0, "nodes": [{"kind": "relay.Var", "fields": {"a": 1}}]}',
            "relay.Var has no field 'a'",
        ),
    ],
)
def test_json_that_is_none(text: str, why: str) -> None:
    with pytest.raises(MirError, match=r"this is not JSON of a program") as error:
        ir.load_json(text)
    assert why in str(error.value)


def test_functions_by_name() -> None:
    @mirstack.register_func("test.increment")
    def increment(x: int) -> int:
        return x + 1

    try:
        assert mirstack.get_global_func("test.increment") is increment
        assert ir.load_json(ir.save_json(ir.EnvFunc.get("test.increment")))(10) == 11
        with pytest.raises(ValueError, match=r"there is a function .test.increment. already"):
            mirstack.register_func("test.increment", increment)
        assert "test.increment" in mirstack.list_global_func_names()
    finally:
        mirstack.remove_global_func("test.increment")
    assert mirstack.get_global_func("test.increment", allow_missing=True) is None
    with pytest.raises(ValueError, match=r"there is no function .test.increment."):
        ir.EnvFunc.get("test.increment")
    with pytest.raises(TypeError, match=r"function is not a part of a program that is saved"):
        ir.save_json(increment)


def test_modules_with_attributes() -> None:
    x = relay.var("x", shape=(2,))
    module = mirstack.IRModule.from_expr(x + x)
    changed = module.with_attr("a", 1).with_attrs({"b": "z"})
    assert module.attrs is None and changed.get_attr("b") == "z"
    inferred = transform.InferType()(changed)
    assert inferred.attrs is not None and dict(inferred.attrs) == {"a": 1, "b": "z"}
    assert inferred.without_attr("a").get_attr("a") is None
    assert round_trip(inferred).get_attr("a") == 1
    assert [variable.name_hint for variable, _ in module.items()] == ["main"]
    module.update_global_info("dummy", [ir.DummyGlobalInfo()])
    assert round_trip(module).global_infos["dummy"] == [ir.DummyGlobalInfo()]
    assert ir.VDevice("llvm", 1) == ir.VDevice("llvm", 1) != ir.VDevice("llvm", 2)
    assert (
        isinstance(module["main"], ir.BaseFunc) and isinstance(x, ir.BaseExpr) and isinstance(te.var("n"), ir.BaseExpr)
    )


def test_places() -> None:
    span = ir.Span(ir.SourceName("net.mir"), 1, 2, 3, 4)
    assert (span.source_name, span.line, span.end_line, span.column, span.end_column) == ("net.mir", 1, 2, 3, 4)
    assert ir.SequentialSpan([span, span]).line == 1


def test_a_pass_on_some_functions() -> None:
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], relay.add(x, relay.add(relay.const(1.0), relay.const(2.0))))
    module = mirstack.IRModule({"a1": function, "b1": function})
    fold = ir.transform.Sequential([transform.FoldConstant()])
    changed = ir.transform.ApplyPassToFunction(fold, "a.*")(module)
    assert "3f" in changed["a1"].astext() and "3f" not in changed["b1"].astext()
    assert ir.transform.ApplyPassToFunction(fold, "z")(module) is module
    with pytest.raises(MirError, match=r"no function matches .z.; there are a1, b1"):
        ir.transform.ApplyPassToFunction(fold, "z", True)(module)
    with pytest.raises(MirError, match=r"is not a regular expression"):
        ir.transform.ApplyPassToFunction(fold, "(")
