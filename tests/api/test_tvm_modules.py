"""Modules of TVM that tests and tutorials import: schedules' checks, folders, linking, and files by other names."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import absent
from mirstack import te, tir
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


CHAIN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + C[vi]
    for i in range(16):
        with T.block("D"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.float32(0)
"""


def test_blocks_by_reference_and_their_dependences() -> None:
    state: Any = tir.ScheduleState(mirstack.IRModule.of_op(parse_mir(CHAIN)))
    root = state.mod["main"].body.block
    b, c, d = (state.get_sref(loop.body.block) for loop in root.body)
    scope = state.get_block_scope(state.get_sref(root))
    assert [(each.dst, each.kind.name) for each in scope.get_deps_by_src(b)] == [(c, "RAW"), (d, "WAW")]
    assert [(each.src, each.kind.name) for each in scope.get_deps_by_dst(d)] == [(b, "WAW"), (c, "WAR")]
    assert b.parent.parent.stmt is root and b.parent.stmt.loop_var.name == "i" and repr(b) == "StmtSRef(Block B)"


def test_references_and_handles_of_a_schedule() -> None:
    sch: Any = Schedule(parse_mir(CHAIN))
    block = sch.get_block("B")
    sref = sch.get_sref(block)
    assert sch.get(sref) is sch.get(block) and sch.get_sref(sch.get(block)) == sref
    assert sref.parent == sch.get_sref(sch.get_loops(block)[0]) and sch.func_working_on.name_hint == "main"
    assert not sch.can_decompose_padding(block, sch.get_loops(block)[0])
    sch.remove_rv(block)
    with pytest.raises(tir.ScheduleError, match="stands for nothing any more: remove_rv removed it"):
        sch.get(block)
    with pytest.raises(ValueError, match="the statement is not one of the program as it is now: get returns those"):
        sch.get_sref(function().body)


def test_index_maps() -> None:
    tiled: Any = tir.IndexMap.from_func(lambda i, j: [i // 4, j, i % 4], index_dtype="int32")
    assert repr(tiled) == "T.index_map(lambda i, j: (i // 4, j, i % 4))"
    assert [int(index) for index in tiled.map_indices([7, 2])] == [1, 2, 3]
    assert [int(extent) for extent in tiled.map_shape([16, 5])] == [4, 5, 4]
    assert [str(extent) for extent in tir.IndexMap.from_func(lambda *i: i, 2).map_shape([te.var("n", "int64"), 3])] == [
        "n",
        "T.int64(3)",
    ]
    back = tiled.inverse([16, 5])
    assert back.is_equivalent_to(tir.IndexMap.from_func(lambda a, b, c: [a * 4 + c, b], index_dtype="int32"))
    assert not back.is_equivalent_to(tiled)
    array = np.arange(15).reshape(3, 5)
    np.testing.assert_array_equal(tiled.map_ndarray(array)[0, :, :3], array.T)
    _, padding = tiled.non_surjective_inverse([14, 5])
    assert str(padding) == "axis0 == 3 and axis2 >= 2"
    grouped, ends = tir.IndexMap.from_func_with_separators(lambda i, j: [i, tir.IndexMap.AXIS_SEPARATOR, j])
    assert ends == [1] and len(grouped.final_indices) == 2
    for refused, message in (
        (lambda: tiled.inverse([14, 5]), "the map pads where axis0 == 3 and axis2 >= 2"),
        (lambda: tiled.map_indices([1]), "the map takes 2 indices, not 1"),
        (lambda: tir.IndexMap.from_func(lambda i, j: [i + j]).inverse([4, 4]), "the map has no inverse: "),
        (
            lambda: tiled.inverse([te.var("n"), 4]),
            "the inverse of a map is known for extents that are numbers, each from 0",
        ),
        (
            lambda: tir.IndexMap.from_func(lambda i, j: [i, tir.IndexMap.AXIS_SEPARATOR, j]),
            "the map has axis separators",
        ),
        (
            lambda: tir.IndexMap.from_func(lambda *i: i),
            "the function of an index map takes 0 indices or more, and ndim is None",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            refused()
