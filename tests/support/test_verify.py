"""The verification of whole modules: dominance, all errors at once, linear time, any depth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.driver.mlir_frontend import parse_mlir
from mirstack.driver.modules import register_dialects
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.diagnostics import MirError, file_loc
from mirstack.support.graph import dominator_tree
from mirstack.support.symbols import indexed_symbols
from mirstack.support.verify import dominance_errors, find_errors, verify
from xdsl.context import Context
from xdsl.dialects import arith, cf, func, scf, test
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr, i1, i32
from xdsl.ir import Block, Operation, Region
from xdsl.traits import SymbolTable


def chain(n: int) -> ModuleOp:
    block = Block(arg_types=[i32])
    value = block.args[0]
    for _ in range(n):
        block.add_op(add := arith.AddiOp(value, block.args[0]))
        value = add.result
    block.add_op(func.ReturnOp(value))
    return ModuleOp([func.FuncOp("f", ((i32,), (i32,)), Region(block))])


def functions(n: int) -> ModuleOp:
    made: list[Operation] = []
    for i in range(n):
        block = Block(arg_types=[i32])
        block.add_op(call := func.CallOp(f"f{i * 7 % n}", [block.args[0]], [i32]))
        block.add_op(func.ReturnOp(call.res[0]))
        made.append(func.FuncOp(f"f{i}", ((i32,), (i32,)), Region(block)))
    return ModuleOp(made)


def nest(depth: int) -> ModuleOp:
    index = IndexType()
    outer = Block(arg_types=[index])
    bound = outer.args[0]
    body = Block([scf.YieldOp()], arg_types=[index])
    for _ in range(depth):
        body = Block([scf.ForOp(bound, bound, bound, [], body), scf.YieldOp()], arg_types=[index])
    outer.add_ops([scf.ForOp(bound, bound, bound, [], body), func.ReturnOp()])
    return ModuleOp([func.FuncOp("f", ((index,), ()), Region(outer))])


@pytest.mark.parametrize("make", [chain, functions])
def test_time_is_linear(make: Callable[[int], ModuleOp]):
    def seconds(n: int) -> float:
        module = make(n)
        return cpu_seconds(lambda: verify(module))

    # Eight times the ops: a quadratic walk would take 64 times as long.
    assert growth(seconds, 500, 4_000, below=24) < 24


def test_depth():
    module = in_deep_stack(lambda: nest(2000))
    assert dominance_errors(module) == []
    in_deep_stack(lambda: verify(module))


def test_all_errors_at_their_places():
    block = Block(arg_types=[i32])
    first, second = func.ReturnOp(), func.ReturnOp()
    for line, op in ((3, first), (4, second)):
        op.location = file_loc("x.mlir", line, 5)
        block.add_op(op)
    module = ModuleOp([func.FuncOp("f", ((i32,), (i32,)), Region(block))])
    with pytest.raises(MirError) as caught:
        verify(module)
    messages = [str(d.location) + d.message for d in caught.value.diagnostics]
    assert len(messages) == 2
    assert ":3:5" in messages[0] and "'func.return' must be the last operation" in messages[0]
    assert ":4:5" in messages[1] and "'func.return' does not verify" in messages[1]


def test_use_outside_of_region():
    inner = test.TestOp(result_types=[i32])
    region = test.TestOp(regions=[Region(Block([inner]))])
    user = test.TestOp(operands=[inner.results[0]])
    messages = [d.message for d in dominance_errors(ModuleOp([test.TestOp(regions=[Region(Block([region, user]))])]))]
    assert messages == ["'test.op' uses operand #0 outside of the region that defines it"]


def test_use_inside_of_its_definition():
    user = test.TestOp()
    region = test.TestOp(result_types=[i32], regions=[Region(Block([user]))])
    user.operands = [region.results[0]]
    messages = [d.message for d in dominance_errors(ModuleOp([test.TestOp(regions=[Region(Block([region]))])]))]
    assert messages == ["'test.op' uses operand #0 inside the op that defines it"]


def test_value_of_no_module():
    gone = test.TestOp(result_types=[i32])
    user = test.TestOp(operands=[gone.results[0]])
    messages = [d.message for d in dominance_errors(ModuleOp([test.TestOp(regions=[Region(Block([user]))])]))]
    assert messages == ["'test.op' uses operand #0, which no op of the module defines"]


def test_module_bodies_are_graphs():
    user, definition = test.TestOp(), test.TestOp(result_types=[i32])
    user.operands = [definition.results[0]]
    assert dominance_errors(ModuleOp([user, definition])) == []


def test_dominators_of_a_diamond_with_a_loop():
    entry, left, right, join, island = Block(arg_types=[i1]), Block(), Block(), Block(), Block()
    condition = entry.args[0]
    entry.add_op(cf.ConditionalBranchOp(condition, left, [], right, []))
    left.add_op(cf.BranchOp(join))
    right.add_op(cf.BranchOp(join))
    join.add_op(cf.ConditionalBranchOp(condition, left, [], join, []))
    island.add_op(cf.BranchOp(join))
    tree = dominator_tree(Region([entry, left, right, join, island]).first_block or entry)
    assert set(tree[entry]) == {left, right, join}
    assert set(tree) == {entry}


def test_symbols_are_indexed_only_inside():
    module = functions(3)
    call = next(op for op in module.walk() if isinstance(op, func.CallOp))
    with indexed_symbols():
        found = SymbolTable.lookup_symbol(call, "f2")
        assert isinstance(found, func.FuncOp) and found.sym_name.data == "f2"
        assert SymbolTable.lookup_symbol(call, "f3") is None
    found.properties["sym_name"] = StringAttr("renamed")
    assert SymbolTable.lookup_symbol(call, "f2") is None
    assert SymbolTable.lookup_symbol(call, "renamed") is found


def test_malformed_op_is_the_inputs_fault():
    # A func.func without a body region: xDSL's verifier takes the region's block for granted.
    malformed = scf.ForOp.create(operands=[], regions=[])
    errors = find_errors(ModuleOp([malformed]))
    assert errors and all("scf.for" in error.message for error in errors)


def test_a_verifier_of_what_does_not_verify_inside():
    # The rule's verifier counts the operands of the replacement, of which nothing says how many there are.
    text = """"rule.rewrite"() <{sym_name = "r", level = "relay", benefit = 0 : i64}> ({
      %x = "rule.any"() : () -> !rule.value
      %m = "rule.match"(%x) <{names = ["exp"], attr_names = []}> : (!rule.value) -> !rule.value
      "rule.replace"(%m, %x) <{operandSegmentSize = array<i32: 1, 1>}> : (!rule.value, !rule.value) -> ()
    }) : () -> ()"""
    context = Context()
    register_dialects(context)
    module = parse_mlir(context, text, "rule.mlir")
    assert any("operandSegmentSizes" in error.message for error in find_errors(module))
