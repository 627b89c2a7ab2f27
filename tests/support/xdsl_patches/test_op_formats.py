"""xDSL's dialects are imported without reading the formats of their ops; ops are parsed and printed by them all the same."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from mirstack.support.xdsl_patches.op_formats import FormatReadLater

PROGRAM = """
import io
from mirstack.support.xdsl_patches import apply
apply()
from xdsl.context import Context
from xdsl.dialects import arith, builtin, math
from xdsl.irdl import declarative_assembly_format as formats
from xdsl.parser import Parser
from xdsl.printer import Printer
import sys

assert "xdsl.irdl.declarative_assembly_format_parser" not in sys.modules
context = Context()
for dialect in (arith.Arith, builtin.Builtin, math.Math):
    context.load_dialect(dialect)
text = '''builtin.module {
  %0 = arith.constant 2.000000e+00 : f32
  %1 = math.sqrt %0 fastmath<nnan> : f32
}'''
module = Parser(context, text).parse_module()
out = io.StringIO()
Printer(out).print_op(module)
assert out.getvalue() == text, out.getvalue()
assert "xdsl.irdl.declarative_assembly_format_parser" in sys.modules
"""


def test_formats_are_read_when_they_are_needed() -> None:
    environment = {**os.environ, "MIRSTACK_XDSL_PATCHES": ""}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


def test_a_format_is_read_once_and_what_is_wrong_with_it_is_said_then() -> None:
    reads: list[str] = []

    class Program:
        def print(self, printer: object, op: object) -> None:
            reads.append(f"{op}")

    def read() -> Program:
        reads.append("read")
        return Program()

    later = FormatReadLater(read)
    assert not reads
    later.print(None, "one")
    later.print(None, "other")
    assert reads == ["read", "one", "other"]

    def fails() -> Program:
        raise ValueError("wrong format")

    with pytest.raises(ValueError, match="wrong format"):
        FormatReadLater(fails).parse(None, None)
