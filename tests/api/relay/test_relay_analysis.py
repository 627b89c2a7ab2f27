"""What is asked of expressions: variables, operators, walks, types, places; and visitors and mutators of one's own."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import ir, relay, transform
from mirstack.api.relay.export import Scope
from mirstack.support.diagnostics import MirError

analysis = relay.analysis


def tensor(name: str) -> relay.Var:
    return relay.var(name, shape=(2,))


X, Y, Z = tensor("x"), tensor("y"), tensor("z")
LET = relay.Let(Z, relay.exp(X), relay.add(Z, Y))


def test_variables() -> None:
    function = relay.Function([X], LET)
    assert analysis.free_vars(function) == [Y]
    assert analysis.free_vars(LET) == [X, Y]
    assert set(analysis.bound_vars(function)) == {X, Z}
    assert set(analysis.all_vars(function)) == {X, Y, Z}


def test_type_variables() -> None:
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    x = relay.Var("x", a)
    function = relay.Function([x], x, relay.TupleType([b]), [a])
    assert analysis.free_type_vars(function) == [b] and analysis.bound_type_vars(function) == [a]
    assert set(analysis.all_type_vars(relay.FuncType([a], b, [a]))) == {a, b}
    assert analysis.check_kind(a) == relay.TypeKind.Type
    assert analysis.check_kind(relay.GlobalTypeVar("List")) == relay.TypeKind.AdtHandle


def test_walks() -> None:
    seen: list[Any] = []
    analysis.post_order_visit(relay.Function([X], relay.exp(relay.exp(X))), seen.append)
    assert [type(node).__name__ for node in seen] == ["Var", "Op", "Call", "Call", "Function"]
    assert [op.name for op in analysis.all_ops(LET)] == ["exp", "add"]
    module = mirstack.IRModule.from_expr(relay.exp(relay.exp(X)) + X)
    assert analysis.list_op_freqs(module) == {"exp": 2, "add": 1}
    assert analysis.count_layers(relay.exp(relay.exp(X)) + relay.exp(X), ["exp"]) == 2


def test_constants_and_forms() -> None:
    one = relay.const(1)
    assert analysis.check_constant(one) and analysis.check_constant(relay.Tuple([one, one]))
    assert not analysis.check_constant(X)
    assert analysis.all_constants(relay.add(one, relay.const(2)))[0] is one
    assert analysis.well_formed(LET) and not analysis.well_formed(relay.Function([X, X], X))
    assert analysis.alpha_equal(relay.Function([X], X), relay.Function([Y], Y))


def test_multiply_accumulates() -> None:
    dense = relay.nn.dense(relay.var("a", shape=(3, 8)), relay.var("w", shape=(5, 8)))
    typed = transform.InferType()(mirstack.IRModule.from_expr(dense))
    assert analysis.get_total_mac_number(typed["main"]) == 3 * 5 * 8


def test_quantized_islands() -> None:
    text = """def @main(%x: Tensor[(2), int8]) {
  %0 = qnn.dequantize(%x, 1f, 0);
  %1 = nn.relu(%0);
  qnn.quantize(%1, 1f, 0, out_dtype="int8")
}"""
    assert analysis.list_fake_quantized_op_freqs(relay.parse(text)) == {"nn.relu": 1}


def test_visitor() -> None:
    class Count(relay.ExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def visit_call(self, call: relay.Call) -> None:
            self.calls += 1
            super().visit_call(call)

    shared = relay.exp(X)
    count = Count()
    count.visit(relay.Function([X], relay.If(relay.const(True), shared + shared, relay.Tuple([shared])[0])))
    assert count.calls == 2
    y: relay.Expr = X
    for _ in range(50_000):
        y = relay.exp(y)
    count.visit(y)
    assert count.calls == 50_002


def test_mutator() -> None:
    class Swap(relay.ExprMutator):
        def visit_op(self, op: Any) -> Any:
            return relay.op.get("log") if op.name == "exp" else op

        def visit_var(self, var: relay.Var) -> Any:
            return Y if var is X else var

    result = Swap().visit(relay.Function([X], LET))
    assert ir.structural_equal(result, relay.Function([Y], relay.Let(Z, relay.log(Y), relay.add(Z, Y))))
    untouched = relay.Tuple([Y, relay.sqrt(Y)])
    assert Swap().visit(untouched) is untouched
    text = """type List[A] { Cons(A, List[A]), Nil, }
def @main(%l: List[float32]) { match? (%l) { Cons(%a, _) => { exp(%a) }, } }"""
    module = relay.parse(text)
    changed = Swap().visit(module["main"])
    module["main"] = changed
    assert "log(%a)" in str(module)
    cell = relay.RefWrite(relay.RefCreate(relay.exp(Y)), relay.RefRead(relay.RefCreate(X)))
    assert ir.structural_equal(
        Swap().visit(cell), relay.RefWrite(relay.RefCreate(relay.log(Y)), relay.RefRead(relay.RefCreate(Y)))
    )


def test_functors_say_what_is_missing() -> None:
    with pytest.raises(TypeError, match="needs a method visit_call"):
        relay.ExprFunctor().visit(relay.exp(X))


def test_common_scopes() -> None:
    root = Scope()
    chain = [root]
    for _ in range(40):
        chain.append(Scope(chain[-1]))
    side = Scope(chain[17])
    for depth in range(41):
        assert chain[40].at_depth(depth) is chain[depth]
        assert chain[depth].common(side) is chain[min(depth, 17)]
    assert chain[17].holds(side) and not chain[18].holds(side)


def test_merge_composite() -> None:
    dfp = relay.dataflow_pattern
    pattern = dfp.is_op("add")(dfp.is_op("nn.dense")(dfp.wildcard(), dfp.wildcard()), dfp.wildcard())
    weight = relay.const(np.ones((2, 2), "float32"))
    program = relay.exp(relay.add(relay.nn.dense(relay.var("a", shape=(2, 2)), weight), Y))
    merged = relay.transform.MergeComposite([("mine.dense", pattern)])(mirstack.IRModule.from_expr(program))
    typed = transform.InferType()(merged)
    assert 'Composite="mine.dense"' in str(typed)
    assert relay.transform.MergeComposite([("no", pattern, lambda root: False)])(typed) is typed
    a, y = np.ones((2, 2), "float32"), np.zeros(2, "float32")
    result = mirstack.compile(typed, target="interp")(a, y)
    np.testing.assert_allclose(np.asarray(result), np.exp(a @ a.T))


def test_types_in_python() -> None:
    assert relay.TensorType((1, relay.Any()), "int8") == relay.TensorType([1, relay.Any()], "int8")
    assert str(relay.TensorType((1, relay.Any()))) == "Tensor[(1, ?), float32]"
    assert str(relay.FuncType([relay.TensorType(())], relay.TupleType([]))) == "fn (float32) -> ()"
    assert len({relay.TensorType((2,)), relay.TensorType((2,))}) == 1
    with pytest.raises(TypeError, match="is not known before the program runs"):
        _ = relay.TensorType((relay.Any(),)).concrete_shape
    with pytest.raises(ValueError, match="does not fit int32; give const a wider dtype"):
        relay.const(2**40)
    with pytest.raises(TypeError, match="a tensor is of numbers"):
        relay.const("a")


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.zeros(2), "float32"),
        (np.arange(3), "int32"),
        (np.float64(1), "float32"),
        (np.int64(1), "int32"),
        ([1.0], "float32"),
        (1, "int32"),
        (np.zeros(2, "float16"), "float16"),
        (np.zeros(2, "uint8"), "uint8"),
        (True, "bool"),
        (mirstack.nd.array(np.arange(3)), "int64"),
    ],
)
def test_dtypes_of_constants(value: object, dtype: str) -> None:
    assert relay.const(value).data.dtype == dtype
    assert relay.const(value, "int64").data.dtype == "int64"


def test_constants_too_large_for_the_dtype_chosen() -> None:
    with pytest.raises(ValueError, match="does not fit int32; give const a wider dtype"):
        relay.const(np.array([2**40]))
    with pytest.raises(ValueError, match="its type or its shape, not both"):
        relay.var("x", "float32", shape=(2,))


def test_functions_of_modules() -> None:
    module = mirstack.IRModule({"f": relay.Function([X], relay.exp(X))})
    g = relay.GlobalVar("g")
    module[g] = relay.Function([Y], module.get_global_var("f")(Y))
    assert [v.name_hint for v in module.get_global_vars()] == ["f", "g"] and "g" in module
    assert module[g].body.op is module.get_global_var("f")
    other = mirstack.IRModule({"f": relay.Function([X], relay.log(X))})
    other.update(module)
    assert ir.structural_equal(other["f"], module["f"])
    typed = transform.InferType()(other)
    assert typed["g"].ret_type == relay.TensorType((2,))
    assert relay.parse("def @h() { 1 }", init_module=typed).get_global_var("h").name_hint == "h"
    assert isinstance(relay.parse_expr("add(1f, 2f)"), relay.Call)
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    array = relay.const(np.arange(4, dtype="float32"))
    for expression in (
        relay.add(x, y),
        relay.const(5),
        relay.Function([x], relay.exp(x)),
        relay.add(x, array),
        relay.exp(array),
    ):
        again = relay.parse_expr(relay.astext(expression))
        assert type(again) is type(expression)
        assert relay.astext(relay.parse_expr(relay.astext(again))) == relay.astext(again)
    with pytest.raises(MirError, match=r"from_string:2:4: error: this '\(' is never closed"):
        relay.parse_expr('#[version = "0.0.5"]\nadd(1')


def test_dtypes() -> None:
    x = relay.var("x", shape=(2,), dtype="int8")
    both = relay.Tuple([relay.cast(x, "float16"), relay.exp(relay.var("y", shape=(2,)))])
    mod = relay.transform.InferType()(mirstack.IRModule.from_expr(both))
    assert relay.analysis.all_dtypes(mod["main"]) == {"int8", "float16", "float32"}
    with pytest.raises(ValueError, match=r"run transform\.InferType"):
        relay.analysis.all_dtypes(both)


def test_floats_of_attributes_are_equal_within_a_bound() -> None:
    def norm(epsilon: float) -> Any:
        args = [relay.var(name, shape=(4,)) for name in "xgbmv"]
        return relay.Function(args, relay.nn.batch_norm(*args, epsilon=epsilon)[0])

    near = norm(1e-5), norm(float(np.float32(1e-5)))
    assert ir.structural_equal(*near) and ir.structural_hash(near[0]) == ir.structural_hash(near[1])
    assert not ir.structural_equal(norm(1e-5), norm(1.1e-5))
    x = relay.var("x", shape=(4,))
    assert not ir.structural_equal(relay.clip(x, 0.0, float("inf")), relay.clip(x, 0.0, 6.0))
    assert ir.structural_equal(relay.clip(x, 0.0, float("inf")), relay.clip(x, 0.0, float("inf")))
    assert ir.structural_equal([1.0, float("nan")], [1.0 + 1e-12, float("nan")])
    assert not ir.structural_equal(1.0, 1)


def test_parameters_are_the_same_variables_after_a_pass() -> None:
    x, y = relay.var("x", shape=(2, 4)), relay.var("y")
    body = relay.nn.relu(relay.nn.bias_add(x, y))
    typed = transform.InferType()(mirstack.IRModule.from_expr(relay.Function([x, y], body)))["main"]
    # One that did not say its type is another variable, which says it.
    assert typed.params[0] is x and typed.params[1] is not y and typed.params[1].type_annotation is not None
    module = transform.InferType()(mirstack.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))
    assert module["main"].params[0] is x and ir.structural_equal(module["main"].body, relay.nn.relu(x))
    again = relay.transform.ToANormalForm()(module)["main"]
    assert again.params[0] is x and relay.analysis.free_vars(again) == []
    # Another type is another variable.
    other = relay.transform.ToMixedPrecision("float16")(module)
    assert (other["main"].params[0] is x) == (str(other["main"].params[0].checked_type) == "Tensor[(2, 4), float32]")


def test_types_of_expressions_and_names() -> None:
    x = relay.var("x", shape=(4,))
    function = relay.Function([x], relay.nn.relu(x))
    assert str(relay.transform.InferTypeLocal(function)) == "fn (Tensor[(4), float32]) -> Tensor[(4), float32]"
    assert str(function.checked_type) == "fn (Tensor[(4), float32]) -> Tensor[(4), float32]"
    assert str(function.body.checked_type) == "Tensor[(4), float32]"
    call = relay.exp(relay.sum(x))
    assert str(relay.transform.InferTypeLocal(call)) == "float32" and str(call.args[0].checked_type) == "float32"
    module = transform.InferType()(mirstack.IRModule.from_expr(function))
    assert module.get_global_var("main").checked_type == function.checked_type


def test_composite_functions_have_types() -> None:
    a, b = relay.var("a", shape=(4,)), relay.var("b", shape=(4,))
    pattern = relay.dataflow_pattern.is_op("nn.relu")(relay.dataflow_pattern.wildcard())
    merge = relay.transform.MergeComposite([("relu", pattern)])
    untyped = mirstack.IRModule.from_expr(relay.nn.relu(relay.add(a, b)))
    for module in (untyped, transform.InferType()(untyped)):
        merged = merge(module)["main"].body
        assert str(merged.op.checked_type) == "fn (Tensor[(4), float32]) -> Tensor[(4), float32]"


def test_clauses_of_one_expression_and_blocks_at_the_end_of_blocks() -> None:
    text = """type List[A] {{ Cons(A, List[A]), Nil, }}
def @f(%xs: List[int32]) -> int32 {{ match (%xs) {{ {} }} }}"""
    wanted = relay.parse(text.format("Cons(%x, _) => { add(%x, 1) }, Nil => { 0 },"))
    for clauses in (
        "Cons(%x, _) => add(%x, 1), Nil => 0,",
        "Cons(%x, _) => add(%x, 1), Nil => 0",
        "Cons(%x, _) => { { add(%x, 1) } } Nil => { 0 }",
    ):
        assert ir.structural_equal(relay.parse(text.format(clauses)), wanted)
    assert ir.structural_equal(relay.parse_expr("let %x = 1; { %x }"), relay.parse_expr("let %x = 1; %x"))
    partial = relay.parse(text.replace("match", "match?").format("Nil => 0"))
    assert "match?" in str(partial)
    with pytest.raises(MirError, match=r"a clause is written Pattern => \{ … \}"):
        relay.parse(text.format("Nil { 0 }"))
