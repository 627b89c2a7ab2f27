// RUN: mir-opt %s --verify-diagnostics

// expected-error@+1 {{parameter 'x' of function @f, of type Tensor[(4000000000, 4000000000), float32], takes 64000000000000000000 bytes, more than 9223372036854775807}}
"relay.func"() <{sym_name = "f", param_names = ["x"], type_params = [], attrs = {}, ret_type = tensor<4000000000x4000000000xf32>}> ({
^bb0(%0: tensor<4000000000x4000000000xf32>):
  "relay.return"(%0) : (tensor<4000000000x4000000000xf32>) -> ()
}) : () -> ()
