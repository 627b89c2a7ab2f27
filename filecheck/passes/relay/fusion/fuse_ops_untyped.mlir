// RUN: mir-opt %s -p fuse-ops -t mir | filecheck %s

// What has no types yet gets them before a pass that needs them.
// CHECK: exp(%p0) /* ty=Tensor[(2), float32] */;
"relay.func"() ({
^bb0(%x : tensor<2xf32>):
  %0 = "relay.exp"(%x) : (tensor<2xf32>) -> !relay.unknown
  %1 = "relay.sqrt"(%0) : (!relay.unknown) -> !relay.unknown
  "relay.return"(%1) : (!relay.unknown) -> ()
}) {sym_name = "main", param_names = ["x"], type_params = [], attrs = {}, ret_type = !relay.unknown} : () -> ()
