// RUN: mir-opt %s -p dce | filecheck %s

// CHECK-LABEL: func.func @unused
// CHECK-NEXT:    func.return %a : i32
func.func @unused(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.muli %0, %a : i32
  func.return %a : i32
}

// A pure loop whose result nobody uses goes with all that is in it.
// CHECK-LABEL: func.func @loop
// CHECK-NEXT:    func.return
func.func @loop(%n: index) {
  %0 = scf.for %i = %n to %n step %n iter_args(%acc = %n) -> (index) {
    %next = arith.addi %acc, %i : index
    scf.yield %next : index
  }
  func.return
}

// A store can be seen, and keeps what it needs; the multiplication beside it goes.
// CHECK-LABEL: func.func @effects
// CHECK:         scf.for
// CHECK-NEXT:      arith.addi
// CHECK-NEXT:      memref.store
// CHECK-NOT:       arith.muli
// CHECK:         func.return
func.func @effects(%n: index, %m: memref<8xindex>) {
  scf.for %i = %n to %n step %n {
    %sum = arith.addi %i, %n : index
    memref.store %sum, %m[%i] : memref<8xindex>
    %product = arith.muli %i, %n : index
  }
  func.return
}

// An op of an unknown dialect may do anything.
// RUN: mir-opt %s -p dce --allow-unregistered-dialect | filecheck %s
// CHECK-LABEL: func.func @unreachable
// CHECK-NEXT:    cf.br ^[[END:.*]]
// CHECK-NEXT:  ^[[END]]:
// CHECK-NEXT:    func.return
func.func @unreachable(%a: i32) {
  cf.br ^end
^island:
  %0 = arith.addi %a, %a : i32
  cf.br ^end
^end:
  func.return
}
