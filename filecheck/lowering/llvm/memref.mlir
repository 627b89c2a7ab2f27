// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// CHECK-LABEL: llvm.func @access(%m: !llvm.ptr, %i: i64, %j: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(16) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mul %i, [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.add [[V2]], %j overflow<nsw> : i64
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.getelementptr inbounds %m[[[V3]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %v = llvm.load [[V4]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.mul %j, [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.add [[V5]], %i overflow<nsw> : i64
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.getelementptr inbounds %m[[[V6]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.store %v, [[V7]] {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT:   llvm.return [[V1]] : i32
func.func @access(%m: memref<8x16xf32>, %i: index, %j: index) {
  %v = memref.load %m[%i, %j] : memref<8x16xf32>
  memref.store %v, %m[%j, %i] : memref<8x16xf32>
  func.return
}

// Sizes and strides are values of their own.
// CHECK-LABEL: llvm.func @dynamic(%p: !llvm.ptr, %n: i64, %s: i64, %i_1: i64) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mul %i_1, %s overflow<nsw> : i64
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.add [[V1]], [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.add [[V2]], %i_1 overflow<nsw> : i64
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.getelementptr inbounds %p[[[V3]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %v_1 = llvm.load [[V4]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:   llvm.return %v_1 : f32
func.func @dynamic(%p: memref<?xf32>, %n: index, %s: index, %i: index) -> f32 {
  %m = memref.reinterpret_cast %p to offset: [4], sizes: [%n, %n], strides: [%s, 1]
    : memref<?xf32> to memref<?x?xf32, strided<[?, 1], offset: 4>>
  %v = memref.load %m[%i, %i] : memref<?x?xf32, strided<[?, 1], offset: 4>>
  func.return %v : f32
}

// A boolean takes a byte.
// CHECK-LABEL: llvm.func @booleans(%m_1: !llvm.ptr, %i_2: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(0 : i8) : i8
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.getelementptr inbounds %m_1[%i_2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.load [[V2]] {alignment = 1 : i64} : !llvm.ptr -> i8
// CHECK-NEXT:   %v_2 = llvm.icmp "ne" [[V3]], [[V0]] : i8
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.getelementptr inbounds %m_1[%i_2] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.zext %v_2 : i1 to i8
// CHECK-NEXT:   llvm.store [[V5]], [[V4]] {alignment = 1 : i64} : i8, !llvm.ptr
// CHECK-NEXT:   llvm.return [[V1]] : i32
func.func @booleans(%m: memref<4xi1>, %i: index) {
  %v = memref.load %m[%i] : memref<4xi1>
  memref.store %v, %m[%i] : memref<4xi1>
  func.return
}

// Room on the stack is taken on entry, whatever the loop.
// CHECK-LABEL: llvm.func @stack(%n_1: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT:   %m_2 = llvm.alloca [[V0]] x f32 {alignment = 64 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT:   %z = llvm.mlir.constant(0.000000e+00 : f32) : f32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   llvm.br ^bb1(%c0 : i64)
// CHECK-NEXT:   ^bb1(%i_3: i64):
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.icmp "slt" %i_3, %n_1 : i64
// CHECK-NEXT:   llvm.cond_br [[V2]], ^bb2, ^bb3
// CHECK-NEXT:   ^bb2:
// CHECK-NEXT:   llvm.store %z, %m_2 {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.add %i_3, %c1 overflow<nsw> : i64
// CHECK-NEXT:   llvm.br ^bb1([[V3]] : i64) {loop_annotation = #llvm_ext.loop<"mustprogress" = 1>}
// CHECK-NEXT:   ^bb3:
// CHECK-NEXT:   llvm.return [[V1]] : i32
func.func @stack(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %m = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
    %z = arith.constant 0.0 : f32
    memref.store %z, %m[%c0] : memref<4xf32>
  }
  func.return
}

// Memory of the heap may run out.
// CHECK-LABEL: llvm.func @heap(%n_2: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(4) : i64
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(64) : i64
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.mlir.constant(-64) : i64
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.mlir.constant({{[0-9]+}} : i32) : i32
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.mul %n_2, [[V1]] overflow<nsw> : i64
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.mul %n_2, [[V1]] overflow<nsw> : i64
// CHECK-NEXT:   [[V8:%[0-9]+]] = llvm.mul [[V7]], [[V1]] overflow<nsw> : i64
// CHECK-NEXT:   [[V9:%[0-9]+]] = llvm.add [[V8]], [[V2]] overflow<nsw> : i64
// CHECK-NEXT:   [[V10:%[0-9]+]] = llvm.and [[V9]], [[V3]] : i64
// CHECK-NEXT:   %m_3 = llvm.call @aligned_alloc([[V2]], [[V10]]) : (i64, i64) -> !llvm.ptr
// CHECK-NEXT:   [[V11:%[0-9]+]] = llvm.ptrtoint %m_3 : !llvm.ptr to i64
// CHECK-NEXT:   [[V12:%[0-9]+]] = llvm.icmp "ne" [[V11]], [[V0]] : i64
// CHECK-NEXT:   llvm.cond_br [[V12]], ^bb1, ^bb2([[V4]] : i32)
// CHECK-NEXT:   ^bb1:
// CHECK-NEXT:   llvm.call @free(%m_3) : (!llvm.ptr) -> ()
// CHECK-NEXT:   llvm.return [[V5]] : i32
// CHECK-NEXT:   ^bb2([[V13:%[0-9]+]]: i32):
// CHECK-NEXT:   llvm.return [[V13]] : i32
// CHECK-LABEL: llvm.func @aligned_alloc(i64, i64) -> !llvm.ptr
// CHECK-LABEL: llvm.func @free(!llvm.ptr)
func.func @heap(%n: index) {
  %m = memref.alloc(%n) : memref<?x4xf32>
  memref.dealloc %m : memref<?x4xf32>
  func.return
}

// CHECK-LABEL: llvm.mlir.global internal constant @table(dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>) {addr_space = 0 : i32, alignment = 64 : i64} : !llvm.array<2 x f32>
"memref.global"() <{sym_name = "table", sym_visibility = "private", type = memref<2xf32>, initial_value = dense<[1.0, 2.0]> : tensor<2xf32>, constant}> : () -> ()

// CHECK-LABEL: llvm.func @global(%i_4: i64) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   %t = llvm.mlir.addressof @table : !llvm.ptr
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.getelementptr inbounds %t[%i_4] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %v_3 = llvm.load [[V0]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:   llvm.return %v_3 : f32
func.func @global(%i: index) -> f32 {
  %t = memref.get_global @table : memref<2xf32>
  %v = memref.load %t[%i] : memref<2xf32>
  func.return %v : f32
}

// CHECK-LABEL: llvm.func @copy(%a: !llvm.ptr, %b: !llvm.ptr) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(64) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(false) : i1
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   llvm.call_intrinsic "llvm.memcpy"(%b, %a, [[V0]], [[V1]]) : (!llvm.ptr, !llvm.ptr, i64, i1) -> ()
// CHECK-NEXT:   llvm.return [[V2]] : i32
func.func @copy(%a: memref<4x4xf32>, %b: memref<4x4xf32>) {
  "memref.copy"(%a, %b) : (memref<4x4xf32>, memref<4x4xf32>) -> ()
  func.return
}
