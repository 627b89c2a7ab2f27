// RUN: mir-opt %s --split-input-file --verify-diagnostics -p lower-init-block,lower-match-buffer,flatten-buffer,inject-software-pipeline
// What MLIR text can hold, and no TVMScript: a pass says which rule it breaks.

"tir.prim_func"() <{sym_name = "init", param_names = ["A"], attrs = {}, ret_type = none}> ({
^bb0(%A: !tir.buffer<[8 : i32], f32, "global">):
  // expected-error@+1 {{T.init stands outside of a block}}
  "tir.init"() ({
  ^bb0:
  }) : () -> ()
}) : () -> ()

// -----

"tir.prim_func"() <{sym_name = "matched", param_names = ["A"], attrs = {}, ret_type = none}> ({
^bb0(%A: !tir.buffer<[8 : i32], f32, "global">):
  "tir.block"() <{operandSegmentSizes = array<i32: 0, 0, 0, 0>, block_name = "row", iter_names = [], iter_types = [], annotations = {}}> ({
    %0 = "tir.const"() <{value = 0 : i32}> : () -> i32
    %1 = "tir.const"() <{value = 4 : i32}> : () -> i32
    %2 = "tir.buffer_region"(%A, %0, %1) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tir.buffer<[8 : i32], f32, "global">, i32, i32) -> !tir.region
    %R = "tir.match_buffer"(%2) <{var_name = "R", stride_dims = [], offset_factor = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}> : (!tir.region) -> !tir.buffer<[4 : i32], f32, "global">
    %f = "tir.const"() <{value = "f"}> : () -> !tir.string
    // expected-error@+1 {{the matched buffer 'R' is used whole by 'tir.call'}}
    %3 = "tir.call"(%f, %R) <{intrinsic = "call_extern"}> : (!tir.string, !tir.buffer<[4 : i32], f32, "global">) -> i32
    "tir.evaluate"(%3) : (i32) -> ()
  }) : () -> ()
}) : () -> ()

// -----

"tir.prim_func"() <{sym_name = "flat", param_names = [], attrs = {}, ret_type = none}> ({
^bb0:
  %B = "tir.alloc_buffer"() <{var_name = "B", stride_dims = [], operandSegmentSizes = array<i32: 0, 0, 0, 0, 0>}> : () -> !tir.buffer<[4 : i32, 8 : i32], f32, "global">
  %f = "tir.const"() <{value = "f"}> : () -> !tir.string
  // expected-error@+1 {{buffer 'B' is used whole by 'tir.call'}}
  %0 = "tir.call"(%f, %B) <{intrinsic = "call_extern"}> : (!tir.string, !tir.buffer<[4 : i32, 8 : i32], f32, "global">) -> i32
  "tir.evaluate"(%0) : (i32) -> ()
}) : () -> ()

// -----

"tir.prim_func"() <{sym_name = "shared", param_names = ["A", "B", "C"], attrs = {}, ret_type = none}> ({
^bb0(%A: !tir.buffer<[8 : i32], f32, "global">, %B: !tir.buffer<[8 : i32], f32, "global">, %C: !tir.buffer<[8 : i32], f32, "global">):
  %0 = "tir.const"() <{value = 8 : i32}> : () -> i32
  %1 = "tir.const"() <{value = 0 : i32}> : () -> i32
  "tir.for"(%1, %0) <{var_name = "i", kind = "serial", annotations = {software_pipeline_stage = [0 : i32, 1 : i32], software_pipeline_order = [0 : i32, 1 : i32]}}> ({
  ^bb0(%i: i32):
    // expected-error@+1 {{statements of the software pipeline 'i' share a value}}
    %2 = "tir.load"(%A, %i) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (!tir.buffer<[8 : i32], f32, "global">, i32) -> f32
    "tir.store"(%B, %i, %2) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>}> : (!tir.buffer<[8 : i32], f32, "global">, i32, f32) -> ()
    "tir.store"(%C, %i, %2) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>}> : (!tir.buffer<[8 : i32], f32, "global">, i32, f32) -> ()
  }) : (i32, i32) -> ()
}) : () -> ()
