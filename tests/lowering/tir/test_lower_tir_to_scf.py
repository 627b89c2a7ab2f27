"""TIR to the standard dialects: every construct computes natively what the interpreter says, or is refused with its name."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from compiled_ir import lower_to_scf
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.lowering.tir.signature import BufferParam, KernelSignature, ScalarParam
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from xdsl.dialects import func


def both(text: str, **arrays: np.ndarray[Any, Any] | int) -> dict[str, Any]:
    """Runs natively and by the interpreter; the results must be equal."""
    module = parse_mir(text)
    (function,) = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    copies = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in arrays.items()}
    interpret_prim_func(function, copies, module)
    mirstack.compile(mirstack.parse(text))(*arrays.values())
    for name, value in arrays.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(value, copies[name], rtol=1e-6, err_msg=name)
    return dict(arrays)


def lowered(text: str) -> func.FuncOp:
    """The first function after lowering."""
    module = parse_mir(text)
    lower_to_scf(module)
    module.verify()
    return next(op for op in module.body.block.ops if isinstance(op, func.FuncOp) and op.body.blocks)


INTEGERS = """
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}"), C: T.Buffer((12, 16), "{dtype}")):
    for i in range(16):
        C[0, i] = A[i] + B[i]
        C[1, i] = A[i] - B[i]
        C[2, i] = A[i] * B[i]
        C[3, i] = A[i] // B[i]
        C[4, i] = A[i] % B[i]
        C[5, i] = T.min(A[i], B[i])
        C[6, i] = T.max(A[i], B[i])
        C[7, i] = T.bitwise_and(A[i], B[i])
        C[8, i] = T.bitwise_xor(A[i], B[i])
        C[9, i] = T.Select(A[i] < B[i], A[i], B[i])
        C[10, i] = T.shift_right(A[i], T.{dtype}(1))
        C[11, i] = T.truncmod(A[i], B[i])
"""


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integer_arithmetic(dtype: str) -> None:
    rng = np.random.default_rng(0)
    low = 0 if dtype.startswith("u") else -100
    a = rng.integers(low, 100, 16).astype(dtype)
    b = rng.integers(1, 100, 16).astype(dtype)
    if not dtype.startswith("u"):
        b[::2] = -b[::2]
    both(INTEGERS.format(dtype=dtype), A=a, B=b, C=np.zeros((12, 16), dtype))


FLOATS = """
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}"), C: T.Buffer((8, 16), "{dtype}")):
    for i in range(16):
        C[0, i] = A[i] + B[i]
        C[1, i] = A[i] - B[i]
        C[2, i] = A[i] * B[i]
        C[3, i] = A[i] / B[i]
        C[4, i] = T.max(A[i], B[i])
        C[5, i] = T.floor(A[i])
        C[6, i] = T.fabs(A[i])
        C[7, i] = T.if_then_else(A[i] > B[i], A[i], B[15 - i])
"""


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_float_arithmetic(dtype: str) -> None:
    import ml_dtypes

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(16).astype(kind) for _ in range(2))
    both(FLOATS.format(dtype=dtype), A=a, B=b, C=np.zeros((8, 16), kind))


@pytest.mark.parametrize(
    "name", ["exp", "log", "tanh", "sqrt", "rsqrt", "erf", "sin", "cos", "sigmoid", "ceil", "trunc", "round"]
)
def test_mathematics(name: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    for i in T.vectorized(32):
        C[i] = T.{name}(A[i])
"""
    both(text, A=np.linspace(0.1, 3.9, 32, dtype=np.float32), C=np.zeros(32, np.float32))


def test_casts_and_bools() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), M: T.Buffer((8,), "bool"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "uint8")):
    for i in range(8):
        M[i] = A[i] > T.float32(0) and i % 2 == 0
        C[i] = T.Cast("int32", A[i] * T.float32(10)) + T.Cast("int32", M[i])
        D[i] = T.Cast("uint8", i * 3)
"""
    a = np.array([1.5, -2.5, 3.25, 0, -1, 2, 7, -8], np.float32)
    both(text, A=a, M=np.zeros(8, bool), C=np.zeros(8, np.int32), D=np.zeros(8, np.uint8))


def test_negative_floor_division_of_indices() -> None:
    text = """
@T.prim_func
def main(C: T.Buffer((2, 16), "int32")):
    for i in range(16):
        C[0, i] = (i - 8) // 3
        C[1, i] = (i - 8) % 3
"""
    assert both(text, C=np.zeros((2, 16), np.int32))["C"][0, 0] == -3


def test_symbolic_shapes_strides_and_scalars() -> None:
    text = """
@T.prim_func
def main(a: T.handle, c: T.handle, k: T.int32):
    m, n = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n))
    C = T.match_buffer(c, (n, m))
    for i, j in T.grid(m, n):
        C[j, i] = A[i, j] + T.Cast("float32", k)
"""
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    c = np.zeros((4, 3), np.float32)
    mirstack.compile(mirstack.parse(text))(a, c, 5)
    np.testing.assert_array_equal(c, a.T + 5)
    signature = KernelSignature.of(lowered(text))
    assert signature is not None and signature.symbols == ("m", "n")
    assert [type(p) for p in signature.params] == [BufferParam, BufferParam, ScalarParam]
    assert signature == KernelSignature.from_attr(signature.to_attr())
    assert signature.bind({"a": (3, 4), "c": (4, 3)}, {"k": 1}) == {"m": 3, "n": 4}
    with pytest.raises(MirError, match="dimension 0 of 'c' is 5, but must be n = 4"):
        signature.bind({"a": (3, 4), "c": (5, 3)}, {"k": 1})
    with pytest.raises(MirError, match="'a' has 1 dimension, but the function takes 2"):
        signature.bind({"a": (3,), "c": (4, 3)}, {"k": 1})


def test_while_if_and_let() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
    C[0] = 0
    while C[0] < 5:
        if A[C[0]] > 3:
            C[0] = C[0] + 2
        else:
            C[0] = C[0] + 1
"""
    both(text, A=np.arange(8, dtype=np.int32), C=np.zeros(1, np.int32))


def test_allocations_of_all_sizes() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((64, 1024), "float32"), C: T.Buffer((64, 1024), "float32")):
    for i in T.parallel(64):
        small = T.decl_buffer((4,))
        large = T.decl_buffer((1024, 16))
        for j in range(1024):
            large[j, 3] = A[i, j]
        small[2] = T.float32(1)
        for j in range(1024):
            C[i, j] = large[j, 3] + small[2]
"""
    a = np.random.default_rng(0).standard_normal((64, 1024)).astype(np.float32)
    both(text, A=a, C=np.zeros_like(a))


def test_constants_become_globals() -> None:
    text = """
@T.prim_func
def main(C: T.Buffer((4,), "float32")):
    k = T.allocate_const([1.0, 2.0, 4.0, 8.0], "float32", [4])
    K = T.Buffer((4,), data=k)
    for i in range(4):
        C[i] = K[3 - i]
"""
    assert both(text, C=np.zeros(4, np.float32))["C"].tolist() == [8, 4, 2, 1]


def test_threads_run_one_after_the_other() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        for t in T.thread_binding(16, thread="threadIdx.x"):
            C[b * 16 + t] = A[b * 16 + t] * T.float32(3)
"""
    both(text, A=np.arange(64, dtype=np.float32), C=np.zeros(64, np.float32))


def test_blocks_with_init_predicate_and_matched_buffers() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((10, 8), "float32"), C: T.Buffer((10,), "float32")):
    for io, ii, k in T.grid(3, 4, 8):
        with T.block("C"):
            vi = T.axis.spatial(10, io * 4 + ii)
            vk = T.axis.reduce(8, k)
            T.where(io * 4 + ii < 10)
            T.reads(A[vi, vk])
            T.writes(C[vi])
            row = T.match_buffer(A[vi, 0:8], (8,), strides=[1], offset_factor=1)
            with T.init():
                C[vi] = T.float32(1)
            C[vi] = C[vi] + row[vk]
"""
    both(text, A=np.arange(80, dtype=np.float32).reshape(10, 8), C=np.zeros(10, np.float32))


def test_assert_becomes_an_exception() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32")):
    assert A[0] == 1, "the first must be one"
    A[1] = 7
"""
    array = np.array([1, 0, 0, 0], np.int32)
    compiled = mirstack.compile(mirstack.parse(text))
    compiled(array)
    assert array[1] == 7
    with pytest.raises(MirError, match="the first must be one"):
        compiled(np.zeros(4, np.int32))


def test_result() -> None:
    text = """
@T.prim_func
def main(x: T.int32) -> T.int32:
    T.ret(x * 2 + 1)
"""
    assert mirstack.compile(mirstack.parse(text))(20) == 41


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('T.tvm_storage_sync("shared")', "the intrinsic 'T.tvm_storage_sync' cannot be compiled for a CPU"),
        ("T.evaluate(T.no_such_thing(A[0]))", "T.no_such_thing"),
        (
            'with T.attr(A.data, "async_scope", 1):\n        A[0] = T.float32(1)',
            "the attribute 'async_scope' cannot be compiled",
        ),
    ],
)
def test_what_a_cpu_cannot_do_is_named(statement: str, message: str) -> None:
    text = f"""
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    {statement}
"""
    with pytest.raises(MirError) as error:
        mirstack.compile(mirstack.parse(text))
    assert message in str(error.value)


def test_scopes_that_a_cpu_lacks() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((16, 16), "float16")):
    F = T.decl_buffer((16, 16), "float16", scope="wmma.matrix_a")
    F[0, 0] = A[0, 0]
"""
    with pytest.raises(MirError, match=r"buffer 'F' has scope 'wmma.matrix_a', which a CPU lacks"):
        lowered(text)


def test_locations_are_kept() -> None:
    from mirstack.support.diagnostics import source_position

    text = (
        '@T.prim_func\ndef main(A: T.Buffer((4,), "float32")):\n    for i in range(4):\n        A[i] = T.float32(1)\n'
    )
    places = {source_position(op.location) for op in lowered(text).walk() if op.name == "memref.store"}
    assert {p[1] for p in places if p is not None} == {4}
