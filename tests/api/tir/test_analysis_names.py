"""`tir.analysis` answers by TVM's names."""

from __future__ import annotations

import mirstack
import pytest
from mirstack import script, te, tir

x, y = te.var("x"), te.var("y")


def function(text: str) -> tir.PrimFunc:
    found = script.from_source(text)
    assert isinstance(found, tir.PrimFunc)
    return found


scaled = function(
    """
@T.prim_func
def scaled(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        B[i, j] = A[i, j] * T.float32(2) + T.float32(1)
"""
)
sized = function(
    """
@T.prim_func
def sized(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        A[i] = A[i] * T.float32(3)
"""
)


def beyond() -> tir.PrimFunc:
    """Returns a function whose block's axis gets values out of its domain."""
    buffer, i = tir.decl_buffer((8,), "float32", "A"), tir.Var("i", "int32")
    axis = tir.IterVar(tir.Range(0, 4), "vi", tir.IterVar.DataPar)
    block = tir.Block([axis], [], [], "b", tir.BufferStore(buffer, 0.0, [axis.var]))
    body = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BlockRealize([i], True, block))
    return tir.PrimFunc([buffer], body)


def test_expr_deep_equal() -> None:
    equal = tir.analysis.expr_deep_equal
    assert equal(x + y * 2, x + y * 2) and not equal(x + y, y + x) and not equal(x, y)
    with pytest.raises(TypeError, match="rhs is an expression, not"):
        equal(x, "x")  # type: ignore[arg-type]


def test_undefined_vars() -> None:
    undefined = tir.analysis.undefined_vars
    assert [v.name for v in undefined(x + y * x)] == ["x", "y"]
    assert [v.name for v in undefined(x + y, [x])] == ["y"]
    assert undefined(tir.Let(x, tir.IntImm("int32", 1), x + 1)) == []
    loop = tir.For(x, 0, y, tir.ForKind.SERIAL, tir.Evaluate(x + 1))
    assert [v.name for v in undefined(loop)] == ["y"]
    buffer = tir.decl_buffer((8,), "float32", "A")
    stored = tir.For(x, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(buffer, 0.0, [x]))
    assert [v is buffer.data for v in undefined(stored)] == [True]
    assert [v.name for v in undefined(beyond().body)] == ["A"]
    assert undefined(tir.Allocate(x, "float32", [4], True, tir.Evaluate(x))) == []


def test_estimate_tir_flops() -> None:
    assert tir.analysis.estimate_tir_flops(scaled) == 64.0
    assert tir.analysis.estimate_tir_flops(mirstack.IRModule.from_expr(scaled)) == 64.0
    with pytest.raises(ValueError, match="the operations of @sized are not a number: sizes or data decide it"):
        tir.analysis.estimate_tir_flops(sized)
    assert tir.analysis.estimate_tir_flops(sized.specialize({sized.params[1]: 5})) == 5.0
    with pytest.raises(TypeError, match="the argument is a PrimFunc or an IRModule, not"):
        tir.analysis.estimate_tir_flops(3)  # type: ignore[arg-type]


def test_verify_well_formed() -> None:
    assert tir.analysis.verify_well_formed(scaled) and tir.analysis.verify_well_formed(sized)
    assert not tir.analysis.verify_well_formed(beyond(), assert_mode=False)
    with pytest.raises(ValueError, match="the domain"):
        tir.analysis.verify_well_formed(beyond())
