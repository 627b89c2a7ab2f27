// RUN: mir-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{'lanes' is a power of two up to 8, as haswell has, not 16}}
"mirstack.target"() <{sym_name = "a", fields = {cpu = "haswell", lanes = 16 : i64}}> : () -> ()

// -----
// expected-error@+1 {{'l2' is a number of bytes, such as 48K or 2M}}
"mirstack.target"() <{sym_name = "a", fields = {cpu = "haswell", l2 = 2.0 : f32}}> : () -> ()
