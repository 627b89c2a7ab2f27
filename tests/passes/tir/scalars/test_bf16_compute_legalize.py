"""bf16-compute-legalize: results are those of float32, rounded once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir
from mirstack.passes.tir.scalars.bf16_compute_legalize import BF16ComputeLegalize
from xdsl.context import Context

TEXT = """
@T.prim_func
def main(A: T.Buffer((64,), "bfloat16"), B: T.Buffer((64,), "bfloat16"), D: T.Buffer((64,), "bfloat16")):
    C = T.decl_buffer((64,), "bfloat16")
    for i in range(64):
        C[i] = A[i] * B[i] + T.bfloat16(0.5)
    for i in range(64):
        D[i] = T.Select(A[i] > B[i], T.exp(C[i]) * A[i], T.max(C[i], B[i]) - A[i])
"""


def test_rounded_once() -> None:
    module = parse_mir(TEXT)
    BF16ComputeLegalize().apply(Context(), module)
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    generator = np.random.default_rng(0)
    a, b, d = (generator.standard_normal(64).astype(ml_dtypes.bfloat16) for _ in range(3))
    b[3] = np.nan
    interpret_prim_func(func, {"A": a, "B": b, "D": d}, module)
    x, y = a.astype(np.float32), b.astype(np.float32)
    c = x * y + np.float32(0.5)
    expected = np.where(x > y, np.exp(c) * x, np.maximum(c, y) - x).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(d.astype(np.float32), expected.astype(np.float32))


def test_bits_of_what_was_cast() -> None:
    """`reinterpret` needs bfloat16, also where the number was cast to it from float32; a second run changes nothing."""
    module = parse_mir("""
@T.prim_func
def main(A: T.Buffer((1,), "float32"), B: T.Buffer((1,), "bfloat16"), C: T.Buffer((1,), "uint16")):
    B[0] = T.bfloat16(1) + T.reinterpret("bfloat16", T.reinterpret("uint16", T.Cast("bfloat16", A[0])))
    C[0] = T.reinterpret("uint16", T.Cast("bfloat16", A[0]))
""")
    for _ in range(2):
        BF16ComputeLegalize().apply(Context(), module)
        module.verify()
        func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
        b, c = np.zeros(1, ml_dtypes.bfloat16), np.zeros(1, np.uint16)
        interpret_prim_func(func, {"A": np.array([3.14159], np.float32), "B": b, "C": c}, module)
        assert b.tolist() == [4.125]
        assert c.tolist() == [0x4049]


def test_casts_to_their_own_dtype_stay() -> None:
    """`T.Cast("int32", x)` of an int32 has nothing to do with bfloat16, nor has what calls take that are float32 already."""
    module = parse_mir("""
@T.prim_func
def main(A: T.Buffer((1,), "bfloat16"), B: T.Buffer((2,), "int32"), C: T.Buffer((1,), "float32")):
    B[0] = T.bitwise_and(T.Cast("int32", B[1]), 1)
    C[0] = T.call_extern("float32", "sqrtf", T.Cast("float32", A[0]))
""")
    BF16ComputeLegalize().apply(Context(), module)
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    a, b, c = np.array([4], ml_dtypes.bfloat16), np.array([0, 7], np.int32), np.zeros(1, np.float32)
    interpret_prim_func(func, {"A": a, "B": b, "C": c}, module)
    assert (b[0], c[0]) == (1, 2)
