// RUN: xdsl-opt %s | mir-opt -f mlir -p apply-rules -t mir -o %t.mir && filecheck %s < %t.mir
// RUN: mir-run %t.mir --random 1

// CHECK:      def clamped(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
// CHECK-NEXT:   for i in range(4):
// CHECK-NEXT:     B[i] = T.max(T.min(A[i], T.float32(1)), T.float32(0))
builtin.module {
  tir.prim_func @clamped("A" %A: !tir.buffer<[4 : i32], f32, "global">, "B" %B: !tir.buffer<[4 : i32], f32, "global">) {
    %low = tir.const 0 : i32
    %high = tir.const 4 : i32
    tir.for "i" %i in (%low, %high) : i32 serial {
      %x = tir.load %A[%i] : !tir.buffer<[4 : i32], f32, "global"> -> f32
      %y = sat.clamp %x : f32 -> f32
      tir.store %y, %B[%i] : !tir.buffer<[4 : i32], f32, "global">, f32
    }
  }
  relay.func @main("x" %x: tensor<4xf32>) -> tensor<4xf32> {
    %y = relay.example.softshrink %x : (tensor<4xf32>) -> tensor<4xf32>
    %0 = relay.call_tir @clamped(%y) : (tensor<4xf32>) -> tensor<4xf32>
    relay.return %0 : tensor<4xf32>
  }
}
