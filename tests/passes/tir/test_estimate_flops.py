"""Operations and accesses of TIR functions."""

from __future__ import annotations

import mirstack
import pytest
from mirstack.dialects import tir
from mirstack.lowering.driver.kernel_work import WRITTEN, work_of_kernels
from mirstack.lowering.options import Options
from mirstack.lowering.tir.signature import evaluate
from mirstack.passes.tir.estimate_flops import estimate_flops


def function(body: str, params: str) -> tir.PrimFuncOp:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    (op,) = mirstack.parse(f"@T.prim_func\ndef f({params}):\n{lines}\n").ops
    assert isinstance(op, tir.PrimFuncOp)
    return op


AB = 'A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")'


def operations(body: str, params: str = AB) -> dict[str, int]:
    work = estimate_flops(function(body, params))
    assert work is not None
    return {dtype: terms[()] for dtype, terms in work.operations.items()}


def loop(statement: str) -> str:
    return f"for i, j in T.grid(8, 4):\n    {statement}"


@pytest.mark.parametrize(
    ("statement", "each"),
    [
        ("B[i, j] = A[i, j]", {}),
        ("B[i, j] = A[i, j] * T.float32(2) + T.float32(1)", {"float32": 2}),
        ("B[i, j] = T.exp(A[i, j])", {"float32": 1}),
        ("B[i, j] = A[(i + 1) % 8, j] + A[i, j]", {"float32": 1}),
        ("B[i, j] = T.Select(i + 1 < 4, A[i, j] + T.float32(1), A[i, j])", {"float32": 1}),
        ("B[i, j] = T.if_then_else(i < 4, A[i, j] * A[i, j], T.float32(0))", {"float32": 1}),
        ("B[i, j] = T.Cast('float32', T.Cast('int32', A[i, j]) * 3)", {"int32": 1}),
    ],
)
def test_operations(statement: str, each: dict[str, int]):
    assert operations(loop(statement)) == {dtype: 32 * number for dtype, number in each.items()}


def test_a_reduction_without_its_init():
    body = """
for i, k in T.grid(8, 4):
    with T.block("C"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            C[vi] = T.float32(0) + T.float32(1)
        C[vi] = C[vi] + A[vi, vk] * A[vi, vk]
"""
    assert operations(body, 'A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")') == {"float32": 64}


@pytest.mark.parametrize(
    "body",
    [
        "i = T.decl_buffer((1,), 'int32')\nwhile i[0] < 4:\n    B[0, 0] = A[0, 0] + T.float32(1)",
        "T.evaluate(T.call_extern('int32', 'abs', 1))",
    ],
)
def test_work_that_data_decides(body: str):
    assert estimate_flops(function(body, AB)) is None


def test_work_of_open_sizes():
    module = mirstack.parse("""
@T.prim_func
def f(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n,), "float64")
    for i, j in T.grid(n, m // 2):
        B[i] = B[i] + T.Cast("float64", A[i, j] * A[i, j + m // 2])
""")
    work = work_of_kernels(module, Options())["f"]
    assert work.operations is not None and work.float32 is not None and work.bytes is not None
    sizes = {"n": 6, "m": 10}
    assert evaluate(work.operations, sizes) == 6 * 5 * 2
    assert evaluate(work.float32, sizes) == 6 * 5
    assert evaluate(work.bytes, sizes) == 4 * 6 * 10 + 8 * 6 + 8 * 6


def test_extents_that_a_caller_cannot_compute():
    module = mirstack.parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        for j in range(i):
            A[i] = A[i] + A[j]
""")
    work = work_of_kernels(module, Options())["f"]
    assert (work.operations, work.float32, work.bytes) == (None, None, None)


def test_written_schedules():
    module = mirstack.parse("""
@T.prim_func
def f(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] + T.float32(1)

@T.schedule(f)
def s(sch):
    sch.unroll(sch.get_loops(sch.get_block("A"))[0])
""")
    assert work_of_kernels(module, Options())["f"].rule == WRITTEN
