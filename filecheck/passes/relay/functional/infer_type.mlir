// RUN: mir-opt %s -p infer-type | filecheck %s

// What has no type yet gets one.
// CHECK-LABEL: relay.func @main("x" %x: tensor<2x3xf32>)
// CHECK-SAME:    -> tensor<2x3xf32> {
// CHECK:         relay.nn.relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
"relay.func"() <{sym_name = "main", param_names = ["x"], type_params = [], attrs = {}, ret_type = !relay.unknown}> ({
^bb0(%x: tensor<2x3xf32>):
  %0 = "relay.nn.relu"(%x) : (tensor<2x3xf32>) -> !relay.unknown
  "relay.return"(%0) : (!relay.unknown) -> ()
}) : () -> ()
