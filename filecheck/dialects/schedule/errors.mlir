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

// -----
schedule.rule @r {
  rule.rewrite @r {
    %0 = rule.any "x" : !rule.value
    %1 = rule.match ["relay.sin"](%0) : !rule.value -> !rule.value
    rule.replace %1 with %1 : !rule.value with !rule.value
  }
  // expected-error@+1 {{the script of a rule has one block argument, a schedule.expr, for each parameter}}
  schedule.script @r takes ["rows"] {
    %b = schedule.get_block("Y") : !schedule.block
  }
}

// -----
// expected-error@+1 {{a schedule rule holds a rule.rewrite, its pattern, then a schedule.script}}
schedule.rule @r {
  schedule.script @r {
    %b = schedule.get_block("Y") : !schedule.block
  }
}

// -----
// expected-error@+1 {{the script of a schedule rule has no target: it is of each kernel that matches}}
schedule.rule @r {
  rule.rewrite @r {
    %0 = rule.any "x" : !rule.value
    %1 = rule.match ["relay.sin"](%0) : !rule.value -> !rule.value
    rule.replace %1 with %1 : !rule.value with !rule.value
  }
  schedule.script @r(@f) {
    %b = schedule.get_block("Y") : !schedule.block
  }
}
