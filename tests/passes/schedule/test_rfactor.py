"""rfactor: partial reductions for each turn of a loop; which reducers it knows, and what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mirstack.passes.schedule import Schedule

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import MATMUL
from test_primitives import refused, scheduled

ROWS = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 24):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""

ARGMAX = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), X: T.Buffer((6,), "float32"), V: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 24):
        with T.block("V"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                X[vi] = T.float32(-1)
                V[vi] = T.float32(-100)
            x: T.float32 = T.Select(V[vi] >= A[vi, vk] + A[vi, vk] * T.float32(0), X[vi], A[vi, vk] * T.float32(2))
            v: T.float32 = T.Select(V[vi] >= A[vi, vk] + A[vi, vk] * T.float32(0), V[vi], A[vi, vk] + A[vi, vk] * T.float32(0))
            X[vi] = x
            V[vi] = v
"""

TIES = ARGMAX.replace(
    "T.Select(V[vi] >= A[vi, vk] + A[vi, vk] * T.float32(0), X",
    "T.Select(V[vi] > A[vi, vk] + A[vi, vk] * T.float32(0) or V[vi] == A[vi, vk] + A[vi, vk] * T.float32(0) and X[vi] < A[vi, vk] * T.float32(2), X",
)


NESTED = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    for i, k0 in T.grid(6, 4):
        for k1 in range(6):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(24, k0 * 6 + k1)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
        for k1 in range(6):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(24, k0 * 6 + k1)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
"""


def factored(s: Schedule, inner: bool = True, axis: int = 0) -> Any:
    """rfactor of the reduction over k, cut by 4, at the inner or outer loop."""
    k0, k1 = s.split(s.get_loops(s.get_block("B"))[-1], [None, 4])
    return s.rfactor(k1 if inner else k0, axis)


def update(text: str, combined: str, start: str = "0") -> str:
    """The row reduction with another update and another start."""
    return text.replace("B[vi] + A[vi, vk]", combined).replace("T.float32(0)", f"T.float32({start})", 1)


def test_partial_results_get_a_dimension() -> None:
    text = scheduled(ROWS, factored)
    assert "B_rf = T.alloc_buffer((4, 6))" in text
    assert 'vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])' in text
    assert "B_rf[vk_1, vi] = B_rf[vk_1, vi] + A[vi, vk_0 * 4 + vk_1]" in text
    assert 'vk_1, vi = T.axis.remap("RS", [k_1, i])' in text
    assert "B[vi] = B[vi] + B_rf[vk_1, vi]" in text
    assert "B_rf = T.alloc_buffer((6, 6))" in scheduled(ROWS, lambda s: factored(s, False, -1))


def test_no_reduction_is_left() -> None:
    text = scheduled(ROWS, lambda s: s.rfactor(s.get_loops(s.get_block("B"))[1], 1))
    assert "B_rf[vi, vk] = A[vi, vk]" in text
    assert text.count("with T.init():") == 1


def test_handles_and_parallel_partial_results() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("C")
        k0, _ = s.split(s.get_loops(block)[2], [4, None])
        partial = s.rfactor(k0, 0)
        assert s.resolve(block) is s.resolve(s.get_block("C"))
        assert s.resolve(partial) is s.resolve(s.get_block("C_rf"))
        s.reorder(s.get_loops(partial)[2], s.get_loops(partial)[0])
        s.parallel(s.get_loops(partial)[0])

    assert "for k_0 in T.parallel(4):" in scheduled(MATMUL, steps)


def test_axes_that_share_a_loop() -> None:
    digits = """
@T.prim_func
def main(A: T.Buffer((6, 4, 6), "float32"), B: T.Buffer((6,), "float32")):
    for i, f0, f1 in T.grid(6, 12, 2):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            v0 = T.axis.reduce(6, (f0 * 2 + f1) // 4)
            v1 = T.axis.reduce(4, (f0 * 2 + f1) % 4)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, v1, v0]
"""
    text = scheduled(digits, lambda s: s.rfactor(s.get_loops(s.get_block("B"))[2], 0))
    assert 'vf1, vi, vf0 = T.axis.remap("SSR", [f1, i, f0])' in text


@pytest.mark.parametrize(
    ("combined", "start"),
    [
        ("T.max(B[vi], A[vi, vk])", "-5"),
        ("T.min(A[vi, vk], B[vi])", "3"),
        ("B[vi] * (A[vi, vk] * T.float32(0.25))", "1"),
        ("A[vi, vk] + B[vi]", "0"),
    ],
)
def test_reducers(combined: str, start: str) -> None:
    scheduled(update(ROWS, combined, start), factored)
    scheduled(update(ROWS, combined, start), lambda s: factored(s, False))


def test_argmax() -> None:
    def steps(s: Schedule) -> None:
        k0, _ = s.split(s.get_loops(s.get_block("V"))[1], [None, 4])
        s.rfactor(k0, 0)

    text = scheduled(ARGMAX, steps)
    assert "v: T.float32 = T.Select(V[vi] >= V_rf[vk_0, vi], V[vi], V_rf[vk_0, vi])" in text
    assert "x: T.float32 = T.Select(V[vi] >= V_rf[vk_0, vi], X[vi], X_rf[vk_0, vi])" in text
    whole = scheduled(ARGMAX, lambda s: s.rfactor(s.get_loops(s.get_block("V"))[1], 0))
    assert "T.Select(T.float32(-100) >= A[vi, vk]" in whole
    assert "X[vi] < X_rf[vk_0, vi]" in scheduled(TIES, steps)


def test_two_sums() -> None:
    both = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    for i, k in T.grid(6, 24):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
                C[vi] = T.float32(9)
            b: T.float32 = B[vi] + A[vi, vk]
            c: T.float32 = T.min(C[vi], A[vi, vk])
            B[vi] = b
            C[vi] = c
"""
    assert "C[vi] = T.min(C[vi], C_rf[vk_1, vi])" in scheduled(both, factored)


def test_loops_refused() -> None:
    def loop(s: Schedule, k: int) -> Any:
        return s.get_loops(s.get_block("B"))[k]

    message = refused(ROWS, lambda s: s.rfactor(loop(s, 0), 0))
    assert "rfactor: loop 'i' drives the spatial axis 'vi' of block 'B', and may drive reduction axes only" in message
    assert "the loops of its reduction are 'k'" in message

    def parallel(s: Schedule) -> None:
        s.unroll(loop(s, 1))
        s.rfactor(loop(s, 1), 0)

    assert "rfactor: loop 'k' is unrolled, and must be serial" in refused(ROWS, parallel)
    unused = ROWS.replace("i, k in T.grid(6, 24)", "u, i, k in T.grid(1, 6, 24)")
    assert "rfactor: loop 'u' drives no axis of block 'B'" in refused(unused, lambda s: s.rfactor(loop(s, 0), 0))
    again = ROWS.replace("i, k in T.grid(6, 24)", "i, k, u in T.grid(6, 24, 2)")
    assert "rfactor: loop 'u' is in the reduction of block 'B', but drives no axis of it" in refused(
        again, lambda s: s.rfactor(loop(s, 1), 0)
    )
    mixed = ROWS.replace("i, k in T.grid(6, 24)", "f in range(144)").replace(
        'vi, vk = T.axis.remap("SR", [i, k])',
        "vi = T.axis.spatial(6, f // 24)\n            vk = T.axis.reduce(24, f % 24)",
    )
    assert "loop 'f' drives the spatial axis 'vi'" in refused(mixed, lambda s: s.rfactor(loop(s, 0), 0))
    outside = (
        mixed.replace("f in range(144)", "f, g in T.grid(72, 2)")
        .replace("f % 24", "f % 12 * 2 + g")
        .replace("f // 24", "f // 12")
    )
    assert "rfactor: loop 'f' drives the spatial axis 'vi' and the reduction axis 'vk' of block 'B'" in refused(
        outside, lambda s: s.rfactor(loop(s, 1), 0)
    )
    assert "rfactor: 'B' has 1 dimension, so that factor_axis is from -2 to 1, not 2" in refused(
        ROWS, lambda s: s.rfactor(loop(s, 1), 2)
    )
    symbolic = """
@T.prim_func
def main(a: T.handle, B: T.Buffer((6,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (6, n))
    for i, k in T.grid(6, n):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""
    assert (
        "rfactor: the extent of loop 'k' is not a constant, so that no buffer can hold a result for each iteration"
        in refused(symbolic, lambda s: s.rfactor(loop(s, 1), 0))
    )


def test_surroundings_refused() -> None:
    def over_k(s: Schedule, name: str, number: int = -1) -> None:
        s.rfactor(s.get_loops(s.get_block(name))[number], 0)

    together = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((6,), "float32"), C: T.Buffer((6,), "float32")):
    for k, i in T.grid(24, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
"""
    assert "rfactor: loop 'k' holds 2 blocks ('B', 'C'), and must hold exactly one" in refused(
        together, lambda s: over_k(s, "B", 0)
    )
    assert "rfactor: block 'C' is in loop 'k0' too, which drives the reduction of block 'B'" in refused(
        NESTED, lambda s: over_k(s, "B")
    )

    def moved(s: Schedule) -> None:
        s.compute_at(s.get_block("C"), s.get_loops(s.get_block("D"))[0])
        s.cache_read(s.get_block("C"), 0, "local")
        s.compute_at(s.get_block("A_local"), s.get_loops(s.get_block("C"))[0])
        over_k(s, "C")

    message = refused(MATMUL, moved)
    assert (
        "rfactor: block 'C' reads 'A_local', which block 'A_local' writes in the same loops: the partial results would be computed before it"
        in message
    )

    part = MATMUL.replace("T.grid(24, 20, 16)", "T.grid(12, 20, 16)")
    assert (
        "rfactor: block 'D' reads elements of 'C' that block 'C' does not write (dimension 0): the scope is not a stage pipeline"
        in refused(part, lambda s: over_k(s, "C"))
    )

    def bounded(s: Schedule) -> None:
        k0, _ = s.split(s.get_loops(s.get_block("B"))[1], [None, 5])
        s.rfactor(k0, 0)

    message = refused(ROWS, bounded)
    assert (
        "rfactor: the loops of block 'B' have a common bound (T.where) or are mixed, and would not be affine once 'k_0' is factored out: "
        in message
    )
    assert "split by factors that divide the extent" in message


def test_blocks_refused() -> None:
    def whole(s: Schedule) -> None:
        s.rfactor(s.get_loops(s.get_block("B"))[1], 0)

    plain = ROWS.replace("            with T.init():\n                B[vi] = T.float32(0)\n", "")
    assert "rfactor: block 'B' is not a reduction block: it has no T.init()" in refused(plain, whole)
    strided = ROWS.replace(
        'vi, vk = T.axis.remap("SR", [i, k])', "vi = T.axis.spatial(6, i)\n            vk = T.axis.reduce(24, k * k)"
    )
    assert "rfactor: the bindings of block 'B' are not affine in its loops: " in refused(strided, whole)
    guarded = ROWS.replace(
        "            B[vi] = B[vi] + A[vi, vk]", "            if vk > 3:\n                B[vi] = B[vi] + A[vi, vk]"
    )
    assert "rfactor: the update of block 'B' holds a statement besides stores, 'tir.if'" in refused(guarded, whole)


def test_guarded_loops_refused() -> None:
    guarded = """
@T.prim_func
def main(A: T.Buffer((6, 24), "float32"), B: T.Buffer((6,), "float32"), n: T.int32):
    for i in range(6):
        if i < n:
            for k in range(24):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
"""
    assert "rfactor: 'tir.if' stands among the loops around block 'B', which may be loops only" in refused(
        guarded, lambda s: s.rfactor(s.get_loops(s.get_block("B"))[1], 0)
    )


def test_reducers_refused() -> None:
    def whole(s: Schedule) -> None:
        s.rfactor(s.get_loops(s.get_block("B"))[1], 0)

    message = refused(update(ROWS, "B[vi] - A[vi, vk]"), whole)
    assert "rfactor: block 'B' updates 'B' by no commutative reducer" in message
    assert "the update must be B[…] = B[…] + x, or with *, T.min, T.max" in message
    assert "by no commutative reducer" in refused(update(ROWS, "B[vi] + B[vi] * A[vi, vk]"), whole)
    message = refused(update(ROWS, "B[vi] + A[vi, vk]", "1"), whole)
    assert "rfactor: block 'B' starts 'B' from 1.0, which every part of the reduction would take in again" in message
    assert "T.init() must set 0 for this reducer" in message
    assert "rfactor: T.init() of block 'B' sets 'B' to no constant" in refused(
        ROWS.replace("T.float32(0)", "A[vi, 0]"), whole
    )
    twice = ROWS + "            B[vi] = B[vi] * A[vi, vk]\n"
    assert "rfactor: the update of block 'B' stores 'B' more than once" in refused(twice, whole)
    nothing = ROWS.replace("B[vi] = B[vi] + A[vi, vk]", "T.evaluate(0)")
    assert "the update of block 'B' holds a statement besides stores, 'tir.evaluate'" in refused(nothing, whole)


def test_several_outputs_refused() -> None:
    def whole(s: Schedule) -> None:
        s.rfactor(s.get_loops(s.get_block("V"))[1], 0)

    one = ARGMAX.replace("                V[vi] = T.float32(-100)\n", "")
    assert "rfactor: block 'V' updates 'V', but does not initialize it" in refused(one, whole)
    other = ARGMAX.replace("            X[vi] = x\n", "")
    assert "block 'V' initializes 'X', but does not update it" in refused(other, whole)
    apart = ARGMAX.replace("X: T.Buffer((6,)", "X: T.Buffer((7,)").replace("V: T.Buffer((6,)", "V: T.Buffer((7,)")
    apart = apart.replace("X[vi] = T.float32(-1)", "X[vi + 1] = T.float32(-1)").replace("X[vi] = x", "X[vi + 1] = x")
    message = refused(apart.replace("X[vi],", "X[vi + 1],"), whole)
    assert "rfactor: block 'V' accesses its outputs at different indices" in message
    longer = ARGMAX.replace("X: T.Buffer((6,)", "X: T.Buffer((7,)")
    assert "rfactor: the outputs 'X' and 'V' of block 'V' have different shapes" in refused(longer, whole)
    late = ARGMAX.replace("            X[vi] = x\n", "").replace(
        "            v: T", "            X[vi] = x\n            v: T"
    )
    message = refused(late, whole)
    assert "rfactor: block 'V' reads its output 'V' after it has stored an output" in message
    assert "name every new value first" in message
    crossed = ARGMAX.replace("x: T.float32 = T.Select(V[vi] >=", "x: T.float32 = T.Select(V[vi] <=")
    assert "by no commutative reducer" in refused(crossed, whole)
    neither = ARGMAX.replace("V[vi] >= A[vi, vk] +", "X[vi] >= A[vi, vk] +")
    assert "by no commutative reducer" in refused(neither, whole)


def test_update_without_a_store_refused() -> None:
    named = ROWS.replace("B[vi] = B[vi] + A[vi, vk]", "b: T.float32 = A[vi, vk]")
    assert "rfactor: the update of block 'B' stores nothing" in refused(
        named, lambda s: s.rfactor(s.get_loops(s.get_block("B"))[1], 0)
    )


def test_masked_store_refused() -> None:
    masked = ROWS.replace("B[vi] = B[vi] + A[vi, vk]", "B.vstore([vi], B[vi] + A[vi, vk], predicate=vk > 3)")
    assert "rfactor: the update of block 'B' stores under a mask" in refused(
        masked, lambda s: s.rfactor(s.get_loops(s.get_block("B"))[1], 0)
    )
