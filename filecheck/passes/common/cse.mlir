// RUN: mir-opt %s -p cse | filecheck %s

// Operands of commutative ops may be swapped; what is unused goes.
// CHECK-LABEL: func.func @merged
// CHECK-NEXT:    %sum = arith.addi %a, %b : i32
// CHECK-NEXT:    %square = arith.muli %sum, %sum : i32
// CHECK-NEXT:    func.return %square : i32
func.func @merged(%a: i32, %b: i32) -> i32 {
  %sum = arith.addi %a, %b : i32
  %swapped = arith.addi %b, %a : i32
  %square = arith.muli %sum, %swapped : i32
  %unused = arith.subi %a, %b : i32
  func.return %square : i32
}

// Subtraction does not commute.
// CHECK-LABEL: func.func @ordered
// CHECK-NEXT:    arith.subi %a, %b
// CHECK-NEXT:    arith.subi %b, %a
func.func @ordered(%a: i32, %b: i32) -> (i32, i32) {
  %0 = arith.subi %a, %b : i32
  %1 = arith.subi %b, %a : i32
  func.return %0, %1 : i32, i32
}

// Reads of memory are merged up to the next write.
// CHECK-LABEL: func.func @reads
// CHECK-NEXT:    %first = memref.load
// CHECK-NEXT:    memref.store
// CHECK-NEXT:    %third = memref.load
// CHECK-NEXT:    func.return %first, %first, %third
func.func @reads(%m: memref<4xf32>, %i: index, %v: f32) -> (f32, f32, f32) {
  %first = memref.load %m[%i] : memref<4xf32>
  %second = memref.load %m[%i] : memref<4xf32>
  memref.store %v, %m[%i] : memref<4xf32>
  %third = memref.load %m[%i] : memref<4xf32>
  func.return %first, %second, %third : f32, f32, f32
}

// An op is known in the blocks that it dominates, and not in others.
// CHECK-LABEL: func.func @blocks
// CHECK-NEXT:    %entry = arith.addi
// CHECK-NEXT:    cf.cond_br
// CHECK-NEXT:  ^{{.*}}:
// CHECK-NEXT:    %left = arith.muli %entry, %a
// CHECK-NEXT:    cf.br
// CHECK-NEXT:  ^{{.*}}:
// CHECK-NEXT:    %right = arith.muli %entry, %a
// CHECK-NEXT:    cf.br
func.func @blocks(%a: i32, %c: i1) -> i32 {
  %entry = arith.addi %a, %a : i32
  cf.cond_br %c, ^left, ^right
^left:
  %again = arith.addi %a, %a : i32
  %left = arith.muli %again, %a : i32
  cf.br ^end(%left : i32)
^right:
  %once_more = arith.addi %a, %a : i32
  %right = arith.muli %once_more, %a : i32
  cf.br ^end(%right : i32)
^end(%result: i32):
  func.return %result : i32
}

// Ops with equal regions are equal, ops with others are not.
// CHECK-LABEL: func.func @regions
// CHECK:         %same = scf.if
// CHECK:         %other = scf.if
// CHECK-NOT:     scf.if
// CHECK:         func.return %same, %same, %other
func.func @regions(%c: i1, %a: i32) -> (i32, i32, i32) {
  %same = scf.if %c -> (i32) {
    %0 = arith.addi %a, %a : i32
    scf.yield %0 : i32
  } else {
    scf.yield %a : i32
  }
  %equal = scf.if %c -> (i32) {
    %0 = arith.addi %a, %a : i32
    scf.yield %0 : i32
  } else {
    scf.yield %a : i32
  }
  %other = scf.if %c -> (i32) {
    %0 = arith.muli %a, %a : i32
    scf.yield %0 : i32
  } else {
    scf.yield %a : i32
  }
  func.return %same, %equal, %other : i32, i32, i32
}

// Two places in the source, one op: it keeps both.
// RUN: mir-opt %s -p cse --print-debuginfo | filecheck %s --check-prefix LOC
// LOC: %sum = arith.addi %a, %b : i32 loc(fused["{{.*}}cse.mlir":9:3, "{{.*}}cse.mlir":10:3])

// Stock xdsl-opt has its own pass of this name.
// RUN: xdsl-opt %s -p mirstack-cse | filecheck %s
