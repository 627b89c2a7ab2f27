"""Dimensions of types that are expressions of tir's variables: types, inference, equality, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mirstack import IRModule, compile, ir, relay, te, tir, transform
from mirstack.support.diagnostics import MirError

N, T = te.size_var("n"), te.var("t")
A, B = relay.var("a", shape=(N, T, 100)), relay.var("b", shape=(N, T, 100))


def typed(expr: Any) -> str:
    return str(relay.testing.run_infer_type(expr).checked_type)


def test_types() -> None:
    type = relay.TensorType((N, 3))
    assert str(type) == "Tensor[(n, 3), float32]" and type.shape[0] is N
    assert type == relay.TensorType((N, 3)) and type != relay.TensorType((T, 3))
    assert type != relay.TensorType((relay.Any(), 3)) and type != relay.TensorType((te.size_var("n"), 3))
    assert relay.TensorType((N * 2 + 1,)) == relay.TensorType((N * 2 + 1,)) != relay.TensorType((N * 2,))
    nested = relay.FuncType([relay.TupleType([type]), relay.ty.RefType(type)], relay.GlobalTypeVar("L")(type))
    assert str(nested) == (
        "fn ((Tensor[(n, 3), float32],), ref(Tensor[(n, 3), float32])) -> L[Tensor[(n, 3), float32]]"
    )
    assert nested == nested and hash(type) == hash(relay.TensorType((N, 3)))
    assert tir.Any is relay.Any and relay.TensorType((tir.Any(),)) == relay.TensorType((relay.Any(),))
    with pytest.raises(TypeError, match="is not known before the program runs"):
        _ = type.concrete_shape
    with pytest.raises(MirError, match=r"relay.TensorType: shape\[0\] is x, of float32: a dimension is an integer"):
        relay.TensorType((te.var("x", "float32"),))


@pytest.mark.parametrize(
    ("expr", "type"),
    [
        (A + B, "Tensor[(n, t, 100), float32]"),
        (relay.concatenate([A, B], axis=1), "Tensor[(n, t + t, 100), float32]"),
        (relay.sum(A, axis=0), "Tensor[(t, 100), float32]"),
        (relay.transpose(A), "Tensor[(100, t, n), float32]"),
        (relay.split(A, 2, axis=2).astuple(), "(Tensor[(n, t, 50), float32], Tensor[(n, t, 50), float32])"),
        (relay.reshape(A, (0, -1)), "Tensor[(n, ?), float32]"),
        (relay.Let(relay.var("z"), A, A), "Tensor[(n, t, 100), float32]"),
    ],
)
def test_inference(expr: Any, type: str) -> None:
    assert typed(expr) == type


def test_equal_variables_stay_equal() -> None:
    x, w = relay.var("x", shape=(N, 10, 24, 24)), relay.var("w")
    call: Any = relay.testing.run_infer_type(relay.nn.conv2d(x, w, kernel_size=(3, 3), padding=(1, 1), channels=2))
    assert call.checked_type == relay.TensorType((N, 2, 24, 24)) != relay.TensorType((T, 2, 24, 24))
    assert call.args[1].checked_type == relay.TensorType((2, 10, 3, 3)) and call.args[0] is x
    function = relay.testing.run_infer_type(relay.Function([A, B], A + B))
    assert function.checked_type == relay.FuncType([A.type_annotation] * 2, A.type_annotation)  # type: ignore[list-item, arg-type]
    # Through other passes, too.
    mod = relay.transform.FoldConstant()(transform.InferType()(IRModule.from_expr(relay.Function([A], A + A))))
    assert str(mod["main"].body.checked_type) == "Tensor[(n, t, 100), float32]" and mod["main"].params[0] is A


def test_structural_equality() -> None:
    other = relay.var("a", shape=(te.size_var("n"), T, 100))
    one, two = relay.Function([A], A), relay.Function([other], other)
    assert not ir.structural_equal(one, two) and ir.structural_equal(one, two, map_free_vars=True)


def test_it_runs_at_any_size() -> None:
    run = compile(IRModule.from_expr(relay.Function([A], relay.sum(A, axis=2))))
    values = np.arange(600, dtype="float32").reshape(2, 3, 100)
    assert (run(values) == values.sum(2)).all()
