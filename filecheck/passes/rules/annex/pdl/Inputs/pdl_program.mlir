// The product that both have may be on either side.
// CHECK-LABEL: func.func @factor(%x: i32, %y: i32, %z: i32)
// CHECK-NEXT: [[SUM:%.*]] = arith.addi %z, %y : i32
// CHECK-NEXT: [[R:%.*]] = arith.muli %x, [[SUM]] : i32
// CHECK-NEXT: return [[R]] : i32
func.func @factor(%x: i32, %y: i32, %z: i32) -> i32 {
  %0 = arith.muli %y, %x : i32
  %1 = arith.muli %x, %z : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}

// CHECK-LABEL: func.func @twice
// CHECK-NEXT: [[TWO:%.*]] = arith.constant 2.000000e+00 : f64
// CHECK-NEXT: arith.mulf %x, [[TWO]] : f64
func.func @twice(%x: f64) -> f64 {
  %0 = arith.addf %x, %x : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @zero
// CHECK: return %x : i8
func.func @zero(%x: i8) -> i8 {
  %c = arith.constant 0 : i8
  %0 = arith.subi %x, %c : i8
  %1 = arith.shli %0, %c : i8
  return %1 : i8
}
