// RUN: mir-opt %s --verify-diagnostics --split-input-file

func.func @undefined(%a: i32) {
  // expected-error@+2 {{%b is used but not defined}}
  // expected-error@+1 {{%c is used but not defined}}
  %0 = arith.addi %b, %c : i32
  func.return
}

// -----

// expected-error@below {{operation arith.addu is not registered}}
"arith.addu"() : () -> ()

// -----

// Every op at fault is reported, not only the first; line numbers are those of the whole file.
func.func @several(%a: i32) -> i32 {
  "test.op"() ({
    %0 = arith.addi %a, %a : i32 // expected-error {{'arith.addi' ends a block, but is not a terminator}}
  ^more:
    "test.termop"() : () -> ()
  }) : () -> ()
  func.return // expected-error {{'func.return' does not verify: Expected arguments to have the same types}}
}

// -----

func.func @not_before() -> i32 {
  %first = "test.op"(%second) : (i32) -> i32 // expected-error {{'test.op' uses %second before it is defined}}
  %second = "test.op"() : () -> i32 // expected-note {{defined here}}
  func.return %first : i32
}

// -----

func.func @other_block(%c: i1) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  %x = "test.op"() : () -> i32 // expected-note {{defined here}}
  cf.br ^right
^right:
  // expected-error@below {{'func.return' uses %x in a block that can be reached without passing its definition}}
  func.return %x : i32
}

// -----

// A name is known in the region that defines it.
func.func @other_region(%c: i1) -> i32 {
  "test.op"() ({
    %x = "test.op"() : () -> i32
    "test.termop"() : () -> ()
  }) : () -> ()
  // expected-error@below {{%x is used but not defined}}
  func.return %x : i32
}

// -----

%x = "test.op"() : () -> i32
func.func @isolated() -> i32 {
  // expected-error@below {{'func.return' uses %x from outside of 'func.func', which sees nothing of what surrounds it}}
  func.return %x : i32
}

// -----

// A reference to a function that is not there, then one with too few arguments.
func.func private @callee(i32) -> i32
func.func @caller(%a: i32) -> i32 {
  %0 = func.call @nowhere(%a) : (i32) -> i32 // expected-error {{'@nowhere' could not be found in symbol table}}
  %1 = func.call @callee() : () -> i32 // expected-error {{incorrect number of operands for callee}}
  func.return %0 : i32
}
