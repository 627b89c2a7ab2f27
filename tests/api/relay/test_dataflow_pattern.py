"""Patterns of expressions: what they match, rewriting, putting matches into functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mirstack
import pytest
from mirstack import ir, relay, transform
from mirstack.support.diagnostics import MirError

dfp = relay.dataflow_pattern
is_op, wildcard, is_constant = dfp.is_op, dfp.wildcard, dfp.is_constant


def tensor(name: str, *shape: int) -> relay.Var:
    return relay.var(name, shape=shape or (4, 4))


X, Y, Z = tensor("x"), tensor("y"), tensor("z")


def test_leaves() -> None:
    assert wildcard().match(X)
    assert dfp.is_var().match(X) and dfp.is_var("x").match(X) and not dfp.is_var("y").match(X)
    assert is_constant().match(relay.const(1)) and not is_constant().match(X)
    assert dfp.is_expr(X + Y).match(X + Y) and not dfp.is_expr(X + Y).match(Y + X)
    assert is_op("add").match(relay.op.get("add")) and not is_op("add").match(X + Y)
    with pytest.raises(MirError, match="there is no operator 'ad'"):
        is_op("ad")


def test_calls() -> None:
    x, y = wildcard(), wildcard()
    assert is_op("subtract")(x, y).match(X - Y)
    assert not is_op("subtract")(x, x).match(X - Y) and is_op("subtract")(x, x).match(X - X)
    assert not is_op("subtract")(x).match(X - Y)
    assert dfp.CallPattern(is_op("subtract"), None).match(X - Y)
    assert (wildcard() - wildcard()).match(X - Y) and not (wildcard() / wildcard()).match(X - Y)
    assert wildcard()(wildcard(), wildcard()).match(X - Y)


def test_sums_and_products_in_either_order() -> None:
    assert is_op("add")(is_op("exp")(wildcard()), wildcard()).match(Y + relay.exp(X))
    assert is_op("multiply")(is_constant(), wildcard()).match(X * relay.const(1.0))
    assert not is_op("subtract")(is_constant(), wildcard()).match(X - relay.const(1.0))


def test_products_and_quotients_reassociate() -> None:
    x, y, z = (dfp.is_var(name) for name in "xyz")
    assert ((x * y) / z).match(X * (Y / Z))
    assert ((x * y) / z).match((X / Z) * Y)
    assert (x * (y / z)).match((X * Y) / Z)
    assert not ((x * y) / z).match((X * Z) / Y)


def test_tuples_branches_lets_functions() -> None:
    pair = relay.Tuple([X, Y])
    assert dfp.is_tuple([dfp.is_var("x"), wildcard()]).match(pair) and dfp.is_tuple(None).match(pair)
    assert not dfp.is_tuple([wildcard()]).match(pair)
    item = relay.TupleGetItem(pair, 1)
    assert dfp.is_tuple_get_item(wildcard()).match(item) and dfp.is_tuple_get_item(wildcard(), 1).match(item)
    assert not dfp.is_tuple_get_item(wildcard(), 0).match(item)
    choice = relay.If(relay.const(True), X, Y)
    assert dfp.is_if(is_constant(), dfp.is_var("x"), dfp.is_var("y")).match(choice)
    let = relay.Let(Z, X, relay.exp(Z))
    assert dfp.is_let(dfp.is_var(), dfp.is_var("x"), is_op("exp")(wildcard())).match(let)
    function = relay.Function([X], relay.exp(X))
    assert dfp.FunctionPattern([wildcard()], is_op("exp")(wildcard())).match(function)
    assert dfp.FunctionPattern(None, wildcard()).match(function) and not dfp.FunctionPattern(None, wildcard()).match(X)


def test_alternatives_and_options() -> None:
    either: Any = is_op("exp")(wildcard()) | is_op("log")(wildcard())
    assert either.match(relay.log(X)) and not either.match(relay.sqrt(X))
    conv = is_op("nn.dense")(wildcard(), wildcard())
    pattern = conv.optional(lambda p: is_op("nn.relu")(p))
    dense = relay.nn.dense(X, Y)
    assert pattern.match(dense) and pattern.match(relay.nn.relu(dense)) and not pattern.match(relay.exp(dense))


def test_attributes() -> None:
    dense = relay.nn.dense(X, Y, units=4)
    pattern = is_op("nn.dense")(wildcard(), wildcard())
    assert pattern.has_attr({"units": 4}).match(dense) and not pattern.has_attr({"units": 5}).match(dense)
    assert not pattern.has_attr({"unit": 4}).match(dense)
    assert dfp.has_attr({"axis": [0]}, wildcard()).match(relay.sum(X, axis=[0]))
    assert is_op("nn.relu").has_attr({"TOpPattern": 0})(wildcard()).match(relay.nn.relu(X))
    assert not wildcard().has_attr({"TOpPattern": 0})(wildcard(), wildcard()).match(dense)
    assert wildcard().has_attr({"Primitive": 1}).match(relay.Function([X], X).with_attr("Primitive", 1))


def test_types() -> None:
    y = relay.nn.dense(X, tensor("w", 2, 4))
    assert wildcard().has_shape((4, 2)).match(y) and not wildcard().has_shape((4, 4)).match(y)
    assert dfp.has_dtype("float32").match(y) and not dfp.has_dtype("int32", wildcard()).match(y)
    assert wildcard().has_type(relay.TensorType((4, 2))).match(y)
    assert dfp.has_type(relay.scalar_type("int32")).match(relay.const(1))
    assert not dfp.has_shape((4,)).match(relay.nn.dense(X, tensor("w", 2, 3)))


def diamond(end: Any, middle: Any = relay.nn.relu) -> relay.Expr:
    top = relay.nn.dense(X, Y)
    return end(middle(middle(top)), middle(top))


def test_dominators() -> None:
    dense = is_op("nn.dense")(wildcard(), wildcard())
    path = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    pattern = dfp.dominates(dense, path, is_op("add")(wildcard(), wildcard()))
    assert pattern.match(diamond(relay.add))
    assert not pattern.match(diamond(relay.subtract))
    assert not pattern.match(diamond(relay.add, lambda x: relay.nn.softmax(x)))
    top = relay.nn.dense(X, Y)
    assert not pattern.match(relay.add(relay.nn.relu(top), relay.nn.relu(X)))
    assert is_op("add")(wildcard(), wildcard()).dominates(dense, path).match(diamond(relay.add))


def test_every_input_of_a_dominator_comes_from_one_parent() -> None:
    dense = is_op("nn.dense")(wildcard(), wildcard())
    pattern = dfp.dominates(dense, is_op("nn.relu")(wildcard()), is_op("add")(wildcard(), wildcard()))
    top = relay.nn.dense(X, Y)
    assert pattern.match(relay.add(top, relay.nn.relu(top)))
    # Another parent below the first, behind what is not of the path; a second parent; an input that has none.
    below = relay.nn.dense(relay.tanh(top), Y)
    for left, right in ((below, relay.nn.relu(top)), (relay.nn.dense(Y, X), relay.nn.relu(top)), (top, Z)):
        assert not pattern.match(relay.add(left, right)) and not pattern.match(relay.add(right, left))
    anything = dfp.dominates(dense, wildcard(), is_op("add")(wildcard(), wildcard()))
    assert anything.match(relay.add(top, relay.exp(top)))
    assert not anything.match(relay.add(relay.exp(top), Z)) and not anything.match(relay.add(Z, relay.exp(top)))


class FusedMultiplyAdd(dfp.DFPatternCallback):
    """A product and a sum become one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.y, self.z = wildcard(), wildcard(), wildcard()
        self.pattern = is_op("add")(is_op("multiply")(self.x, self.y), self.z)

    def callback(self, pre: Any, post: Any, node_map: Mapping[Any, Sequence[Any]]) -> relay.Expr:
        return relay.ewise_fma(node_map[self.x][0], node_map[self.y][0], node_map[self.z][0])


def test_rewrite() -> None:
    result = dfp.rewrite(FusedMultiplyAdd(), relay.exp((X * Y) + Z) * Y + Z)
    expected = relay.ewise_fma(relay.exp(relay.ewise_fma(X, Y, Z)), Y, Z)
    assert ir.structural_equal(result, expected)
    assert FusedMultiplyAdd().rewrite(X - Y) is not None


def test_a_producer_with_two_consumers_is_left_alone() -> None:
    product = X * Y
    both = relay.Tuple([product + Z, relay.exp(product)])
    assert dfp.rewrite(FusedMultiplyAdd(), both) is both


def test_rewrite_with_types_and_once() -> None:
    class Widen(dfp.DFPatternCallback):
        def __init__(self, **options: bool):
            super().__init__(**options)
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre: Any, post: Any, node_map: Mapping[Any, Sequence[Any]]) -> relay.Expr:
            assert pre.checked_type == relay.TensorType((4, 4))
            return relay.sqrt(relay.exp(post.args[0]))

    once = Widen(require_type=True, rewrite_once=True).rewrite(relay.exp(X))
    assert ir.structural_equal(once, relay.sqrt(relay.exp(X)))
    with pytest.raises(MirError, match="rewriting by Widen did not come to an end in 100 rounds"):
        Widen(require_type=True).rewrite(relay.exp(X))

    class Nothing(dfp.DFPatternCallback):
        pass

    with pytest.raises(TypeError, match="Nothing sets no pattern"):
        Nothing().rewrite(X)
    nothing = Nothing()
    nothing.pattern = dfp.is_var()
    with pytest.raises(TypeError, match="Nothing needs a method callback"):
        nothing.rewrite(X)


def test_partition() -> None:
    weight, bias = relay.const([[1.0] * 4] * 4), tensor("b", 4)
    pattern = is_op("nn.bias_add")(is_op("nn.dense")(wildcard(), is_constant()), wildcard())
    program = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(X, weight), bias))
    result: Any = pattern.partition(program, {"Composite": "dense_bias"})
    call = result.args[0]
    assert [p.name_hint for p in call.op.params] == ["FunctionVar_0_0", "FunctionVar_0_1"]
    assert call.args == (X, bias)
    assert call.op.attrs == {"Composite": "dense_bias", "PartitionedFromPattern": "nn.dense_nn.bias_add_"}
    assert is_constant().match(call.op.body.args[0].args[1])
    assert dfp.partition(pattern, program, check=lambda root: False) is program
    assert ir.structural_equal(dfp.partition(pattern, result), result)
    typed = transform.InferType()(mirstack.IRModule.from_expr(result))
    assert 'Composite="dense_bias"' in str(typed)


def test_partition_along_a_path() -> None:
    dense = is_op("nn.dense")(wildcard(), wildcard())
    path = wildcard().has_attr({"TOpPattern": 0})(wildcard())
    pattern = dfp.dominates(dense, path, is_op("add")(wildcard(), wildcard()))
    result: Any = pattern.partition(diamond(relay.add))
    assert result.args == (X, Y) and relay.analysis.free_vars(result.op) == []
    assert relay.analysis.list_op_freqs(mirstack.IRModule.from_expr(result))["nn.relu"] == 3


def test_partition_of_functions_and_bindings() -> None:
    """What a function or a let of the match binds is not an input of the new function; names are TVM's."""
    a, b, c, d = (wildcard() for _ in range(4))
    inner = dfp.FunctionPattern([c, d], is_op("nn.dense")(c, d))
    p, q = relay.var("p"), relay.var("q")
    function = relay.Function([p, q], relay.nn.dense(p, q))
    result: Any = (inner(a, b) + wildcard()).partition(function(X, Y) + Z)
    assert relay.analysis.free_vars(result.op) == [] and set(result.args) == {X, Y, Z}
    assert result.op.attrs["PartitionedFromPattern"] == "nn.dense_FunctionCall_add_"
    renamed = [relay.var(name) for name in "xyz"]
    expected = relay.Function(renamed, function(renamed[0], renamed[1]) + renamed[2])
    assert ir.structural_equal(result.op.body, expected.body, True)
    # What the function takes from around it is an input, though the pattern's wildcard stands in its body.
    capture = relay.Function([p], relay.add(p, Z))
    result = dfp.FunctionPattern([c], c + wildcard())(a).partition(capture(X))
    assert relay.analysis.free_vars(result.op) == [] and set(result.args) == {X, Z}
    let = relay.Let(p, relay.exp(X), relay.add(p, Y))
    for body in (wildcard(), is_op("add")(wildcard(), wildcard())):
        result = dfp.is_let(dfp.is_var(), is_op("exp")(wildcard()), body).partition(let)
        assert relay.analysis.free_vars(result.op) == []
        assert result.op.attrs["PartitionedFromPattern"].endswith("Let_")
    result = dfp.is_tuple_get_item(is_op("split")(wildcard()), 0).partition(relay.split(X, 2)[0])
    assert result.op.attrs["PartitionedFromPattern"] == "split_TupleGetItem0_"


def test_a_long_chain() -> None:
    y: relay.Expr = X
    for _ in range(10_000):
        y = (y * Y) + Z
    result = dfp.rewrite(FusedMultiplyAdd(), y)
    assert relay.analysis.list_op_freqs(mirstack.IRModule.from_expr(result)) == {"ewise_fma": 10_000}


def test_text_of_patterns() -> None:
    any_ = wildcard()
    dense = is_op("nn.dense")(any_, relay.dataflow_pattern.is_constant())
    texts = {
        str(is_op("nn.relu")(dense | is_op("add")(None))): "nn.relu((nn.dense(*, constant) | add(...)))",
        str(relay.dataflow_pattern.is_var("x") + relay.dataflow_pattern.is_var()): "add(%x, %*)",
        str(relay.dataflow_pattern.is_tuple_get_item(relay.dataflow_pattern.is_tuple(None))): "(...).*",
        str(dense.has_attr({"units": 4}).has_dtype("float32")): "(nn.dense(*, constant){units=4}: float32)",
        str(any_.has_shape([2, 3])): "(*: [2, 3])",
        str(any_.has_type(relay.TensorType((2,)))): "(*: Tensor[(2), float32])",
        str(is_op("add")(any_, any_).dominates(dense)): "dominates(nn.dense(*, constant), *, add(*, *))",
        str(relay.dataflow_pattern.is_if(any_, any_, dense)): "if (*) { * } else { nn.dense(*, constant) }",
        str(relay.dataflow_pattern.is_let(relay.dataflow_pattern.is_var(), any_, any_)): "let %* = *; *",
        str(relay.dataflow_pattern.FunctionPattern(None, any_)): "fn (...) { * }",
        str(relay.dataflow_pattern.is_expr(relay.GlobalVar("f"))): "<@f>",
    }
    for text, expected in texts.items():
        assert text == expected
    for _ in range(3000):
        any_ = is_op("add")(any_, any_)
    assert str(any_).startswith("add(add(") and len(str(any_)) <= 402
