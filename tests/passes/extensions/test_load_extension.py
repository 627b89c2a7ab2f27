"""Files that extend mirstack: `.mir` files of items, Python files, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.operator import _OPERATORS  # pyright: ignore[reportPrivateUsage]
from mirstack.lowering.driver.cache.keys import context_key
from mirstack.lowering.options import Options
from mirstack.support import extensions
from mirstack.support.diagnostics import MirError

if TYPE_CHECKING:
    from conftest import Ran

pytestmark = pytest.mark.usefixtures("no_extensions")

Command: TypeAlias = "Callable[..., Ran]"

OPERATORS = """
@te.func
def swish():
    x = te.placeholder((), name="x")
    y = te.compute((), lambda: x() * te.sigmoid(x() * SLOPE), name="y")
    return [x, y]

operator my.swish(%x: Tensor) -> Tensor { compute @swish doc "x * sigmoid(x)" }
rewrite @swishes { multiply(%x, sigmoid(%x)) => my.swish(%x) }
"""
PROGRAM = "def @main(%x: Tensor[(4), float32]) { my.swish(%x) }\n"
PASS = '''
from dataclasses import dataclass
from xdsl.ir import Dialect
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Forget(ModulePass):
    """Erases every function but main."""

    name = "forget"
    fail: bool = False

    def apply(self, ctx, op):
        if self.fail:
            raise ValueError("as asked")
        for each in list(op.ops):
            if each.name == "relay.func" and each.sym_name.data != "main":
                each.detach()

EMPTY = Dialect("empty", [], [])
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ops.mir").write_text(OPERATORS.replace("SLOPE", "1.0"))
    (tmp_path / "net.mir").write_text(PROGRAM)
    (tmp_path / "forget.py").write_text(PASS)
    return tmp_path


def test_a_command_loads_operators_and_rules(folder: Path, mir_opt: Command) -> None:
    (folder / "net.mir").write_text("def @main(%x: Tensor[(4), float32]) { multiply(%x, sigmoid(%x)) }")
    result = mir_opt("net.mir", "--load", "ops.mir", "-p", "apply-rules")
    assert "my.swish(%x)" in result.out
    listed = mir_opt("--load", "ops.mir", "--list-extensions").out.splitlines()
    assert listed == ["ops.mir:", "  TE function   swish", "  operator      my.swish", "  rule          swishes"]
    assert "There are none" not in listed[0]


def test_a_command_loads_passes(folder: Path, mir_opt: Command) -> None:
    (folder / "net.mir").write_text(PROGRAM + "def @other(%x: Tensor[(4), float32]) { %x }")
    common = ("net.mir", "--load", "ops.mir", "--load", "forget.py")
    result = mir_opt(*common, "-p", "forget", "--timing", "--check-each", "--verify-each")
    assert "@other" not in result.out and "@main" in result.out
    assert "forget" in result.err
    failed = mir_opt(*common, "-p", "forget{fail=true}")
    assert "error: the pass of forget.py 'forget{fail=true}' failed: ValueError: as asked" in failed.err
    listed = mir_opt("--load", "forget.py", "--list-passes").out
    assert "Erases every function but main. (forget.py)\n      fail: bool = false" in listed
    assert "  dialect       empty" in mir_opt("--load", "forget.py", "--list-extensions").out


def test_python_loads_what_commands_do(folder: Path) -> None:
    mirstack.load_extension(folder / "ops.mir")
    mirstack.load_extension("ops.mir")
    x = np.linspace(-2, 2, 4, dtype="float32")
    np.testing.assert_allclose(mirstack.compile("net.mir", "interp")(x), x / (1 + np.exp(-x)), rtol=1e-6)
    assert str(mirstack.relay.my.swish(mirstack.relay.var("x", shape=(2,)))).endswith("my.swish(%x)")
    assert mirstack.relay.op.get("my.swish").name == "my.swish"
    assert dir(mirstack.relay.my) == ["swish"]


def test_the_same_text_with_another_definition_is_another_program(folder: Path) -> None:
    keys = {context_key(Options())}
    mirstack.load_extension("ops.mir")
    keys.add(context_key(Options()))
    (folder / "other.mir").write_text(OPERATORS.replace("SLOPE", "2.0").replace("my.swish", "my.other"))
    with pytest.raises(MirError, match=r"other\.mir defines swish, which ops\.mir has defined"):
        mirstack.load_extension("other.mir")
    keys.add(context_key(Options()))
    assert len(keys) == 2 and None not in keys


def test_the_cache_tells_definitions_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_CACHE", str(folder / "cache"))
    monkeypatch.setenv("MIRSTACK_CACHE_LIMIT", "1G")
    (folder / "steep.mir").write_text(OPERATORS.replace("SLOPE", "8.0"))
    found: list[float] = []
    for file in ("ops.mir", "steep.mir"):
        monkeypatch.setattr(extensions, "_DEFINITIONS", {})
        _OPERATORS._entries.pop("my.swish", None)
        mirstack.load_extension(file)
        found.append(mirstack.compile("net.mir")(np.ones(4, "float32"))[0])
    assert found == pytest.approx([0.731059, 0.999665])


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("none.mir", None, "the extension none.mir cannot be loaded: there is no such file"),
        ("ops.txt", "", "the extension ops.txt cannot be loaded: it is neither a .mir nor a .py file"),
        ("bad.py", "x = (\n", "bad.py fails in line 1: SyntaxError: '(' was never closed"),
        ("bad.py", "\nimport no_such_module\n", "bad.py fails in line 2: ModuleNotFoundError: No module named 'no_such_module'"),
        ("bad.py", PASS.replace('"forget"', '"fuse-ops"'), "bad.py defines the pass 'fuse-ops', which is one of mirstack's"),
        (
            "bad.py",
            "import mirstack\nE = mirstack.Extension(files=['no.mir'])",
            "bad.py: there is no file no.mir",
        ),
        (
            "bad.py",
            "import mirstack\nE = mirstack.Extension(modules=['no_such'])",
            "bad.py fails: ModuleNotFoundError: No module named 'no_such'",
        ),
        (
            "bad.py",
            "import mirstack\nE = mirstack.Extension(formats={'my': mirstack.ItemFormat('m:F', keywords=['def'])})",
            "bad.py has a format that begins items with 'def', as another does",
        ),
        (
            "bad.py",
            "import mirstack\nE = mirstack.Extension(formats={'te': mirstack.ItemFormat('m:F')})",
            "bad.py has a format that is called 'te', as another does",
        ),
        ("bad.mir", "operator my.x(%x: Tensor) -> Tensor { compute @f }", "operator my.x: there is no function @f"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(folder: Path, file: str, text: str | None, message: str, mir_opt: Command) -> None:
    if text is not None:
        (folder / file).write_text(text)
    result = mir_opt("net.mir", "--load", file)
    assert result.code == 1 and message in result.err and "Traceback" not in result.err


def test_a_sequential_takes_passes_of_xdsl() -> None:
    from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

    mod = mirstack.IRModule.of_op(
        mirstack.parse("def @main(%x: Tensor[(4), float32]) { add(nn.relu(%x), nn.relu(%x)) }")
    )
    cse = CommonSubexpressionElimination
    both = mirstack.transform.Sequential([cse, mirstack.transform.FuseOps(), cse()])
    assert str(both(mod)).count("nn.relu") == 1
    with pytest.raises(
        TypeError, match=r"a pass is one of mirstack\.transform or a subclass of xDSL's ModulePass, not int"
    ):
        mirstack.transform.Sequential([int])  # type: ignore[list-item]


FORMAT = """
from dataclasses import dataclass

import mirstack
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def


@irdl_op_definition
class UnitOp(IRDLOperation):
    name = "units.unit"
    sym_name = prop_def(StringAttr)


class Units:
    def parse(self, items, context):
        return [[UnitOp.create(properties={"sym_name": StringAttr(item.text.split()[1])})] for item in items]

    def owns(self, op):
        return op.name == "units.unit"

    def print(self, groups, module):
        return ["\\n".join(f"unit {op.sym_name.data} {{ }}" for op in group) for group in groups]


FORMAT = Units()
EXTENSION = mirstack.Extension(
    formats={"units": mirstack.ItemFormat("my_units:FORMAT", keywords=["unit"])},
    dialects={"units": lambda: Dialect("units", [UnitOp], [])},
)
"""


def test_a_format_of_items(folder: Path, mir_opt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "my_units.py").write_text(FORMAT)
    (folder / "net.mir").write_text("unit metre { }\n\ndef @main(%x: Tensor[(4), float32]) { %x }\n\nunit second { }\n")
    monkeypatch.syspath_prepend(str(folder))
    result = mir_opt("net.mir", "--load", "my_units.py")
    lines = result.out.splitlines()
    assert lines[0] == "unit metre { }" and lines[-1] == "unit second { }", result.err
    text = mir_opt("net.mir", "--load", "my_units.py", "-t", "mlir").out
    assert '"units.unit"() <{sym_name = "metre"}> : () -> ()' in text
