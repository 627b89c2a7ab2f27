"""MLIR's form of every program of `filecheck`, custom and generic, is read back by stock xDSL and printed the same again."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import mirstack
import pytest
from mirstack.driver.mlir_frontend import LocatedParser
from mirstack.parser import parse_mir
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.diagnostics import MirError
from mirstack.universe import UNIVERSE
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

FILECHECK = Path(mirstack.__path__[0]) / "filecheck"
FILES = sorted(FILECHECK.rglob("*.mir"))
ROOMS = sorted({path.parent for path in FILES})


def stock_context() -> Context:
    """xDSL's own context with the dialects of the universe, as `xdsl-opt` makes it."""
    context = Context()
    for name, factory in {**get_all_dialects(), **UNIVERSE.all_dialects}.items():
        context.register_dialect(name, factory)
    return context


def printed(module: ModuleOp, *, generic: bool = False) -> str:
    for op in module.ops:
        # What identifies an operator that a text defines is computed when it is first used.
        op.properties.pop("digest", None)
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue() + "\n"


def parsed(text: str) -> ModuleOp:
    # Only the reader of mir-opt knows the operators that a text defines.
    own = "rule.operator" in text
    parser = LocatedParser(stock_context(), text, "", 1) if own else Parser(stock_context(), text)
    return parser.parse_module()


def check(module: ModuleOp) -> None:
    """Both forms are read back to the same module, and each prints as it was."""
    custom, generic = printed(module), printed(module, generic=True)
    from_custom, from_generic = parsed(custom), parsed(generic)
    assert printed(from_custom) == custom
    assert printed(from_generic, generic=True) == generic
    assert printed(from_generic) == custom
    assert module.is_structurally_equivalent(from_custom)


def programs(path: Path) -> list[ModuleOp]:
    """The modules in a file, of those parts that can be read."""
    found: list[ModuleOp] = []
    for part in path.read_text(encoding="utf-8").split("\n// -----"):
        try:
            found.append(in_deep_stack(lambda part=part: parse_mir(part, path.name, directory=str(path.parent))))
        except (MirError, OSError):
            continue
    return found


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(FILECHECK).as_posix())
def test_programs_are_read_back(room: Path) -> None:
    for path in FILES:
        if path.parent == room:
            for module in programs(path):
                in_deep_stack(lambda module=module: check(module))


TIR = """@T.prim_func
def f(A: T.Buffer((16, 16), "float32"), n: T.int32):
    for i in T.parallel(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.where(i < n)
            T.reads(A[vi, 0:16])
            T.writes(A[vi, 3])
            if vi > 3:
                A[vi, 3] = T.exp(A[vi, vi + 1]) * T.float32(2)
"""

READS = (
    'tir.prim_func @f("A" %A: !tir.buffer<[16 : i32, 16 : i32], f32, "global">, "n" %n: i32) {',
    'tir.for "i" %i in (%1, %0) : i32 parallel {',
    'tir.block "C"("vi" S %vi in (%2, %3) = %i : i32) where %4 : i1 {',
    '%8 = tir.buffer_region %A[%vi, %6] by [%5, %7] : !tir.buffer<[16 : i32, 16 : i32], f32, "global">',
    ": i1 {",
    '= tir.load %A[%vi, %16] : !tir.buffer<[16 : i32, 16 : i32], f32, "global"> -> f32',
    '= tir.call "exp"(%17) : (f32) -> f32',
    "= tir.mul %18, %19 : f32",
    'tir.store %20, %A[%vi, %21] : !tir.buffer<[16 : i32, 16 : i32], f32, "global">, f32',
)


def test_tir_reads_well() -> None:
    shown = printed(parse_mir(TIR, "f"))
    for line in READS:
        assert line in shown, shown


def test_relay_reads_well() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(4, 8), float32]) { nn.dense(%x, %w, units=4) }
"""
    shown = printed(parse_mir(text, "f"))
    assert "relay.nn.dense %0, %1 {units = 4 : i64} : (tensor<2x8xf32>, tensor<4x8xf32>) -> " in shown


BROKEN = (
    # An op whose types are not those that its verifier wants is written with all of its types.
    '%2 = "tir.add"(%0, %1) : (i32, i64) -> f32',
    '%2 = "tir.select"(%1, %0, %0) : (i64, i32, i32) -> i32',
    '%2 = "tir.const"() <{value = 1 : i32}> : () -> i64',
    '%2 = "tir.const"() <{value = "text"}> : () -> i64',
    # Attributes that are called as a property is.
    '%2 = "tir.add"(%0, %0) {result = 1 : i32, "odd name" = "x"} : (i32, i32) -> i32',
    '%2 = "tir.const"() <{value = 1 : i32}> {value = 2 : i32} : () -> i32',
    '"tir.prim_func"() <{sym_name = "g h", param_names = [], attrs = {}, ret_type = none}> '
    '({ %9 = "tir.const"() <{value = 1 : i32}> : () -> i32 }) {sym_name = "x"} : () -> ()',
    '"tir.for"(%0, %1) <{var_name = "i", kind = "odd"}> ({\n^bb0(%i: f32):\n}) : (i32, i64) -> ()',
    '"tir.evaluate"(%0) {a = #builtin.int<1>} : (i32) -> ()',
)


@pytest.mark.parametrize("op", BROKEN)
def test_ops_that_break_rules_are_written_whole(op: str) -> None:
    text = f"""builtin.module {{
  %0 = "tir.const"() <{{value = 1 : i32}}> : () -> i32
  %1 = "tir.const"() <{{value = 1 : i64}}> : () -> i64
  {op}
}}
"""
    check(parsed(text))


def test_stock_xdsl_opt_reads_and_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(printed(parse_mir(TIR, "f")))
    ran = subprocess.run([Path(sys.executable).parent / "xdsl-opt", path], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == path.read_text().strip()
    assert "tir.store %20, %A[%vi, %21]" in ran.stdout
