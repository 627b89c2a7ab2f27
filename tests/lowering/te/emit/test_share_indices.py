"""Names for what statements of a lowered schedule repeat stand where all their readers see them."""

from __future__ import annotations

import mirstack as tvm
import numpy as np
from mirstack import te


def test_the_mask_of_a_branch_stays_outside_of_it():
    """The mask and the indices of what is stored under it are made of the same index."""
    A = te.placeholder((2, 9), "int32", "A")
    S = te.compute((2, 9), lambda i, j: A[i, j] * 3 + A[1 - i, j], name="S")
    s = te.create_schedule(S.op)
    outer, inner = s[S].split(S.op.axis[1], factor=4)
    s[S].split(outer, factor=2)
    s[S].vectorize(inner)
    module = tvm.lower(s, [A, S], simple_mode=True)
    text = str(module)
    mask = next(line for line in text.splitlines() if "boolx4" in line)
    assert "j_outer_inner * 4 + 8" in mask and "cse_var" not in mask
    a = np.arange(18, dtype="int32").reshape(2, 9)
    result = np.zeros((2, 9), "int32")
    tvm.build(module, target="interp")["main"](a, result)
    np.testing.assert_array_equal(result, a * 3 + a[::-1])


def test_the_number_of_an_unrolled_turn_stays_before_its_readers():
    """A loop in the turn repeats what is made of it, and so does a statement before that loop."""
    A = te.placeholder((2, 2), "int32", "A")
    B = te.placeholder((2, 2), "int32", "B")
    r = te.reduce_axis((0, 2), name="r")
    C = te.compute((2, 2), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((2, 2), lambda i, j: C[i, j] + A[i, 0], name="D")
    s = te.create_schedule(D.op)
    s[C].unroll(C.op.axis[1])
    module = tvm.lower(s, [A, B, D])
    a, b = np.array([[1, 2], [3, 4]], "int32"), np.array([[5, 6], [7, 8]], "int32")
    for target in ("interp", "llvm"):
        result = np.zeros((2, 2), "int32")
        tvm.build(module, target=target)["main"](a, b, result)
        np.testing.assert_array_equal(result, a @ b + a[:, :1])
