"""Modules of TVM that tests and tutorials import: schedules' checks, folders, linking, and files by other names."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import mirstack
import pytest
from extras import absent
from mirstack.api.contrib import cc, utils
from mirstack.api.tir.schedule import Schedule, testing
from mirstack.lowering.driver.artifacts.link import linker
from mirstack.parser import parse_mir

DOUBLED = """
@T.prim_func
def {}(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range({}):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] * T.float32(2)
"""


def function(name: str = "main", extent: int = 64) -> Any:
    return mirstack.IRModule.of_op(parse_mir(DOUBLED.format(name, extent)))[name]


def test_traces_are_applied_again() -> None:
    doubled = function()
    sch = Schedule(doubled)
    (i,) = sch.get_loops(sch.get_block("B"))
    _, inner = sch.split(i, sch.sample_perfect_tile(i, n=2, decision=[4, 16]))
    sch.vectorize(inner)
    again = testing.verify_trace_roundtrip(sch, mod=doubled)
    assert again is not sch and again.mod.script() == sch.mod.script()
    with pytest.raises(ValueError, match="text_format is 'python' or 'json', not 'yaml'"):
        testing.verify_trace_roundtrip(sch, mod=doubled, text_format="yaml")
    with pytest.raises(ValueError, match="not structurally equal"):
        testing.assert_structural_equal_ignore_global_symbol(doubled, sch.mod["main"])


def test_names_of_functions_do_not_matter() -> None:
    testing.assert_structural_equal_ignore_global_symbol(function("one"), function("two"))


@pytest.mark.parametrize(
    "name", ["tir.schedule.testing", "tir.schedule.trace", "tir.function", "te.operation", "ir.base", "relay.op.tensor"]
)
def test_modules_are_imported_by_tvms_names(name: str) -> None:
    module = importlib.import_module(f"mirstack.{name}")
    assert module.__name__.startswith("mirstack.api.")


def test_a_folder() -> None:
    folder = utils.tempdir()
    Path(folder.relpath("a.txt")).write_text("a")
    assert folder.listdir() == ["a.txt"] and (folder / "a.txt").exists() and folder.path in repr(folder)
    folder.remove()
    assert not Path(folder.path).exists()


def test_folders_that_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = utils.tempdir(tmp_path / "given")
    given.remove()
    kept = utils.tempdir(keep_for_debug=True)
    kept.remove()
    assert Path(given.path).is_dir() and Path(kept.path).is_dir() and capsys.readouterr().out == f"{kept.path}\n"


@pytest.mark.extra
def test_object_files_are_linked(tmp_path: Path) -> None:
    if linker() is None:
        absent("ziglang", "link")
    built = mirstack.build(mirstack.IRModule({"main": function()}))
    built.save(tmp_path / "doubled.o")
    cc.create_shared(tmp_path / "doubled.so", tmp_path / "doubled.o")
    assert cc.get_cc() and (tmp_path / "doubled.so").read_bytes().startswith(b"\x7fELF")
