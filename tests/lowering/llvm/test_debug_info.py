"""Lines of the source in machine code: what gdb and perf read of libraries, of objects and of code in this process."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.driver import mir_build
from mirstack.lowering.driver.loading.relay_executable import RelayExecutable
from mirstack.lowering.llvm.jit import gdb, jit_dump, perf_map
from mirstack.lowering.llvm.jit.line_table import lines_of
from mirstack.lowering.llvm.jit.object_symbols import functions_of, sections_of
from mirstack.lowering.llvm.text.translation import translate
from mirstack.support import settings
from mirstack.support.diagnostics import file_loc

NET = """\
@T.prim_func
def square(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * A[vi]

def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(4, 8), float32]) {
  %0 = nn.dense(%x, %w);
  let %sums = sum(nn.relu(%0), axis=[0]);
  call_tir(@square, %sums)
}
"""
C = """
#include "net.h"
int main(void) {
  float x[16] = {1}, w[32] = {1}, out[4];
  struct net_inputs in = {x, w};
  struct net_outputs outs = {out};
  return net_run(&in, &outs);
}
"""
PYTHON = """
import mirstack, numpy as np
net = mirstack.compile("net.mir", debug_info=True, cache=False)
net(np.ones((2, 8), "float32"), np.ones((4, 8), "float32"))
"""
needs_gdb = pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="object files and perf are Linux's")


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("net.mir").write_text(NET)
    return tmp_path


def built(output: str, *options: str) -> bytes:
    assert mir_build.main(["net.mir", "-o", output, *options]) == 0
    return Path(output).read_bytes()


def compiled() -> RelayExecutable:
    executable = mirstack.compile("net.mir", debug_info=True)
    assert isinstance(executable, RelayExecutable)
    return executable


def debugged(*command: str) -> str:
    """Returns what gdb shows where line 6 of net.mir is reached."""
    shown = subprocess.run(
        ["gdb", "-batch", "-nx", "-ex", "handle SIGSTOP SIGCONT nostop noprint pass", "-ex", "set breakpoint pending on", "-ex", "break net.mir:6", "-ex", "run", "-ex", "backtrace 1", "-ex", "info source", "--args", *command],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, "DEBUGINFOD_URLS": ""},
    )  # fmt: skip
    return shown.stdout + shown.stderr


@needs_gdb
@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is not installed")
def test_gdb_breaks_at_a_line_of_a_library(net: Path) -> None:
    built("net.so", "-g")
    Path("main.c").write_text(C)
    subprocess.run(["cc", "main.c", "./net.so", "-Wl,-rpath,.", "-o", "main"], check=True)
    shown = debugged("./main")
    if "not permitted" in shown:
        pytest.skip("this machine lets gdb run nothing")
    assert "square () at net.mir:6\n6\t            B[vi] = A[vi] * A[vi]" in shown
    assert "Current source file is net.mir" in shown


@needs_gdb
def test_gdb_breaks_at_a_line_of_code_in_a_process(net: Path) -> None:
    Path("net.py").write_text(PYTHON)
    shown = debugged(sys.executable, "net.py")
    if "not permitted" in shown:
        pytest.skip("this machine lets gdb run nothing")
    assert "square () at net.mir:6\n6\t            B[vi] = A[vi] * A[vi]" in shown


def test_code_is_the_same_with_lines(net: Path) -> None:
    plain, lined = built("plain.o"), built("lined.o", "-g")

    def code(data: bytes) -> dict[str, bytes]:
        sections = sections_of(data)
        found: dict[str, bytes] = {}
        for each in functions_of(data):
            start = sections[each.section].offset + each.offset
            found[each.name.replace("lined", "plain")] = data[start : start + each.size]
        return found

    assert code(plain) == code(lined) and len(code(plain)) > 5
    assert b".debug_line" not in plain and not lines_of(plain)
    assert plain == built("plain.o")


def test_lines_of_an_object_file(net: Path) -> None:
    data = built("net.o", "-g")
    lines = lines_of(data)
    named = {each.name: each for each in functions_of(data)}

    def of(name: str) -> set[tuple[str, int]]:
        function = named[name]
        end = function.offset + function.size
        return {(each.file, each.line) for each in lines[function.section] if function.offset <= each.offset < end}

    assert ("net.mir", 6) in of("L0.square") <= {("net.mir", line) for line in range(7)}
    # The operators of a kernel, each by its line.
    assert {("net.mir", 9), ("net.mir", 10)} & of("L0.fused_nn_dense_nn_relu")


def test_a_table_of_lines_of_another_version_is_refused(net: Path) -> None:
    data = bytearray(built("net.o", "-g"))
    sections = sections_of(bytes(data))
    (table,) = [each for each in sections if data[each.name :].startswith(b".debug_line\0")]
    struct.pack_into("<H", data, table.offset + 4, 5)
    with pytest.raises(ValueError, match="DWARF 5"):
        lines_of(bytes(data))


def test_lines_of_other_files_and_odd_names_are_kept(parse: Callable[[str], Any]) -> None:
    module = parse(
        "func.func @f(%x: f32) -> f32 {\n  %0 = arith.addf %x, %x : f32\n  %1 = arith.mulf %0, %x : f32\n  func.return %1 : f32\n}"
    )
    from mirstack.lowering.driver.build import lower_module
    from mirstack.lowering.pipeline import Options

    lower_module(module, Options())
    (function,) = [op for op in module.ops if op.name == "llvm.func"]
    function.location = file_loc("a!1@f.mir", 1, 1)
    for number, op in enumerate(function.body.block.ops):
        op.location = file_loc("other/b.mir" if number % 2 else "a!1@f.mir", 2 + number, 1)
    text = translate(module, debug=True)
    assert 'DIFile(filename: "a\\211\\40f.mir", directory: ".")' in text
    assert 'DIFile(filename: "b.mir", directory: "other")' in text and "!DILexicalBlockFile" in text
    assert text.count("!DICompileUnit") == 1


def test_kernels_from_the_cache_do_not_bring_lines_of_other_files(net: Path) -> None:
    mirstack.compile("net.mir")
    Path("moved.mir").write_text("\n\n" + NET)
    for name, shift in (("net.mir", 0), ("moved.mir", 2), ("moved.mir", 2)):
        executable = mirstack.compile(name, debug_info=True)
        assert isinstance(executable, RelayExecutable)
        lines = {
            (line.file, line.line)
            for data in executable._code.objects
            for each in lines_of(data).values()
            for line in each
        }
        assert (name, 6 + shift) in lines and {file for file, _ in lines} == {name}


def registered() -> int:
    addresses = gdb._interface()
    assert addresses is not None
    entry = gdb._Descriptor.from_address(addresses[0]).first
    count = 0
    while entry:
        count += 1
        entry = entry.contents.following
    return count


def test_gdb_is_told_while_code_is_loaded(net: Path) -> None:
    if gdb._interface() is None:
        pytest.skip("llvmlite's library is stripped of its symbols")
    # The runtime is loaded once, and stays.
    compiled()
    gc.collect()
    before = registered()
    first, second = compiled(), compiled()
    assert registered() > before + 1
    x, w = np.ones((2, 8), "float32"), np.ones((4, 8), "float32")
    assert np.array_equal(first(x, w), second(x, w))
    del first
    gc.collect()
    mirstack.compile("net.mir")
    assert registered() > before
    del second
    gc.collect()
    assert registered() == before


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "perf").mkdir()
    monkeypatch.setattr(perf_map, "_FOLDER", tmp_path / "perf")
    monkeypatch.setattr(perf_map, "_dumps", {})
    monkeypatch.setattr(settings, "_SAID", set[str]())
    monkeypatch.setenv("MIRSTACK_PERF", "jitdump")
    return tmp_path / "perf"


def test_the_dump_for_perf_holds_code_and_lines(net: Path, folder: Path) -> None:
    executables = [compiled(), mirstack.compile("net.mir")]
    (path,) = folder.iterdir()
    assert path.name == f"jit-{os.getpid()}.dump" and path.stat().st_mode & 0o777 == 0o600
    data = path.read_bytes()
    magic, version, size, machine, _, process, _, flags = jit_dump.HEADER.unpack_from(data)
    assert (magic, version, size, process, flags) == (0x4A695444, 1, 40, os.getpid(), 0)
    assert machine == {"x86_64": 62, "aarch64": 183}.get(os.uname().machine, machine)
    position, lines, numbers, shown = size, {}, [], {}
    while position < len(data):
        kind, size, _ = jit_dump.PREFIX.unpack_from(data, position)
        body = data[position + jit_dump.PREFIX.size : position + size]
        position += size
        if kind == jit_dump.DEBUG_INFO:
            address, count = jit_dump.LINES.unpack_from(body)
            at = jit_dump.LINES.size
            lines[address] = []
            assert size % 8 == 0
            for _ in range(count):
                place, line, _ = jit_dump.LINE.unpack_from(body, at)
                end = body.index(b"\0", at + jit_dump.LINE.size)
                lines[address].append((place, line, body[at + jit_dump.LINE.size : end].decode()))
                at = end + 1
            continue
        assert kind == jit_dump.LOAD
        process, _, address, again, length, number = jit_dump.CODE.unpack_from(body)
        name, _, code = body[jit_dump.CODE.size :].partition(b"\0")
        # perf takes the last bytes of a record for the code.
        assert address == again and process == os.getpid() and code == ctypes.string_at(address, length)
        numbers.append(number)
        shown.setdefault(name.decode().partition(".")[0], []).append((address, length, lines.get(address)))
    assert position == len(data) and numbers == sorted(set(numbers))
    lined, plain = shown["square"]
    assert plain[2] is None and executables
    address, length, found = lined
    assert {line for _, line, file in found if file == "net.mir"} >= {6}
    assert all(address <= place < address + length for place, _, _ in found)


def test_a_dump_that_cannot_be_written_is_said_once(
    net: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / f"jit-{os.getpid()}.dump").symlink_to(net / "net.mir")
    compiled()
    mirstack.compile("net.mir")
    assert Path("net.mir").read_text() == NET
    assert capsys.readouterr().err.count("is not written, so perf shows addresses") == 1


def test_webassembly_has_no_lines(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mir_build.main(["net.mir", "-g", "-o", "net.wasm"]) == 1
    assert "net.wasm: a module of WebAssembly has no lines for debuggers" in capsys.readouterr().err


def test_a_package_is_compiled_already(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mirstack.driver import mir_run

    built("net.mirpkg", "-g")
    assert mir_run.main(["net.mirpkg", "--random", "1"]) == 0
    assert mir_run.main(["net.mirpkg", "--random", "1", "-g"]) == 2
    assert "--debug-info: net.mirpkg is compiled already" in capsys.readouterr().err
