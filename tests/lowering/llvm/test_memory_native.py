"""memref and vector in native code, every op."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mirstack.lowering.llvm.convert.lower_std_to_llvm import lower_std_to_llvm
from mirstack.support.diagnostics import MirError

DTYPES = ("i1", "i8", "i16", "i32", "i64", "index", "f16", "bf16", "f32", "f64")


@pytest.mark.parametrize("lanes", [0, 8])
def test_loads_and_stores_of_every_type(
    lanes: int, build: Callable[[str], Any], elementwise: Callable[..., str], numpy_types: dict[str, Any]
) -> None:
    text = ""
    for dtype in DTYPES:
        t = f"vector<{lanes}x{dtype}>" if lanes else dtype
        select = "vector_ext.select %a, %b, %c" if lanes else "arith.select %a, %b, %c"
        types = f"vector<{lanes}xi1>, {t}" if lanes else t
        text += elementwise(f"f_{dtype}", [f"%r = {select} : {types}"], ["i1", dtype, dtype], dtype, lanes)
    code = build(text)
    rng = np.random.default_rng(0)
    for dtype in DTYPES:
        mask = rng.integers(0, 2, 64).astype(bool)
        b, c = (rng.integers(0, 100, 64).astype(numpy_types[dtype]) for _ in range(2))
        out = np.zeros(64, b.dtype)
        code.call(f"f_{dtype}", mask, b, c, out, 64)
        np.testing.assert_array_equal(out, np.where(mask, b, c).astype(b.dtype))


def test_addresses_of_static_strided_and_dynamic_memrefs(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @static(%m: memref<3x4x5xf32>, %s: memref<3x5xf32, strided<[20, 1], offset: 0>>, %i: index, %j: index) -> f32 {
      %c2 = arith.constant 2 : index
      %a = memref.load %m[%i, %c2, %j] : memref<3x4x5xf32>
      %b = memref.load %s[%i, %j] : memref<3x5xf32, strided<[20, 1], offset: 0>>
      %r = arith.addf %a, %b : f32
      func.return %r : f32
    }
    func.func @dynamic(%p: memref<?xf32>, %off: index, %h: index, %w: index, %st: index, %i: index, %j: index) -> f32 {
      %m = memref.reinterpret_cast %p to offset: [%off], sizes: [%h, %w], strides: [%st, 1]
        : memref<?xf32> to memref<?x?xf32, strided<[?, 1], offset: ?>>
      %a = memref.load %m[%i, %j] : memref<?x?xf32, strided<[?, 1], offset: ?>>
      %c0 = arith.constant 0 : index
      %d = memref.dim %m, %c0 : memref<?x?xf32, strided<[?, 1], offset: ?>>
      %e = arith.index_cast %d : index to i32
      %f = arith.sitofp %e : i32 to f32
      %r = arith.addf %a, %f : f32
      func.return %r : f32
    }
    """)
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    got = code.call("static", x, x, 1, 3, restype=ctypes.c_float)
    assert got == x[1, 2, 3] + x[1, 0, 3]
    got = code.call("dynamic", x, 7, 2, 5, 20, 1, 4, restype=ctypes.c_float)
    assert got == x.ravel()[7 + 20 + 4] + 2


def test_views(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @subview(%m: memref<8x8xi64>, %o: index, %out: memref<6xi64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %s = memref.subview %m[%o, 1] [3, 2] [2, 3] : memref<8x8xi64> to memref<3x2xi64, strided<[16, 3], offset: ?>>
      %a = memref.load %s[%c2, %c1] : memref<3x2xi64, strided<[16, 3], offset: ?>>
      memref.store %a, %out[%c0] : memref<6xi64>
      %r = memref.subview %m[%o, 0] [1, 8] [1, 1] : memref<8x8xi64> to memref<8xi64, strided<[1], offset: ?>>
      %b = memref.load %r[%c5] : memref<8xi64, strided<[1], offset: ?>>
      memref.store %b, %out[%c1] : memref<6xi64>
      %col = memref.collapse_shape %m [[0 : i64, 1 : i64]] : memref<8x8xi64> into memref<64xi64>
      %c9 = arith.constant 9 : index
      %c = memref.load %col[%c9] : memref<64xi64>
      memref.store %c, %out[%c2] : memref<6xi64>
      %exp = memref.expand_shape %m [[0 : i64, 1 : i64], [2 : i64]] output_shape [2, 4, 8]
        : memref<8x8xi64> into memref<2x4x8xi64>
      %d = memref.load %exp[%c1, %c2, %c3] : memref<2x4x8xi64>
      memref.store %d, %out[%c3] : memref<6xi64>
      %base, %off, %sz:2, %st:2 = memref.extract_strided_metadata %s
        : memref<3x2xi64, strided<[16, 3], offset: ?>> -> memref<i64>, index, index, index, index, index
      %e = arith.index_cast %off : index to i64
      memref.store %e, %out[%c4] : memref<6xi64>
      %f = arith.index_cast %st#0 : index to i64
      memref.store %f, %out[%c5] : memref<6xi64>
      func.return
    }
    func.func @bytes(%m: memref<64xi8>, %shift: index, %n: index) -> f32 {
      %v = memref.view %m[%shift][%n] : memref<64xi8> to memref<?x2xf32>
      %c1 = arith.constant 1 : index
      %r = memref.load %v[%c1, %c1] : memref<?x2xf32>
      func.return %r : f32
    }
    """)
    x = np.arange(64, dtype=np.int64).reshape(8, 8)
    out = np.zeros(6, np.int64)
    assert code.call("subview", x, 2, out) == 0
    assert list(out) == [x[2 + 4, 1 + 3], x[2, 5], 9, x[6, 3], 17, 16]
    b = np.arange(16, dtype=np.float32)
    assert code.call("bytes", b.view(np.int8), 8, 4, restype=ctypes.c_float) == 5


def test_memrefs_cross_blocks(build: Callable[[str], Any]) -> None:
    code = build(
        """
    func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %n: index) -> f32 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %x, %y = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (memref<4xf32>, memref<4xf32>) {
        scf.yield %q, %p : memref<4xf32>, memref<4xf32>
      }
      %d = memref.alloc(%n) : memref<?xf32>
      %big = arith.cmpi sgt, %n, %c1 : index
      %s = scf.if %big -> (memref<?xf32>) {
        scf.yield %d : memref<?xf32>
      } else {
        %m = memref.cast %x : memref<4xf32> to memref<?xf32>
        scf.yield %m : memref<?xf32>
      }
      %len = memref.dim %s, %c0 : memref<?xf32>
      %l = arith.index_cast %len : index to i32
      %lf = arith.sitofp %l : i32 to f32
      %v = memref.load %x[%c0] : memref<4xf32>
      %r = arith.addf %v, %lf : f32
      memref.dealloc %d : memref<?xf32>
      func.return %r : f32
    }
    """.replace(
            "memref.cast %x : memref<4xf32> to memref<?xf32>", '"memref.cast"(%x) : (memref<4xf32>) -> memref<?xf32>'
        )
    )
    a, b = np.full(4, 10, np.float32), np.full(4, 20, np.float32)
    assert code.call("f", a, b, 1, restype=ctypes.c_float) == 24
    assert code.call("f", a, b, 6, restype=ctypes.c_float) == 16


def test_storage_of_a_function(build: Callable[[str], Any]) -> None:
    code = build(
        """
    "memref.global"() <{sym_name = "table", sym_visibility = "private", type = memref<4xf32>, initial_value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>, constant}> : () -> ()
    "memref.global"() <{sym_name = "flags", sym_visibility = "private", type = memref<3xi1>, initial_value = dense<[true, false, true]> : tensor<3xi1>, constant}> : () -> ()
    "memref.global"() <{sym_name = "state", sym_visibility = "private", type = memref<2xi64>, initial_value}> : () -> ()
    "memref.global"() <{sym_name = "half", sym_visibility = "private", type = memref<2x2xbf16>, initial_value = dense<0.5> : tensor<2x2xbf16>, constant}> : () -> ()
    func.func @f(%n: index, %out: memref<4xf32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %one = arith.constant 1 : i64
      %stack = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
      %dyn = memref.alloca(%n) : memref<?xf32>
      %heap = memref.alloc(%n) {alignment = 128 : i64} : memref<?x4xf32>
      %t = memref.get_global @table : memref<4xf32>
      %v = memref.load %t[%c2] : memref<4xf32>
      memref.store %v, %stack[%c3] : memref<16xf32>
      memref.store %v, %dyn[%c1] : memref<?xf32>
      memref.store %v, %heap[%c1, %c2] : memref<?x4xf32>
      %a = memref.load %stack[%c3] : memref<16xf32>
      %b = memref.load %dyn[%c1] : memref<?xf32>
      %c = memref.load %heap[%c1, %c2] : memref<?x4xf32>
      %ab = arith.addf %a, %b : f32
      %abc = arith.addf %ab, %c : f32
      memref.store %abc, %out[%c0] : memref<4xf32>
      %fl = memref.get_global @flags : memref<3xi1>
      %flag = memref.load %fl[%c2] : memref<3xi1>
      %fi = arith.uitofp %flag : i1 to f32
      memref.store %fi, %out[%c1] : memref<4xf32>
      %st = memref.get_global @state : memref<2xi64>
      %old = memref.load %st[%c1] : memref<2xi64>
      %new = arith.addi %old, %one : i64
      memref.store %new, %st[%c1] : memref<2xi64>
      %of = arith.sitofp %new : i64 to f32
      memref.store %of, %out[%c2] : memref<4xf32>
      %h = memref.get_global @half : memref<2x2xbf16>
      %hv = memref.load %h[%c1, %c1] : memref<2x2xbf16>
      %hf = arith.extf %hv : bf16 to f32
      memref.store %hf, %out[%c3] : memref<4xf32>
      memref.dealloc %heap : memref<?x4xf32>
      func.return
    }
    """.replace("memref.alloc(%n) {alignment = 128 : i64}", 'memref.alloc(%n) {"alignment" = 128 : i64}')
    )
    out = np.zeros(4, np.float32)
    assert code.call("f", 5, out) == 0
    assert code.call("f", 5, out) == 0
    assert list(out) == [9, 1, 2, 0.5]


def test_external_globals_are_provided_when_loading(lower: Callable[[str], Any]) -> None:
    from compiled_ir import compile_ir
    from mirstack.lowering.llvm.text.translation import translate

    text = """
    "memref.global"() <{sym_name = "weights", sym_visibility = "public", type = memref<4xf32>, initial_value}>
      {mirstack.external} : () -> ()
    func.func @f(%i: index) -> f32 {
      %w = memref.get_global @weights : memref<4xf32>
      %v = memref.load %w[%i] : memref<4xf32>
      func.return %v : f32
    }
    """
    data = np.array([5, 6, 7, 8], np.float32)
    ir = translate(lower(text))
    code = compile_ir(ir, symbols={"weights": data.__array_interface__["data"][0]}, keep_alive=(data,))
    function = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(code.address("f"))
    assert function(2) == 7
    with pytest.raises(MirError, match="calls weights, which no loaded library has"):
        compile_ir(ir)


def test_copies(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x3xf32>) {
      "memref.copy"(%a, %b) : (memref<4x6xf32>, memref<4x6xf32>) -> ()
      %s = memref.subview %a[0, 2] [4, 3] [1, 1] : memref<4x6xf32> to memref<4x3xf32, strided<[6, 1], offset: 2>>
      "memref.copy"(%s, %c) : (memref<4x3xf32, strided<[6, 1], offset: 2>>, memref<4x3xf32>) -> ()
      func.return
    }
    """)
    a = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    b, c = np.zeros_like(a), np.zeros((4, 3), np.float32)
    code.call("f", a, b, c)
    np.testing.assert_array_equal(b, a)
    np.testing.assert_array_equal(c, a[:, 2:5])


def test_atomic_updates(build: Callable[[str], Any]) -> None:
    text = ""
    kinds = {1: "addi", 2: "assign", 4: "maxs", 5: "maxu", 7: "mins", 8: "minu", 11: "ori", 12: "andi", 15: "xori"}
    for kind in kinds:
        text += f"""
        func.func @k{kind}(%m: memref<2xi64>, %v: i64) -> i64 {{
          %c1 = arith.constant 1 : index
          %r = "memref.atomic_rmw"(%v, %m, %c1) <{{kind = {kind} : i64}}> : (i64, memref<2xi64>, index) -> i64
          func.return %r : i64
        }}"""
    code = build(text)
    want = {1: 8, 2: 3, 4: 5, 5: 5, 7: 3, 8: 3, 11: 7, 12: 1, 15: 6}
    for kind in kinds:
        m = np.array([0, 5], np.int64)
        assert code.call(f"k{kind}", m, 3, restype=ctypes.c_int64) == 5
        assert m[1] == want[kind]


# Vectors


def test_vectors_of_several_dimensions(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%m: memref<6x8xf32>, %out: memref<6x8xf32>, %i: index) {
      %c0 = arith.constant 0 : index
      %v = vector.load %m[%i, %c0] : memref<6x8xf32>, vector<3x8xf32>
      %w = arith.addf %v, %v : vector<3x8xf32>
      %row = "vector.extract"(%w) <{static_position = array<i64: 1>}> : (vector<3x8xf32>) -> vector<8xf32>
      %x = "vector.insert"(%row, %w) <{static_position = array<i64: 2>}> : (vector<8xf32>, vector<3x8xf32>) -> vector<3x8xf32>
      vector.store %x, %out[%i, %c0] : memref<6x8xf32>, vector<3x8xf32>
      func.return
    }
    """)
    m = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    out = np.zeros_like(m)
    code.call("f", m, out, 2)
    want = 2 * m[2:5]
    want[2] = want[1]
    np.testing.assert_array_equal(out[2:5], want)
    assert (out[:2] == 0).all() and (out[5] == 0).all()


def test_lane_ops(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%m: memref<8xf32>, %out: memref<8x8xf32>, %k: index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %v = vector.load %m[%c0] : memref<8xf32>, vector<8xf32>
      %r = vector.shuffle %v, %v [7, 6, 5, 4, 3, 2, 1, 8] : vector<8xf32>, vector<8xf32>
      vector.store %r, %out[%c0, %c0] : memref<8x8xf32>, vector<8xf32>
      %e = "vector.extract"(%v, %k) <{static_position = array<i64: -9223372036854775808>}> : (vector<8xf32>, index) -> f32
      %b = vector.broadcast %e : f32 to vector<8xf32>
      vector.store %b, %out[%c1, %c0] : memref<8x8xf32>, vector<8xf32>
      %i = "vector.insert"(%e, %v) <{static_position = array<i64: 0>}> : (f32, vector<8xf32>) -> vector<8xf32>
      vector.store %i, %out[%c2, %c0] : memref<8x8xf32>, vector<8xf32>
      %h = vector.load %m[%c4] : memref<8xf32>, vector<4xf32>
      %s = vector.shuffle %h, %v [0, 4, 1, 5, 2, 6, 3, 7] : vector<4xf32>, vector<8xf32>
      vector.store %s, %out[%c3, %c0] : memref<8x8xf32>, vector<8xf32>
      %i32 = vector.bitcast %v : vector<8xf32> to vector<8xi32>
      %back = vector.bitcast %i32 : vector<8xi32> to vector<8xf32>
      vector.store %back, %out[%c4, %c0] : memref<8x8xf32>, vector<8xf32>
      %two = vector.broadcast %h : vector<4xf32> to vector<2x4xf32>
      %flat = "vector.extract"(%two) <{static_position = array<i64: 1>}> : (vector<2x4xf32>) -> vector<4xf32>
      vector.store %flat, %out[%c5, %c0] : memref<8x8xf32>, vector<4xf32>
      func.return
    }
    """)
    m = np.arange(1, 9, dtype=np.float32)
    out = np.zeros((8, 8), np.float32)
    code.call("f", m, out, 3)
    np.testing.assert_array_equal(out[0], [8, 7, 6, 5, 4, 3, 2, 1])
    np.testing.assert_array_equal(out[1], 4)
    np.testing.assert_array_equal(out[2], [4, 2, 3, 4, 5, 6, 7, 8])
    np.testing.assert_array_equal(out[3], [5, 1, 6, 2, 7, 3, 8, 4])
    np.testing.assert_array_equal(out[4], m)
    np.testing.assert_array_equal(out[5, :4], m[4:])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i1", "i16"])
def test_masked_memory_does_not_touch_what_is_masked(
    dtype: str, build: Callable[[str], Any], numpy_types: dict[str, Any]
) -> None:
    one = "true" if dtype == "i1" else "1.0 : bf16" if dtype == "bf16" else "1.0 : f32" if dtype == "f32" else "1 : i16"
    code = build(f"""
    func.func @f(%m: memref<?x{dtype}>, %out: memref<?x{dtype}>, %n: index) {{
      %c0 = arith.constant 0 : index
      %mask = "vector.create_mask"(%n) : (index) -> vector<16xi1>
      %s = arith.constant {one}
      %pad = vector.broadcast %s : {dtype} to vector<16x{dtype}>
      %v = vector.maskedload %m[%c0], %mask, %pad : memref<?x{dtype}>, vector<16xi1>, vector<16x{dtype}> into vector<16x{dtype}>
      vector.store %v, %out[%c0] : memref<?x{dtype}>, vector<16x{dtype}>
      %c16 = arith.constant 16 : index
      vector.maskedstore %out[%c16], %mask, %v : memref<?x{dtype}>, vector<16xi1>, vector<16x{dtype}>
      func.return
    }}
    """)
    t = numpy_types[dtype]
    m = np.zeros(5, t)
    out = np.full(32, 0 if dtype == "i1" else 9, t)
    code.call("f", m, out, 5)
    np.testing.assert_array_equal(out[:16], np.array([0] * 5 + [1] * 11, t))
    np.testing.assert_array_equal(out[16:], np.array([0] * 5 + [0 if dtype == "i1" else 9] * 11, t))


def test_gather_and_scatter(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%m: memref<4x10xf32>, %idx: memref<8xi32>, %mask: memref<8xi1>, %out: memref<10xf32>, %flags: memref<10xi1>) {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %i = vector.load %idx[%c0] : memref<8xi32>, vector<8xi32>
      %k = vector.load %mask[%c0] : memref<8xi1>, vector<8xi1>
      %z = arith.constant dense<0.0> : vector<8xf32>
      %g = vector_ext.gather %m[%c2, %c0] [%i], %k, %z : memref<4x10xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32>
      vector_ext.scatter %out[%c0] [%i], %k, %g : memref<10xf32>, vector<8xi32>, vector<8xi1>, vector<8xf32>
      vector_ext.scatter %flags[%c0] [%i], %k, %k : memref<10xi1>, vector<8xi32>, vector<8xi1>, vector<8xi1>
      func.return
    }
    """)
    m = np.random.default_rng(0).standard_normal((4, 10)).astype(np.float32)
    idx = np.array([9, 1, 3, 0, 4, 8, 2, 5], np.int32)
    mask = np.array([1, 1, 0, 1, 0, 1, 1, 0], bool)
    out, flags = np.full(10, 7, np.float32), np.zeros(10, bool)
    code.call("f", m, idx, mask, out, flags)
    want = np.full(10, 7, np.float32)
    want[idx[mask]] = m[2, idx[mask]]
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(np.nonzero(flags)[0], np.sort(idx[mask]))


def test_transfers_in_and_out_of_bounds(build: Callable[[str], Any]) -> None:
    attrs = "<{{in_bounds = [{}], operandSegmentSizes = array<i32: {}>, permutation_map = affine_map<(d0) -> (d0)>}}>"
    code = build(f"""
    func.func @f(%p: memref<?xf32>, %n: index, %i: index, %out: memref<?xf32>) {{
      %m = memref.reinterpret_cast %p to offset: [0], sizes: [%n], strides: [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
      %o = memref.reinterpret_cast %out to offset: [0], sizes: [%n], strides: [1] : memref<?xf32> to memref<?xf32, strided<[1]>>
      %pad = arith.constant -1.0 : f32
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %v = "vector.transfer_read"(%m, %i, %pad) {attrs.format("false", "1, 1, 1, 0")}
        : (memref<?xf32, strided<[1]>>, index, f32) -> vector<8xf32>
      "vector.transfer_write"(%v, %o, %i) {attrs.format("false", "1, 1, 1, 0")}
        : (vector<8xf32>, memref<?xf32, strided<[1]>>, index) -> ()
      "vector.transfer_write"(%v, %o, %c0) {attrs.format("true", "1, 1, 1, 0")}
        : (vector<8xf32>, memref<?xf32, strided<[1]>>, index) -> ()
      func.return
    }}
    """)
    p = np.arange(20, dtype=np.float32)
    out = np.zeros(24, np.float32)
    code.call("f", p, 20, 16, out)
    np.testing.assert_array_equal(out[:8], [16, 17, 18, 19, -1, -1, -1, -1])
    np.testing.assert_array_equal(out[16:], [16, 17, 18, 19, 0, 0, 0, 0])


REDUCTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "add_f32": ("f32", np.sum),
    "mul_f32": ("f32", np.prod),
    "maxnumf_f32": ("f32", np.max),
    "minimumf_f64": ("f64", np.min),
    "maximumf_bf16": ("bf16", np.max),
    "add_f16": ("f16", np.sum),
    "add_i32": ("i32", np.sum),
    "mul_i32": ("i32", np.prod),
    "maxsi_i8": ("i8", np.max),
    "minui_i64": ("i64", np.min),
    "xor_i32": ("i32", np.bitwise_xor.reduce),
    "or_i32": ("i32", np.bitwise_or.reduce),
    "and_i32": ("i32", np.bitwise_and.reduce),
}


def test_reductions(build: Callable[[str], Any], numpy_types: dict[str, Any]) -> None:
    text = ""
    for name, (dtype, _) in REDUCTIONS.items():
        kind = name.split("_")[0]
        text += f"""
        func.func @{name}(%m: memref<8x{dtype}>, %acc: memref<1x{dtype}>, %out: memref<2x{dtype}>) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %v = vector.load %m[%c0] : memref<8x{dtype}>, vector<8x{dtype}>
          %a = memref.load %acc[%c0] : memref<1x{dtype}>
          %r = "vector.reduction"(%v) <{{kind = #vector.kind<{kind}>, fastmath = #arith.fastmath<none>}}>
            : (vector<8x{dtype}>) -> {dtype}
          %s = "vector.reduction"(%v, %a) <{{kind = #vector.kind<{kind}>, fastmath = #arith.fastmath<fast>}}>
            : (vector<8x{dtype}>, {dtype}) -> {dtype}
          memref.store %r, %out[%c0] : memref<2x{dtype}>
          memref.store %s, %out[%c1] : memref<2x{dtype}>
          func.return
        }}"""
    code = build(text)
    for name, (dtype, meaning) in REDUCTIONS.items():
        m = np.array([3, 1, 2, 5, 4, 2, 1, 1], numpy_types[dtype])
        acc = np.array([2], m.dtype)
        out = np.zeros(2, m.dtype)
        code.call(name, m, acc, out)
        assert out[0] == meaning(m), name
        assert out[1] == meaning(np.concatenate([m, acc])), name


def test_vector_accesses_need_unit_stride(parse: Callable[[str], Any]) -> None:
    module = parse("""
    func.func @f(%m: memref<8x8xf32, strided<[1, 8]>>, %i: index) {
      %v = vector.load %m[%i, %i] : memref<8x8xf32, strided<[1, 8]>>, vector<4xf32>
      func.return
    }
    """)
    with pytest.raises(MirError, match="a vector access needs a last dimension of stride 1"):
        lower_std_to_llvm(module)


# What LLVM is told


def test_arguments_carry_what_alias_analysis_needs(build: Callable[[str], Any]) -> None:
    ir = build("""
    func.func @f(%a: memref<16x4xf32>, %b: memref<?xf64> {llvm.readonly}, %n: index)
        attributes {mirstack.noalias, mirstack.align = 64 : i64} {
      func.return
    }
    """).ir
    assert "ptr noalias nonnull noundef dereferenceable(256) align 64 %a_0" in ir
    assert "ptr readonly noalias nonnull noundef align 64 %b_1" in ir
    assert "i64 %n_2" in ir


def test_accesses_are_inbounds_geps_with_alignment(build: Callable[[str], Any]) -> None:
    ir = build("""
    func.func @f(%a: memref<16x4xf64>, %i: index, %j: index) -> f64 {
      %v = memref.load %a[%i, %j] : memref<16x4xf64>
      func.return %v : f64
    }
    """).ir
    assert "mul nsw i64 %i_1, 4" in ir
    assert "getelementptr inbounds double, ptr %a_0, i64" in ir
    assert "load double, ptr" in ir and "align 8" in ir
    assert "inttoptr" not in ir


def test_loops_vectorize_without_checks(build: Callable[[str], Any]) -> None:
    from mirstack.lowering.llvm.jit.load import Target, emit_optimized_ir

    ir = build("""
    func.func @f(%a: memref<4096xf32>, %b: memref<4096xf32>, %c: memref<4096xf32>) attributes {mirstack.noalias} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 4096 : index
      scf.for %i = %c0 to %n step %c1 {
        %x = memref.load %a[%i] : memref<4096xf32>
        %y = memref.load %b[%i] : memref<4096xf32>
        %z = arith.mulf %x, %y : f32
        %e = math.exp %z : f32
        memref.store %e, %c[%i] : memref<4096xf32>
      }
      func.return
    }
    """).ir
    optimized = emit_optimized_ir(ir, Target(cpu="x86-64-v3", features=""))
    assert "fmul <8 x float>" in optimized
    assert "vector.memcheck" not in optimized and "scalar.ph" not in optimized
    calls = [line for line in optimized.splitlines() if " call " in line]
    assert all("call <8 x float> @llvm." in line for line in calls), calls
