// RUN: mir-opt %s --split-input-file --verify-diagnostics

// Rules that come as MLIR may break what their own text cannot.
// expected-error@+1 {{rule @a ends without a replacement}}
"rule.rewrite"() <{sym_name = "a"}> ({
  "llvm.unreachable"() : () -> ()
}) : () -> ()

// -----
// expected-error@+1 {{there is no dialect 'none' to rewrite}}
"rule.rewrite"() <{sym_name = "a", level = "none"}> ({
  "rule.replace"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
}) : () -> ()

// -----
// expected-error@+1 {{a benefit is 0 or more}}
"rule.rewrite"() <{sym_name = "a", benefit = -1 : i64}> ({
  "rule.replace"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
}) : () -> ()

// -----
"rule.set"() <{sym_name = "a"}> ({
  // expected-error@+1 {{a ruleset holds rules, not 'rule.any'}}
  %x = "rule.any"() : () -> !rule.value
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  // expected-error@+1 {{a pattern names the op that it matches, or several}}
  %m = "rule.match"() <{names = [], operandSegmentSizes = array<i32: 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : () -> !rule.value
  "rule.replace"(%m, %m) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %d = "rule.data"() <{value = 1 : i64}> : () -> !rule.attr
  // expected-error@+1 {{a pattern is made of patterns}}
  %m = "rule.match"(%d) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.attr) -> !rule.value
  "rule.replace"(%m, %m) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  %r = "rule.compute"(%x) <{function = "rank"}> : (!rule.value) -> !rule.attr
  // expected-error@+1 {{an attribute's pattern is a literal or a capture}}
  %m = "rule.match"(%x, %r) <{names = ["relay.sum"], attr_names = ["axis"], operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value, !rule.attr) -> !rule.value
  "rule.replace"(%m, %x) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  // expected-error@+1 {{there is no op 'relay.expo'}}
  %m = "rule.match"(%x) <{names = ["relay.expo"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  "rule.replace"(%m, %x) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  // expected-error@+1 {{1 attribute name for 0 attributes}}
  %m = "rule.match"(%x) <{names = ["relay.sum"], attr_names = ["axis"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  "rule.replace"(%m, %x) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  // expected-error@+1 {{a literal of a pattern is a number, True or False}}
  %x = "rule.literal"() <{value = "one"}> : () -> !rule.value
  %m = "rule.match"(%x) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  "rule.replace"(%m, %x) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  %m = "rule.match"(%x) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  // expected-error@+1 {{a new op is either named, or one that the pattern captured}}
  %b = "rule.build"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!rule.value) -> !rule.value
  "rule.replace"(%m, %b) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  %m = "rule.match"(%x) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  %r = "rule.compute"(%x) <{function = "rank"}> : (!rule.value) -> !rule.attr
  // expected-error@+1 {{a new op's arguments are values}}
  %b = "rule.build"(%r) <{callee = "relay.exp", operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!rule.attr) -> !rule.value
  "rule.replace"(%m, %b) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  %m = "rule.match"(%x) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  %b = "rule.build"(%x) <{callee = "relay.log", operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!rule.value) -> !rule.value
  %r = "rule.compute"(%b) <{function = "one_use"}> : (!rule.value) -> !rule.attr
  // expected-error@+1 {{a condition of what is not there yet}}
  "rule.where"(%r) : (!rule.attr) -> ()
  "rule.replace"(%m, %b) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  %x = "rule.any"() : () -> !rule.value
  %m = "rule.match"(%x) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  // expected-error@+1 {{a rule holds ops of its own dialect, not 'arith.constant'}}
  %b = "arith.constant"() <{value = 1 : i32}> : () -> i32
  "rule.replace"(%m, %x) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()

// -----
"rule.rewrite"() <{sym_name = "a"}> ({
  // expected-error@+1 {{there is no function 'ranks'}}
  %r = "rule.compute"() <{function = "ranks"}> : () -> !rule.attr
  %x = "rule.any"() : () -> !rule.value
  %m = "rule.match"(%x) <{names = ["relay.exp"], operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0, 0>}> : (!rule.value) -> !rule.value
  "rule.replace"(%m, %x) <{operandSegmentSizes = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
}) : () -> ()
