// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// CHECK-LABEL: llvm.func @for(%n: i64, %x: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   %c0 = llvm.mlir.constant(0) : i64
// CHECK-NEXT:   %c1 = llvm.mlir.constant(1) : i64
// CHECK-NEXT:   llvm.br ^bb1(%c0, %x : i64, f32)
// CHECK-NEXT:   ^bb1(%i: i64, %s: f32):
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.icmp "slt" %i, %n : i64
// CHECK-NEXT:   llvm.cond_br [[V0]], ^bb2, ^bb3
// CHECK-NEXT:   ^bb2:
// CHECK-NEXT:   %t = llvm.fadd %s, %x : f32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.add %i, %c1 overflow<nsw> : i64
// CHECK-NEXT:   llvm.br ^bb1([[V1]], %t : i64, f32) {loop_annotation = #llvm_ext.loop<"unroll.count" = 2>}
// CHECK-NEXT:   ^bb3:
// CHECK-NEXT:   llvm.return %s : f32
func.func @for(%n: index, %x: f32) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (f32) {
    %t = arith.addf %s, %x : f32
    scf.yield %t : f32
  } {loop_annotation = #llvm_ext.loop<"unroll.count" = 2>}
  func.return %r : f32
}

// CHECK-LABEL: llvm.func @if(%c: i1, %x_1: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   llvm.cond_br %c, ^bb1, ^bb2
// CHECK-NEXT:   ^bb1:
// CHECK-NEXT:   %y = llvm.fneg %x_1 : f32
// CHECK-NEXT:   llvm.br ^bb3(%y : f32)
// CHECK-NEXT:   ^bb2:
// CHECK-NEXT:   llvm.br ^bb3(%x_1 : f32)
// CHECK-NEXT:   ^bb3(%r: f32):
// CHECK-NEXT:   llvm.return %r : f32
func.func @if(%c: i1, %x: f32) -> f32 {
  %r = scf.if %c -> (f32) {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  } else {
    scf.yield %x : f32
  }
  func.return %r : f32
}

// CHECK-LABEL: llvm.func @while(%x_2: i64) -> i64 attributes {no_unwind} {
// CHECK-NEXT:   %one = llvm.mlir.constant(1) : i64
// CHECK-NEXT:   llvm.br ^bb1(%x_2 : i64)
// CHECK-NEXT:   ^bb1(%v: i64):
// CHECK-NEXT:   %go = llvm.icmp "sgt" %v, %one : i64
// CHECK-NEXT:   llvm.cond_br %go, ^bb2(%v : i64), ^bb3(%v : i64)
// CHECK-NEXT:   ^bb2(%v_1: i64):
// CHECK-NEXT:   %w = llvm.sub %v_1, %one : i64
// CHECK-NEXT:   llvm.br ^bb1(%w : i64)
// CHECK-NEXT:   ^bb3(%r_1: i64):
// CHECK-NEXT:   llvm.return %r_1 : i64
func.func @while(%x: i64) -> i64 {
  %one = arith.constant 1 : i64
  %r = scf.while (%v = %x) : (i64) -> i64 {
    %go = arith.cmpi sgt, %v, %one : i64
    scf.condition(%go) %v : i64
  } do {
  ^bb0(%v: i64):
    %w = arith.subi %v, %one : i64
    scf.yield %w : i64
  }
  func.return %r : i64
}

// CHECK-LABEL: llvm.func @switch(%x_3: i32) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   %z = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   "llvm_ext.switch"(%x_3, %x_3) [^bb2, ^bb1] <{case_values = array<i64: 7>, case_operand_segments = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()
// CHECK-NEXT:   ^bb1:
// CHECK-NEXT:   llvm.br ^bb2(%z : i32)
// CHECK-NEXT:   ^bb2(%r_2: i32):
// CHECK-NEXT:   llvm.return %r_2 : i32
func.func @switch(%x: i32) -> i32 {
  cf.switch %x : i32, [
    default: ^done(%x : i32),
    7: ^other
  ]
^other:
  %z = arith.constant 0 : i32
  cf.br ^done(%z : i32)
^done(%r: i32):
  func.return %r : i32
}

// A failed check leaves the function with a status, and the caller with it.
// CHECK-LABEL: llvm.func internal @check(%ok: i1) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant({{[0-9]+}} : i32) : i32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   llvm.cond_br %ok, ^bb1, ^bb2([[V0]] : i32)
// CHECK-NEXT:   ^bb1:
// CHECK-NEXT:   llvm.return [[V1]] : i32
// CHECK-NEXT:   ^bb2([[V2:%[0-9]+]]: i32):
// CHECK-NEXT:   llvm.return [[V2]] : i32
func.func private @check(%ok: i1) {
  cf.assert %ok, "must hold"
  func.return
}

// CHECK-LABEL: llvm.func @caller(%ok_1: i1) -> i32 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.mlir.constant(0 : i32) : i32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.call @check(%ok_1) : (i1) -> i32
// CHECK-NEXT:   [[V2:%[0-9]+]] = llvm.icmp "eq" [[V1]], [[V0]] : i32
// CHECK-NEXT:   llvm.cond_br [[V2]], ^bb1, ^bb2([[V1]] : i32)
// CHECK-NEXT:   ^bb1:
// CHECK-NEXT:   llvm.return [[V0]] : i32
// CHECK-NEXT:   ^bb2([[V3:%[0-9]+]]: i32):
// CHECK-NEXT:   llvm.return [[V3]] : i32
func.func @caller(%ok: i1) {
  func.call @check(%ok) : (i1) -> ()
  func.return
}
