// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// CHECK-LABEL: llvm.func @scale(%x: !llvm.ptr {llvm.noalias, llvm.nonnull, llvm.noundef}, %n: i64, %s: f32) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.alloca %c1 x !llvm.struct<(!llvm.ptr, f32)> {alignment = 16 : i64} : (i64) -> !llvm.ptr
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(16) : i64
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.getelementptr inbounds [[V0]][0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(!llvm.ptr, f32)>
// CHECK-NEXT:   llvm.store %x, [[V3]] {alignment = 8 : i64} : !llvm.ptr, !llvm.ptr
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.getelementptr inbounds [[V0]][0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(!llvm.ptr, f32)>
// CHECK-NEXT:   llvm.store %s, [[V4]] {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.mlir.addressof @scale.parallel.0 : !llvm.ptr
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.call @mirstack_parallel_for([[V5]], [[V0]], %c0, %n, [[V1]]) : (!llvm.ptr, !llvm.ptr, i64, i64, i64) -> i32
// CHECK-NEXT:   llvm.return [[V2]] : i32
// CHECK-LABEL: llvm.func @mirstack_parallel_for(!llvm.ptr, !llvm.ptr, i64, i64, i64) -> i32
// CHECK-LABEL: llvm.func internal @scale.parallel.0({{%[0-9]+}}: !llvm.ptr, {{%[0-9]+}}: i64, {{%[0-9]+}}: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.getelementptr inbounds {{%[0-9]+}}[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(!llvm.ptr, f32)>
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.load [[V0]] {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.getelementptr inbounds {{%[0-9]+}}[0, 1] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(!llvm.ptr, f32)>
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.load [[V2]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.call @scale.parallel.0.body([[V1]], [[V3]], {{%[0-9]+}}, {{%[0-9]+}}) : (!llvm.ptr, f32, i64, i64) -> i32
// CHECK-NEXT:   llvm.return [[V4]] : i32
// CHECK-LABEL: llvm.func internal @scale.parallel.0.body(%x_1: !llvm.ptr {llvm.noalias, llvm.nonnull, llvm.noundef}, %s_1: f32, {{%[0-9]+}}: i64, {{%[0-9]+}}: i64) -> i32 attributes {no_unwind, no_inline} {
// CHECK-NEXT:   %c0_1 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   %c1_1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   llvm.br ^bb1({{%[0-9]+}} : i64)
// CHECK-NEXT:   ^bb1(%i: i64):
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.icmp "slt" %i, {{%[0-9]+}} : i64
// CHECK-NEXT:   llvm.cond_br [[V1]], ^bb2, ^bb3
// CHECK-NEXT:   ^bb2:
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.getelementptr inbounds %x_1[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %u = llvm.load [[V2]] {alignment = 4 : i64} : !llvm.ptr -> f32
// CHECK-NEXT:   %p = llvm.fmul %s_1, %u : f32
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.getelementptr inbounds %x_1[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.store %p, [[V3]] {alignment = 4 : i64} : f32, !llvm.ptr
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.add %i, %c1_1 overflow<nsw> : i64
// CHECK-NEXT:   llvm.br ^bb1([[V4]] : i64) {loop_annotation = #llvm_ext.loop<"mustprogress" = 1>}
// CHECK-NEXT:   ^bb3:
// CHECK-NEXT:   llvm.return [[V0]] : i32
func.func @scale(%x: memref<?xf32>, %n: index, %s: f32) attributes {mirstack.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %u = memref.load %x[%i] : memref<?xf32>
    %p = arith.mulf %s, %u : f32
    memref.store %p, %x[%i] : memref<?xf32>
    "scf.reduce"() : () -> ()
  }) {mirstack.grain = 16 : i64} : (index, index, index) -> ()
  func.return
}

// Of a step that may be 0 the count of iterations is 0, not a trap.
// CHECK-LABEL: llvm.func @stepped(
// CHECK:         [[IS_ZERO:%[0-9]+]] = llvm.icmp "eq" %step, {{.*}} : i64
// CHECK:         [[SAFE:%[0-9]+]] = llvm.select {{.*}}, {{.*}}, %step : i1, i64
// CHECK-NEXT:    llvm.sdiv {{.*}}, [[SAFE]] : i64
// CHECK:         llvm.select [[IS_ZERO]], {{.*}} : i1, i64
// CHECK:         llvm.call @mirstack_parallel_for
func.func @stepped(%x: memref<?xf32>, %n: index, %step: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  "scf.parallel"(%c0, %n, %step) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    memref.store %zero, %x[%i] : memref<?xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}

// What a loop takes along is aligned as its widest vector, not as the stack: an address that is not ends the process.
// CHECK-LABEL: llvm.func @vectors(
// CHECK:         llvm.alloca {{.*}} x !llvm.struct<({{.*}}vector<8xf32>{{.*}})> {alignment = 32 : i64}
// CHECK-DAG:     llvm.store %v, {{.*}} {alignment = 32 : i64} : vector<8xf32>, !llvm.ptr
// CHECK-DAG:     llvm.store %w, {{.*}} {alignment = 4 : i64} : vector<3xf32>, !llvm.ptr
// CHECK:         llvm.load {{.*}} {alignment = 32 : i64} : !llvm.ptr -> vector<8xf32>
func.func @vectors(%x: memref<?xvector<8xf32>>, %n: index, %v: vector<8xf32>, %w: vector<3xf32>, %y: memref<?xvector<3xf32>>) attributes {mirstack.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    memref.store %v, %x[%i] : memref<?xvector<8xf32>>
    memref.store %w, %y[%i] : memref<?xvector<3xf32>>
    "scf.reduce"() : () -> ()
  }) {mirstack.grain = 16 : i64} : (index, index, index) -> ()
  func.return
}
