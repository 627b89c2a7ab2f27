"""xDSL's classes are changed by the commands and the API, not by an import of a dialect; and nothing depends on the changes."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import mirstack
import pytest
from mirstack.support.xdsl_patches import PATCHES, patch_of

# What the classes of xDSL hold that patches change, as text: the same before and after tells that nothing was changed.
STATE = """
import xdsl.dialects.builtin as builtin, xdsl.ir as ir, xdsl.ir.core as core, xdsl.irdl as irdl, xdsl.traits as traits
import xdsl.irdl.declarative_assembly_format as formats

def state():
    kinds = (ir.SSAValue, ir.OpResult, ir.BlockArgument, ir.Operation, ir.Block, ir.Region, ir.Use, ir.Attribute, core._IRNode,
             core.SSAValues, core.BlockOps, ir.ParametrizedAttribute, builtin.IntegerType, irdl.IRDLOperation,
             traits.IsolatedFromAbove, traits.SymbolTable, formats.FormatProgram)
    return {kind: dict(vars(kind)) for kind in kinds}

before = state()
"""

HOST = """
import io, sys
from xdsl.xdsl_opt_main import xDSLOptMain

class Host(xDSLOptMain):
    pass

sys.argv = ["xdsl-opt", sys.argv[1]]
Host().run()
from mirstack.universe import UNIVERSE
for make in UNIVERSE.all_dialects.values():
    list(make().operations)
assert "mirstack.dialects.tir.stmt" in sys.modules and "mirstack.dialects.te.ops" in sys.modules
assert state() == before
"""

COMPILES = """
import numpy as np
import mirstack
from mirstack.support import xdsl_patches
{extra}
run = mirstack.compile(mirstack.parse('''#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {{
  nn.relu(add(%x, 1f))
}}'''), cache=False)
assert (run(np.full((2, 3), -3, "float32")) == 0).all()
print(",".join(name for name in xdsl_patches.PATCHES if xdsl_patches.applied(name)))
{after}
"""


def run(program: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "MIRSTACK_XDSL_PATCHES": "", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_host_that_loads_our_dialects_keeps_xdsl_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "host.mlir"
    path.write_text(
        '"tir.prim_func"() <{sym_name = "f", param_names = [], attrs = {}, ret_type = none}> ({\n  %0 = "tir.const"() <{value = 1 : i32}> : () -> i32\n}) : () -> ()\n'
    )
    assert "tir.prim_func" in run(STATE + HOST, str(path))


def test_the_api_applies_every_patch() -> None:
    assert run(COMPILES.format(extra="", after="")).strip() == ",".join(PATCHES)


def test_switched_off_nothing_is_changed_and_programs_compile() -> None:
    program = STATE + COMPILES.format(extra="", after="assert state() == before")
    assert run(program, MIRSTACK_XDSL_PATCHES="0").strip() == ""


def test_some_patches_alone() -> None:
    assert run(COMPILES.format(extra="", after=""), MIRSTACK_XDSL_PATCHES="direct").strip() == "direct"


def test_another_version_of_xdsl_is_left_as_it_is() -> None:
    program = STATE + COMPILES.format(
        extra="xdsl_patches.installed = lambda versions: False", after="assert state() == before"
    )
    assert run(program).strip() == ""


def test_hashes_of_ir_that_exists_do_not_change() -> None:
    extra = """
from xdsl.dialects.builtin import ModuleOp, i32
module = ModuleOp([])
known = {module: 1, i32: 2}
"""
    program = COMPILES.format(extra=extra, after="assert known[module] == 1 and known[i32] == 2")
    assert run(program).strip() == ",".join(name for name in PATCHES if name != "identity")


def test_a_setting_that_means_nothing_is_told_of() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from mirstack.support.xdsl_patches import apply; apply()"],
        capture_output=True,
        text=True,
        env={**os.environ, "MIRSTACK_XDSL_PATCHES": "identities"},
    )
    assert "MIRSTACK_XDSL_PATCHES is 'identities', which counts as absent: it takes 0, 1 or some of" in done.stderr


@pytest.mark.parametrize("name", PATCHES)
def test_each_patch_tells_its_reason_and_its_gain(name: str) -> None:
    patch = patch_of(name)
    assert patch.reason and any(character.isdigit() for character in patch.gain) and patch.written_for


# Fields that xDSL keeps for itself.
PRIVATE = {
    "_operands", "_operand_uses", "_successors", "_successor_uses", "_next_op", "_prev_op", "_first_op", "_last_op", "_prev_use",
    "_next_use", "_operation", "_index", "_type", "_name", "_args", "_first_block", "_last_block", "_prev_block", "_next_block",
    "_attach_op", "_attach_block", "_insert_op_list", "_IRNode",
}  # fmt: skip
ROOT = Path(mirstack.__path__[0])
ROOMS = ("api", "dialects", "driver", "lowering", "parser", "passes", "support")


def private_uses(tree: ast.AST) -> set[str]:
    """Private fields of xDSL that are read or written on objects other than `self` and `cls`, or imported."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in PRIVATE:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xdsl"):
            found |= {each.name for each in node.names if each.name.startswith("_")}
    return found


def test_few_files_use_private_fields_of_xdsl() -> None:
    users: dict[str, set[str]] = {}
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith("support/xdsl_patches/"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        uses = private_uses(tree) - own
        if uses:
            users[where] = uses
    # `ffi.lib._name` of llvmlite is not a field of xDSL.
    users.pop("lowering/llvm/jit/codegen.py", None)
    assert len(users) <= 4 and all(where.startswith("support/") for where in users), users


def test_classes_of_xdsl_are_assigned_to_only_by_the_patches() -> None:
    """No `SomeClassOfXdsl.name = …`, no `setattr(SomeClassOfXdsl, …)` elsewhere."""
    for path in sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        if where.startswith("support/xdsl_patches/"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes = {
            each.asname or each.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("xdsl")
            for each in node.names
        }
        for node in ast.walk(tree):
            changed: list[ast.expr] = []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "setattr":
                changed = node.args[:1]
            elif isinstance(node, ast.Assign):
                changed = [target.value for target in node.targets if isinstance(target, ast.Attribute)]
            for each in changed:
                assert not (isinstance(each, ast.Name) and each.id in classes), f"{where}:{each.lineno}"


def test_a_part_of_the_suite_passes_without_patches() -> None:
    tests = Path(__file__).parents[2]
    files = [tests / "support" / part for part in ("test_verify.py", "test_edit.py", "test_operands.py")]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-k",
            "not linear",
            "-p",
            "no:xdist",
            "-p",
            "no:cacheprovider",
            *map(str, files),
        ],
        capture_output=True,
        text=True,
        cwd=tests.parent,
        env={**os.environ, "MIRSTACK_XDSL_PATCHES": "0"},
    )
    assert done.returncode == 0, done.stdout[-2000:]
