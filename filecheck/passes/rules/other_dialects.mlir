// RUN: mir-opt %s -p 'apply-rules{file="%S/Inputs/other.mir" set="simplify"}' | filecheck %s
// RUN: not mir-opt %s -p 'apply-rules{file="%S/Inputs/other.mir" set="untyped"}' 2>&1 | filecheck %s --check-prefix=UNTYPED
// RUN: not mir-opt %s -p 'apply-rules' 2>&1 | filecheck %s --check-prefix=NONE

// CHECK-LABEL: func.func @add_zero
// CHECK-NEXT: return %{{.*}} : i32
func.func @add_zero(%x: i32) -> i32 {
  %c = arith.constant 0 : i32
  %0 = arith.addi %c, %x : i32
  %1 = arith.addi %0, %c : i32
  return %1 : i32
}

// CHECK-LABEL: func.func @shift
// CHECK: [[ONE:%.*]] = arith.constant 1 : i32
// CHECK: arith.shli %{{.*}}, [[ONE]] : i32
func.func @shift(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  return %0 : i32
}

// CHECK-LABEL: func.func @exp_log
// CHECK-NEXT: return %{{.*}} : f32
func.func @exp_log(%x: f32) -> f32 {
  %0 = math.log %x : f32
  %1 = math.exp %0 : f32
  return %1 : f32
}

// UNTYPED: error: the replacement does not fit here: the type of a new memref.load does not follow from its arguments
func.func @load(%m: memref<4xf32>, %i: index) -> f32 {
  %0 = memref.load %m[%i] : memref<4xf32>
  return %0 : f32
}

// NONE: error: there are no rules to apply
// NONE-NEXT: note: a rule is: rewrite @name { lhs => rhs where condition }
