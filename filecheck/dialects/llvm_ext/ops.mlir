// RUN: mir-opt %s -t mlir | filecheck %s
// RUN: mir-opt %s -t mlir | mir-opt -f mlir -t mlir | filecheck %s
// RUN: xdsl-opt %s | filecheck %s

// CHECK-LABEL: llvm.func @ops
llvm.func @ops(%v: vector<4xf32>, %a: f32, %u: i32, %x: i64, %p: !llvm.ptr, %i: vector<4xi64>, %m: vector<4xi1>) {
  // CHECK: %poison = llvm_ext.poison : f32
  %poison = llvm_ext.poison : f32
  // CHECK-NEXT: %freeze = llvm_ext.freeze %poison : f32
  %freeze = llvm_ext.freeze %poison : f32
  // CHECK-NEXT: %fcmp = llvm_ext.fcmp "olt" %v, %v : vector<4xf32> -> vector<4xi1>
  %fcmp = llvm_ext.fcmp "olt" %v, %v : vector<4xf32> -> vector<4xi1>
  // CHECK-NEXT: %scalar = llvm_ext.fcmp "uno" %a, %a : f32 -> i1
  %scalar = llvm_ext.fcmp "uno" %a, %a : f32 -> i1
  // CHECK-NEXT: %select = llvm_ext.select %m, %v, %v : vector<4xi1>, vector<4xf32>
  %select = llvm_ext.select %m, %v, %v : vector<4xi1>, vector<4xf32>
  // CHECK-NEXT: %si = llvm_ext.fptosi %a : f32 to i32
  %si = llvm_ext.fptosi %a : f32 to i32
  // CHECK-NEXT: %ui = llvm_ext.fptoui %a : f32 to i32
  %ui = llvm_ext.fptoui %a : f32 to i32
  // CHECK-NEXT: %fp = llvm_ext.uitofp %u : i32 to f32
  %fp = llvm_ext.uitofp %u : i32 to f32
  // CHECK-NEXT: %lane = llvm_ext.extractelement %v[%x : i64] : vector<4xf32> -> f32
  %lane = llvm_ext.extractelement %v[%x : i64] : vector<4xf32> -> f32
  // CHECK-NEXT: %ptrs = llvm_ext.lane_addresses %p[%i] elem f32 : !llvm.ptr, vector<4xi64> -> vector<4x!llvm.ptr>
  %ptrs = llvm_ext.lane_addresses %p[%i] elem f32 : !llvm.ptr, vector<4xi64> -> vector<4x!llvm.ptr>
  // CHECK-NEXT: %rmw = llvm_ext.atomicrmw "umax" "monotonic" %p, %x : !llvm.ptr, i64
  %rmw = llvm_ext.atomicrmw "umax" "monotonic" %p, %x : !llvm.ptr, i64
  // CHECK-NEXT: %cas = llvm_ext.cmpxchg "acquire" "monotonic" %p, %x, %x : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
  %cas = llvm_ext.cmpxchg "acquire" "monotonic" %p, %x, %x : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
  // CHECK-NEXT: llvm_ext.fence "seq_cst"
  llvm_ext.fence "seq_cst"
  // CHECK-NEXT: "llvm_ext.switch"(%x) [^bb1, ^bb1] <{case_values = array<i64: 3>, case_operand_segments = array<i64: 0>, operandSegmentSizes = array<i32: 1, 0, 0>}> : (i64) -> ()
  "llvm_ext.switch"(%x) [^bb1, ^bb1] <{case_values = array<i64: 3>, case_operand_segments = array<i64: 0>,
    operandSegmentSizes = array<i32: 1, 0, 0>}> : (i64) -> ()
^bb1:
  // CHECK: llvm.br ^bb1 {loop_annotation = #llvm_ext.loop<"unroll.count" = 4, "vectorize.enable" = 0>}
  llvm.br ^bb1 {loop_annotation = #llvm_ext.loop<"unroll.count" = 4, "vectorize.enable" = 0>}
}
