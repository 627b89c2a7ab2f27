"""A model rewritten in Python: a mutator, sub-functions of groups, operators to prim_funcs, FuseTIR, build, run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mirstack.api import relay, topi, transform
from mirstack.api.build import build
from mirstack.api.ir import IRModule, PrimFunc
from mirstack.api.nd import array
from mirstack.dialects.te import builder as te
from mirstack.support.diagnostics import MirError

RNG = np.random.default_rng(3)
WEIGHTS = {
    name: (RNG.standard_normal(shape) * 0.3).astype("float32")
    for name, shape in {"w0": (16, 64), "b0": (16,), "w1": (10, 16), "b1": (10,)}.items()
}


def perceptron() -> IRModule:
    """Two dense layers with biases, a sigmoid between them."""
    x = relay.var("x", shape=(2, 64))
    hidden = relay.add(relay.nn.dense(x, relay.const(WEIGHTS["w0"])), relay.const(WEIGHTS["b0"]))
    out = relay.add(relay.nn.dense(relay.sigmoid(hidden), relay.const(WEIGHTS["w1"])), relay.const(WEIGHTS["b1"]))
    return relay.transform.InferType()(IRModule.from_expr(relay.Function([x], out)))


class Grouping(relay.ExprMutator):
    """Each bias behind a dense layer becomes a Primitive function with it."""

    def __init__(self, mod: IRModule):
        super().__init__()
        self.mod, self.builder = mod, relay.BlockBuilder(mod)

    def transform(self) -> IRModule:
        for name, function in self.mod.functions.items():
            if isinstance(function, relay.Function):
                self.builder.update_func(name, self.visit(function))
        return self.builder.get()

    def visit_call(self, call: Any) -> Any:
        call = super().visit_call(call)
        if call.op != relay.op.get("add") or not isinstance(call.args[0], relay.Call):
            return call
        dense = call.args[0]
        if dense.op != relay.op.get("nn.dense"):
            return call
        arguments = [*dense.args, call.args[1]]
        params = [
            relay.var(name, relay.ty.from_attribute(self.builder.type_of(argument)))
            for name, argument in zip("xwb", arguments, strict=True)
        ]
        body = relay.add(relay.nn.dense(params[0], params[1]), params[2])
        group = self.builder.add_func(relay.Function(params, body).with_attr("Primitive", 1), "layer")
        return relay.Call(group, arguments)


class ToTIR(relay.ExprMutator):
    """Operators become calls of prim_funcs."""

    def __init__(self, mod: IRModule, functions: dict[str, Callable[..., Any]]):
        super().__init__()
        self.mod, self.builder = mod, relay.BlockBuilder(mod)
        self.functions = {relay.op.get(name): function for name, function in functions.items()}

    def transform(self) -> IRModule:
        for name, function in self.mod.functions.items():
            if isinstance(function, relay.Function):
                self.builder.update_func(name, self.visit(function))
        return self.builder.get()

    def visit_call(self, call: Any) -> Any:
        call = super().visit_call(call)
        function = self.functions.get(call.op)
        return call if function is None else self.builder.call_te(function, *call.args)


def test_whole_way() -> None:
    @transform.module_pass(opt_level=2, name="Grouping")
    def group(mod: IRModule, ctx: transform.PassContext) -> IRModule:
        return Grouping(mod).transform()

    @transform.module_pass(opt_level=0, name="ToTIR")
    def to_tir(mod: IRModule, ctx: transform.PassContext) -> IRModule:
        return ToTIR(mod, {"nn.dense": topi.nn.dense, "add": topi.add, "sigmoid": topi.sigmoid}).transform()

    grouped = group(perceptron())
    assert [v.name_hint for v in grouped.get_global_vars()] == ["main", "layer", "layer1"]
    lowered = to_tir(grouped)
    assert "call_tir(@dense, %x, %w)" in lowered.script() and isinstance(lowered["dense1"], PrimFunc)
    fused = relay.transform.FuseTIR()(lowered)
    names = [v.name_hint for v in fused.get_global_vars()]
    assert sorted(names) == ["layer", "layer1", "main", "sigmoid"]
    assert isinstance(fused["layer"], PrimFunc) and "T.alloc_buffer((2, 16))" in fused["layer"].script()
    image = RNG.random((2, 64), dtype="float32")
    hidden = 1 / (1 + np.exp(-(image @ WEIGHTS["w0"].T + WEIGHTS["b0"])))
    for target in ("llvm", "interp"):
        result = build(fused, target)["main"](array(image))
        np.testing.assert_allclose(result.numpy(), hidden @ WEIGHTS["w1"].T + WEIGHTS["b1"], rtol=1e-4, atol=1e-5)


def test_same_computation_is_one_prim_func() -> None:
    builder = relay.BlockBuilder()
    x = relay.var("x", shape=(4,))
    once = builder.call_te(topi.exp, x)
    again = builder.call_te(topi.exp, x)
    other = builder.call_te(topi.exp, relay.var("y", shape=(5,)), primfunc_name_hint="exp_of_five")
    assert once.args[0] is again.args[0] and other.args[0].name_hint == "exp_of_five"
    assert len(builder.get().get_global_vars()) == 2


def test_lists_attributes_and_several_results() -> None:
    builder = relay.BlockBuilder()
    x, y = relay.var("x", shape=(2, 4)), relay.var("y", shape=(2, 2))
    joined = builder.call_te(topi.concatenate, [x, y], axis=1)
    parts = builder.call_te(topi.split, joined, 3, axis=1)
    builder.update_func("main", relay.Function([x, y], relay.TupleGetItem(parts, 1)))
    a, b = RNG.random((2, 4), dtype="float32"), RNG.random((2, 2), dtype="float32")
    result = build(builder.get())["main"](a, b)
    assert np.array_equal(result.numpy(), np.concatenate([a, b], 1)[:, 2:4])


def test_python_functions_of_te() -> None:
    def twice_and_sum(tensor: Any) -> Any:
        doubled = te.compute(tensor.shape, lambda *i: tensor(*i) * 2.0, name="doubled")
        k = te.reduce_axis((0, 3), name="k")
        return te.compute((4,), lambda i: te.sum(doubled[i, k], axis=k), name="total")

    builder = relay.BlockBuilder()
    x = relay.var("x", shape=(4, 3))
    builder.update_func("main", relay.Function([x], builder.call_te(twice_and_sum, relay.exp(x))))
    data = RNG.random((4, 3), dtype="float32")
    result = build(builder.get())["main"](data)
    np.testing.assert_allclose(result.numpy(), (np.exp(data) * 2).sum(1), rtol=1e-5)
    assert "def twice_and_sum(" in builder.get().script()


def test_call_tir_by_name() -> None:
    builder = relay.BlockBuilder()
    x = relay.var("x", shape=(4,))
    call = builder.call_te(topi.exp, x)
    builder.update_func("main", relay.Function([x], relay.call_tir(call.args[0], [relay.negative(x)])))
    data = RNG.random(4, dtype="float32")
    np.testing.assert_allclose(build(builder.get())["main"](data).numpy(), np.exp(-data), rtol=1e-5)


def test_refusals() -> None:
    builder = relay.BlockBuilder()
    x = relay.var("x", shape=(4,))
    with pytest.raises(MirError, match="call_te: argument 0 is not a tensor"):
        builder.call_te(topi.exp, relay.var("t", relay.TupleType([])))
    with pytest.raises(MirError, match="gave 3, which is not a TE tensor"):
        builder.call_te(lambda tensor: 3, x)
    with pytest.raises(AttributeError, match=r"module 'mirstack\.topi' has no attribute 'nothing'"):
        topi.nothing  # noqa: B018
    with pytest.raises(AttributeError, match=r"topi has no operator 'nn\.nothing'"):
        topi.nn.nothing  # noqa: B018


def test_operators_are_listed() -> None:
    assert "add" in dir(topi) and "dense" in dir(topi.nn)
    assert "of TE tensors" in (topi.nn.dense.__doc__ or "")


def test_a_chain_is_typed_in_linear_time() -> None:
    """What has a type is not gone through again: so many nodes are looked at as there are."""
    builder = relay.BlockBuilder()
    x = relay.var("x", shape=(4,))
    value: Any = x
    for _ in range(200):
        value = builder.call_te(topi.exp, value)
    assert len(builder.get().get_global_vars()) == 1 and value.known_type is not None
