// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// CHECK-LABEL: llvm.func @instructions(%x: f32) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   %a = llvm.call_intrinsic "llvm.sqrt"(%x) : (f32) -> f32
// CHECK-NEXT:   %b = llvm.call_intrinsic "llvm.floor"(%a) : (f32) -> f32
// CHECK-NEXT:   %c = llvm.call_intrinsic "llvm.fma"(%a, %b, %x) : (f32, f32, f32) -> f32
// CHECK-NEXT:   llvm.return %c : f32
func.func @instructions(%x: f32) -> f32 {
  %a = math.sqrt %x : f32
  %b = math.floor %a : f32
  %c = math.fma %a, %b, %x : f32
  func.return %c : f32
}

// One private function for each number of lanes, however often it is called.
// CHECK-LABEL: llvm.func @library(%x_1: f32, %v: vector<8xf32>) -> f32 attributes {no_unwind} {
// CHECK-NEXT:   %a_1 = llvm.call @mirstack.exp.f32(%x_1) : (f32) -> f32
// CHECK-NEXT:   %b_1 = llvm.call @mirstack.exp.f32(%a_1) : (f32) -> f32
// CHECK-NEXT:   %w = llvm.call @mirstack.exp.v8f32(%v) : (vector<8xf32>) -> vector<8xf32>
// CHECK-NEXT:   llvm.return %b_1 : f32
func.func @library(%x: f32, %v: vector<8xf32>) -> f32 {
  %a = math.exp %x : f32
  %b = math.exp %a : f32
  %w = math.exp %v : vector<8xf32>
  func.return %b : f32
}

// f16 goes by way of f32, f64 to the C library.
// CHECK-LABEL: llvm.func @widths(%h: f16, %d: f64) -> f64 attributes {no_unwind} {
// CHECK-NEXT:   [[V0:%[0-9]+]] = llvm.fpext %h : f16 to f32
// CHECK-NEXT:   [[V1:%[0-9]+]] = llvm.call @mirstack.exp.f32([[V0]]) : (f32) -> f32
// CHECK-NEXT:   %a_2 = llvm.fptrunc [[V1]] : f32 to f16
// CHECK-NEXT:   %b_2 = llvm.call @pow(%d, %d) : (f64, f64) -> f64
// CHECK-NEXT:   llvm.return %b_2 : f64
// CHECK-LABEL: llvm.func @pow(f64, f64) -> f64
func.func @widths(%h: f16, %d: f64) -> f64 {
  %a = math.exp %h : f16
  %b = math.powf %d, %d : f64
  func.return %b : f64
}

// CHECK-COUNT-2: llvm.func internal @mirstack.exp.
// CHECK-NOT: @mirstack.exp.
