"""CSE and DCE at size: linear in chains, wide graphs, functions and nesting. What they do is in filecheck/passes/common."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.passes.common.cse import merge_equal_ops
from mirstack.passes.common.dce import erase_dead_ops
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.verify import verify
from mirstack.support.walk import walk_ops
from xdsl.dialects import arith, cf, func, scf, test
from xdsl.dialects.builtin import IndexType, ModuleOp, i32
from xdsl.ir import Block, Operation, Region


def function(block: Block, name: str = "f") -> func.FuncOp:
    return func.FuncOp(name, ([arg.type for arg in block.args], []), Region(block))


def chain(n: int) -> ModuleOp:
    block = Block(arg_types=[i32])
    value = block.args[0]
    for _ in range(n):
        block.add_op(add := arith.AddiOp(value, block.args[0]))
        value = add.result
    block.add_ops([test.TestOp(operands=[value]), func.ReturnOp()])
    return ModuleOp([function(block)])


def wide(n: int) -> ModuleOp:
    """Equal ops, all used by one op."""
    block = Block(arg_types=[i32])
    adds = [arith.AddiOp(block.args[0], block.args[0]) for _ in range(n)]
    block.add_ops([*adds, test.TestOp(operands=[add.result for add in adds]), func.ReturnOp()])
    return ModuleOp([function(block)])


def functions(n: int) -> ModuleOp:
    made: list[Operation] = []
    for i in range(n // 4):
        block = Block(arg_types=[i32])
        block.add_ops([arith.AddiOp(block.args[0], block.args[0]), func.ReturnOp()])
        made.append(function(block, f"f{i}"))
    return ModuleOp(made)


def nest(depth: int) -> ModuleOp:
    """Loops in loops, each with an op of its own, pure throughout."""
    index = IndexType()
    outer = Block(arg_types=[index])
    bound = outer.args[0]
    body = Block([scf.YieldOp()], arg_types=[index])
    for _ in range(depth):
        step = arith.AddiOp(bound, bound)
        loop = scf.ForOp(bound, bound, step, [], body)
        body = Block([step, loop, scf.YieldOp()], arg_types=[index])
    outer.add_ops([scf.ForOp(bound, bound, bound, [], body), func.ReturnOp()])
    return ModuleOp([function(outer)])


@pytest.mark.parametrize("run", [merge_equal_ops, erase_dead_ops])
@pytest.mark.parametrize("make", [chain, wide, functions, nest])
def test_time_is_linear(make: Callable[[int], ModuleOp], run: Callable[[ModuleOp], None]):
    def seconds(n: int) -> float:
        module = in_deep_stack(lambda: make(n))
        return cpu_seconds(lambda: in_deep_stack(partial(run, module)))

    # Eight times the ops: a quadratic walk would take 64 times as long.
    assert growth(seconds, 200, 1_600, below=24) < 24


def count(module: ModuleOp) -> int:
    return sum(1 for _ in walk_ops(module))


def test_wide_merges_to_one():
    module = wide(1000)
    merge_equal_ops(module)
    verify(module)
    assert count(module) == 5
    (user,) = (op for op in walk_ops(module) if isinstance(op, test.TestOp))
    assert len(set(user.operands)) == 1


def test_pure_nest_is_dead():
    module = in_deep_stack(lambda: nest(2000))
    in_deep_stack(lambda: erase_dead_ops(module))
    assert count(module) == 3


def test_block_arguments_keep_what_is_passed_to_them():
    entry, loop = Block(arg_types=[i32]), Block(arg_types=[i32])
    add = arith.AddiOp(loop.args[0], loop.args[0])
    entry.add_op(cf.BranchOp(loop, entry.args[0]))
    loop.add_ops([add, cf.BranchOp(loop, add.result)])
    module = ModuleOp([func.FuncOp("f", ([i32], []), Region([entry, loop]))])
    erase_dead_ops(module)
    verify(module)
    assert add.parent is loop


def test_replaced_in_unreachable_block():
    entry, island = Block(arg_types=[i32]), Block()
    first = arith.AddiOp(entry.args[0], entry.args[0])
    second = arith.AddiOp(entry.args[0], entry.args[0])
    entry.add_ops([first, second, test.TestOp(operands=[first.result]), func.ReturnOp()])
    user = test.TestOp(operands=[second.result])
    island.add_ops([user, cf.BranchOp(island)])
    merge_equal_ops(ModuleOp([func.FuncOp("f", ([i32], []), Region([entry, island]))]))
    assert user.operands[0] is first.result
