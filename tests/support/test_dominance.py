"""Uses before definitions are found, wherever they are; right programs pass."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.support.diagnostics import MirError
from mirstack.support.graph import dominator_tree
from mirstack.support.verify import check_dominance
from xdsl.context import Context
from xdsl.dialects import get_all_dialects, test
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser import Parser


def parse(text: str) -> ModuleOp:
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    return Parser(ctx, text, "test.mlir").parse_module()


RIGHT = [
    "func.func @f(%a: i32) -> i32 { %b = arith.addi %a, %a : i32\n func.return %b : i32 }",
    """func.func @f(%c: i1, %a: i32) -> i32 {
      cf.cond_br %c, ^x, ^y
    ^y:
      cf.br ^z(%a : i32)
    ^x:
      %b = arith.addi %a, %a : i32
      cf.br ^z(%b : i32)
    ^z(%r: i32):
      func.return %r : i32
    }""",
    # A loop, whose values its body sees wherever the blocks stand.
    """func.func @f(%n: i32) {
      cf.br ^head(%n : i32)
    ^body:
      %s = arith.subi %i, %n : i32
      cf.br ^head(%s : i32)
    ^head(%i: i32):
      %c = arith.cmpi eq, %i, %n : i32
      cf.cond_br %c, ^body, ^out
    ^out:
      func.return
    }""",
    # Nothing runs in a block that cannot be reached.
    "func.func @f() -> i32 { %a = arith.constant 1 : i32\n func.return %a : i32\n^dead:\n func.return %b : i32\n^dead2:\n"
    " %b = arith.constant 1 : i32\n func.return %b : i32 }",
    """func.func @f(%c: i1, %a: i32) -> i32 {
      %r = scf.if %c -> (i32) {
        %b = arith.addi %a, %a : i32
        scf.yield %b : i32
      } else {
        scf.yield %a : i32
      }
      func.return %r : i32
    }""",
]

WRONG = [
    (
        "func.func @f(%a: i32) -> i32 { %b = arith.addi %c, %a : i32\n %c = arith.addi %a, %a : i32\n func.return %b : i32 }",
        "'arith.addi' uses %c before it is defined",
    ),
    (
        """func.func @f(%c: i1, %a: i32) -> i32 {
          cf.cond_br %c, ^x, ^z
        ^x:
          %b = arith.addi %a, %a : i32
          cf.br ^z
        ^z:
          func.return %b : i32
        }""",
        "'func.return' uses %b in a block that can be reached without passing its definition",
    ),
    (
        """func.func @f(%c: i1, %a: i32) {
          scf.if %c {
            %b = arith.addi %d, %a : i32
          }
          %d = arith.addi %a, %a : i32
          func.return
        }""",
        "'arith.addi' uses %d before it is defined",
    ),
]


@pytest.mark.parametrize("text", RIGHT)
def test_right_programs_pass(text: str) -> None:
    check_dominance(parse(text))


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_programs_are_refused(text: str, message: str) -> None:
    with pytest.raises(MirError) as caught:
        check_dominance(parse(text))
    assert message in str(caught.value)


def test_a_value_of_an_ended_region_is_not_visible() -> None:
    inner = test.TestOp(result_types=[i32])
    user = test.TestOp(operands=[inner.results[0]])
    holder = test.TestOp(regions=[Region(Block([inner]))])
    with pytest.raises(MirError, match="outside of the region that defines it"):
        check_dominance(test.TestOp(regions=[Region(Block([holder, user]))]))


def test_isolated_functions_do_not_see_each_other() -> None:
    module = parse(
        "func.func @f(%a: i32) { func.return }\nfunc.func @g(%b: i32) -> i32 { %c = arith.addi %b, %b : i32\n"
        "func.return %c : i32 }"
    )
    f, g = module.body.block.ops
    addi = g.regions[0].block.first_op
    assert addi is not None
    addi.operands[0] = f.regions[0].block.args[0]
    with pytest.raises(MirError, match=r"'arith\.addi' uses %a"):
        check_dominance(module)


def test_every_error_is_reported_with_its_place() -> None:
    text = WRONG[0][0].replace(" : i32\n func.return", ' : i32 loc("a.mir":3:5)\n func.return', 1)
    with pytest.raises(MirError) as caught:
        check_dominance(parse(text))
    assert "a.mir:3:5: note: defined here" in str(caught.value)


def naive_dominators(blocks: list[Block]) -> dict[Block, set[Block]]:
    """Each reachable block's dominators: those that cut it off from the entry."""

    def reached(without: Block | None) -> set[Block]:
        seen: set[Block] = set()
        stack = [blocks[0]] if blocks[0] is not without else []
        while stack:
            block = stack.pop()
            if block not in seen and block is not without:
                seen.add(block)
                assert block.last_op is not None
                stack += block.last_op.successors
        return seen

    everything = reached(None)
    return {block: {other for other in everything if block not in reached(other)} for block in everything}


def test_dominator_trees_of_random_graphs() -> None:
    rng = random.Random(0)
    for _ in range(200):
        size = rng.randint(2, 12)
        blocks = [Block() for _ in range(size)]
        Region(blocks)
        for block in blocks:
            targets = [rng.choice(blocks) for _ in range(rng.choice([0, 1, 1, 2, 2]))]
            block.add_op(test.TestTermOp(successors=targets))
        want = naive_dominators(blocks)
        tree = dominator_tree(blocks[0])
        above: dict[Block, set[Block]] = {blocks[0]: {blocks[0]}}
        stack = [blocks[0]]
        while stack:
            block = stack.pop()
            for child in tree.get(block, ()):
                above[child] = above[block] | {child}
                stack.append(child)
        assert above == want


def chain(length: int) -> ModuleOp:
    value: SSAValue = (first := test.TestOp(result_types=[i32])).results[0]
    ops: list[Operation] = [first]
    for _ in range(length):
        ops.append(test.TestOp(operands=[value, value], result_types=[i32]))
        value = ops[-1].results[0]
    return ModuleOp([test.TestOp(regions=[Region(Block(ops))])])


def ladder(length: int) -> ModuleOp:
    """A block after the other, each of which may leave for one common block: the worst case of simpler algorithms."""
    leave = Block([test.TestTermOp()])
    blocks = [Block(arg_types=[]) for _ in range(length)]
    for block, following in zip(blocks, [*blocks[1:], leave], strict=True):
        condition = test.TestOp(result_types=[i32])
        block.add_ops([condition, test.TestTermOp(operands=[condition.results[0]], successors=[following, leave])])
    return ModuleOp([test.TestOp(regions=[Region([*blocks, leave])])])


@pytest.mark.parametrize("make", [chain, ladder])
def test_time_is_linear(make: Callable[[int], ModuleOp]) -> None:
    def seconds(length: int) -> float:
        module = make(length)
        return cpu_seconds(lambda: check_dominance(module))

    # Eight times the ops: a quadratic walk would take 64 times as long.
    assert growth(seconds, 1_000, 8_000, below=24) < 24


def test_deep_nesting() -> None:
    op = test.TestOp(result_types=[i32])
    for _ in range(3000):
        user = test.TestOp(operands=[op.results[0]], result_types=[i32])
        op = test.TestOp(regions=[Region(Block([op, user]))], result_types=[i32])
    check_dominance(ModuleOp([op]))
