// RUN: mir-opt %s -p lower-std-to-llvm -t mlir | filecheck %s

// Constants, loads, lanes and memory are those of i16; 0x3FC0 is 1.5.
// CHECK-LABEL: llvm.func internal @lanes(%x: !llvm.ptr, %s: i16) -> vector<16xi16>
// CHECK:         llvm.mlir.constant(16320 : i16) : i16
// CHECK:         %v = llvm.load {{%.*}} {alignment = 2 : i64} : !llvm.ptr -> vector<17xi16>
// CHECK-NEXT:    %w = llvm.shufflevector %v, %v [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] : vector<17xi16>
// CHECK:         llvm.insertelement {{%.*}}, %w{{.*}} : vector<16xi16>
func.func private @lanes(%x: memref<17xbf16>, %s: bf16) -> vector<16xbf16> {
  %c0 = arith.constant 0 : index
  %half = arith.constant 1.5 : bf16
  %big = arith.cmpf ogt, %s, %half : bf16
  %t = arith.select %big, %s, %half : bf16
  %v = vector.load %x[%c0] : memref<17xbf16>, vector<17xbf16>
  %w = vector.shuffle %v, %v [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16] : vector<17xbf16>, vector<17xbf16>
  %r = vector.insert %t, %w [3] : bf16 into vector<16xbf16>
  func.return %r : vector<16xbf16>
}

// A sign is a bit; the larger of two is found in f32, whose upper half it is.
// CHECK-LABEL: llvm.func internal @signs(%a: i16, %b: i16) -> i16
// CHECK:         llvm.xor %a, {{%.*}} : i16
// CHECK:         llvm.call_intrinsic "llvm.maximum"({{.*}}) : (f32, f32) -> f32
// CHECK-NEXT:    llvm.bitcast {{.*}} : f32 to i32
// CHECK-NEXT:    llvm.lshr
// CHECK-NEXT:    llvm.trunc {{.*}} : i32 to i16
// CHECK-NEXT:    llvm.return
func.func private @signs(%a: bf16, %b: bf16) -> bf16 {
  %n = arith.negf %a : bf16
  %m = arith.maximumf %n, %b : bf16
  func.return %m : bf16
}

// CHECK-LABEL: llvm.func internal @two(%c: i1, %a{{.*}}: i16) -> !llvm.struct<(i16, i16)>
func.func private @two(%c: i1, %a: bf16) -> (bf16, bf16) {
  %zero = arith.constant 0.0 : bf16
  cf.cond_br %c, ^end(%a : bf16), ^end(%zero : bf16)
^end(%r: bf16):
  func.return %r, %a : bf16, bf16
}

// CHECK-LABEL: llvm.func internal @caller
// CHECK:         llvm.call @two({{.*}}) : (i1, i16) -> !llvm.struct<(i16, i16)>
func.func private @caller(%c: i1, %a: bf16) -> bf16 {
  %r, %s = func.call @two(%c, %a) : (i1, bf16) -> (bf16, bf16)
  func.return %s : bf16
}
