"""`mirstack.te` in Python: hybrid scripts, functions with blocks, names of `tir`, slices, and what `lower` prints."""

from __future__ import annotations

import mirstack as tvm
import numpy as np
import pytest
from mirstack import te
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.tir.node import FLOAT_LIMITS, Const
from mirstack.support.diagnostics import MirError

FACTOR = 3


@te.hybrid.script
def scaled_sums(a, width):  # type: ignore[no-untyped-def]
    sums = output_tensor((a.shape[0],), a.dtype)  # type: ignore[name-defined] # noqa: F821
    parts = output_tensor((a.shape[0], 2), "float32")  # type: ignore[name-defined] # noqa: F821
    for i in parallel(a.shape[0]):  # type: ignore[name-defined] # noqa: F821
        row = allocate((a.shape[1],), a.dtype, "local")  # type: ignore[name-defined] # noqa: F821
        total = float32(0.0)  # type: ignore[name-defined] # noqa: F821
        for j in range(width):
            row[j] = a[i, j] * FACTOR
        for j in range(width):
            if row[j] > 0.0 and not j > 5:
                total += row[j]
            elif row[j] < -1.0 or j == 0:
                total -= sqrt(row[j] * row[j])  # type: ignore[name-defined] # noqa: F821
        for c in const_range(2):  # type: ignore[name-defined] # noqa: F821
            parts[i, c] = total if c == 0 else row[c]
        sums[i] = total
    return sums, parts


def test_hybrid_script():
    A = te.placeholder((4, 7), name="A")
    S, P = scaled_sums(A, 7)
    C = te.compute((4,), lambda i: S[i] + P[i, 1], name="C")
    s = te.create_schedule(C.op)
    module = tvm.lower(s, [A, S, P, C], simple_mode=True)
    a = np.random.default_rng(0).standard_normal((4, 7)).astype("float32")
    row = a * 3
    j = np.arange(7)
    want = np.where((row > 0) & (j <= 5), row, np.where((row < -1) | (j == 0), -np.abs(row), 0)).sum(1)
    for target in ("interp", "llvm"):
        got = [np.empty(4, "float32"), np.empty((4, 2), "float32"), np.empty(4, "float32")]
        tvm.build(module, target=target)["main"](a, *got)
        np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got[2], want + row[:, 1], rtol=1e-5, atol=1e-5)


def test_hybrid_scripts_are_functions_in_files():
    with pytest.raises(TypeError, match=r"@te.hybrid.script decorates a function"):
        te.hybrid.script(4)  # type: ignore[arg-type]
    namespace: dict[str, object] = {}
    exec("def f(a):\n    return a\n", namespace)
    with pytest.raises(MirError, match="the source of 'f' cannot be read"):
        te.hybrid.script(namespace["f"])  # type: ignore[arg-type]
    with pytest.raises(MirError, match="hybrid script 'scaled_sums' takes 2 arguments, but is called with 1"):
        scaled_sums(te.placeholder((4, 4)))


def test_errors_in_a_script_show_its_line():
    @te.hybrid.script
    def wrong(a):  # type: ignore[no-untyped-def]
        b = output_tensor((4,), a.dtype)  # type: ignore[name-defined] # noqa: F821
        b[0] = a[0, 1]
        return b

    with pytest.raises(MirError, match=r"(?s)test_te_in_python.py:\d+:\d+: error: .*b\[0\] = a\[0, 1\]"):
        wrong(te.placeholder((4,)))


def test_create_prim_func():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    function = te.create_prim_func([A, B], name="plus")
    assert function.name == "plus"
    assert 'T.block("B")' in function.script()


def test_index_dtype_of_a_prim_func():
    """Loops, sizes and indices are of the dtype that is asked for; what tensors hold stays as it is."""
    n = te.var("n")
    A, D = te.placeholder((n, 8), name="A"), te.placeholder((n,), dtype="int32", name="D")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k] + te.if_then_else(i < n - 1, D[i], 5), axis=k), name="B")
    wide = te.create_prim_func([A, D, B], "int64")
    text = wide.script()
    assert (
        "T.grid(n, T.int64(8))" in text and "n = T.int64()" in text and 'T.match_buffer(var_D, (n,), "int32")' in text
    )
    assert "T.if_then_else(v_i < n - T.int64(1), D[v_i], 5)" in text
    narrow = te.create_prim_func([A, D, B], index_dtype_override="int32")
    assert narrow.script() == te.create_prim_func([A, D, B], None).script()
    a, d = np.arange(24, dtype="float32").reshape(3, 8), np.array([1, 2, 3], "int32")
    results = [np.empty(3, "float32") for _ in range(2)]
    for function, result in zip((wide, narrow), results, strict=True):
        tvm.build(function)(a, d, result)
    np.testing.assert_array_equal(results[0], results[1])
    with pytest.raises(MirError, match="'int16' is not a dtype of indices\nnote: indices are int32 or int64"):
        te.create_prim_func([A, D, B], "int16")


def test_functions_on_expressions_have_both_names():
    from mirstack import tir

    for name in ("exp", "if_then_else", "all", "any", "floordiv", "div", "const", "call_extern", "max_value"):
        assert getattr(tir, name) is getattr(te, name)
    with pytest.raises(AttributeError, match=r"module 'mirstack.tir' has no attribute 'nothing'"):
        _ = tir.nothing


def test_slices_and_calls_of_tensors():
    A = te.placeholder((4, 5), name="A")
    B = te.compute(A.shape, lambda *i: A(*i) + A[i[0]][i[1]], name="B")
    s = te.create_schedule(B)
    a, b = np.ones((4, 5), "float32"), np.empty((4, 5), "float32")
    tvm.build(tvm.lower(s, [A, B]))["main"](a, b)
    assert (b == 2).all()
    assert [axis.name for axis in s[B].op.axis] == ["i0", "i1"]


def test_printing_a_lowered_module():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2, name="B")
    s = te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=16)
    text = str(tvm.lower(s, [A, B], simple_mode=True))
    assert text.splitlines()[-8:] == [
        "        A_1 = T.match_buffer(A, (n,), strides=(\"stride\",), buffer_type=\"auto\")",
        "        B_1 = T.match_buffer(B, (n,), strides=(\"stride\",), buffer_type=\"auto\")",
        "        for i_outer, i_inner in T.grid((n + 15) // 16, 16):",
        "            if T.likely(i_outer * 16 + i_inner < n):",
        "                B_2 = T.Buffer((B_1.strides[0] * n,), data=B_1.data, buffer_type=\"auto\")",
        "                A_2 = T.Buffer((A_1.strides[0] * n,), data=A_1.data, buffer_type=\"auto\")",
        "                cse_var_1: T.int32 = i_outer * 16 + i_inner",
        "                B_2[cse_var_1 * B_1.strides[0]] = A_2[cse_var_1 * A_1.strides[0]] * T.float32(2)",
    ]  # fmt: skip


def test_lowering_leaves_the_schedule_as_it_was():
    A = te.placeholder((16,), name="A")
    B = te.compute((16,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((16,), lambda i: B[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[B].compute_inline()
    first = tvm.lower(s, [A, C]).script()
    assert tvm.lower(s, [A, C]).script() == first
    assert [leaf.name for leaf in s[C].leaf_iter_vars] == ["i"]
    assert s[C].op is C.op
    assert [stage.data.attach_type for stage in s.normalize().stages] == ["root", "inlined", "root"]


def test_the_time_of_lowering_is_linear_in_the_number_of_stages():
    def seconds(count: int) -> float:
        tensors = [te.placeholder((32,), name="A")]
        for i in range(count):
            tensors.append(_next(tensors[-1], i))
        s = te.create_schedule(tensors[-1].op)
        return cpu_seconds(lambda: tvm.lower(s, [tensors[0], tensors[-1]], simple_mode=True))

    assert growth(seconds, 20, 80, below=12) < 12


def _next(source: te.Tensor, i: int) -> te.Tensor:
    return te.compute((32,), lambda x: source[x] + 1.0, name=f"S{i}")


def test_text_of_expressions():
    a, b, n = te.var("a"), te.var("b"), te.var("n")
    A = te.placeholder((n,), name="A")
    texts = {
        "a + b * 2": a + b * 2,
        "(a + b) * 2": (a + b) * 2,
        "a - (b - 1)": a - (b - 1),
        "a < 3 and b < 4": te.all(a < 3, b < 4),
        "a // 2 % b": a // 2 % b,
        "T.max(a, b)": te.max(a, b),
        'T.Cast("float32", a)': a.astype("float32"),
        "T.exp(A[a + 1])": te.exp(A[a + 1]),
        "T.if_then_else(a == b, A[a], T.float32(0))": te.if_then_else(te.Expr.equal(a, b), A[a], 0.0),
    }
    for text, expression in texts.items():
        assert str(expression) == repr(expression) == text
    chain = a
    for _ in range(1000):
        chain = chain * chain + 1
    assert len(str(chain)) <= 10_000  # What is shared is written once; what is deep is cut.


def test_constants_of_numpy_and_large_floats():
    for value in (
        np.float32(1.5),
        np.float64(0.1),
        np.float16(2),
        np.int32(3),
        np.int64(3),
        np.uint8(3),
        np.bool_(True),
    ):
        constant = te.const(value)
        assert isinstance(constant, Const) and (constant.dtype, constant.value) == (value.dtype.name, value.item())
    assert te.const(np.int64(3), "int32").dtype == "int32"
    assert te.const(3.402e39).dtype == "float64" and te.const(float("inf")).dtype == "float32"
    assert (
        str(te.const(-3.4028235e38)) == f"T.float32({-FLOAT_LIMITS['float32']})"
        and te.const(-3.4028235e38).dtype == "float32"
    )
    x = te.var("x", "float64")
    assert str(x + np.float64(0.5)) == "x + T.float64(0.5)"


def test_lowering_makes_flat_loops_of_blocks():
    """Blocks, their initialisation and buffers of two dimensions; what the context disables is left out."""
    from mirstack import transform
    from mirstack.api.script import from_source

    function = from_source("""
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4,), "float32")):
    B = T.alloc_buffer((4, 6))
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vj]
""")
    module = tvm.lower(function)
    text = module.script()
    assert "T.block" not in text and "if j == 0:" in text and "cse_var_1: T.int32 = i * 6 + j" in text
    with transform.PassContext(disabled_pass=["tir.CommonSubexprElimTIR"]):
        assert "cse_var" not in tvm.lower(function).script()
    a, c = np.arange(24, dtype="float32").reshape(4, 6), np.empty(4, "float32")
    tvm.build(module)(a, c)
    np.testing.assert_array_equal(c, a.sum(1) * 2)


def test_arithmetic_of_tensors():
    n, m, s = te.var("n"), te.var("m"), te.var("s", "float32")
    A, B, C = te.placeholder((4, 1), name="A"), te.placeholder((3,), name="B"), te.placeholder((n, 3), name="C")
    D = ((s + A) * B - 1) / 2.0
    E, F, G = B - C, (A.astype("int32") // 2) % 3, 1 - -A
    assert (D.name, D.shape, E.shape, F.dtype, G.shape) == ("T_divide", (4, 3), (n, 3), "int32", (4, 1))
    assert D.op.tag == "elemwise" and B in [A, B] and C not in [A, B]
    a, b = np.array([[-3], [5.5], [7], [2]], "float32"), np.array([1, 2, 4], "float32")
    c = np.arange(15, dtype="float32").reshape(5, 3)
    d, e = np.empty((4, 3), "float32"), np.empty((5, 3), "float32")
    f, g = np.empty((4, 1), "int32"), np.empty((4, 1), "float32")
    tvm.build(te.create_prim_func([s, A, B, C, D, E, F, G]))(np.float32(2), a, b, c, d, e, f, g)
    np.testing.assert_array_equal(d, ((2 + a) * b - 1) / 2)
    np.testing.assert_array_equal(e, b - c)
    np.testing.assert_array_equal(f, a.astype("int32") // 2 % 3)
    np.testing.assert_array_equal(g, 1 + a)
    with pytest.raises(MirError, match=r"T_add: tensors of shapes \(3\) and \(4\) do not broadcast: 3 against 4"):
        _ = B + te.placeholder((4,))
    with pytest.raises(
        MirError, match=r"shapes \(n, 3\) and \(m, 3\) do not broadcast: n against m\nnote: dimensions are"
    ):
        _ = C * te.placeholder((m, 3))


def test_scalars_in_topi():
    from mirstack import topi

    A, s = te.placeholder((4,), name="A"), te.var("s", "float32")
    outputs = [topi.add(A, 2.0), topi.multiply(te.const(3.0, "float32"), A), topi.subtract(A, s * 2.0)]
    a, results = np.arange(4, dtype="float32"), [np.empty(4, "float32") for _ in range(3)]
    tvm.build(te.create_prim_func([A, s, *outputs]))(a, np.float32(0.5), *results)
    for result, expected in zip(results, (a + 2, a * 3, a - 1), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_a_reduction_in_an_extern():
    from mirstack.dialects.tir.node import ir_builder

    A, k = te.placeholder((4,), name="A"), te.reduce_axis((0, 4), name="k")

    def body(ins, outs):
        builder = ir_builder.create()
        builder.buffer_ptr(outs[0])[0] = te.sum(A[k], axis=k)
        return builder.get()

    with pytest.raises(
        MirError, match=r"a reduction must be the whole value of a compute\nnote: give it a te.compute of its own"
    ):
        te.create_prim_func([A, te.extern((1,), [A], body, name="B")])
