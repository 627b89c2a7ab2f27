// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// CHECK-LABEL: llvm.func @tile(%a: !llvm.ptr, %s: f32, %i: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(16) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mul %i, [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.getelementptr inbounds %a[[[V2]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %v = llvm.load [[V3]] {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm_ext.poison : vector<16xf32>
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.insertelement %s, [[V4]][%c0 : i64] : vector<16xf32>
// CHECK-NEXT:   %b = llvm.shufflevector [[V5]], [[V5]] [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] : vector<16xf32>
// CHECK-NEXT:   %r = llvm.call_intrinsic "llvm.fma"(%v, %b, %v) : (vector<16xf32>, vector<16xf32>, vector<16xf32>) -> vector<16xf32>
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.mul %i, [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.getelementptr inbounds %a[[[V6]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.store %r, [[V7]] {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
// CHECK-NEXT:   llvm.return [[V1]] : i32
func.func @tile(%a: memref<4x16xf32>, %s: f32, %i: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%i, %c0] : memref<4x16xf32>, vector<16xf32>
  %b = vector.broadcast %s : f32 to vector<16xf32>
  %r = vector.fma %v, %b, %v : vector<16xf32>
  vector.store %r, %a[%i, %c0] : memref<4x16xf32>, vector<16xf32>
  func.return
}

// CHECK-LABEL: llvm.func @masked(%a_1: !llvm.ptr, %n: i64, %i_1: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi64>) : vector<8xi64>
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   %z = llvm.mlir.constant(dense<0.000000e+00> : vector<8xf32>) : vector<8xf32>
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(4 : i32) : i32
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm_ext.poison : vector<8xi64>
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.insertelement %n, [[V4]][[[V1]] : i64] : vector<8xi64>
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.shufflevector [[V5]], [[V5]] [0, 0, 0, 0, 0, 0, 0, 0] : vector<8xi64>
// CHECK-NEXT:   %mask = llvm.icmp "slt" [[V0]], [[V6]] : vector<8xi64>
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.getelementptr inbounds %a_1[%i_1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   %v_1 = llvm.call_intrinsic "llvm.masked.load"([[V7]], [[V2]], %mask, %z) : (!llvm.ptr, i32, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT:   [[V8:%[0-9]+]] = llvm.getelementptr inbounds %a_1[%i_1] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.call_intrinsic "llvm.masked.store"(%v_1, [[V8]], [[V2]], %mask) : (vector<8xf32>, !llvm.ptr, i32, vector<8xi1>) -> ()
// CHECK-NEXT:   llvm.return [[V3]] : i32
func.func @masked(%a: memref<?xf32>, %n: index, %i: index) {
  %mask = "vector.create_mask"(%n) : (index) -> vector<8xi1>
  %z = arith.constant dense<0.0> : vector<8xf32>
  %v = vector.maskedload %a[%i], %mask, %z : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.maskedstore %a[%i], %mask, %v : memref<?xf32>, vector<8xi1>, vector<8xf32>
  func.return
}

// CHECK-LABEL: llvm.func @lanes(%v_2: vector<4xf32>, %w: vector<4xf32>) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(2) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   %s_1 = llvm.shufflevector %v_2, %w [0, 4, 1, 5] : vector<4xf32>
// CHECK-NEXT:   %e = llvm_ext.extractelement %s_1[[[V0]] : i64] : vector<4xf32> -> f32
// CHECK-NEXT:   %i_2 = llvm.insertelement %e, %s_1[[[V1]] : i64] : vector<4xf32>
// CHECK-NEXT:   %r_1 = llvm.call_intrinsic "llvm.vector.reduce.fadd"(%e, %i_2) {fastmathFlags = #llvm.fastmath<reassoc>} : (f32, vector<4xf32>) -> f32
// CHECK-NEXT:   llvm.return %r_1 : f32
func.func @lanes(%v: vector<4xf32>, %w: vector<4xf32>) -> f32 {
  %s = vector.shuffle %v, %w [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
  %e = "vector.extract"(%s) <{static_position = array<i64: 2>}> : (vector<4xf32>) -> f32
  %i = "vector.insert"(%e, %s) <{static_position = array<i64: 0>}> : (f32, vector<4xf32>) -> vector<4xf32>
  %r = "vector.reduction"(%i, %e) <{kind = #vector.kind<add>, fastmath = #arith.fastmath<reassoc>}> : (vector<4xf32>, f32) -> f32
  func.return %r : f32
}

// Two dimensions lie in one, row after row.
// CHECK-LABEL: llvm.func @rows(%a_2: !llvm.ptr, %i_3: i64) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %c0_1 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(8) : i64
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(1) : i64
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.mul %i_3, [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.getelementptr inbounds %a_2[[[V3]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.load [[V4]] {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.add %i_3, [[V1]] overflow<nsw> : i64
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.mul [[V6]], [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V8:%[0-9]+]] = llvm.getelementptr inbounds %a_2[[[V7]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   [[V9:%[0-9]+]] = llvm.load [[V8]] {alignment = 4 : i64} : !llvm.ptr -> vector<8xf32>
// CHECK-NEXT:   %v_3 = llvm.shufflevector [[V5]], [[V9]] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] : vector<8xf32>
// CHECK-NEXT:   %w_1 = llvm.fadd %v_3, %v_3 : vector<16xf32>
// CHECK-NEXT:   [[V10:%[0-9]+]] = llvm.shufflevector %w_1, %w_1 [0, 1, 2, 3, 4, 5, 6, 7] : vector<16xf32>
// CHECK-NEXT:   [[V11:%[0-9]+]] = llvm.mul %i_3, [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V12:%[0-9]+]] = llvm.getelementptr inbounds %a_2[[[V11]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.store [[V10]], [[V12]] {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:   [[V13:%[0-9]+]] = llvm.shufflevector %w_1, %w_1 [8, 9, 10, 11, 12, 13, 14, 15] : vector<16xf32>
// CHECK-NEXT:   [[V14:%[0-9]+]] = llvm.add %i_3, [[V1]] overflow<nsw> : i64
// CHECK-NEXT:   [[V15:%[0-9]+]] = llvm.mul [[V14]], [[V0]] overflow<nsw> : i64
// CHECK-NEXT:   [[V16:%[0-9]+]] = llvm.getelementptr inbounds %a_2[[[V15]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:   llvm.store [[V13]], [[V16]] {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK-NEXT:   llvm.return [[V2]] : i32
func.func @rows(%a: memref<8x8xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %v = vector.load %a[%i, %c0] : memref<8x8xf32>, vector<2x8xf32>
  %w = arith.addf %v, %v : vector<2x8xf32>
  vector.store %w, %a[%i, %c0] : memref<8x8xf32>, vector<2x8xf32>
  func.return
}

// CHECK-LABEL: llvm.func @gather(%a_3: !llvm.ptr, %i_4: vector<4xi32>, %m: vector<4xi1>, %z_1: vector<4xf32>) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %c0_2 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(4 : i32) : i32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.sext %i_4 : vector<4xi32> to vector<4xi64>
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm_ext.lane_addresses %a_3[[[V2]]] elem f32 : !llvm.ptr, vector<4xi64> -> vector<4x!llvm.ptr>
// CHECK-NEXT:   %v_4 = llvm.call_intrinsic "llvm.masked.gather"([[V3]], [[V0]], %m, %z_1) : (vector<4x!llvm.ptr>, i32, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.sext %i_4 : vector<4xi32> to vector<4xi64>
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm_ext.lane_addresses %a_3[[[V4]]] elem f32 : !llvm.ptr, vector<4xi64> -> vector<4x!llvm.ptr>
// CHECK-NEXT:   llvm.call_intrinsic "llvm.masked.scatter"(%v_4, [[V5]], [[V0]], %m) : (vector<4xf32>, vector<4x!llvm.ptr>, i32, vector<4xi1>) -> ()
// CHECK-NEXT:   llvm.return [[V1]] : i32
func.func @gather(%a: memref<16xf32>, %i: vector<4xi32>, %m: vector<4xi1>, %z: vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %v = vector_ext.gather %a[%c0] [%i], %m, %z : memref<16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  vector_ext.scatter %a[%c0] [%i], %m, %v : memref<16xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
  func.return
}

// An infinity in every lane is made from a scalar: xDSL misreads it in dense<…>.
// CHECK-LABEL: llvm.func @infinity() -> vector<4xf32> attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm_ext.poison : vector<4xf32>
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0x7f800000 : f32) : f32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.insertelement [[V1]], [[V0]][[[V2]] : i64] : vector<4xf32>
// CHECK-NEXT:   %v_5 = llvm.shufflevector [[V3]], [[V3]] [0, 0, 0, 0] : vector<4xf32>
// CHECK-NEXT:   llvm.return %v_5 : vector<4xf32>
func.func @infinity() -> vector<4xf32> {
  %v = arith.constant dense<"0x0000807f"> : vector<4xf32>
  func.return %v : vector<4xf32>
}
