"""Intrinsics that the recorded schedules name: dot products of several machines, a tensor core's product, a decoding."""

from __future__ import annotations

from mirstack.parser import parse_mir
from mirstack.passes.schedule.engine.tensor_intrinsics import TensorIntrin

MMA_DESC = """
@T.prim_func
def desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), offset_factor=1)
    B = T.match_buffer(b, (16, 16), offset_factor=1)
    C = T.match_buffer(c, (16, 16), offset_factor=1)
    with T.block("root"):
        for i, j, k in T.grid(16, 16, 16):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
"""

MMA_IMPL = """
@T.prim_func
def impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (16, 16), offset_factor=1)
    B = T.match_buffer(b, (16, 16), offset_factor=1)
    C = T.match_buffer(c, (16, 16), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
        T.writes(C[0:16, 0:16])
        T.evaluate(T.tvm_mma_sync(C.data, C.elem_offset // 256, A.data, A.elem_offset // 256, B.data, B.elem_offset // 256, C.data, C.elem_offset // 256))
"""

ANNOTATED_DESC = MMA_DESC.replace(
    "                C[", '                T.block_attr({"test_annotation": T.bool(True)})\n                C[', 1
)


def dot(lanes: int, depth: int, x: str, w: str) -> str:
    """`C[i] += A[k] * B[i, k]`, widened to int32."""
    return f"""
@T.prim_func
def desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, ({depth},), "{x}", offset_factor=1)
    B = T.match_buffer(b, ({lanes}, {depth}), "{w}", offset_factor=1)
    C = T.match_buffer(c, ({lanes},), "int32", offset_factor=1)
    with T.block("root"):
        for i in range({lanes}):
            for k in range({depth}):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.Cast("int32", A[vk]) * T.Cast("int32", B[vi, vk])
"""


def dot_impl(lanes: int, depth: int, x: str, w: str, body: str) -> str:
    """An implementation over the same buffers."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return f"""
@T.prim_func
def impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, ({depth},), "{x}", offset_factor=1)
    B = T.match_buffer(b, ({lanes}, {depth}), "{w}", offset_factor=1)
    C = T.match_buffer(c, ({lanes},), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:{lanes}], A[0:{depth}], B[0:{lanes}, 0:{depth}])
        T.writes(C[0:{lanes}])
{lines}
"""


VNNI = """
x: T.uint8x4 = A[0:4]
xi: T.int32 = T.reinterpret("int32", x)
w: T.int8x64 = B[0, 0:64]
wi: T.int32x16 = T.reinterpret("int32x16", w)
acc: T.int32x16 = C[0:16]
C[0:16] = T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", T.uint32(3), acc, T.Broadcast(xi, 16), wi)
"""

NEON = """
x: T.int8x4 = A[0:4]
xi: T.int32 = T.reinterpret("int32", x)
xx: T.int32x2 = T.Broadcast(xi, 2)
xv: T.int8x8 = T.reinterpret("int8x8", xx)
w: T.int8x16 = B[0, 0:16]
low: T.int8x8 = T.vectorlow("int8x8", w)
m0: T.int16x8 = T.call_llvm_pure_intrin("int16x8", "llvm.aarch64.neon.smull", T.uint32(2), xv, low)
s0: T.int32x4 = T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp", T.uint32(1), m0)
high: T.int8x8 = T.vectorhigh("int8x8", w)
m1: T.int16x8 = T.call_llvm_pure_intrin("int16x8", "llvm.aarch64.neon.smull", T.uint32(2), xv, high)
s1: T.int32x4 = T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp", T.uint32(1), m1)
C[0:4] = C[0:4] + T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp", T.uint32(2), s0, s1)
"""

VDMPY = """
x: T.int16x2 = A[0:2]
xi: T.int32 = T.reinterpret("int32", x)
w: T.int16x64 = B[0, 0:64]
wi: T.int32x32 = T.reinterpret("int32x32", w)
C[0:32] = T.call_llvm_pure_intrin("int32x32", "llvm.hexagon.V6.vdmpyhvsat.acc.128B", T.uint32(3), C[0:32], T.Broadcast(xi, 32), wi)
"""

DP4A_BUFFERS = """
    A = T.match_buffer(a, (4,), "int8", offset_factor=1, align=4, scope="shared")
    B = T.match_buffer(b, (4,), "int8", offset_factor=1, align=4, scope="shared")
    C = T.match_buffer(c, (1,), "int32", offset_factor=1, align=4, scope="local")
    with T.block("root"):
"""

DP4A_DESC = f"""
@T.prim_func
def desc(a: T.handle, b: T.handle, c: T.handle):{DP4A_BUFFERS}
        for i in range(4):
            with T.block("update"):
                vi = T.axis.remap("R", [i])
                C[0] = C[0] + T.Cast("int32", A[vi]) * T.Cast("int32", B[vi])
"""

DP4A_IMPL = f"""
@T.prim_func
def impl(a: T.handle, b: T.handle, c: T.handle):{DP4A_BUFFERS}
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
        C[0] = C[0] + T.call_pure_extern("int32", "__dp4a", A[0:4], B[0:4], 0)
"""

DECODE_BUFFERS = """
    P = T.match_buffer(p, (1,), "int32", scope="local")
    D = T.match_buffer(d, (8,), "float16", scope="local")
    with T.block("root"):
"""

DECODE_DESC = f"""
@T.prim_func
def desc(p: T.handle, d: T.handle):{DECODE_BUFFERS}
        for i in range(8):
            with T.block("decode"):
                vi = T.axis.remap("S", [i])
                D[vi] = T.Cast("float16", T.shift_right(T.shift_left(T.bitwise_and(T.shift_right(P[vi // 8], vi % 8 * 4), 15), 28), 28))
"""

DECODE_IMPL = f"""
@T.prim_func
def impl(p: T.handle, d: T.handle):{DECODE_BUFFERS}
        T.reads(P[0])
        T.writes(D[0:8])
        T.call_extern("handle", "test_decode_i4s_to_f16", P.data, D.data, 8)
"""

PAIRS = {
    "test_mma_intrin": (MMA_DESC, MMA_IMPL),
    "test_annotated_mma_intrin": (ANNOTATED_DESC, MMA_IMPL),
    "dot_16x4_vnni": (dot(16, 4, "uint8", "int8"), dot_impl(16, 4, "uint8", "int8", VNNI)),
    "dot_4x4_i8i8s32_neon": (dot(4, 4, "int8", "int8"), dot_impl(4, 4, "int8", "int8", NEON)),
    "dot_product_32x2_i16i16i32_vdmpy": (dot(32, 2, "int16", "int16"), dot_impl(32, 2, "int16", "int16", VDMPY)),
    "dp4a_s8s8s32": (DP4A_DESC, DP4A_IMPL),
    "test_decode_i4s_to_f16_intrin": (DECODE_DESC, DECODE_IMPL),
}


def register_all() -> None:
    """Makes all of them known."""
    for name, (desc, impl) in PAIRS.items():
        if TensorIntrin.get(name, allow_missing=True) is None:
            TensorIntrin.register(name, parse_mir(desc).body.block.first_op, parse_mir(impl).body.block.first_op)
