"""Programs under the TIR interpreter against numpy: control flow, buffers, dependences, and what it refuses."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.dialects.tir.interpreter.plan import Mode, make_plan
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError


def parsed(text: str):
    module = parse_mir(text)
    functions = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    return module, functions[-1]


def run(text: str, **args):
    module, func = parsed(text)
    return interpret_prim_func(func, args, module)


def header(params: str) -> str:
    return f"@T.prim_func\ndef f({params}):\n"


F16 = 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")'


def ab(seed: int = 0):
    a = np.random.default_rng(seed).standard_normal(16).astype(np.float32)
    return a, np.zeros(16, np.float32)


def modes(text: str) -> list[str]:
    _, func = parsed(text)
    return [mode.name for mode in make_plan(func, frozenset()).modes.values()]


def test_recurrence_runs_in_order():
    text = header(F16) + "    for i in range(15):\n        A[i + 1] = A[i] * T.float32(0.5) + A[i + 1]\n"
    a, b = ab()
    expected = a.copy()
    for i in range(15):
        expected[i + 1] = expected[i] * np.float32(0.5) + expected[i + 1]
    run(text, A=a, B=b)
    np.testing.assert_array_equal(a, expected)
    assert modes(text) == ["SERIAL"]


def test_independent_loops_are_axes_and_sums_fold():
    text = (
        header('A: T.Buffer((8, 32), "float32"), B: T.Buffer((8,), "float32")')
        + "    for i, k in T.grid(8, 32):\n        with T.block('B'):\n"
        + "            vi, vk = T.axis.remap('SR', [i, k])\n            with T.init():\n                B[vi] = T.float32(1)\n"
        + "            B[vi] = B[vi] + A[vi, vk]\n"
    )
    assert sorted(modes(text)) == ["AXIS", "FOLD"]
    a = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)
    b = np.zeros(8, np.float32)
    run(text, A=a, B=b)
    expected = np.full(8, 1, np.float32)
    for k in range(32):
        expected = expected + a[:, k]  # in the loop's order, rounded each time
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("first, second", [("j, k", "8, 4"), ("k, j", "4, 8")])
def test_sum_over_two_loops_keeps_its_order(first, second):
    text = (
        header('A: T.Buffer((8, 4), "float32"), B: T.Buffer((1,), "float32")')
        + f"    B[0] = T.float32(0)\n    for {first} in T.grid({second}):\n        B[0] = B[0] + A[j, k]\n"
    )
    a = (np.random.default_rng(1).standard_normal((8, 4)) * 1e4).astype(np.float32)
    b = np.ones(1, np.float32)
    run(text, A=a, B=b)
    total = np.float32(0)
    for value in (a if first[0] == "j" else a.T).reshape(-1):
        total += value
    assert b[0] == total


def test_init_runs_where_the_reduction_begins():
    text = (
        header('A: T.Buffer((4, 6), "int32"), B: T.Buffer((4,), "int32")')
        + "    for i, k in T.grid(4, 6):\n        with T.block('B'):\n            vi = T.axis.spatial(4, i)\n"
        + "            vk = T.axis.reduce(6, k)\n            T.where(k < 4)\n"
        + "            with T.init():\n                B[vi] = 100\n            B[vi] = T.max(B[vi], A[vi, vk])\n"
    )
    a = np.arange(24, dtype=np.int32).reshape(4, 6) * 9
    b = np.zeros(4, np.int32)
    run(text, A=a, B=b)
    np.testing.assert_array_equal(b, np.maximum(100, a[:, :4].max(axis=1)))


def test_minimum_of_nan_is_nan():
    text = header(F16) + "    B[0] = A[0]\n    for i in range(15):\n        B[0] = T.min(B[0], A[i + 1])\n"
    a, b = ab()
    a[5] = np.nan
    run(text, A=a, B=b)
    assert np.isnan(b[0])


def test_if_then_else_does_not_read_the_other_side():
    text = (
        header(F16)
        + "    for i in range(16):\n        B[i] = T.if_then_else(1 <= i and i < 15, A[i - 1] + A[i + 1], T.float32(7))\n"
    )
    a, b = ab()
    run(text, A=a, B=b)
    np.testing.assert_array_equal(b[1:15], a[:14] + a[2:])
    assert b[0] == b[15] == 7


def test_branches_while_and_uneven_loops():
    text = (
        header('A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32")')
        + "    for i in range(8):\n        for j in range(i + 1):\n            if j % 2 == 0:\n                B[i, j] = A[i] + j\n"
        + "            else:\n                B[i, j] = -j\n        while A[i] < 10:\n            A[i] = A[i] * 2 + 1\n"
    )
    a = np.arange(8, dtype=np.int32)
    b = np.zeros((8, 8), np.int32)
    run(text, A=a, B=b)
    expected, doubled = np.zeros((8, 8), np.int32), np.arange(8, dtype=np.int32)
    for i in range(8):
        for j in range(i + 1):
            expected[i, j] = i + j if j % 2 == 0 else -j
        while doubled[i] < 10:
            doubled[i] = doubled[i] * 2 + 1
    np.testing.assert_array_equal(b, expected)
    np.testing.assert_array_equal(a, doubled)


def test_each_iteration_has_its_own_allocation():
    text = (
        header('A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")')
        + "    for i in range(8):\n        with T.block('root_of_i'):\n            vi = T.axis.spatial(8, i)\n"
        + "            C = T.alloc_buffer((4,), 'int32')\n            for j in range(4):\n                C[j] = A[vi, 3 - j] * 2\n"
        + "            for j in range(4):\n                B[vi, j] = C[j] + C[0]\n"
    )
    assert "SERIAL" not in modes(text)
    a = np.random.default_rng(0).integers(0, 99, (8, 4)).astype(np.int32)
    b = np.zeros((8, 4), np.int32)
    run(text, A=a, B=b)
    c = a[:, ::-1] * 2
    np.testing.assert_array_equal(b, c + c[:, :1])


def test_symbolic_shapes_and_strides():
    text = (
        header("a: T.handle, b: T.handle")
        + "    m = T.int32()\n    n = T.int32()\n    s = T.int32()\n"
        + "    A = T.match_buffer(a, (m, n), strides=(s, 1))\n    B = T.match_buffer(b, (m, n * 2))\n"
        + "    for i, j in T.grid(m, n):\n        B[i, j * 2] = A[i, j]\n        B[i, j * 2 + 1] = T.Cast('float32', s)\n"
    )
    whole = np.arange(50, dtype=np.float32).reshape(5, 10)
    b = np.zeros((5, 14), np.float32)
    run(text, a=whole[:, :7], B=b)
    np.testing.assert_array_equal(b[:, ::2], whole[:, :7])
    assert (b[:, 1::2] == 10).all()
    with pytest.raises(MirError, match="extent 1 of buffer 'B' is 13, but must be 14"):
        run(text, a=whole[:, :7], b=np.zeros((5, 13), np.float32))


def test_regions_views_pointers_and_calls():
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(p: T.handle("float32", "global"), n: T.int32):
        V = T.decl_buffer((n,), data=p)
        for i in range(n):
            V[i] = V[i] * T.float32(2)

    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(2, 4):
            with T.block("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                X = T.match_buffer(A[vi * 2:vi * 2 + 2, vj * 2:vj * 2 + 2], (2, 2), offset_factor=1)
                Y = T.match_buffer(B[vi * 2:vi * 2 + 2, vj * 2:vj * 2 + 2], (2, 2), offset_factor=1)
                for k, l in T.grid(2, 2):
                    Y[k, l] = X[l, k]
        Module.scale(T.address_of(B[2, 0]), 16)
"""
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.zeros((4, 8), np.float32)
    run(text, A=a, B=b)
    tiles = a.reshape(2, 2, 4, 2).transpose(0, 3, 2, 1).reshape(4, 8)
    tiles[2:] *= 2
    np.testing.assert_array_equal(b, tiles)


def test_vectors():
    text = header(F16) + (
        "    for i in range(4):\n        B[i * 4:i * 4 + 4] = A[T.Ramp(i * 4 + 3, -1, 4)] * T.Broadcast(T.float32(2), 4)\n"
        "    B[0:2] = T.Shuffle([A[0:4]], [3, 0])\n"
    )
    a, b = ab()
    run(text, A=a, B=b)
    expected = a.reshape(4, 4)[:, ::-1].reshape(-1) * 2
    expected[:2] = a[3], a[0]
    np.testing.assert_array_equal(b, expected)


def test_return_value_and_scalars():
    text = "@T.prim_func\ndef f(x: T.int32, y: T.float32) -> T.int32:\n    T.ret(T.Cast('int32', y) + x * 2)\n"
    assert run(text, x=20, y=2.75) == 42


REFUSED = [
    ("    for i in range(16):\n        B[i] = A[i + 1]\n", "index 16 of buffer 'A' is outside [0, 16)"),
    ("    for i in range(16):\n        B[i - 1] = A[i]\n", "index -1 of buffer 'B' is outside [0, 16)"),
    ("    for i in range(16):\n        assert i < 9, 'too far'\n        B[i] = A[i]\n", "error: too far"),
    (
        "    B[0] = T.call_extern('float32', 'mystery', A[0])\n",
        "the interpreter does not run the external function 'mystery'",
    ),
    ("    n = T.int32()\n    for i in range(n):\n        B[i] = A[i]\n", "variable 'n' has no value"),
]


@pytest.mark.parametrize("body, message", REFUSED, ids=[m for _, m in REFUSED])
def test_refused(body, message):
    a, b = ab()
    with pytest.raises(MirError) as caught:
        run(header(F16) + body, A=a, B=b)
    assert message in str(caught.value)
    assert "<input>:" in str(caught.value)


def test_arguments_are_checked():
    text = header(F16) + "    B[0] = A[0]\n"
    a, b = ab()
    with pytest.raises(MirError, match="no value is given for parameter 'B'"):
        run(text, A=a)
    with pytest.raises(MirError, match="buffer 'B' has dtype float32, but its array has float64"):
        run(text, A=a, B=b.astype(np.float64))
    with pytest.raises(MirError, match=r"parameter 'B' has shape \(16,\), but its array has \(4,\)"):
        run(text, A=a, B=b[:4])


def test_deep_nests_run():
    depth = 150
    text = header('A: T.Buffer((1,), "int32")')
    for level in range(depth):
        text += "    " * (level + 1) + f"for i{level} in range(1):\n"
    text += "    " * (depth + 1) + "A[0] = A[0] + 1\n"
    a = np.zeros(1, np.int32)
    run(text, A=a)
    assert a[0] == 1


@st.composite
def programs(draw):
    """Nests of loops that load and store one array at random affine, divided and remaindered places."""
    loops = draw(st.integers(1, 3))
    sizes = [draw(st.integers(1, 6)) for _ in range(loops)]
    names = "ijk"[:loops]

    def index() -> str:
        if draw(st.booleans()):
            # The loops, some of them or in another order, as digits: often a different place in each iteration.
            fused = "0"
            for n, size in draw(st.permutations(list(zip(names, sizes, strict=True))))[: draw(st.integers(1, loops))]:
                fused = f"({fused} * {size} + {n})"
            return draw(st.sampled_from(["{}", "{} + 3", "215 - {}", "{} // 2", "{} % 4"])).format(fused)
        terms = [f"{n} * {draw(st.integers(-3, 6))}" for n in names if draw(st.booleans())]
        inner = " + ".join([*terms, str(draw(st.integers(0, 5)))])
        return draw(st.sampled_from(["({}) % 24", "({}) // 2 % 24", "({}) % 5 + 3"])).format(inner)

    lines = [f"    for {', '.join(names)} in T.grid({', '.join(map(str, sizes))}):"]
    for _ in range(draw(st.integers(1, 3))):
        target, source = draw(st.sampled_from("AB")), draw(st.sampled_from("AB"))
        at = index()
        guard = draw(st.sampled_from(["", f"if {index()} < 9:"]))
        value = draw(
            st.sampled_from(
                [
                    f"{target}[{at}] + {source}[{index()}]",
                    f"{source}[{index()}] * 3",
                    f"T.max({target}[{at}], {index()})",
                ]
            )
        )
        indent = "        "
        if guard:
            lines.append(indent + guard)
            indent += "    "
        lines.append(f"{indent}{target}[{at}] = {value}")
    return header('A: T.Buffer((220,), "int32"), B: T.Buffer((220,), "int32")') + "\n".join(lines) + "\n"


@settings(max_examples=150, deadline=None)
@given(programs())
def test_axes_and_folds_compute_what_loops_compute(text):
    module, func = parsed(text)
    results = []
    for planned in (True, False):
        rng = np.random.default_rng(0)
        args = {name: rng.integers(-9, 9, 220).astype(np.int32) for name in "AB"}
        if not planned:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("mirstack.dialects.tir.interpreter.plan._Planner.mode_of", lambda *_: Mode.SERIAL)
                interpret_prim_func(func, args, module)
        else:
            interpret_prim_func(func, args, module)
        results.append(args)
    for name in "AB":
        np.testing.assert_array_equal(results[0][name], results[1][name])


def test_size_of_a_later_buffer() -> None:
    """What `m` is only the second buffer's shape says."""
    text = header("a: T.handle, b: T.handle") + (
        "    m = T.int64()\n    A = T.match_buffer(a, (m * T.int64(2),))\n    B = T.match_buffer(b, (m, 2))\n"
        '    for i, j in T.grid(m, 2):\n        B[i, j] = A[i * T.int64(2) + T.Cast("int64", j)]\n'
    )
    a, b = np.arange(8, dtype=np.float32), np.zeros((4, 2), np.float32)
    run(text, A=a, B=b)
    np.testing.assert_array_equal(b, a.reshape(4, 2))
    with pytest.raises(MirError, match="extent 0 of buffer 'A' is 8, but must be 6"):
        run(text, A=a, B=b[:3])


def test_buffers_whose_size_differs_between_iterations() -> None:
    text = header("A: T.Buffer((6,), 'int32'), O: T.Buffer((6,), 'int32')") + (
        "    for i in range(6):\n        for j in range(i, 6):\n            W = T.decl_buffer((j + 1,), 'int32')\n"
        "            for k in range(j + 1):\n                W[k] = A[k]\n            O[i] = O[i] + W[j]\n"
    )
    a, out = np.arange(1, 7, dtype=np.int32) ** 2, np.zeros(6, np.int32)
    run(text, A=a, O=out)
    np.testing.assert_array_equal(out, np.cumsum(a[::-1])[::-1])


def test_a_size_that_is_loaded_or_hangs_on_an_outer_loop() -> None:
    text = header("N: T.Buffer((4,), 'int32'), O: T.Buffer((4, 4), 'int32')") + (
        "    for i, j in T.grid(4, 4):\n        W = T.decl_buffer((N[j] + T.max(i, j),), 'int32')\n"
        "        for k in range(N[j] + T.max(i, j)):\n            W[k] = k\n"
        "        O[i, j] = W[N[j] + T.max(i, j) - 1]\n"
    )
    n, out = np.array([3, 1, 2, 5], np.int32), np.zeros((4, 4), np.int32)
    run(text, N=n, O=out)
    i, j = np.indices((4, 4))
    np.testing.assert_array_equal(out, n[j] + np.maximum(i, j) - 1)


def test_a_variable_that_nothing_uses() -> None:
    text = header("A: T.Buffer((4,), 'int32')") + "    x = T.int32()\n    for i in range(4):\n        A[i] = {}\n"
    a = np.zeros(4, np.int32)
    run(text.format("i"), A=a)
    assert a.tolist() == [0, 1, 2, 3]
    with pytest.raises(MirError, match="variable 'x' has no value"):
        run(text.format("x"), A=a)


def test_memory_of_no_whole_number_of_elements() -> None:
    """Of three uint32 a view as int64 has one element; what is left over belongs to none."""
    module = mirstack.parse("""# from tvm.script import tir as T
@T.prim_func
def main(n: T.int32, r: T.Buffer((1,), "int64")):
    M = T.allocate([3], "uint32", "global")
    A = T.decl_buffer((3,), "uint32", data=M)
    for i in range(3):
        A[i] = T.uint32(7)
    B = T.decl_buffer((2,), "int64", data=M)
    r[0] = B[n]
""")
    for target in ("interp", "cpu"):
        run, result = mirstack.compile(module, target), np.zeros(1, np.int64)  # type: ignore[call-overload]
        run(0, result)
        assert result[0] == 7 * (2**32 + 1)
        with pytest.raises(MirError, match=r"outside (of )?the memory that"):
            run(1, result)
