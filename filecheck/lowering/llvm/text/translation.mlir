// RUN: mir-opt %s -t llvm | filecheck %s

// Block arguments are phis, constants are written where they are used, loops carry their hints.
// CHECK-LABEL: define i64 @sum(i64 %n_0) nounwind {
// CHECK-NEXT:  b0:
// CHECK-NEXT:    br label %b1
// CHECK-NEXT:  b1:
// CHECK-NEXT:    [[I:%i_[0-9]+]] = phi i64 [ 0, %b0 ], [ [[NEXT:%next_[0-9]+]], %b2 ]
// CHECK-NEXT:    [[S:%s_[0-9]+]] = phi i64 [ 0, %b0 ], [ [[T:%t_[0-9]+]], %b2 ]
// CHECK-NEXT:    [[GO:%go_[0-9]+]] = icmp slt i64 [[I]], %n_0
// CHECK-NEXT:    br i1 [[GO]], label %b2, label %b3
// CHECK-NEXT:  b2:
// CHECK-NEXT:    [[T]] = add i64 [[S]], [[I]]
// CHECK-NEXT:    [[NEXT]] = add nsw i64 [[I]], 1
// CHECK-NEXT:    br label %b1, !llvm.loop !0
// CHECK-NEXT:  b3:
// CHECK-NEXT:    ret i64 [[S]]
// CHECK-NEXT:  }
llvm.func @sum(%n: i64) -> i64 attributes {no_unwind} {
  %zero = llvm.mlir.constant(0) : i64
  %one = llvm.mlir.constant(1) : i64
  llvm.br ^bb1(%zero, %zero : i64, i64)
^bb1(%i: i64, %s: i64):
  %go = llvm.icmp "slt" %i, %n : i64
  llvm.cond_br %go, ^bb2, ^bb3
^bb2:
  %t = llvm.add %s, %i : i64
  %next = llvm.add %i, %one overflow<nsw> : i64
  llvm.br ^bb1(%next, %t : i64, i64) {loop_annotation = #llvm_ext.loop<"unroll.count" = 4>}
^bb3:
  llvm.return %s : i64
}

// CHECK-LABEL: define void @memory(ptr noalias align 64 %p_0, i64 %i_1)
// CHECK:         [[E:%e_[0-9]+]] = getelementptr inbounds float, ptr %p_0, i64 %i_1
// CHECK-NEXT:    [[V:%v_[0-9]+]] = load float, ptr [[E]], align 4
// CHECK-NEXT:    [[F:%f_[0-9]+]] = call float @llvm.fma.f32(float [[V]], float [[V]], float 0x3FB99999A0000000)
// CHECK-NEXT:    store float [[F]], ptr [[E]], align 4, !nontemporal
// CHECK-NEXT:    {{%o_[0-9]+}} = atomicrmw add ptr %p_0, i64 %i_1 acq_rel
// CHECK-NEXT:    {{%x_[0-9]+}} = cmpxchg ptr %p_0, i64 %i_1, i64 0 seq_cst monotonic
// CHECK-NEXT:    fence release
// CHECK-NEXT:    switch i64 %i_1, label [[D:%b[0-9]+]] [ i64 7, label {{%b[0-9]+}} i64 9, label [[D]] ]
llvm.func @memory(%p: !llvm.ptr {llvm.noalias, llvm.align = 64 : i64}, %i: i64) {
  %tenth = llvm.mlir.constant(0.1 : f32) : f32
  %zero = llvm.mlir.constant(0) : i64
  %e = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %e {alignment = 4 : i64} : !llvm.ptr -> f32
  %f = llvm.call_intrinsic "llvm.fma"(%v, %v, %tenth) : (f32, f32, f32) -> f32
  llvm.store %f, %e {alignment = 4 : i64, nontemporal} : f32, !llvm.ptr
  %o = llvm_ext.atomicrmw "add" "acq_rel" %p, %i : !llvm.ptr, i64
  %x = llvm_ext.cmpxchg "seq_cst" "monotonic" %p, %i, %zero : !llvm.ptr, i64 -> !llvm.struct<(i64, i1)>
  llvm_ext.fence "release"
  "llvm_ext.switch"(%i) [^bb1, ^bb2, ^bb1] <{case_values = array<i64: 7, 9>, case_operand_segments = array<i64: 0, 0>,
    operandSegmentSizes = array<i32: 1, 0, 0>}> : (i64) -> ()
^bb1:
  llvm.return
^bb2:
  llvm.unreachable
}

// CHECK-LABEL: define <4 x float> @lanes(<4 x float> %v_0, ptr %p_1, <4 x i64> %i_2)
// CHECK:         [[C:%c_[0-9]+]] = fcmp olt <4 x float> %v_0, splat (float 0x0000000000000000)
// CHECK-NEXT:    [[S:%s_[0-9]+]] = select <4 x i1> [[C]], <4 x float> %v_0, <4 x float> poison
// CHECK-NEXT:    [[U:%u_[0-9]+]] = fptosi <4 x float> [[S]] to <4 x i32>
// CHECK-NEXT:    [[W:%w_[0-9]+]] = uitofp <4 x i32> [[U]] to <4 x float>
// CHECK-NEXT:    {{%a_[0-9]+}} = getelementptr float, ptr %p_1, <4 x i64> %i_2
// CHECK-NEXT:    [[X:%x_[0-9]+]] = extractelement <4 x float> [[W]], i64 2
// CHECK-NEXT:    [[Z:%z_[0-9]+]] = freeze float [[X]]
// CHECK-NEXT:    [[Y:%y_[0-9]+]] = insertelement <4 x float> [[W]], float [[Z]], i64 2
// CHECK-NEXT:    [[R:%r_[0-9]+]] = shufflevector <4 x float> [[Y]], <4 x float> [[W]], <4 x i32> <i32 0, i32 5, i32 poison, i32 3>
llvm.func @lanes(%v: vector<4xf32>, %p: !llvm.ptr, %i: vector<4xi64>) -> vector<4xf32> {
  %zero = llvm.mlir.undef : vector<4xf32>
  %zeros = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
  %none = llvm_ext.poison : vector<4xf32>
  %two = llvm.mlir.constant(2) : i64
  %c = llvm_ext.fcmp "olt" %v, %zeros : vector<4xf32> -> vector<4xi1>
  %s = llvm_ext.select %c, %v, %none : vector<4xi1>, vector<4xf32>
  %u = llvm_ext.fptosi %s : vector<4xf32> to vector<4xi32>
  %w = llvm_ext.uitofp %u : vector<4xi32> to vector<4xf32>
  %a = llvm_ext.lane_addresses %p[%i] elem f32 : !llvm.ptr, vector<4xi64> -> vector<4x!llvm.ptr>
  %x = llvm_ext.extractelement %w[%two : i64] : vector<4xf32> -> f32
  %z = llvm_ext.freeze %x : f32
  %y = llvm.insertelement %z, %w[%two : i64] : vector<4xf32>
  %r = llvm.shufflevector %y, %w [0, 5, -1, 3] : vector<4xf32>
  llvm.return %r : vector<4xf32>
}
