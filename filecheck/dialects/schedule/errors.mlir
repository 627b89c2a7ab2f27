// RUN: mir-opt %s --split-input-file --verify-diagnostics

// What MLIR's form can say and no schedule means.
schedule.script @s {
  %b = schedule.get_block("Y") : !schedule.block
  // expected-error@+1 {{split has no parameter 'factor'; did you mean 'factors'?}}
  schedule.split(%b, factor = [none, 4])
}

// -----
schedule.script @s {
  %b = schedule.get_block("Y") : !schedule.block
  // expected-error@+1 {{parallel: 'loop' must be a loop, not a block}}
  schedule.parallel(%b)
}

// -----
schedule.script @s {
  %b = schedule.get_block("Y") : !schedule.block
  // expected-error@+1 {{split needs the argument 'factors', a list of numbers or sampled values or None}}
  schedule.split(%b)
}

// -----
schedule.script @s {
  %b = schedule.get_block("Y") : !schedule.block
  // expected-error@+1 {{compute_inline gives nothing, but 1 name takes a result}}
  %c = schedule.compute_inline(%b) : !schedule.block
}

// -----
// expected-error@+1 {{a schedule script holds schedule primitives, not 'builtin.module'}}
schedule.script @s {
  builtin.module {}
}
