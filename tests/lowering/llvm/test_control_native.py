"""Control flow, functions and failures in native code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mirstack.lowering.llvm.convert.lower_std_to_llvm import lower_std_to_llvm
from mirstack.support.diagnostics import MirError


def test_for_with_iter_args(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @sum(%n: index) -> i64 {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %z = arith.constant 0 : i64
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (i64) {
        %v = arith.index_cast %i : index to i64
        %t = arith.addi %s, %v : i64
        scf.yield %t : i64
      }
      func.return %r : i64
    }
    """)
    assert code.call("sum", 100, restype=ctypes.c_int64) == 4950
    assert code.call("sum", 0, restype=ctypes.c_int64) == 0
    assert code.call("sum", -3, restype=ctypes.c_int64) == 0


def test_if_with_results_and_without_else(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%x: i64, %out: memref<1xi64>) {
      %c0 = arith.constant 0 : index
      %z = arith.constant 0 : i64
      %ten = arith.constant 10 : i64
      %neg = arith.cmpi slt, %x, %z : i64
      %a = scf.if %neg -> (i64) {
        %m = arith.subi %z, %x : i64
        scf.yield %m : i64
      } else {
        scf.yield %x : i64
      }
      memref.store %a, %out[%c0] : memref<1xi64>
      %big = arith.cmpi sgt, %a, %ten : i64
      scf.if %big {
        memref.store %ten, %out[%c0] : memref<1xi64>
      }
      func.return
    }
    """)
    for x, want in ((-3, 3), (4, 4), (-40, 10), (11, 10)):
        out = np.zeros(1, np.int64)
        assert code.call("f", x, out) == 0
        assert out[0] == want


def test_while_collatz(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @steps(%x: i64) -> i64 {
      %z = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i64
      %three = arith.constant 3 : i64
      %r:2 = scf.while (%v = %x, %n = %z) : (i64, i64) -> (i64, i64) {
        %go = arith.cmpi sgt, %v, %one : i64
        scf.condition(%go) %v, %n : i64, i64
      } do {
      ^bb0(%v: i64, %n: i64):
        %odd = arith.remsi %v, %two : i64
        %is = arith.cmpi eq, %odd, %one : i64
        %w = scf.if %is -> (i64) {
          %t = arith.muli %v, %three : i64
          %u = arith.addi %t, %one : i64
          scf.yield %u : i64
        } else {
          %h = arith.divsi %v, %two : i64
          scf.yield %h : i64
        }
        %m = arith.addi %n, %one : i64
        scf.yield %w, %m : i64, i64
      }
      func.return %r#1 : i64
    }
    """)
    assert code.call("steps", 27, restype=ctypes.c_int64) == 111


def test_index_switch_and_execute_region(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%x: index) -> i64 {
      %r = scf.index_switch %x -> i64
      case 2 {
        %a = arith.constant 20 : i64
        scf.yield %a : i64
      }
      case 5 {
        %b = arith.constant 50 : i64
        scf.yield %b : i64
      }
      default {
        %c = scf.execute_region -> (i64) {
          %z = arith.constant 0 : index
          %neg = arith.cmpi slt, %x, %z : index
          cf.cond_br %neg, ^bb1, ^bb2
        ^bb1:
          %m = arith.constant -1 : i64
          scf.yield %m : i64
        ^bb2:
          %d = arith.constant 7 : i64
          scf.yield %d : i64
        }
        scf.yield %c : i64
      }
      func.return %r : i64
    }
    """)
    got = [code.call("f", x, restype=ctypes.c_int64) for x in (2, 5, 0, -4)]
    assert got == [20, 50, 7, -1]


def test_branches_in_any_block_order(build: Callable[[str], Any]) -> None:
    """Blocks may stand before those that dominate them, and one block may be both targets of a branch."""
    code = build("""
    func.func @f(%x: i64) -> i64 {
      %z = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      cf.br ^start
    ^last(%v: i64):
      %w = arith.addi %v, %y : i64
      func.return %w : i64
    ^start:
      %y = arith.addi %x, %one : i64
      %neg = arith.cmpi slt, %x, %z : i64
      cf.cond_br %neg, ^last(%z : i64), ^last(%one : i64)
    }
    """)
    assert [code.call("f", x, restype=ctypes.c_int64) for x in (-5, 5)] == [-4, 7]


def test_cf_switch(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%x: i32) -> i64 {
      %a = arith.constant 1 : i64
      %b = arith.constant 2 : i64
      cf.switch %x : i32, [
        default: ^done(%a : i64),
        7: ^done(%b : i64),
        9: ^other
      ]
    ^other:
      %c = arith.constant 3 : i64
      cf.br ^done(%c : i64)
    ^done(%r: i64):
      func.return %r : i64
    }
    """)
    assert [code.call("f", x, restype=ctypes.c_int64) for x in (0, 7, 9)] == [1, 2, 3]


def test_calls_recursion_and_several_results(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func private @divmod(%a: i64, %b: i64) -> (i64, i64) {
      %q = arith.divsi %a, %b : i64
      %r = arith.remsi %a, %b : i64
      func.return %q, %r : i64, i64
    }
    func.func @gcd(%a: i64, %b: i64) -> i64 {
      %z = arith.constant 0 : i64
      %done = arith.cmpi eq, %b, %z : i64
      %r = scf.if %done -> (i64) {
        scf.yield %a : i64
      } else {
        %q, %m = func.call @divmod(%a, %b) : (i64, i64) -> (i64, i64)
        %g = func.call @gcd(%b, %m) : (i64, i64) -> i64
        scf.yield %g : i64
      }
      func.return %r : i64
    }
    """)
    assert code.call("gcd", 1071, 462, restype=ctypes.c_int64) == 21


ASSERTING = """
func.func private @check(%n: index) {
  %ten = arith.constant 10 : index
  %ok = arith.cmpi slt, %n, %ten : index
  cf.assert %ok, "n must be below 10"
  func.return
}
func.func @f(%n: index, %out: memref<1xi64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1 : i64
  func.call @check(%n) : (index) -> ()
  memref.store %one, %out[%c0] : memref<1xi64>
  func.return
}
"""


def test_an_assert_leaves_with_a_status_through_all_callers(build: Callable[[str], Any]) -> None:
    code = build(ASSERTING)
    out = np.zeros(1, np.int64)
    assert code.call("f", 3, out) == 0
    assert out[0] == 1
    out[0] = 0
    status = code.call("f", 30, out)
    assert out[0] == 0, "nothing after the failed check runs"
    assert "n must be below 10" in code.messages[status]


def test_allocation_failure_is_a_status(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%n: index) {
      %m = memref.alloc(%n) : memref<?xf64>
      memref.dealloc %m : memref<?xf64>
      func.return
    }
    """)
    assert code.call("f", 100) == 0
    assert code.call("f", 0) == 0
    assert "out of memory" in code.messages[code.call("f", 2**58)]


def test_deep_nesting_does_not_overflow(build: Callable[[str], Any]) -> None:
    from mirstack.lowering.llvm.text.translation import translate
    from xdsl.dialects import arith, func, scf
    from xdsl.dialects.builtin import FunctionType, IndexType, ModuleOp
    from xdsl.ir import Block, Region

    depth = 2000
    block = Block([scf.YieldOp()])
    zero, one = arith.ConstantOp.from_int_and_width(0, IndexType()), arith.ConstantOp.from_int_and_width(1, IndexType())
    for level in range(depth):
        end = func.ReturnOp() if level == depth - 1 else scf.YieldOp()
        body = Block(arg_types=[IndexType()])
        for op in list(block.ops):
            op.detach()
            body.add_op(op)
        block = Block([scf.ForOp(zero, one, one, [], Region(body)), end])
    block.insert_ops_before([zero, one], block.first_op)  # pyright: ignore[reportArgumentType]
    module = ModuleOp([func.FuncOp("f", FunctionType.from_lists([], []), Region(block))])
    lower_std_to_llvm(module)
    assert translate(module).count("phi") == depth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @f(%m: memref<?x?xf32>) { func.return }",
            "memref<?x?xf32> is passed as a bare pointer, which does not carry its strides",
        ),
        (
            "func.func @f(%m: memref<?xf32>) -> index { %c = arith.constant 0 : index\n"
            "%d = memref.dim %m, %c : memref<?xf32>\n func.return %d : index }",
            "the size of dimension 0 of memref<?xf32> is not known here",
        ),
        ('func.func @f() { "test.op"() : () -> ()\n func.return }', "'test.op' cannot be lowered to LLVM"),
        (
            "func.func @f(%t: tensor<2xf32>) { func.return }",
            "type tensor<2xf32> has no counterpart in LLVM",
        ),
        ("func.func @f() { func.call @g() : () -> ()\n func.return }", "call of @g, which the module does not define"),
        (
            "func.func private @f()\nfunc.func private @f()",
            "function @f is defined twice",
        ),
    ],
)
def test_what_cannot_be_lowered_is_said(text: str, message: str, parse: Callable[[str], Any]) -> None:
    module = parse(text)
    with pytest.raises(MirError) as caught:
        lower_std_to_llvm(module)
    assert message in str(caught.value)
