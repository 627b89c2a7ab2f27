// RUN: mir-opt %s --split-input-file --verify-diagnostics -p lower-std-to-llvm

// expected-error@below {{memref<?x?xf32> is passed as a bare pointer, which does not carry its strides}}
func.func @f(%m: memref<?x?xf32>) {
  func.return
}

// -----

func.func @f(%m: memref<?xf32>) -> index {
  %c0 = arith.constant 0 : index
  // expected-error@below {{the size of dimension 0 of memref<?xf32> is not known here}}
  %d = memref.dim %m, %c0 : memref<?xf32>
  func.return %d : index
}

// -----

func.func @f(%m: memref<8x8xf32, strided<[1, 8]>>, %i: index) {
  // expected-error@below {{a vector access needs a last dimension of stride 1, and that of memref<8x8xf32, strided<[1, 8]>> is 8}}
  %v = vector.load %m[%i, %i] : memref<8x8xf32, strided<[1, 8]>>, vector<4xf32>
  func.return
}

// -----

func.func @f(%m: memref<8xf32>, %i: index) {
  // expected-error@below {{memref.dim with a dimension that is not constant cannot be lowered}}
  %d = memref.dim %m, %i : memref<8xf32>
  func.return
}

// -----

func.func @f(%m: memref<8xf32>) {
  %c1 = arith.constant 1 : index
  // expected-error@below {{memref<8xf32> has no dimension 1}}
  %d = memref.dim %m, %c1 : memref<8xf32>
  func.return
}

// -----

func.func @f(%m: memref<8xf32>, %n: memref<8xf32>, %c: i1) {
  // expected-error@below {{a select between memrefs cannot be lowered}}
  %d = arith.select %c, %m, %n : memref<8xf32>
  func.return
}

// -----

// expected-error@below {{type tensor<2xf32> has no counterpart in LLVM}}
func.func @f(%t: tensor<2xf32>) {
  func.return
}

// -----

func.func @f(%n: index, %z: f32) -> f32 {
  // expected-error@below {{scf.parallel with a reduction cannot be lowered}}
  %r = "scf.parallel"(%n, %n, %n, %z) <{operandSegmentSizes = array<i32: 1, 1, 1, 1>}> ({
  ^bb0(%i: index):
    "scf.reduce"(%z) ({
    ^bb1(%a: f32, %b: f32):
      "scf.reduce.return"(%a) : (f32) -> ()
    }) : (f32) -> ()
  }) : (index, index, index, f32) -> f32
  func.return %r : f32
}

// -----

func.func @f(%m: memref<4xbf16>, %v: bf16, %i: index) {
  // expected-error@below {{memref.atomic_rmw of kind 0 on bf16 cannot be lowered}}
  %r = "memref.atomic_rmw"(%v, %m, %i) <{kind = 0 : i64}> : (bf16, memref<4xbf16>, index) -> bf16
  func.return
}

// -----

func.func @f(%n: index, %c: i1) {
  scf.if %c {
    // expected-error@below {{an alloca whose size is only known when running may not stand in a loop or branch}}
    %m = memref.alloca(%n) : memref<?xf32>
  }
  func.return
}
