// RUN: mir-opt %s -t mir --split-input-file --verify-diagnostics

// expected-error@+1 {{'func.func' has no .mir text}}
func.func @f() {
  func.return
}

// -----
"relay.func"() <{sym_name = "f", param_names = [], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
  // expected-error@+1 {{'test.op' has no Relay text}}
  %0 = "test.op"() : () -> tensor<f32>
  "relay.return"(%0) : (tensor<f32>) -> ()
}) : () -> ()

// -----
"tir.prim_func"() <{sym_name = "f", param_names = ["n"], attrs = {}, ret_type = none}> ({
^bb0(%n: i32):
  // expected-error@+1 {{'test.op' has no TVMScript text}}
  "test.op"(%n) : (i32) -> ()
}) : () -> ()

// -----
"tir.prim_func"() <{sym_name = "g", param_names = ["n"], attrs = {}, ret_type = none}> ({
^bb0(%n: i32):
  // expected-error@+1 {{'test.op' has no TVMScript text}}
  %0 = "test.op"(%n) : (i32) -> i32
  "tir.evaluate"(%0) : (i32) -> ()
}) : () -> ()

// -----
// expected-error@+1 {{an annotation holds @symbol, which has no text}}
"tir.prim_func"() <{sym_name = "h", param_names = ["n"], attrs = {key = @symbol}, ret_type = none}> ({
^bb0(%n: i32):
  "tir.evaluate"(%n) : (i32) -> ()
}) : () -> ()

// -----
"te.func"() <{sym_name = "f", attrs = {}}> ({
  %A = "te.placeholder"() <{var_name = "A"}> : () -> !te.tensor<[8 : i32], f32>
  // expected-error@+1 {{'test.op' has no TE text}}
  %0 = "test.op"() : () -> i32
  "te.return"(%A) : (!te.tensor<[8 : i32], f32>) -> ()
}) : () -> ()
