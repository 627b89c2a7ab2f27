// RUN: mir-opt %s --split-input-file --verify-diagnostics

// Functions.
// expected-error@+1 {{'tir.prim_func' does not verify: function 'names' has 1 parameter and 2 names}}
"tir.prim_func"() <{sym_name = "names", param_names = ["a", "b"], attrs = {}, ret_type = none}> ({
^bb0(%n: i32):
}) : () -> ()
// expected-error@+1 {{'tir.prim_func' does not verify: parameter 'A' has a symbolic shape: take a T.handle and T.match_buffer it}}
"tir.prim_func"() <{sym_name = "symbolic", param_names = ["A"], attrs = {}, ret_type = none}> ({
^bb0(%A: !tir.buffer<[none], f32, "global">):
}) : () -> ()

// -----

// Loops, blocks and branches.
"tir.prim_func"() <{sym_name = "statements", param_names = ["n", "x"], attrs = {}, ret_type = none}> ({
^bb0(%n: i32, %x: f32):
  %m = "tir.const"() <{value = 8 : i64}> : () -> i64
  // expected-error@+1 {{'tir.for' does not verify: loop 'i' has the unknown kind 'sideways'; a loop is serial, parallel, vectorized, unrolled, thread_binding}}
  "tir.for"(%n, %n) <{var_name = "i", kind = "sideways", annotations = {}}> ({
  ^bb0(%i: i32):
  }) : (i32, i32) -> ()
  // expected-error@+1 {{'tir.for' does not verify: loop 'i' is bound to no thread}}
  "tir.for"(%n, %n) <{var_name = "i", kind = "thread_binding", annotations = {}}> ({
  ^bb0(%i: i32):
  }) : (i32, i32) -> ()
  // expected-error@+1 {{'tir.for' does not verify: loop 'i' is not thread_binding, yet names a thread}}
  "tir.for"(%n, %n) <{var_name = "i", kind = "serial", annotations = {}, thread = "threadIdx.x"}> ({
  ^bb0(%i: i32):
  }) : (i32, i32) -> ()
  // expected-error@+1 {{'tir.for' does not verify: loop 'i': start, extent and variable have different dtypes: int32, int64}}
  "tir.for"(%n, %m) <{var_name = "i", kind = "serial", annotations = {}}> ({
  ^bb0(%i: i32):
  }) : (i32, i64) -> ()
  // expected-error@+1 {{'tir.block' does not verify: block 'B' has 1 axis, but not as many names, kinds, domains and bindings}}
  "tir.block"(%n, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>, block_name = "B", iter_names = ["vi", "vj"], iter_types = ["S"], annotations = {}}> ({
  ^bb0(%vi: i32):
  }) : (i32, i32, i32) -> ()
  // expected-error@+1 {{'tir.block' does not verify: axis 'vi' of block 'C' has the unknown kind 'X'}}
  "tir.block"(%n, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>, block_name = "C", iter_names = ["vi"], iter_types = ["X"], annotations = {}}> ({
  ^bb0(%vi: i32):
  }) : (i32, i32, i32) -> ()
  // expected-error@+1 {{'tir.block' does not verify: axis 'vi' of block 'D' has a domain of dtype int32, but is bound to a value of dtype int64}}
  "tir.block"(%n, %n, %m) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>, block_name = "D", iter_names = ["vi"], iter_types = ["S"], annotations = {}}> ({
  ^bb0(%vi: i32):
  }) : (i32, i32, i64) -> ()
  // expected-error@+1 {{'tir.block' does not verify: the T.where of block 'E' must be bool, not float32}}
  "tir.block"(%x) <{operandSegmentSizes = array<i32: 0, 0, 0, 1>, block_name = "E", iter_names = [], iter_types = [], annotations = {}}> ({
  ^bb0:
  }) : (f32) -> ()
  // expected-error@+1 {{'tir.if' does not verify: the condition of 'if' must be bool, not int32}}
  "tir.if"(%n) ({
  ^bb0:
  }, {
  }) : (i32) -> ()
  // expected-error@+1 {{'tir.cast' does not verify: a cast is of a number, not of a buffer}}
  %bad = "tir.cast"(%x) : (f32) -> !tir.buffer<[4], f32, "global">
  // expected-error@+1 {{'tir.assert' does not verify: the condition of 'assert' must be bool, not float32}}
  "tir.assert"(%x) <{message = "text"}> : (f32) -> ()
  // expected-error@+1 {{'tir.iter_var' does not verify: T.iter_var takes a T.Range of a start and an extent, or None}}
  %v = "tir.iter_var"(%n, %n) <{iter_type = "ThreadIndex", thread_tag = "threadIdx.x"}> : (i32, i32) -> !tir.token
}) : () -> ()

// -----

// Buffers.
"tir.prim_func"() <{sym_name = "buffers", param_names = ["a", "n", "x"], attrs = {}, ret_type = none}> ({
^bb0(%a: !tir.handle<none, "">, %n: i32, %x: f32):
  %v = "tir.broadcast"(%n) : (i32) -> vector<4xi32>
  %y = "tir.const"() <{value = 1.0 : f16}> : () -> f16
  // expected-error@+1 {{'tir.match_buffer' does not verify: buffer 'A' has 1 symbolic extent, but 0 values for them}}
  %0 = "tir.match_buffer"(%a) <{var_name = "A", stride_dims = [], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!tir.handle<none, "">) -> !tir.buffer<[none, 4 : i32], f32, "global">
  // expected-error@+1 {{'tir.match_buffer' does not verify: buffer 'B' has 2 dimensions, but 3 strides}}
  %1 = "tir.match_buffer"(%a) <{var_name = "B", stride_dims = [1 : i32, 1 : i32, 1 : i32], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!tir.handle<none, "">) -> !tir.buffer<[4 : i32, 4 : i32], f32, "global">
  // expected-error@+1 {{'tir.match_buffer' does not verify: buffer 'C' has 1 symbolic stride, but 0 values for them}}
  %2 = "tir.match_buffer"(%a) <{var_name = "C", stride_dims = [none], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!tir.handle<none, "">) -> !tir.buffer<[4 : i32], f32, "global">
  %A = "tir.match_buffer"(%a) <{var_name = "D", stride_dims = [], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!tir.handle<none, "">) -> !tir.buffer<[4 : i32, 4 : i32], f32, "global">
  // expected-error@+1 {{'tir.buffer_get' does not verify: a buffer has no field 'colour'; it has data, elem_offset, shape and strides}}
  %3 = "tir.buffer_get"(%A) <{field = "colour"}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">) -> i32
  // expected-error@+1 {{'tir.buffer_get' does not verify: 'shape' is indexed by a dimension}}
  %4 = "tir.buffer_get"(%A) <{field = "shape"}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">) -> i32
  // expected-error@+1 {{'tir.buffer_get' does not verify: 'elem_offset' is one value}}
  %5 = "tir.buffer_get"(%A) <{field = "elem_offset", dim = 0 : i64}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">) -> i32
  // expected-error@+1 {{'tir.buffer_get' does not verify: dimension 2 of 'shape' is outside the buffer's 2 dimensions}}
  %6 = "tir.buffer_get"(%A) <{field = "shape", dim = 2 : i64}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">) -> i32
  // expected-error@+1 {{'tir.buffer_region' does not verify: a region of 'D' needs 2 ranges, not 1}}
  %7 = "tir.buffer_region"(%A, %n, %n) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">, i32, i32) -> !tir.region
  // expected-error@+1 {{'tir.load' does not verify: buffer 'D' has 2 dimensions, but is accessed with 1 index}}
  %8 = "tir.load"(%A, %n) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">, i32) -> f32
  // expected-error@+1 {{'tir.load' does not verify: index 1 of 'D' has dtype float32; an index is an integer}}
  %9 = "tir.load"(%A, %n, %x) <{operandSegmentSizes = array<i32: 1, 2, 0>}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">, i32, f32) -> f32
  // expected-error@+1 {{'tir.load' does not verify: index 0 of 'D' is a vector; only the last index may be one}}
  %10 = "tir.load"(%A, %v, %n) <{operandSegmentSizes = array<i32: 1, 2, 0>}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">, vector<4xi32>, i32) -> f32
  // expected-error@+1 {{'tir.load' does not verify: a load from 'D' gives float32, not float16}}
  %11 = "tir.load"(%A, %n, %n) <{operandSegmentSizes = array<i32: 1, 2, 0>}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">, i32, i32) -> f16
  // expected-error@+1 {{'tir.store' does not verify: 'D' holds float32 here, but the value stored is float16; write a T.Cast}}
  "tir.store"(%A, %n, %n, %y) <{operandSegmentSizes = array<i32: 1, 2, 0, 1>}> : (!tir.buffer<[4 : i32, 4 : i32], f32, "global">, i32, i32, f16) -> ()
}) : () -> ()

// -----

// Expressions.
"tir.prim_func"() <{sym_name = "expressions", param_names = ["n", "x", "c"], attrs = {}, ret_type = none}> ({
^bb0(%n: i32, %x: f32, %c: i1):
  // expected-error@+1 {{'tir.let' does not verify: 'a' has type float32, but its value is int32}}
  %0 = "tir.let"(%n) <{var_name = "a"}> : (i32) -> f32
  // expected-error@+1 {{'tir.add' does not verify: operands of '+' have different dtypes: int32 and float32; write a T.Cast}}
  %1 = "tir.add"(%n, %x) : (i32, f32) -> i32
  // expected-error@+1 {{'tir.add' does not verify: '+' on int32 gives int32, not float32}}
  %2 = "tir.add"(%n, %n) : (i32, i32) -> f32
  // expected-error@+1 {{'tir.lt' does not verify: '<' on int32 gives bool, not int32}}
  %3 = "tir.lt"(%n, %n) : (i32, i32) -> i32
  // expected-error@+1 {{'tir.and' does not verify: operands of 'and' must be bool, not int32}}
  %4 = "tir.and"(%n, %n) : (i32, i32) -> i32
  // expected-error@+1 {{'tir.not' does not verify: the operand of 'not' must be bool, not int32}}
  %5 = "tir.not"(%n) : (i32) -> i1
  // expected-error@+1 {{'tir.select' does not verify: the condition of T.Select must be bool, not int32}}
  %6 = "tir.select"(%n, %x, %x) : (i32, f32, f32) -> f32
  // expected-error@+1 {{'tir.select' does not verify: the values of T.Select have different dtypes: float32 and int32}}
  %7 = "tir.select"(%c, %x, %n) : (i1, f32, i32) -> f32
  // expected-error@+1 {{'tir.if_then_else' does not verify: the condition of T.if_then_else must be bool, not int32}}
  %8 = "tir.if_then_else"(%n) ({
    "tir.yield"(%x) : (f32) -> ()
  }, {
    "tir.yield"(%x) : (f32) -> ()
  }) : (i32) -> f32
  // expected-error@+1 {{'tir.if_then_else' does not verify: both sides of T.if_then_else must yield one value of its dtype}}
  %9 = "tir.if_then_else"(%c) ({
    "tir.yield"(%n) : (i32) -> ()
  }, {
    "tir.yield"(%x) : (f32) -> ()
  }) : (i1) -> f32
  // expected-error@+1 {{'tir.cast' does not verify: a cast keeps the number of lanes: int32 to float32x4}}
  %10 = "tir.cast"(%n) : (i32) -> vector<4xf32>
  // expected-error@+1 {{'tir.ramp' does not verify: base and stride of T.Ramp have different dtypes: int32 and float32}}
  %11 = "tir.ramp"(%n, %x) : (i32, f32) -> vector<4xi32>
  // expected-error@+1 {{'tir.broadcast' does not verify: T.Broadcast keeps the element dtype}}
  %12 = "tir.broadcast"(%n) : (i32) -> vector<4xf32>
  // expected-error@+1 {{'tir.shuffle' does not verify: index 7 of T.Shuffle is outside its 4 elements}}
  %13 = "tir.shuffle"(%12) <{indices = [#builtin.int<7>]}> : (vector<4xf32>) -> f32
}) : () -> ()
