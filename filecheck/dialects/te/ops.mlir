// RUN: mir-opt %s -t mlir | filecheck %s
// RUN: mir-opt %s -t mlir -o %t.mlir && xdsl-opt %t.mlir | mir-opt -f mlir -t mlir | diff %t.mlir -

// The MLIR form of every op of the te dialect; stock xdsl-opt reads and writes it too.

"te.func"() <{sym_name = "f", attrs = {}}> ({
  %n = "tir.var"() <{var_name = "n"}> : () -> i32
  %A = "te.placeholder"(%n) <{var_name = "A"}> : (i32) -> !te.tensor<[none, 4 : i32], f32>
  %zero = "tir.const"() <{value = 0 : i32}> : () -> i32
  %k = "te.reduce_axis"(%zero, %n) <{var_name = "k"}> : (i32, i32) -> i32
  %r = "te.comm_reducer"() <{reducer_name = "add"}> ({
  ^bb0(%x: f32, %y: f32):
    %sum = "tir.add"(%x, %y) : (f32, f32) -> f32
    "tir.yield"(%sum) : (f32) -> ()
  }, {
    %neutral = "tir.const"() <{value = 0.000000e+00 : f32}> : () -> f32
    "tir.yield"(%neutral) : (f32) -> ()
  }) : () -> !tir.reducer
  %B = "te.compute"() <{compute_name = "B", tag = "", attrs = {}, iter_names = ["i"], operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%i: i32):
    %e = "te.read"(%A, %k, %i) : (!te.tensor<[none, 4 : i32], f32>, i32, i32) -> f32
    %s = "te.reduce"(%e, %k, %r) <{kind = "custom", operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}> : (f32, i32, !tir.reducer) -> f32
    "tir.yield"(%s) : (f32) -> ()
  }) : () -> !te.tensor<[4 : i32], f32>
  %state = "te.placeholder"(%n) <{var_name = "state"}> : (i32) -> !te.tensor<[none, 4 : i32], f32>
  %init = "te.compute"() <{compute_name = "init", tag = "", attrs = {}, iter_names = ["t", "j"], operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb1(%t: i32, %j: i32):
    %first = "te.read"(%B, %j) : (!te.tensor<[4 : i32], f32>, i32) -> f32
    "tir.yield"(%first) : (f32) -> ()
  }) : () -> !te.tensor<[1 : i32, 4 : i32], f32>
  %update = "te.compute"(%n) <{compute_name = "update", tag = "", attrs = {}, iter_names = ["t", "j"], operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb2(%now: i32, %at: i32):
    %one = "tir.const"() <{value = 1 : i32}> : () -> i32
    %before = "tir.sub"(%now, %one) : (i32, i32) -> i32
    %value = "te.read"(%state, %before, %at) : (!te.tensor<[none, 4 : i32], f32>, i32, i32) -> f32
    "tir.yield"(%value) : (f32) -> ()
  }) : (i32) -> !te.tensor<[none, 4 : i32], f32>
  %S = "te.scan"(%init, %update, %state, %A) <{scan_name = "S", tag = "", attrs = {}, operandSegmentSizes = array<i32: 1, 1, 1, 1>}> : (!te.tensor<[1 : i32, 4 : i32], f32>, !te.tensor<[none, 4 : i32], f32>, !te.tensor<[none, 4 : i32], f32>, !te.tensor<[none, 4 : i32], f32>) -> !te.tensor<[none, 4 : i32], f32>
  %E = "te.extern"(%S) <{extern_name = "E", tag = "", attrs = {}, operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb3(%in: !tir.buffer<[none, 4 : i32], f32, "global">, %out: !tir.buffer<[4 : i32], f32, "global">):
    %name = "tir.const"() <{value = "f"}> : () -> !tir.string
    %status = "tir.call"(%name, %in, %out) <{intrinsic = "call_packed"}> : (!tir.string, !tir.buffer<[none, 4 : i32], f32, "global">, !tir.buffer<[4 : i32], f32, "global">) -> i32
    "tir.evaluate"(%status) : (i32) -> ()
  }) : (!te.tensor<[none, 4 : i32], f32>) -> !te.tensor<[4 : i32], f32>
  "te.return"(%A, %E) : (!te.tensor<[none, 4 : i32], f32>, !te.tensor<[4 : i32], f32>) -> ()
}) : () -> ()

// CHECK: te.func @f() {
// CHECK: %A = te.placeholder "A" %n : i32 -> !te.tensor<[none, 4 : i32], f32>
// CHECK: te.reduce_axis "k" from %zero extent %n : (i32, i32) -> i32
// CHECK: te.comm_reducer "add" -> !tir.reducer {
// CHECK: } identity {
// CHECK: te.compute "B" ["i"] -> !te.tensor<[4 : i32], f32> {
// CHECK: te.read %A[%k, %i] : !te.tensor<[none, 4 : i32], f32> -> f32
// CHECK: te.reduce "custom"(%e) over %k by %r : !tir.reducer : f32 over i32 -> f32
// CHECK: te.scan "S" init %init : {{.*}} update %update : {{.*}} state %state : {{.*}} inputs %A : {{.*}} -> !te.tensor<[none, 4 : i32], f32>
// CHECK: te.extern "E" inputs %S : !te.tensor<[none, 4 : i32], f32> -> !te.tensor<[4 : i32], f32> {
// CHECK: te.return %A, %E : !te.tensor<[none, 4 : i32], f32>, !te.tensor<[4 : i32], f32>
// CHECK-NEXT: }
