// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// Integer ops keep their overflow flags; index is i64.
// CHECK-LABEL: llvm.func @integers(%a: i32, %b: i32, %i: i64) -> i64 attributes {no_unwind} {
// CHECK-NEXT:   %sum = llvm.add %a, %b overflow<nsw> : i32
// CHECK-NEXT:   %low = llvm.call_intrinsic "llvm.smin"(%sum, %b) : (i32, i32) -> i32
// CHECK-NEXT:   %less = llvm.icmp "ult" %low, %a : i32
// CHECK-NEXT:   %pick = llvm.select %less, %low, %a : i1, i32
// CHECK-NEXT:   %wide = llvm.sext %pick : i32 to i64
// CHECK-NEXT:   %total = llvm.add %wide, %i : i64
// CHECK-NEXT:   llvm.return %total : i64
func.func @integers(%a: i32, %b: i32, %i: index) -> index {
  %sum = arith.addi %a, %b overflow<nsw> : i32
  %low = arith.minsi %sum, %b : i32
  %less = arith.cmpi ult, %low, %a : i32
  %pick = arith.select %less, %low, %a : i32
  %wide = arith.index_cast %pick : i32 to index
  %total = arith.addi %wide, %i : index
  func.return %total : index
}

// A divisor that may be 0 or -1 is replaced where it would trap.
// CHECK-LABEL: llvm.func @division(%a_1: i32, %b_1: i32) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(-1 : i32) : i32
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.icmp "eq" %b_1, [[V0]] : i32
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.icmp "eq" %b_1, [[V2]] : i32
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.or [[V3]], [[V4]] : i1
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.select [[V5]], [[V1]], %b_1 : i1, i32
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.sdiv %a_1, [[V6]] : i32
// CHECK-NEXT:   [[V8:%[0-9]+]] = llvm.sub [[V0]], %a_1 : i32
// CHECK-NEXT:   [[V9:%[0-9]+]] = llvm.select [[V4]], [[V8]], [[V7]] : i1, i32
// CHECK-NEXT:   %q = llvm.select [[V3]], [[V0]], [[V9]] : i1, i32
// CHECK-NEXT:   llvm.return %q : i32
func.func @division(%a: i32, %b: i32) -> i32 {
  %q = arith.divsi %a, %b : i32
  func.return %q : i32
}

// A constant divisor that cannot trap is left alone.
// CHECK-LABEL: llvm.func @by_constant(%a_2: i32) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %c7 = llvm.mlir.constant(7 : i32) : i32
// CHECK-NEXT:   %q_1 = llvm.srem %a_2, %c7 : i32
// CHECK-NEXT:   llvm.return %q_1 : i32
func.func @by_constant(%a: i32) -> i32 {
  %c7 = arith.constant 7 : i32
  %q = arith.remsi %a, %c7 : i32
  func.return %q : i32
}

// Floats keep their fastmath flags.
// CHECK-LABEL: llvm.func @floats(%a_3: f32, %b_2: f32) -> i1 attributes {no_unwind} {
// CHECK-NEXT:   %s = llvm.fadd %a_3, %b_2 {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK-NEXT:   %m = llvm.call_intrinsic "llvm.maximum"(%s, %b_2) : (f32, f32) -> f32
// CHECK-NEXT:   %c = llvm_ext.fcmp "olt" %m, %a_3 : f32 -> i1
// CHECK-NEXT:   llvm.return %c : i1
func.func @floats(%a: f32, %b: f32) -> i1 {
  %s = arith.addf %a, %b fastmath<contract> : f32
  %m = arith.maximumf %s, %b : f32
  %c = arith.cmpf olt, %m, %a : f32
  func.return %c : i1
}

// bf16 arithmetic is f32's, widened and rounded to nearest even in integers.
// CHECK-LABEL: llvm.func @bfloat(%a_4: i16, %b_3: i16) -> i16 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(16 : i32) : i32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.mlir.constant(32767 : i32) : i32
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm.mlir.constant(4194304 : i32) : i32
// CHECK-NEXT:   [[A1:%[0-9]+]] = llvm.zext %a_4 : i16 to i32
// CHECK-NEXT:   [[A2:%[0-9]+]] = llvm.shl [[A1]], [[V0]] : i32
// CHECK-NEXT:   [[A3:%[0-9]+]] = llvm.bitcast [[A2]] : i32 to f32
// CHECK-NEXT:   [[B1:%[0-9]+]] = llvm.zext %b_3 : i16 to i32
// CHECK-NEXT:   [[B2:%[0-9]+]] = llvm.shl [[B1]], [[V0]] : i32
// CHECK-NEXT:   [[B3:%[0-9]+]] = llvm.bitcast [[B2]] : i32 to f32
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm.fmul [[A3]], [[B3]] : f32
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.bitcast [[V6]] : f32 to i32
// CHECK-NEXT:   [[V8:%[0-9]+]] = llvm.lshr [[V7]], [[V0]] : i32
// CHECK-NEXT:   [[V9:%[0-9]+]] = llvm.and [[V8]], [[V1]] : i32
// CHECK-NEXT:   [[V10:%[0-9]+]] = llvm.add [[V9]], [[V2]] : i32
// CHECK-NEXT:   [[V11:%[0-9]+]] = llvm.add [[V7]], [[V10]] : i32
// CHECK-NEXT:   [[V12:%[0-9]+]] = llvm.or [[V7]], [[V3]] : i32
// CHECK-NEXT:   [[V13:%[0-9]+]] = llvm_ext.fcmp "uno" [[V6]], [[V6]] : f32 -> i1
// CHECK-NEXT:   [[V14:%[0-9]+]] = llvm.select [[V13]], [[V12]], [[V11]] : i1, i32
// CHECK-NEXT:   [[V15:%[0-9]+]] = llvm.lshr [[V14]], [[V0]] : i32
// CHECK-NEXT:   %s_1 = llvm.trunc [[V15]] : i32 to i16
// CHECK-NEXT:   llvm.return %s_1 : i16
func.func @bfloat(%a: bf16, %b: bf16) -> bf16 {
  %s = arith.mulf %a, %b : bf16
  func.return %s : bf16
}

// f64 to f16 is rounded once: to odd in f32, then to nearest.
// CHECK-LABEL: llvm.func @twice(%a_5: f64) -> f16 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(1 : i32) : i32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.fptrunc %a_5 : f64 to f32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.fpext [[V1]] : f32 to f64
// CHECK-NEXT:   [[V3:%[0-9]+]] = llvm_ext.fcmp "one" [[V2]], %a_5 : f64 -> i1
// CHECK-NEXT:   [[V4:%[0-9]+]] = llvm.call_intrinsic "llvm.fabs"([[V2]]) : (f64) -> f64
// CHECK-NEXT:   [[V5:%[0-9]+]] = llvm.call_intrinsic "llvm.fabs"(%a_5) : (f64) -> f64
// CHECK-NEXT:   [[V6:%[0-9]+]] = llvm_ext.fcmp "ogt" [[V4]], [[V5]] : f64 -> i1
// CHECK-NEXT:   [[V7:%[0-9]+]] = llvm.bitcast [[V1]] : f32 to i32
// CHECK-NEXT:   [[V8:%[0-9]+]] = llvm.sub [[V7]], [[V0]] : i32
// CHECK-NEXT:   [[V9:%[0-9]+]] = llvm.select [[V6]], [[V8]], [[V7]] : i1, i32
// CHECK-NEXT:   [[V10:%[0-9]+]] = llvm.or [[V9]], [[V0]] : i32
// CHECK-NEXT:   [[V11:%[0-9]+]] = llvm.select [[V3]], [[V10]], [[V7]] : i1, i32
// CHECK-NEXT:   [[V12:%[0-9]+]] = llvm.bitcast [[V11]] : i32 to f32
// CHECK-NEXT:   %r = llvm.fptrunc [[V12]] : f32 to f16
// CHECK-NEXT:   llvm.return %r : f16
func.func @twice(%a: f64) -> f16 {
  %r = arith.truncf %a : f64 to f16
  func.return %r : f16
}

// Vectors compare, select and convert lane by lane.
// CHECK-LABEL: llvm.func @vectors(%a_6: vector<4xi32>, %x: vector<4xf32>) -> vector<4xf32> attributes {no_unwind} {
// CHECK-NEXT:   %c_1 = llvm.icmp "slt" %a_6, %a_6 : vector<4xi32>
// CHECK-NEXT:   %f = llvm.sitofp %a_6 : vector<4xi32> to vector<4xf32>
// CHECK-NEXT:   %d = llvm_ext.fcmp "ole" %f, %x : vector<4xf32> -> vector<4xi1>
// CHECK-NEXT:   %s_2 = llvm_ext.select %d, %f, %x : vector<4xi1>, vector<4xf32>
// CHECK-NEXT:   %t = llvm_ext.select %c_1, %s_2, %x : vector<4xi1>, vector<4xf32>
// CHECK-NEXT:   llvm.return %t : vector<4xf32>
func.func @vectors(%a: vector<4xi32>, %x: vector<4xf32>) -> vector<4xf32> {
  %c = vector_ext.cmpi "slt" %a, %a : vector<4xi32> -> vector<4xi1>
  %f = vector_ext.cast "sitofp" %a : vector<4xi32> to vector<4xf32>
  %d = vector_ext.cmpf "ole" %f, %x : vector<4xf32> -> vector<4xi1>
  %s = vector_ext.select %d, %f, %x : vector<4xi1>, vector<4xf32>
  %t = vector_ext.select %c, %s, %x : vector<4xi1>, vector<4xf32>
  func.return %t : vector<4xf32>
}
