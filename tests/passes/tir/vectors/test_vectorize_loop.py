"""vectorize-loop: contiguous, strided, masked, lane-dependent, and what stays serial; results equal to the interpreter's."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.tir.rewriting import prim_funcs
from mirstack.passes.tir.vectors.vectorize_loop import VectorizeLoop
from xdsl.context import Context

HEAD = """
@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), I: T.Buffer((16,), "int32"), C: T.Buffer((8, 16), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
"""


def vectorized(body: str) -> str:
    """The script after the pass; checks natively and by the interpreter that it computes what the serial loop does."""
    text = HEAD + "\n".join("    " + line for line in body.strip("\n").splitlines()) + "\n"
    module = parse_mir(text)
    VectorizeLoop().apply(Context(), module)
    module.verify()
    rng = np.random.default_rng(0)
    a, index = rng.standard_normal((8, 16)).astype(np.float32), rng.integers(0, 16, 16).astype(np.int32)
    expected, native, interpreted = (np.full((8, 16), 0.5, np.float32) for _ in range(3))
    arguments: dict[str, Any] = {"A": a, "I": index, "C": expected}
    interpret_prim_func(prim_funcs(parse_mir(text))[0], arguments)
    interpret_prim_func(prim_funcs(module)[0], arguments | {"C": interpreted}, module)
    mirstack.compile(mirstack.parse(text))(a, index, native)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-5)
    return print_mir(module)


def test_contiguous() -> None:
    text = vectorized("""
for i in range(8):
    for j in T.vectorized(16):
        C[i, j] = A[i, j] * T.float32(2) + T.Cast("float32", j)
""")
    assert "C[i, 0:16] = A[i, 0:16] * T.Broadcast(T.float32(2), 16)" in text and "vectorized" not in text


def test_strided_and_reversed() -> None:
    text = vectorized("""
for i in range(8):
    for j in T.vectorized(8):
        C[i, j * 2] = A[i, 15 - j]
""")
    assert "C[i, 0:16:2]" in text and "T.Shuffle([A_flat[i * 16 + 8:i * 16 + 8 + 8]], [7, 6, 5, 4, 3, 2, 1, 0])" in text


def test_repeated_elements_are_picked_out_of_vectors() -> None:
    text = vectorized("""
for i in range(8):
    for j in range(2):
        for k in T.vectorized(8):
            C[i, j * 8 + k] = A[i, (j * 8 + k) // 2] + A[i, (j * 8 + k + 3) // 4]
""")
    assert "T.Shuffle([A_flat[i * 16 + j * 4:i * 16 + j * 4 + 4]], [0, 0, 1, 1, 2, 2, 3, 3])" in text
    # Three elements: two vectors of two, which overlap.
    assert "[0, 1, 1, 1, 1, 3, 3, 3])" in text


def test_lanes_of_one_row_and_the_next() -> None:
    text = vectorized("""
for i in range(7):
    for j in T.vectorized(16):
        C[i, j] = A[i + (j + 4) // 16, (j + 4) % 16]
""")
    assert "C[i, 0:16] = A_flat[i * 16 + 4:i * 16 + 4 + 16]" in text


def test_what_lies_far_apart_is_gathered() -> None:
    text = vectorized("""
for i in T.vectorized(8):
    C[0, i] = A[7 - i, 3]
""")
    assert "T.Shuffle" not in text


def test_a_condition_tells_what_an_index_is() -> None:
    text = vectorized("""
for i in range(8):
    for j in range(2):
        for k in T.vectorized(8):
            if j * 8 + k < 13:
                C[i, j * 8 + k] = A[i, (j * 8 + k) % 13]
""")
    assert "A[i, j * 8:j * 8 + 8]" in text and "A.vload([i, T.Ramp(j * 8, 1, 8)], predicate=v)" in text


def test_rows_through_a_flat_view() -> None:
    text = vectorized("""
for j in range(16):
    for i in T.vectorized(8):
        C[i, j] = A[i, j]
""")
    assert ("A_flat" in text and "T.Ramp" in text) or ":16" in text


def test_a_fused_axis_is_not_divided_in_vain() -> None:
    """Of rows of whole vectors the lanes are in one row, but which one does not matter where rows lie one after the other."""
    text = vectorized("""
for f in range(16):
    for i in T.vectorized(8):
        C[(f * 8 + i) // 16, (f * 8 + i) % 16] = A[(f * 8 + i) // 16, (f * 8 + i) % 16]
""")
    assert "//" not in text and "%" not in text, text


def test_gather() -> None:
    vectorized("""
for i in range(8):
    for j in T.vectorized(16):
        C[i, j] = A[i, I[j]]
""")


def test_condition_with_a_bound() -> None:
    text = vectorized("""
for i in range(8):
    for jo in range(2):
        for ji in T.vectorized(8):
            if jo * 8 + ji < 13:
                C[i, jo * 8 + ji] = A[i, jo * 8 + ji]
""")
    assert "if " in text and "else:" in text


def test_condition_on_data_is_a_mask() -> None:
    vectorized("""
for i in range(8):
    for j in T.vectorized(16):
        if A[i, j] > T.float32(0):
            C[i, j] = A[i, j]
""")


def test_lazy_choice_does_not_read_out_of_bounds() -> None:
    vectorized("""
for i in range(8):
    for j in T.vectorized(16):
        C[i, j] = T.if_then_else(1 <= j and j < 15, A[i, j - 1] + A[i, j + 1], T.float32(7))
""")


def test_inner_loop() -> None:
    text = vectorized("""
for i in range(8):
    for j in T.vectorized(16):
        for k in range(3):
            C[i, j] = C[i, j] + A[k, j]
""")
    assert "T.grid(8, 3)" in text and "C[i, 0:16] = C[i, 0:16] + A[k, 0:16]" in text


@pytest.mark.parametrize(
    "body",
    [
        # A running sum: each turn reads what the one before stored.
        "for j in T.vectorized(16):\n    C[0, 0] = C[0, 0] + A[0, j]",
        # Bounds that differ from lane to lane.
        "for j in T.vectorized(16):\n    for k in range(j):\n        C[0, j] = C[0, j] + A[0, k]",
        # Memory of each lane's own.
        "for j in T.vectorized(16):\n    t = T.decl_buffer((1,))\n    t[0] = A[0, j]\n    C[0, j] = t[0]",
    ],
    ids=["sum", "bounds", "memory"],
)
def test_what_stays_serial(body: str) -> None:
    assert "for j in range(16):" in vectorized(body)


def test_bounds_that_an_inner_loop_has_a_part_in() -> None:
    """The test whether all lanes run is on the variable of the new inner loop; lanes that do not run may be anywhere."""
    text = vectorized("""
for o in T.vectorized(4):
    for i in range(5):
        if o * 5 + i < 16:
            C[0, o * 5 + i] = A[0, o * 5 + i] + T.float32(1)
""")
    assert "predicate=" in text and "for i in range(5):" in text
