"""TE interpreted over numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mirstack.dialects.te import FuncOp, interpreter
from mirstack.dialects.te import builder as te
from mirstack.dialects.te.interpreter import interpret_te_func
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError

RNG = np.random.default_rng(0)


def function(body: str) -> FuncOp:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    (op,) = parse_mir(f"@te.func\ndef f():\n{lines}", "f.mir").ops
    assert isinstance(op, FuncOp)
    return op


def test_matmul_with_and_without_a_contraction() -> None:
    """The product of plain reads goes through einsum, the same written with a shift does not."""
    n = te.var("n")
    A, B = te.placeholder((n, 30), name="A"), te.placeholder((30, 20), name="B")
    k = te.reduce_axis((0, 30), name="k")
    C = te.compute((n, 20), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    D = te.compute((n, 20), lambda i, j: te.sum(A[i, k] * B[29 - k, j], axis=k), name="D")
    a, b = RNG.standard_normal((7, 30)).astype("float32"), RNG.standard_normal((30, 20)).astype("float32")
    outputs = interpret_te_func(te.func("f", [A, B, C, D]), {"A": a, "B": b})
    np.testing.assert_allclose(outputs["C"], a @ b, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(outputs["D"], a @ b[::-1], rtol=1e-4, atol=1e-5)


def test_factor_that_a_sum_leaves_alone() -> None:
    """It is multiplied term by term, which infinities tell: -8 * -inf + 7 * -inf + inf is not a number."""
    A = te.placeholder((1, 3), name="A")
    k = te.reduce_axis((0, 3), name="k")
    S = te.compute((1, 3), lambda i, j: te.sum(A[i, k] * A[i, j], axis=k), name="S")
    a = np.array([[-8, 7, -np.inf]], "float32")
    with np.errstate(all="ignore"):
        outputs = interpret_te_func(te.func("f", [A, S]), {"A": a})
    np.testing.assert_array_equal(outputs["S"], [[np.inf, -np.inf, np.nan]])


def test_parts_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Computes are done in parts that fit a bound on memory, reductions too."""
    A = te.placeholder((9, 11, 13), name="A")
    k, r = te.reduce_axis((0, 11), name="k"), te.reduce_axis((1, 13), name="r")
    first = te.comm_reducer(
        lambda x, y: (te.Select(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    S = te.compute((9,), lambda i: te.sum(A[i, k, r] * 2.0, axis=[k, r], where=k > i, init=3.0), name="S")
    M = te.compute((), lambda: te.min(A[3, k, r], axis=[k, r]), name="M")
    T0, T1 = te.compute((9,), lambda i: first((k * 100 + r, A[i, k, r]), axis=[k, r]), name="T")
    func = te.func("f", [A, S, M, T0, T1])
    a = RNG.integers(0, 50, (9, 11, 13)).astype("float32")
    whole = interpret_te_func(func, {"A": a})
    monkeypatch.setattr(interpreter, "MOST_POINTS", 10)
    for name, value in interpret_te_func(func, {"A": a}).items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-6)
    kept = np.where(np.arange(11)[None, :, None] > np.arange(9)[:, None, None], a, 0)[:, :, 1:]
    np.testing.assert_allclose(whole["S"], kept.sum(axis=(1, 2)) * 2 + 3, rtol=1e-5)
    assert whole["M"] == a[3, :, 1:].min()
    flat = a[:, :, 1:].reshape(9, -1)
    places = flat.argmax(axis=1)
    np.testing.assert_array_equal(whole["T_v0"], places // 12 * 100 + places % 12 + 1)


def test_guarded_reads() -> None:
    func = function("""
A = te.placeholder((5,), name="A")
I = te.placeholder((5,), "int32", "I")
B = te.compute((7,), lambda i: te.if_then_else(te.all(i >= 1, i < 6), A[i - 1], 0.0), name="B")
C = te.compute((5,), lambda i: te.if_then_else(I[i] != 0, 12 // I[i], te.if_then_else(I[i] == 0, -1, A[99].astype("int32"))), name="C")
return [A, I, B, C]
""")
    a, i = np.arange(5, dtype="float32"), np.array([0, 1, 2, 0, 4], "int32")
    outputs = interpret_te_func(func, {"A": a, "I": i})
    np.testing.assert_array_equal(outputs["B"], [0, 0, 1, 2, 3, 4, 0])
    np.testing.assert_array_equal(outputs["C"], [-1, 12, 6, -1, 3])


def test_scan_and_extern() -> None:
    func = function("""
n = te.var("n")
X = te.placeholder((6, n), name="X")
s1 = te.placeholder((6, n))
s2 = te.placeholder((6, n))
i1 = te.compute((2, n), lambda t, i: X[t, i])
i2 = te.compute((2, n), lambda t, i: 0.0)
mid = te.compute((6, n), lambda t, i: s1[t - 1, i] + s1[t - 2, i], name="mid")
u1 = te.compute((6, n), lambda t, i: mid[t, i] + X[t, i])
u2 = te.compute((6, n), lambda t, i: u1[t, i] - s2[t - 1, i])
y1, y2 = te.scan([i1, i2], [u1, u2], [s1, s2], inputs=[X], name="Y")
def reverse(ins, outs):
    for i in range(6):
        if i < 3:
            outs[0][i] = ins[0][5 - i, 0]
        else:
            outs[0][i] = outs[0][i - 3] + tvm.tir.call_pure_extern("float32", "sqrtf", 4.0)
E = te.extern((6,), [y1], reverse, name="E")
return [X, y1, y2, E]
""")
    x = RNG.integers(0, 5, (6, 3)).astype("float32")
    first, second = x.copy(), np.zeros_like(x)
    for t in range(2, 6):
        first[t] = first[t - 1] + first[t - 2] + x[t]
        second[t] = first[t] - second[t - 1]
    outputs = interpret_te_func(func, {"X": x})
    np.testing.assert_array_equal(outputs["Y_v0"], first)
    np.testing.assert_array_equal(outputs["Y_v1"], second)
    tail = first[:2:-1, 0]
    np.testing.assert_array_equal(outputs["E"], [*tail, *(tail + 2)])


def test_nan_in_a_maximum_stays() -> None:
    func = function("""
A = te.placeholder((4,), name="A")
k = te.reduce_axis((0, 4))
B = te.compute((), lambda: te.max(A[k], axis=k), name="B")
return [A, B]
""")
    outputs = interpret_te_func(func, {"A": np.array([1, np.nan, 3, 2], "float32")})
    assert np.isnan(outputs["B"])


def test_empty_axes() -> None:
    func = function("""
n = te.var("n")
A = te.placeholder((n, 3), name="A")
k = te.reduce_axis((0, n), name="k")
B = te.compute((3,), lambda i: te.sum(A[k, i], axis=k), name="B")
C = te.compute((n, 3), lambda i, j: A[i, j] + 1, name="C")
return [A, B, C]
""")
    outputs = interpret_te_func(func, {"A": np.zeros((0, 3), "float32")})
    np.testing.assert_array_equal(outputs["B"], [0, 0, 0])
    assert outputs["C"].shape == (0, 3)


PROGRAM = """
n = te.var("n")
s = te.var("s")
A = te.placeholder((n, 4), name="A")
I = te.placeholder((4,), "int32", "I")
B = te.compute((n,), lambda i: A[i, I[i % 4]] + (s // I[i % 4]), name="B")
return [A, s, I, B]
"""
GOOD: dict[str, Any] = {"A": np.ones((5, 4), "float32"), "s": 3, "I": np.array([1, 2, 3, 1], "int32")}


def test_good_arguments() -> None:
    np.testing.assert_array_equal(interpret_te_func(function(PROGRAM), GOOD)["B"], [4, 2, 2, 4, 4])


def test_an_integer_divided_by_zero_is_zero() -> None:
    args = {**GOOD, "I": np.array([1, 2, 0, 1], "int32")}
    np.testing.assert_array_equal(interpret_te_func(function(PROGRAM), args)["B"], [4, 2, 1, 4, 4])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": None}, "no value is given for parameter 'A'"),
        ({"X": 1}, "function 'f' has no parameter 'X'"),
        ({"A": np.ones((5, 3), "float32")}, "parameter 'A' has shape \\(5, 4\\), not \\(5, 3\\)"),
        ({"A": np.ones((5,), "float32")}, "parameter 'A' has 2 dimensions, not 1"),
        ({"A": np.ones((5, 4), "float64")}, "parameter 'A' holds float32, not float64"),
        ({"B": np.ones((6,), "float32")}, "size 'n' is 5, but parameter 'B' has 6"),
        ({"I": np.array([1, 2, 4, 1], "int32")}, "index 4 is outside dimension 1 of 'A', which has 4"),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    args = {name: value for name, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(MirError, match=message):
        interpret_te_func(function(PROGRAM), args)


def test_packed_functions_cannot_be_called() -> None:
    func = function("""
A = te.placeholder((4,), name="A")
B = te.extern((4,), [A], lambda ins, outs: tvm.tir.call_packed("f", ins[0], outs[0]), name="B")
return [A, B]
""")
    with pytest.raises(MirError, match="the interpreter cannot call packed functions"):
        interpret_te_func(func, {"A": np.ones(4, "float32")})
