"""The ops of the schedule dialect: MLIR's form both ways, and what their verifiers refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mirstack.dialects.schedule import schedule_dialect
from mirstack.dialects.tir import TIR
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.test import Test
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

SCRIPT = """
schedule.script @tiled(@mm) {
  %b = schedule.get_block("Y") as "b" : !schedule.block
  %i, %j, %k = schedule.get_loops(%b) as "i", "j_0", "k" : !schedule.loop, !schedule.loop, !schedule.loop
  %ls = schedule.split(%j, factors = [none, 4]) : !schedule.list<!schedule.loop>
  %l0 = schedule.item %ls[0] : !schedule.list<!schedule.loop>
  %r = schedule.slice %ls[none : none : -1] : !schedule.list<!schedule.loop>
  schedule.reorder(*%r, %k)
  %f = schedule.fuse(*%ls, preserve_unit_iters = true) : !schedule.loop
  schedule.annotate(%l0, "a", {"x" = 1, "y" = [2.5, 1.0e-07, "s", %l0]})
  schedule.transform_layout(%b, ["write", 0], lambda ("x_0", "y") {
  ^bb0(%x: i32, %y: i32):
    schedule.yield %y, %x : i32, i32
  }, pad_value = none)
}
"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, TIR, Test, schedule_dialect()):
        context.load_dialect(dialect)
    return Parser(context, text, "s.mlir").parse_module()


def test_round_trip() -> None:
    module = parse(SCRIPT)
    verify(module)
    text = str(module)
    again = parse(text)
    verify(again)
    assert str(again) == text
    assert module.is_structurally_equivalent(again)
    assert "%j, factors = [none, 4]" in text and "schedule.reorder(*%r, %k)" in text


def test_xdsl_opt_knows_the_dialect(tmp_path: Path) -> None:
    file = tmp_path / "s.mlir"
    file.write_text(SCRIPT)
    tool = Path(sys.executable).parent / "xdsl-opt"
    done = subprocess.run([tool, file], capture_output=True, text=True)
    assert "schedule.script @tiled(@mm)" in done.stdout


def refused(line: str) -> str:
    """The message for a line after a block %b, its loop %i and all its loops %ls."""
    text = f"""
schedule.script @s {{
  %b = schedule.get_block("Y") : !schedule.block
  %i = schedule.add_unit_loop(%b) : !schedule.loop
  %ls = schedule.get_loops(%b) : !schedule.list<!schedule.loop>
  {line}
}}"""
    with pytest.raises((MirError, ParseError, VerifyException)) as error:
        verify(parse(text))
    return str(error.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("schedule.split(%i, factor = [none, 4])", "split has no parameter 'factor'; did you mean 'factors'?"),
        ("schedule.split(%i)", "split needs the argument 'factors', a list of numbers or sampled values or None"),
        ("schedule.parallel(%b)", "parallel: 'loop' must be a loop, not a block"),
        ("schedule.parallel(%i, %i)", "parallel takes 1 argument at most, but 2 are given"),
        ("schedule.split(factors = [2], %i)", "an argument without a name stands before those with one"),
        ("schedule.split(loop = %i, loop = %i)", "split is given the argument 'loop' twice"),
        ("schedule.vectorize(%i32)", "%i32 is used before it is defined"),
        ("%c = \"test.op\"() : () -> i32 schedule.vectorize(%c)", "a schedule primitive takes handles, not i32"),
        ("schedule.reorder(*3)", "a list of handles is expected after '*'"),
        ("schedule.parallel(?)", "identifier expected of an argument"),
        ("schedule.split(%i, factors = ?)", "an argument is expected: %handle, *%handles, a number"),
        ("%n = schedule.parallel(%i) : !schedule.loop", "parallel gives nothing, but 1 name takes a result"),
        ("%n = schedule.fuse(%i, %i) : !schedule.block", "fuse gives a loop, not a block"),
        ("%n = schedule.split(%i, [2, 2]) : !schedule.loop", "split gives 2 loops here, but 1 name takes a result"),
        ("%n = schedule.get_loops(%b) : !schedule.block", "get_loops gives a list of loops"),
        ("schedule.cache_read(*%ls, 0, \"local\")", "a splat stands in a list only"),
        ("schedule.reorder(*%b)", "a splat is of a list of handles"),
        ("\"schedule.get_block\"() <{arguments = {name = \"a\"}, positional = 1, result_names = [\"x\"]}> : () -> ()", "there must be one name, perhaps empty, for each result"),
        (
            "\"schedule.vectorize\"(%i) <{arguments = {loop = #schedule.operand<1>}, positional = 1, result_names = []}>"
            " : (!schedule.loop) -> ()",
            "an argument refers to operand 1 of 1",
        ),
        (
            "\"schedule.transform_block_layout\"(%b) <{arguments = {block = #schedule.operand<0>, index_map ="
            " #schedule.lambda<0>}, positional = 1, result_names = []}> : (!schedule.block) -> ()",
            "an argument refers to region 0 of 0",
        ),
        (
            "\"schedule.vectorize\"(%i) <{arguments = {loop = i32}, positional = 1, result_names = []}>"
            " : (!schedule.loop) -> ()",
            "'i32' is not an argument of a schedule primitive",
        ),
        (
            "\"schedule.vectorize\"(%i) <{arguments = {loop = #schedule.operand<0>}, positional = 2, result_names = []}>"
            " : (!schedule.loop) -> ()",
            "the first 2 arguments are written without a name, but are not the first",
        ),
        (
            "schedule.transform_block_layout(%b, lambda { ^bb0(%x: i32): schedule.yield %x : i32 })",
            "a lambda has 1 argument, but 0 names",
        ),
        (
            "schedule.transform_block_layout(%b, lambda (\"x\") { ^bb0(%x: i32): \"test.termop\"() : () -> () })",
            "a lambda must end with schedule.yield of its values",
        ),
        (
            "schedule.transform_block_layout(%b, lambda (\"x\") { ^bb0(%x: i32): schedule.yield single %x, %x : i32, i32 })",
            "a lambda of a single value yields 2 values",
        ),
        (
            "schedule.transform_block_layout(%b, lambda (\"x\") { ^bb0(%x: i32): schedule.yield %x separators [2] : i32 })",
            "axis separators stand between values, in rising order",
        ),
        (
            "%s = schedule.slice %ls[none : none : 0] : !schedule.list<!schedule.loop>",
            "the step of a slice is not 0",
        ),
        (
            "%s = \"schedule.slice\"(%ls) : (!schedule.list<!schedule.loop>) -> !schedule.list<!schedule.block>",
            "a slice has the type of what it is taken from",
        ),
        (
            "%s = \"schedule.item\"(%ls) <{index = 0}> : (!schedule.list<!schedule.loop>) -> !schedule.block",
            "an item of a !schedule.list<!schedule.loop> is a !schedule.loop",
        ),
        ("%s = schedule.item %b[0] : !schedule.block", "items and slices are of a !schedule.list"),
        ("schedule.yield %b : !schedule.block", "schedule.yield ends a lambda of a schedule primitive"),
        ("%s = \"test.op\"() : () -> !schedule.list<i32>", "a schedule.list holds blocks, loops or exprs"),
    ],
)  # fmt: skip
def test_refused(line: str, message: str) -> None:
    assert message in refused(line)


def test_script_holds_primitives_only() -> None:
    with pytest.raises(MirError, match=r"a schedule script holds schedule primitives, not 'builtin\.module'"):
        verify(parse("schedule.script @s { builtin.module {} }"))
    with pytest.raises(MirError, match=r"a schedule script has no block arguments: handles come from sch\.get_block"):
        verify(parse("schedule.script @s { ^bb0(%x: i32): }"))
