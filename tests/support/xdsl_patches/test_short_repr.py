"""Ops, blocks, regions and uses are shown by name and place."""

from __future__ import annotations

import re

import mirstack
import pytest
from mirstack.support.xdsl_patches import applied
from xdsl.dialects.builtin import ModuleOp

pytestmark = pytest.mark.skipif(not applied("short_repr"), reason="the patch is switched off")

TEXT = """\
def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }

@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.float32(1)
"""


def test_modules_and_what_schedules_name() -> None:
    module = mirstack.parse(TEXT, "net.mir")
    assert repr(module) == "ModuleOp(builtin.module of 2 ops)"
    assert repr(ModuleOp([])) == "ModuleOp(builtin.module of 0 ops)"
    assert [repr(op) for op in module.ops] == [
        "FuncOp(relay.func @main at net.mir:1:1)",
        "PrimFuncOp(tir.prim_func @f at net.mir:4:5)",
    ]
    sch = mirstack.tir.Schedule(module)
    block = sch.get_block("B")
    assert repr(sch.resolve(block)) == "BlockOp(tir.block at net.mir:6:9)"
    assert repr(sch.resolve(sch.get_loops(block)[0])) == "ForOp(tir.for at net.mir:5:5)"


def test_blocks_regions_uses() -> None:
    module = mirstack.parse(TEXT, "net.mir")
    (region,) = module.regions
    assert repr(region) == "Region(1 block)"
    assert repr(region.block) == "Block(0 arguments, 2 ops)"
    main = next(iter(module.ops))
    (argument,) = main.regions[0].block.args
    assert [repr(use) for use in argument.uses] == ["Use(operand 0 of nn_reluOp(relay.nn.relu at net.mir:1:39))"]


def test_nothing_is_shown_by_its_address() -> None:
    for op in mirstack.parse(TEXT).walk():
        shown = repr(
            [op, op.operands, op.results, op.regions, op.parent, [use for each in op.results for use in each.uses]]
        )
        assert not re.search(r"\d{6}|0x", shown), shown
