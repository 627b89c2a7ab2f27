"""Relay built in Python: what is written, what comes out as text, what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import ir, relay, tir, transform
from mirstack.api.relay.op.signatures import DYNAMIC
from mirstack.dialects.relay.operator import all_operators
from mirstack.support.diagnostics import MirError

structural_equal, structural_hash = ir.structural_equal, ir.structural_hash


def infer(expr: relay.Expr) -> mirstack.IRModule:
    return transform.InferType()(mirstack.IRModule.from_expr(expr))


def test_modules_under_short_names() -> None:
    import mirstack.api.relay.expr as real
    import mirstack.relay.expr as short  # type: ignore[import-not-found]

    assert real is short
    with pytest.raises(ModuleNotFoundError, match=r"mirstack\.relay\.nothing"):
        import mirstack.relay.nothing  # type: ignore[import-not-found]  # noqa: F401


def test_untyped_and_typed_text() -> None:
    x = relay.var("x", shape=(1, 3))
    c = relay.const(np.array([1, 2, 3], "float32"))
    module = mirstack.IRModule.from_expr(relay.Function([x], relay.add(x, relay.multiply(c, relay.const(2.0)))))
    assert str(module) == (
        "def @main(%x: Tensor[(1, 3), float32] /* ty=Tensor[(1, 3), float32] */) {\n"
        "  %0 = multiply(meta[relay.Constant][0] /* ty=Tensor[(3), float32] */, 2f /* ty=float32 */);\n"
        "  add(%x, %0)\n"
        "}\n\n"
    )
    typed = transform.InferType()(module)
    assert "-> Tensor[(1, 3), float32] {" in str(typed)
    assert typed["main"].body.checked_type == relay.TensorType((1, 3))
    assert "checked_type_" in dir(module["main"]) and module["main"].checked_type_ is None
    again = relay.fromtext(typed.astext())
    assert structural_equal(again, typed)


def test_types_are_written_where_they_were_inferred() -> None:
    x = relay.var("x", shape=(4,))
    assert relay.astext(relay.const(42, "int16")) == '#[version = "0.0.5"]\n42i16'
    assert str(relay.add(x, relay.const(1.0))) == "free_var %x: Tensor[(4), float32];\nadd(%x, 1f)"
    typed = str(relay.testing.run_infer_type(relay.parse_expr("free_var %x: Tensor[(4), float32]; add(%x, 1f)")))
    assert typed.endswith("add(%x, 1f /* ty=float32 */) /* ty=Tensor[(4), float32] */")


def test_shared_nodes_are_computed_once_where_all_uses_see_them() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", "bool")
    both, one = relay.exp(x), relay.log(x)
    text = str(mirstack.IRModule.from_expr(relay.If(c, both + one, both)))
    before, _, branch = text.partition("if (%c)")
    assert "exp" in before and "log" not in before
    assert "log" in branch.partition("else")[0]


def test_recursion_tuples_references() -> None:
    f, n = relay.var("f"), relay.var("n", "int32")
    body = relay.If(n < relay.const(1), n, f(n - relay.const(1)))
    module = infer(relay.Let(f, relay.Function([n], body), f(relay.const(3))))
    assert "let %f: fn (int32) -> int32" in str(module)
    assert structural_equal(mirstack.IRModule.from_expr(module["main"]), module)
    cell = relay.RefCreate(relay.const(1))
    r = relay.var("r")
    program = relay.Let(r, cell, relay.Let(relay.var("_"), relay.RefWrite(r, relay.const(2)), relay.RefRead(r)))
    typed = infer(program)
    assert "ref_write(%r, 2 /* ty=int32 */)" in str(typed)
    assert np.asarray(mirstack.compile(typed.op, target="interp")()).item() == 2
    assert structural_equal(infer(typed["main"]), typed)


def test_data_types_and_matches() -> None:
    a = relay.TypeVar("A")
    header = relay.GlobalTypeVar("List")
    nil = relay.Constructor("Nil", [], header)
    cons = relay.Constructor("Cons", [a, header(a)], header)
    module = mirstack.IRModule({}, {header: relay.TypeData(header, [a], [nil, cons])})
    xs, head = relay.var("xs", header(relay.scalar_type("int32"))), relay.var("head")
    clauses = [
        relay.Clause(relay.PatternConstructor(nil), relay.const(0)),
        relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternWildcard()]), head),
    ]
    module["first"] = relay.Function([xs], relay.Match(xs, clauses))
    module["main"] = relay.Function([], relay.GlobalVar("first")(cons(relay.const(7), nil())))
    typed = transform.InferType()(module)
    assert "Cons(%head: int32 /* ty=int32 */, _) => {" in str(typed)
    assert np.asarray(mirstack.compile(typed.op, target="interp", entry="main")()).item() == 7
    assert structural_equal(relay.fromtext(typed.astext()), typed)
    assert [c.name_hint for c in typed.get_type("List")[1:]] == ["Nil", "Cons"]


def test_a_long_chain() -> None:
    x = relay.var("x", shape=(2,))
    y: relay.Expr = x
    for _ in range(30_000):
        y = relay.add(y, x)
    module = mirstack.IRModule.from_expr(y)
    back = mirstack.IRModule.of_op(module.op)["main"]
    assert structural_equal(back, module["main"])
    assert structural_hash(back) == structural_hash(module["main"])
    assert relay.analysis.list_op_freqs(module) == {"add": 30_000}


def test_structural_equality() -> None:
    def square(name: str, shared: bool) -> relay.Function:
        x = relay.var(name, shape=(2,))
        first = relay.exp(x)
        return relay.Function([x], first * (first if shared else relay.exp(x)))

    assert structural_equal(square("x", True), square("y", True))
    assert structural_hash(square("x", True)) == structural_hash(square("y", True))
    assert not structural_equal(square("x", True), square("x", False))
    x, y = relay.var("x"), relay.var("y")
    assert not structural_equal(relay.exp(x), relay.exp(relay.exp(x)))
    assert not structural_equal(relay.exp(relay.exp(x)), relay.exp(x))
    assert not structural_equal(x + x, y + y)
    assert structural_equal(x + x, y + y, map_free_vars=True)
    assert not structural_equal(x + y, y + y, map_free_vars=True)
    with pytest.raises(ValueError, match="not structurally equal"):
        ir.assert_structural_equal(relay.const(1), relay.const(2))
    f = relay.Function([x], x)
    assert structural_equal(f.with_attr("Primitive", tir.IntImm("int32", 1)), f.with_attr("Primitive", 1))
    assert not structural_equal(f.with_attr("Primitive", 1), f)


def test_signatures_are_tvms() -> None:
    def parameters(function: Callable[..., object]) -> str:
        """Returns names and defaults, without types where these are texts."""
        signature = inspect.signature(function)
        if isinstance(signature.return_annotation, str):
            bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
            signature = inspect.Signature(bare)
        return str(signature).replace(" ", "")

    assert parameters(relay.clip) == "(a,a_min,a_max)"
    assert parameters(relay.nn.pad) == "(data,pad_width,pad_value=0,pad_mode='constant')"
    assert parameters(relay.strided_slice) == "(data,begin,end,strides=None,axes=None,slice_mode='end')"
    assert parameters(relay.nn.batch_matmul).endswith("transpose_a=False,transpose_b=True)")
    assert (
        parameters(relay.transform.FuseOps)
        == "(fuse_opt_level:int=-1,max_depth:int=256)->mirstack.api.ir.transform.NamedPass"
    )
    assert {name.removeprefix("dyn.") for name in all_operators() if name.startswith("dyn.")} == DYNAMIC
    for name in all_operators():
        function = relay.op.find(name)
        assert callable(function) and inspect.signature(function) and function.__doc__


def test_results_that_are_tuples() -> None:
    x = relay.var("x", shape=(4, 6))
    parts = relay.split(x, 3, axis=1)
    assert len(parts) == 3 and len(list(parts)) == 3
    a, b, c = parts
    assert "%0.2" in str(relay.concatenate([a, b, c], 0))
    mean, spread = relay.mean_variance(x, axis=1)
    text = str(infer(relay.Tuple([mean, spread, relay.logsumexp(x, 1), relay.std(x)])))
    assert "variance(%x, %" in text and text.count("exp(") == 1
    with pytest.raises(IndexError):
        parts[3]


def test_shapes_that_are_expressions() -> None:
    x, shape = relay.var("x", shape=(4, 6)), relay.var("s", shape=(2,), dtype="int64")
    assert "dyn.reshape(%x, %s)" in str(relay.reshape(x, shape))
    assert "reshape(%x, newshape=[6, 4])" in str(relay.reshape(x, relay.const([6, 4])))
    with pytest.raises(TypeError, match="transpose: axes is to be known, not an expression"):
        relay.transpose(x, shape)


def test_what_is_no_expression_is_refused() -> None:
    x = relay.var("x", shape=(2,))
    with pytest.raises(TypeError, match=r"make 1 an expression by relay.const first"):
        _ = x + 1
    with pytest.raises(TypeError, match=r"add: rhs is an expression, not 1; write relay.const\(…\)"):
        relay.add(x, 1)
    with pytest.raises(TypeError, match="a Relay expression is wanted, not 'a'"):
        relay.Tuple(["a"])  # type: ignore[list-item]
    with pytest.raises(MirError, match=r"nn.dense has no attribute 'unit'"):
        relay.Call(relay.op.get("nn.dense"), [x, x], {"unit": 3})
    with pytest.raises(MirError, match=r"there is no operator 'nn.dens'; did you mean 'nn.dense'"):
        relay.op.get("nn.dens")
    with pytest.raises(AttributeError, match=r"Relay has no operator 'nn.nothing'"):
        relay.nn.nothing  # noqa: B018


def test_variables_out_of_place() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    with pytest.raises(MirError, match="the variable %y is not bound where it is used") as error:
        mirstack.IRModule.from_expr(relay.Function([x], relay.add(x, y)))
    assert Path(__file__).name in str(error.value)
    with pytest.raises(MirError, match="the variable %x is bound twice"):
        mirstack.IRModule.from_expr(relay.Function([x, x], x))
    with pytest.raises(MirError, match="the operator exp is not a value"):
        mirstack.IRModule.from_expr(relay.Tuple([relay.op.get("exp")]))
    with pytest.raises(MirError, match="the module has no function @f; it has @main"):
        mirstack.IRModule.from_expr(x)["f"]
    with pytest.raises(MirError, match="a dimension is not negative"):
        relay.TensorType((-1,))


def test_places_of_python_lines() -> None:
    x = relay.var("x", shape=(2,))
    module = mirstack.IRModule.from_expr(relay.exp(x))
    span = module["main"].body.span
    assert span is not None and span.source_name == __file__
    assert "exp(x)" in Path(__file__).read_text().splitlines()[span.line - 1]


def test_operators_in_namespaces() -> None:
    assert relay.qnn.op.quantize.__name__ == "quantize"
    assert "dense" in dir(relay.nn) and "nn" in dir(relay)
    x = relay.var("x", shape=(1, 3, 8, 8))
    text = str(relay.image.resize2d(x, (16, 16)))
    assert "roi=[0f, 0f, 0f, 0f]" in text
    y = relay.nn.conv2d(x, relay.var("w"), strides=2, padding=1, channels=4, kernel_size=3)
    assert "strides=[2, 2], padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3]" in str(y)


def test_bind() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = relay.Function([x, y], x + y)
    bound: Any = relay.bind(f, {"x": relay.const(np.ones(2, "float32"))})
    assert [p.name_hint for p in bound.params] == ["y"]
    assert bound.body.args[1] is y


def test_modules_compile_untyped() -> None:
    x = relay.var("x", shape=(2,))
    run = mirstack.compile(mirstack.IRModule.from_expr(relay.exp(x)), target="interp")
    np.testing.assert_allclose(np.asarray(run(np.zeros(2, "float32"))), [1, 1])
