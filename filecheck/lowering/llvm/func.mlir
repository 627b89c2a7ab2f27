// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// Memrefs are bare pointers; what the function says of them is handed to LLVM.
// CHECK-LABEL: llvm.func @arguments(%a: !llvm.ptr {llvm.noalias, llvm.nonnull, llvm.noundef, llvm.dereferenceable = 64 : i64, llvm.align = 64 : i64}, %b: !llvm.ptr {llvm.readonly, llvm.noalias, llvm.nonnull, llvm.noundef, llvm.align = 64 : i64}, %n: i64) -> i32 attributes {passthrough = ["cold"], no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   llvm.return [[V0]] : i32
func.func @arguments(%a: memref<4x4xf32>, %b: memref<?xf64> {llvm.readonly}, %n: index)
    attributes {mirstack.noalias, mirstack.align = 64 : i64, passthrough = ["cold"]} {
  func.return
}

// Several results are a struct.
// CHECK-LABEL: llvm.func internal @two(%a_1: i64) -> !llvm.struct<(i64, f32)> attributes {no_unwind} {
// CHECK-NEXT:   %z = llvm.mlir.constant(0.000000e+00 : f32) : f32
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm_ext.poison : !llvm.struct<(i64, f32)>
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.insertvalue %a_1, [[V0]][0] : !llvm.struct<(i64, f32)>
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.insertvalue %z, [[V1]][1] : !llvm.struct<(i64, f32)>
// CHECK-NEXT:   llvm.return [[V2]] : !llvm.struct<(i64, f32)>
func.func private @two(%a: i64) -> (i64, f32) {
  %z = arith.constant 0.0 : f32
  func.return %a, %z : i64, f32
}

// CHECK-LABEL: llvm.func @calls(%a_2: i64) -> i64 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.call @two(%a_2) : (i64) -> !llvm.struct<(i64, f32)>
// CHECK-NEXT:   %r = llvm.extractvalue [[V0]][0] : !llvm.struct<(i64, f32)>
// CHECK-NEXT:   %s = llvm.extractvalue [[V0]][1] : !llvm.struct<(i64, f32)>
// CHECK-NEXT:   llvm.return %r : i64
func.func @calls(%a: i64) -> i64 {
  %r, %s = func.call @two(%a) : (i64) -> (i64, f32)
  func.return %r : i64
}

// An external function.
// CHECK-LABEL: llvm.func @external(i64) -> f64
func.func private @external(%a: i64) -> f64
