"""Small schedules for tests: two stages, and a reduction."""

from __future__ import annotations

from mirstack import te


def chain() -> tuple[te.Schedule, te.Tensor, te.Tensor, te.Tensor]:
    """C = (A + 1) * 2, of two dimensions, in two stages."""
    A = te.placeholder((64, 48), name="A")
    B = te.compute((64, 48), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((64, 48), lambda i, j: B[i, j] * 2.0, name="C")
    return te.create_schedule(C.op), A, B, C


def reduction() -> tuple[te.Schedule, te.Tensor, te.Tensor]:
    """B[i] = sum of A[i, k]."""
    A = te.placeholder((8, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return te.create_schedule(B.op), A, B
