// RUN: mir-opt %s --split-input-file --verify-diagnostics

llvm.func @f(%a: f32) {
  // expected-error@below {{unknown predicate 'lt'}}
  %c = llvm_ext.fcmp "lt" %a, %a : f32 -> i1
  llvm.return
}

// -----

llvm.func @f(%a: vector<4xf32>) {
  // expected-error@below {{comparing vector<4xf32> gives vector<4xi1>, not i1}}
  %c = llvm_ext.fcmp "olt" %a, %a : vector<4xf32> -> i1
  llvm.return
}

// -----

llvm.func @f(%m: vector<2xi1>, %a: vector<4xf32>) {
  // expected-error@below {{the condition vector<2xi1> has not one lane per lane of vector<4xf32>}}
  %c = llvm_ext.select %m, %a, %a : vector<2xi1>, vector<4xf32>
  llvm.return
}

// -----

llvm.func @f(%p: !llvm.ptr, %x: i64) {
  // expected-error@below {{unknown atomic update 'mul'}}
  %c = llvm_ext.atomicrmw "mul" "seq_cst" %p, %x : !llvm.ptr, i64
  llvm.return
}

// -----

llvm.func @f(%p: !llvm.ptr, %x: i64) {
  // expected-error@below {{memory ordering 'strong' is not one of monotonic, acquire}}
  %c = llvm_ext.atomicrmw "add" "strong" %p, %x : !llvm.ptr, i64
  llvm.return
}

// -----

llvm.func @f(%p: !llvm.ptr, %x: i64) {
  // expected-error@below {{memory ordering 'release' is not one of monotonic, acquire, seq_cst}}
  %c = llvm_ext.cmpxchg "release" "release" %p, %x, %x : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
  llvm.return
}

// -----

llvm.func @f() {
  // expected-error@below {{memory ordering 'monotonic' is not one of acquire}}
  llvm_ext.fence "monotonic"
  llvm.return
}

// -----

llvm.func @f(%x: i64) {
  // expected-error@below {{a switch has one block per case value}}
  "llvm_ext.switch"(%x) [^bb1, ^bb1] <{case_values = array<i64: 3, 4>, case_operand_segments = array<i64: 0>,
    operandSegmentSizes = array<i32: 1, 0, 0>}> : (i64) -> ()
^bb1:
  llvm.return
}

// -----

llvm.func @f(%x: i64) {
  // expected-error@below {{a switch has one operand segment per case}}
  "llvm_ext.switch"(%x) [^bb1, ^bb1] <{case_values = array<i64: 3>, case_operand_segments = array<i64>,
    operandSegmentSizes = array<i32: 1, 0, 0>}> : (i64) -> ()
^bb1:
  llvm.return
}

// -----

llvm.func @f(%x: i64) {
  // expected-error@below {{the operand segments of a switch do not add up to its case operands}}
  "llvm_ext.switch"(%x) [^bb1, ^bb1] <{case_values = array<i64: 3>, case_operand_segments = array<i64: 1>,
    operandSegmentSizes = array<i32: 1, 0, 0>}> : (i64) -> ()
^bb1:
  llvm.return
}
