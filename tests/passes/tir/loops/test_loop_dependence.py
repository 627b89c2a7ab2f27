"""Loops written as vectorized or parallel compute what they compute serially, natively at every level, or are refused."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.dialects import tir
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir
from mirstack.passes.tir.loops.check_parallel_loops import check_loop
from mirstack.passes.tir.rewriting import ops_of, prim_funcs
from mirstack.passes.tir.vectors.vectorize_loop import vectorize
from mirstack.support.diagnostics import MirError

HEAD = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"), B: T.Buffer((64,), "float32"), C: T.Buffer((8, 16), "float32")):
"""
REVERSED = """
for i in LOOP(4):
    with T.block("b"):
        vi = T.axis.spatial(4, i)
        B[vi] = A[vi] + B[3 - vi]
"""
IN_ORDER = {
    "block": REVERSED,
    "no block": "for i in LOOP(4):\n    B[i] = A[i] + B[3 - i]",
    "one before": "for i in LOOP(8):\n    B[i + 1] = B[i] * A[i]",
    "one element": "for i in LOOP(8):\n    B[i] = B[0] + A[i]",
    "prefix sum": "for i in LOOP(8):\n    B[0] = B[0] + A[i]\n    C[0, i] = B[0]",
    "halves": "for i in LOOP(8):\n    B[i // 2] = B[i // 2] + A[i]",
    "two stores": "for i in LOOP(8):\n    B[i] = A[i]\n    B[i + 1] = A[i + 8]",
    "inner loop": "for i in LOOP(8):\n    for k in range(8):\n        C[k, i + 1] = C[k, i] + A[k]",
    "a view": "D = T.decl_buffer((64,), data=B.data)\nfor i in LOOP(8):\n    B[i] = D[7 - i] + A[i]",
}
"""Loops of which iterations depend on each other."""
DOUBTFUL = {
    "histogram": "for i in LOOP(16):\n    B[I[i]] = B[I[i]] + A[i]",
    "scatter": "for i in LOOP(16):\n    B[I[i]] = A[i]",
    "carried in a buffer": 't = T.alloc_buffer((64,))\nfor i in LOOP(34):\n    with T.block("t"):\n        vi = T.axis.spatial(34, i)\n'
    '        t[vi] = A[vi]\n    for k in range(3):\n        with T.block("b"):\n            vi = T.axis.spatial(32, i + k - 2)\n'
    "            T.where(2 <= i + k and i + k < 34)\n            B[vi] = t[vi] + t[vi + 1] + t[vi + 2]",
    "condition": "for i in LOOP(8):\n    if i < 4:\n        B[i] = B[i + 4]",
}
"""Loops of which it is not known that they do not."""
AT_ONCE = {
    "own element": "for i in LOOP(8):\n    B[i] = B[i] + A[i]",
    "further on": "for i in LOOP(8):\n    B[i] = B[i + 8] + A[i]",
    "other half": "for i in LOOP(8):\n    B[i] = B[15 - i] + A[i]",
    "rows": "for i in LOOP(8):\n    for k in range(1, 8):\n        C[k, i] = C[k - 1, i] + A[k]",
    "digits": "for i in LOOP(4):\n    for k in range(4):\n        B[k * 4 + i] = B[k * 4 + i] + A[i]",
}


def function(body: str, kind: str) -> str:
    """The text of a function with a loop of this kind."""
    return HEAD + "".join(f"    {line}\n" for line in body.strip().replace("LOOP", kind).splitlines())


def arguments() -> dict[str, np.ndarray]:
    """What the function is called with."""
    rng = np.random.default_rng(3)
    return {
        "A": rng.standard_normal(64).astype(np.float32),
        "I": rng.integers(0, 4, 64).astype(np.int32),
        "B": rng.standard_normal(64).astype(np.float32),
        "C": rng.standard_normal((8, 16)).astype(np.float32),
    }


def check(body: str, kind: str, levels: tuple[int, ...] = (0, 2, 3)) -> None:
    """Native code computes what the interpreter computes of the serial loop."""
    expected = arguments()
    interpret_prim_func(prim_funcs(parse_mir(function(body, "range")))[0], dict(expected))
    for level in levels:
        got = arguments()
        mirstack.compile(mirstack.parse(function(body, kind)), opt_level=level, threads=2)(*got.values())
        for name in ("B", "C"):
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, err_msg=f"{name} at level {level}")


def loop_of(body: str, kind: str) -> tir.ForOp:
    """The loop of the kind, in a function that lives as long."""
    return next(loop for loop in ops_of(parse_mir(function(body, f"T.{kind}")), tir.ForOp) if loop.kind.data == kind)


@pytest.mark.parametrize("name", [*IN_ORDER, *DOUBTFUL])
def test_vectorized_loops_keep_their_order(name: str) -> None:
    check((IN_ORDER | DOUBTFUL)[name], "T.vectorized")


@pytest.mark.parametrize("name", AT_ONCE)
def test_iterations_that_are_apart_become_lanes_and_threads(name: str) -> None:
    assert vectorize(loop_of(AT_ONCE[name], "vectorized"))
    loop = loop_of(AT_ONCE[name], "parallel")
    check_loop(loop)
    assert loop.kind.data == "parallel"


def test_lanes_may_load_what_later_iterations_store() -> None:
    body = "for i in LOOP(8):\n    B[i] = B[i + 1] + B[i + 3]\n    C[0, i + 1] = A[i]\n    C[0, i] = A[i + 8]"
    assert vectorize(loop_of(body, "vectorized"))
    check(body, "T.vectorized", (3,))


def test_sums_of_lanes_are_of_sums_only() -> None:
    check(
        """
for i in LOOP(8):
    with T.block("s"):
        vi = T.axis.reduce(8, i)
        B[0] = B[0] + A[vi]
    with T.block("c"):
        vi = T.axis.spatial(8, i)
        C[0, vi] = B[0]
""",
        "T.vectorized",
    )
    check('for i in LOOP(8):\n    with T.block("s"):\n        B[0] = B[1] + A[i]', "T.vectorized")


@pytest.mark.parametrize("name", IN_ORDER)
def test_parallel_loops_of_dependent_iterations_are_refused(name: str) -> None:
    with pytest.raises(
        MirError,
        match=r"loop 'i' cannot be parallel: iterations \d and \d store (and read|to) the same element of '[BCDt]'",
    ):
        mirstack.compile(mirstack.parse(function(IN_ORDER[name], "T.parallel")))


@pytest.mark.parametrize("name", DOUBTFUL)
def test_parallel_loops_that_may_depend_run_serially(name: str) -> None:
    check(DOUBTFUL[name], "T.parallel")


def test_what_each_iteration_has_for_itself() -> None:
    check("t = T.alloc_buffer((4,))\nfor i in LOOP(8):\n    t[i % 4] = A[i]\n    B[i] = t[i % 4]", "T.parallel", (3,))
    body = (
        "t = T.alloc_buffer((4,))\nfor i in LOOP(8):\n    for k in range(4):\n        t[k] = A[k + i]\n    B[i] = t[3]"
    )
    loop = loop_of(body, "parallel")
    check_loop(loop)
    assert loop.kind.data == "parallel"
    check(body, "T.parallel", (0, 3))


def test_blocks_say_what_calls_touch() -> None:
    called = """
for i in LOOP(4):
    with T.block("b"):
        vi = T.axis.spatial(4, i)
        T.reads()
        T.writes(B[WRITTEN])
        T.evaluate(T.call_extern("int32", "f", B.data, vi))
"""
    for written, kind in (("vi", "parallel"), ("vi * 4:vi * 4 + 4", "parallel"), ("vi:vi + 2", "serial")):
        loop = loop_of(called.replace("WRITTEN", written), "parallel")
        check_loop(loop)
        assert loop.kind.data == kind
    loop = loop_of('for i in LOOP(4):\n    T.evaluate(T.call_extern("int32", "f", B.data, i))', "parallel")
    check_loop(loop)
    assert loop.kind.data == "serial"


def test_sizes_that_are_not_known() -> None:
    head = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m))
    B = T.match_buffer(b, (n, m))
"""
    for body in (
        "for i in T.parallel(n):\n        for j in range(m):\n            B[i, j] = A[i, j] + B[i, j]",
        "for i in T.parallel(n * m):\n        B[i // m, i % m] = A[i // m, i % m] + B[i // m, i % m]",
    ):
        module = parse_mir(f"{head}    {body}\n")
        (loop,) = (loop for loop in ops_of(module, tir.ForOp) if loop.kind.data == "parallel")
        check_loop(loop)
        assert loop.kind.data == "parallel"
    module = parse_mir(f"{head}    for i in T.parallel(n):\n        B[i, 0] = A[i, 0] + B[n - 1 - i, 0]\n")
    with pytest.raises(MirError, match="iterations 0 and n - 1 store and read the same element of 'B'"):
        check_loop(ops_of(module, tir.ForOp)[0])
