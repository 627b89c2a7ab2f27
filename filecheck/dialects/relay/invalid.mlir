// RUN: mir-opt %s --split-input-file --verify-diagnostics

// Functions.
// expected-error@+1 {{'relay.func' does not verify: function @names has 1 parameter and 2 names}}
"relay.func"() <{sym_name = "names", param_names = ["x", "y"], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>):
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
// expected-error@+1 {{'relay.func' does not verify: function @twice has two parameters called 'x'}}
"relay.func"() <{sym_name = "twice", param_names = ["x", "x"], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
// expected-error@+1 {{'relay.func' does not verify: function @generics has two type parameters called 'A'}}
"relay.func"() <{sym_name = "generics", param_names = ["x"], type_params = ["A", "A"], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>):
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
// expected-error@+1 {{'relay.func' does not verify: the result of function @result must be int32, not float32: dtype int32 against float32}}
"relay.func"() <{sym_name = "result", param_names = ["x"], type_params = [], attrs = {}, ret_type = tensor<i32>}> ({
^bb0(%x: tensor<f32>):
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
// expected-error@+1 {{'relay.func' does not verify: function @no_return must end with a relay.return}}
"relay.func"() <{sym_name = "no_return", param_names = ["x"], type_params = [], attrs = {}, ret_type = tensor<i32>}> ({
^bb0(%x: tensor<f32>):
  // expected-error@+1 {{'relay.let' ends the body of 'relay.func', but is not a terminator}}
  %0 = "relay.let"(%x) <{var_name = "y"}> : (tensor<f32>) -> tensor<f32>
}) : () -> ()

// -----

// Values.
"relay.func"() <{sym_name = "main", param_names = ["x", "f"], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>, %f: !relay.func_type<[], [tensor<f32>], tensor<f32>>):
  // expected-error@+1 {{'relay.constant' does not verify: a constant of shape () cannot have the type Tensor[(2), float32]}}
  %0 = "relay.constant"() <{value = #mirstack.array<"float32", [], "AACAPw==">}> : () -> tensor<2xf32>
  // expected-error@+1 {{'relay.let' does not verify: the variable %y must be int32, not float32: dtype int32 against float32}}
  %1 = "relay.let"(%x) <{var_name = "y"}> : (tensor<f32>) -> tensor<i32>
  // expected-error@+1 {{'relay.tuple' does not verify: the tuple must be (float32,), not (int32,): field 0: dtype float32 against int32}}
  %2 = "relay.tuple"(%x) : (tensor<f32>) -> tuple<tensor<i32>>
  %3 = "relay.tuple"(%x) : (tensor<f32>) -> tuple<tensor<f32>>
  // expected-error@+1 {{'relay.tuple_get_item' does not verify: a tuple of 1 field has no field 1}}
  %4 = "relay.tuple_get_item"(%3) <{index = 1 : i64}> : (tuple<tensor<f32>>) -> tensor<f32>
  // expected-error@+1 {{'relay.tuple_get_item' does not verify: only a tuple has fields: .0 of float32}}
  %5 = "relay.tuple_get_item"(%x) <{index = 0 : i64}> : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.call' does not verify: only a function can be called, not float32}}
  %6 = "relay.call"(%x) <{type_args = [], attrs = {}}> : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.call' does not verify: the function takes 1 argument, not 0}}
  %7 = "relay.call"(%f) <{type_args = [], attrs = {}}> : (!relay.func_type<[], [tensor<f32>], tensor<f32>>) -> tensor<f32>
  // expected-error@+1 {{'relay.call' does not verify: the function takes 0 type arguments, not 1}}
  %8 = "relay.call"(%f, %x) <{type_args = [tensor<f32>], attrs = {}}> : (!relay.func_type<[], [tensor<f32>], tensor<f32>>, tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.call' does not verify: the result of the function must be float32, not int32: dtype float32 against int32}}
  %9 = "relay.call"(%f, %x) <{type_args = [], attrs = {}}> : (!relay.func_type<[], [tensor<f32>], tensor<f32>>, tensor<f32>) -> tensor<i32>
  // expected-error@+1 {{'relay.call_global' does not verify: @kernel is not a Relay function but a 'tir.prim_func'; write call_tir(@kernel, …)}}
  %10 = "relay.call_global"(%x) <{callee = @kernel, type_args = [], attrs = {}}> : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.call_global' does not verify: there is no function @maine; did you mean @main?}}
  %11 = "relay.call_global"(%x) <{callee = @maine, type_args = [], attrs = {}}> : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.call_tir' does not verify: call_tir calls a TIR or TE function, but @main is a 'relay.func'; write @main(…)}}
  %12 = "relay.call_tir"(%x) <{callee = @main}> : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.call_tir' does not verify: there is no function @nowhere}}
  %13 = "relay.call_tir"(%x) <{callee = @nowhere}> : (tensor<f32>) -> tensor<f32>
  // expected-error@+1 {{'relay.global_ref' does not verify: there is no function @nowhere}}
  %14 = "relay.global_ref"() <{symbol = @nowhere}> : () -> tensor<f32>
  // expected-error@+1 {{'relay.ref' does not verify: the reference must be ref(float32), not ref(int32): dtype float32 against int32}}
  %15 = "relay.ref"(%x) : (tensor<f32>) -> !relay.ref_type<tensor<i32>>
  // expected-error@+1 {{'relay.fn' does not verify: a local function with a self_name takes itself as its first argument}}
  %16 = "relay.fn"() <{param_names = [], type_params = [], attrs = {}, ret_type = tensor<f32>, self_name = "f"}> ({
    "relay.return"(%x) : (tensor<f32>) -> ()
  }) : () -> !relay.func_type<[], [], tensor<f32>>
  // expected-error@+1 {{'relay.if' does not verify: the condition of 'if' must be bool, not float32: dtype bool against float32}}
  %17 = "relay.if"(%x) ({
    "relay.return"(%x) : (tensor<f32>) -> ()
  }, {
    "relay.return"(%x) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
"tir.prim_func"() <{sym_name = "kernel", param_names = ["n"], attrs = {}, ret_type = none}> ({
^bb0(%n: i32):
}) : () -> ()

// -----

// Data types.
// expected-error@+1 {{'relay.type_data' does not verify: 1 constructors have 0 lists of fields}}
"relay.type_data"() <{sym_name = "Lists", type_params = [], constructor_names = ["Cons"], constructor_fields = []}> : () -> ()
// expected-error@+1 {{'relay.type_data' does not verify: the constructor 'Once' is declared twice}}
"relay.type_data"() <{sym_name = "Twice", type_params = [], constructor_names = ["Once", "Once"], constructor_fields = [[], []]}> : () -> ()
"relay.type_data"() <{sym_name = "Pair", type_params = [], constructor_names = ["Two"], constructor_fields = [[tensor<f32>, tensor<f32>]]}> : () -> ()
"relay.func"() <{sym_name = "main", param_names = ["x", "p"], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>, %p: !relay.adt<"Pair", []>):
  // expected-error@+1 {{'relay.construct' does not verify: there is no data type 'Nowhere' in the module}}
  %0 = "relay.construct"(%x) <{type_name = "Nowhere", constructor = "Two"}> : (tensor<f32>) -> !relay.adt<"Nowhere", []>
  // expected-error@+1 {{'relay.construct' does not verify: the data type 'Pair' has no constructor 'Three'}}
  %1 = "relay.construct"(%x) <{type_name = "Pair", constructor = "Three"}> : (tensor<f32>) -> !relay.adt<"Pair", []>
  // expected-error@+1 {{'relay.construct' does not verify: Two takes 2 arguments, not 1}}
  %2 = "relay.construct"(%x) <{type_name = "Pair", constructor = "Two"}> : (tensor<f32>) -> !relay.adt<"Pair", []>
  // expected-error@+1 {{'relay.match' does not verify: a match needs one clause or more}}
  %3 = "relay.match"(%p) <{patterns = [], complete = false}> : (!relay.adt<"Pair", []>) -> tensor<f32>
  // expected-error@+1 {{'relay.match' does not verify: a match of 1 clause has 0 patterns}}
  %4 = "relay.match"(%p) <{patterns = [], complete = false}> ({
    "relay.return"(%x) : (tensor<f32>) -> ()
  }) : (!relay.adt<"Pair", []>) -> tensor<f32>
  // expected-error@+1 {{'relay.match' does not verify: clause 0 binds 0 variables, its block takes 1}}
  %5 = "relay.match"(%p) <{patterns = [#relay.pattern_wildcard], complete = false}> ({
  ^bb0(%a: tensor<f32>):
    "relay.return"(%x) : (tensor<f32>) -> ()
  }) : (!relay.adt<"Pair", []>) -> tensor<f32>
  // expected-error@+1 {{'relay.match' does not verify: Two has 2 fields, its pattern 1}}
  %6 = "relay.match"(%p) <{patterns = [#relay.pattern_constructor<"Pair", "Two", [#relay.pattern_wildcard]>], complete = false}> ({
    "relay.return"(%x) : (tensor<f32>) -> ()
  }) : (!relay.adt<"Pair", []>) -> tensor<f32>
  // expected-error@+1 {{'relay.match' does not verify: there is no data type 'Nowhere' in the module}}
  %7 = "relay.match"(%p) <{patterns = [#relay.pattern_constructor<"Nowhere", "Two", []>], complete = false}> ({
    "relay.return"(%x) : (tensor<f32>) -> ()
  }) : (!relay.adt<"Pair", []>) -> tensor<f32>
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()

// -----

"relay.func"() <{sym_name = "same", param_names = ["x"], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>):
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
// expected-error@+1 {{'same' is defined twice}}
"relay.func"() <{sym_name = "same", param_names = ["x"], type_params = [], attrs = {}, ret_type = tensor<f32>}> ({
^bb0(%x: tensor<f32>):
  "relay.return"(%x) : (tensor<f32>) -> ()
}) : () -> ()
