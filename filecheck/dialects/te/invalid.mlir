// RUN: mir-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'te.func' does not verify: function 'argument' takes its inputs as te.placeholder, not as block arguments}}
"te.func"() <{sym_name = "argument", attrs = {}}> ({
^bb0(%n: i32):
  "te.return"() : () -> ()
}) : () -> ()
// expected-error@+1 {{'te.func' does not verify: function 'no_return' must end with te.return of its parameters}}
"te.func"() <{sym_name = "no_return", attrs = {}}> ({
  // expected-error@+1 {{'te.placeholder' ends the body of 'te.func', but is not a terminator}}
  %A = "te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[8 : i32], f32>
}) : () -> ()
func.func @outside() {
  // expected-error@+1 {{te.return ends a te.func}}
  "te.return"() : () -> ()
}

// -----

// Reductions.
"te.func"() <{sym_name = "reductions", attrs = {}}> ({
  %A = "te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[8 : i32], f32>
  %0 = "tir.const"() <{value = 0 : i32}> : () -> i32
  %1 = "tir.const"() <{value = 8 : i32}> : () -> i32
  %k = "te.reduce_axis"(%0, %1) <{var_name = "k"}> : (i32, i32) -> i32
  // expected-error@+1 {{'te.compute' does not verify: a reduction must be the whole value of compute 'B': give what follows it a compute of its own}}
  %B = "te.compute"() <{compute_name = "B", tag = "", attrs = {}, iter_names = ["i"], operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: i32):
    %2 = "te.read"(%A, %k) : (!te.tensor<[8 : i32], f32>, i32) -> f32
    %3 = "te.reduce"(%2, %k) <{kind = "sum", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (f32, i32) -> f32
    %4 = "tir.add"(%3, %3) : (f32, f32) -> f32
    "tir.yield"(%4) : (f32) -> ()
  }) : () -> !te.tensor<[8 : i32], f32>
  // expected-error@+1 {{'te.compute' does not verify: a reduction must be the whole value of compute 'C': give what follows it a compute of its own}}
  %C = "te.compute"() <{compute_name = "C", tag = "", attrs = {}, iter_names = ["i"], operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: i32):
    %2 = "te.read"(%A, %i) : (!te.tensor<[8 : i32], f32>, i32) -> f32
    %3 = "te.reduce"(%2, %k) <{kind = "sum", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (f32, i32) -> f32
    "tir.yield"(%2) : (f32) -> ()
  }) : () -> !te.tensor<[8 : i32], f32>
  // expected-error@+1 {{'te.compute' does not verify: compute 'D' must yield the results of one reduction, all and in order}}
  %D:2 = "te.compute"() <{compute_name = "D", tag = "", attrs = {}, iter_names = ["i"], operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: i32):
    %2 = "te.read"(%A, %k) : (!te.tensor<[8 : i32], f32>, i32) -> f32
    %3 = "te.reduce"(%2, %k) <{kind = "sum", operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (f32, i32) -> f32
    "tir.yield"(%3, %3) : (f32, f32) -> ()
  }) : () -> (!te.tensor<[8 : i32], f32>, !te.tensor<[8 : i32], f32>)
  "te.return"(%A, %B) : (!te.tensor<[8 : i32], f32>, !te.tensor<[8 : i32], f32>) -> ()
}) : () -> ()
