// RUN: mir-opt %s -p 'lower-std-to-llvm{cpu=znver4}' -t mlir | filecheck %s

// An instruction for dot products takes bf16: the bits are cast where it stands.
// CHECK-LABEL: llvm.func internal @dot(%acc: vector<16xf32>, %a: vector<32xi16>, %b: vector<32xi16>) -> vector<16xf32>
// CHECK-NEXT:    [[A:%[0-9]+]] = llvm.bitcast %a : vector<32xi16> to vector<32xbf16>
// CHECK-NEXT:    [[B:%[0-9]+]] = llvm.bitcast %b : vector<32xi16> to vector<32xbf16>
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%acc, [[A]], [[B]])
func.func private @dot(%acc: vector<16xf32>, %a: vector<32xbf16>, %b: vector<32xbf16>) -> vector<16xf32> {
  %r = vector_ext.dot %acc, %a, %b unsigned [0, 0] : vector<16xf32>, vector<32xbf16>, vector<32xbf16>
  func.return %r : vector<16xf32>
}

// An instruction of LLVM's own computes in bf16, and gives it.
// CHECK-LABEL: llvm.func internal @own(%x: i16) -> i16
// CHECK-NEXT:    [[X:%[0-9]+]] = llvm.bitcast %x : i16 to bf16
// CHECK-NEXT:    %y = llvm.fneg [[X]] : bf16
// CHECK-NEXT:    [[Y:%y_[0-9]+]] = llvm.bitcast %y : bf16 to i16
// CHECK-NEXT:    llvm.return [[Y]] : i16
func.func private @own(%x: bf16) -> bf16 {
  %y = llvm.fneg %x : bf16
  func.return %y : bf16
}
