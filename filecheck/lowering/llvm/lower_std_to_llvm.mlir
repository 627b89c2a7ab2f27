// RUN: mir-opt %s -p lower-std-to-llvm | filecheck %s

// Several dialects in one function; the files beside this one have each dialect's ops.
// CHECK-LABEL:   llvm.func @sum(%a: !llvm.ptr) -> f32 attributes {no_unwind} {
// CHECK-NEXT:      %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:      %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:      %c8 = llvm.mlir.constant(8) : i64
// CHECK-NEXT:      %zero = llvm.mlir.constant(0.000000e+00 : f32) : f32
// CHECK-NEXT:      llvm.br ^bb1(%c0, %zero : i64, f32)
// CHECK-NEXT:    ^bb1(%i: i64, %acc: f32):
// CHECK-NEXT:      %0 = llvm.getelementptr inbounds %a[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:      %x = llvm.load %0 {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:      %y = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
// CHECK-NEXT:      %z = llvm.fadd %acc, %y : f32
// CHECK-NEXT:      %1 = llvm.add %i, %c1 overflow<nsw> : i64
// CHECK-NEXT:      %2 = llvm.icmp "slt" %1, %c8 : i64
// CHECK-NEXT:      llvm.cond_br %2, ^bb1(%1, %z : i64, f32), ^bb2(%z : f32) {loop_annotation = #llvm_ext.loop<"mustprogress" = 1>}
// CHECK-NEXT:    ^bb2(%sum: f32):
// CHECK-NEXT:      %v = llvm.load %a {alignment = 4 : i64} : !llvm.ptr -> vector<4xf32>
// CHECK-NEXT:      %3 = llvm.getelementptr inbounds %a[1] : (!llvm.ptr) -> !llvm.ptr, f32
// CHECK-NEXT:      llvm.store %v, %3 {alignment = 4 : i64} : vector<4xf32>, !llvm.ptr
// CHECK-NEXT:      llvm.return %sum : f32
func.func @sum(%a: memref<8xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
    %x = memref.load %a[%i] : memref<8xf32>
    %y = math.sqrt %x : f32
    %z = arith.addf %acc, %y : f32
    scf.yield %z : f32
  }
  %v = vector.load %a[%c0] : memref<8xf32>, vector<4xf32>
  vector.store %v, %a[%c1] : memref<8xf32>, vector<4xf32>
  func.return %sum : f32
}
