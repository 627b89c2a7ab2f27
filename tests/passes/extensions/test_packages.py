"""Packages that extend mirstack by their entry points: found without importlib.metadata, loaded once, errors with their names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import mirstack
import pytest
from mirstack.passes.extensions.packages import EntryPoint, entry_points, load_packages, loaded_packages
from mirstack.support.diagnostics import MirError

if TYPE_CHECKING:
    from conftest import Ran

pytestmark = pytest.mark.usefixtures("no_extensions")

ITEMS = """
@te.func
def halved():
    x = te.placeholder((), name="x")
    y = te.compute((), lambda: x() * 0.5, name="y")
    return [x, y]

operator pack.halved(%x: Tensor) -> Tensor { compute @halved }
"""
MODULE = '''
from pathlib import Path
import mirstack
from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

class Nothing(ModulePass):
    """Does nothing."""
    name = "do-nothing"

    def apply(self, ctx, op): pass

EXTENSION = mirstack.Extension(files=[Path(__file__).parent / "ops.mir"])
UNIVERSE = Universe(all_dialects={"pack": lambda: Dialect("pack", [], [])}, all_passes={"do-nothing": lambda: Nothing})
NUMBER = 5
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def install(entry_points: str) -> None:
        (tmp_path / "mirstack_pack.py").write_text(MODULE)
        (tmp_path / "ops.mir").write_text(ITEMS)
        about = tmp_path / "Mirstack_Pack-1.0.dist-info"
        about.mkdir(exist_ok=True)
        (about / "entry_points.txt").write_text(entry_points)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "mirstack_pack", raising=False)

    return install


BOTH = """
[console_scripts]
pack = mirstack_pack:main
# not this one
[mirstack.extensions]
pack = mirstack_pack:EXTENSION
[xdsl.universe]
pack = mirstack_pack:UNIVERSE
"""


def test_entry_points_are_found(install: Callable[[str], None]) -> None:
    install(BOTH)
    assert [point for point in entry_points() if point.package == "mirstack-pack"] == [
        EntryPoint("mirstack-pack", "mirstack.extensions", "pack", "mirstack_pack:EXTENSION"),
        EntryPoint("mirstack-pack", "xdsl.universe", "pack", "mirstack_pack:UNIVERSE"),
    ]


def test_commands_and_python_find_a_package(
    install: Callable[[str], None], mir_opt: Callable[..., Ran], tmp_path: Path
) -> None:
    install(BOTH)
    net = tmp_path / "net.mir"
    net.write_text("def @main(%x: Tensor[(4), float32]) { pack.halved(%x) }")
    result = mir_opt(net, "-p", "do-nothing")
    assert result.code == 0 and "pack.halved(%x)" in result.out
    listed = mir_opt("--list-extensions").out
    assert "package mirstack-pack:\n  dialect       pack\n  pass          do-nothing\n" in listed
    assert "  TE function   halved\n  operator      pack.halved\n" in listed
    assert "Does nothing. (package mirstack-pack)" in mir_opt("--list-passes").out
    assert mirstack.relay.pack.halved is not None
    assert "mirstack-pack" in [point.package for point in loaded_packages()]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "no_such_module:X",
            "no_such_module:X cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("mirstack_pack:NONE", "mirstack_pack:NONE cannot be imported: AttributeError"),
        ("mirstack_pack:NUMBER", "mirstack_pack:NUMBER is not a"),
    ],
)
@pytest.mark.parametrize("group", ["mirstack.extensions", "xdsl.universe"])
def test_a_package_that_cannot_be_loaded_is_named(
    install: Callable[[str], None], where: str, message: str, group: str
) -> None:
    install(f"[{group}]\npack = {where}\n")
    with pytest.raises(MirError) as raised:
        load_packages()
    assert f"package mirstack-pack cannot be loaded: {message}" in str(raised.value)
    assert f"its entry point 'pack' in {group}" in str(raised.value)
