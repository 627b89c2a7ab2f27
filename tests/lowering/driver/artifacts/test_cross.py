"""Libraries for other kinds of processors give the numbers of this one, run by an emulator."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.driver.mir_build import main
from mirstack.lowering.driver.artifacts import link
from mirstack.lowering.driver.artifacts.c_interface import Interface, Status
from mirstack.lowering.driver.artifacts.narrow_words import pointer_bytes, with_narrow_words
from mirstack.lowering.driver.program import DYNAMIC, RelayProgram, Tensor

pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the other kinds of processors are foreign on x86-64"),
]


@dataclass(frozen=True)
class System:
    """A system that an emulator runs programs of."""

    triple: str
    zig: str
    emulator: str
    able: tuple[str, ...]
    """Its options for a processor that has what code is made for."""
    unable: tuple[str, ...]
    """Those for one that lacks something."""
    integer: str = "int8"
    """The integer that floats are converted to: QEMU before 8.0 ends on RISC-V's conversions of vectors to narrower ones."""

    def run(self, program: Path, options: tuple[str, ...] | None = None) -> str:
        """Runs a program; skips the test where the emulator, or a library that it is linked to, is not installed."""
        emulator = shutil.which(self.emulator)
        if emulator is None:
            pytest.skip(f"{self.emulator} is not installed")
        folder = Path(f"/usr/{self.zig}")
        libraries = ("-L", str(folder)) if folder.is_dir() else ()
        command = [emulator, *(self.able if options is None else options), *libraries, str(program)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout

    def compile(self, folder: Path, *options: str, static: bool = False) -> Path:
        """Compiles main.c in a folder, with the files and options of zig."""
        library("ziglang", "link")
        if not static and not Path(f"/usr/{self.zig}").is_dir():
            pytest.skip(f"the C library of {self.zig} is not installed")
        system = self.zig.replace("gnu", "musl") if static else self.zig
        command = [sys.executable, "-m", "ziglang", "cc", "-target", system, "-O1", "main.c", *options, "-o", "main"]
        subprocess.run(command, cwd=folder, check=True, timeout=600)
        return folder / "main"


SYSTEMS = [
    System("aarch64-linux-gnu", "aarch64-linux-gnu", "qemu-aarch64", (), ()),
    System(
        "riscv64-linux-gnu",
        "riscv64-linux-gnu",
        "qemu-riscv64",
        ("-cpu", "rv64,v=true"),
        ("-cpu", "rv64,v=false"),
        "int32",
    ),
    System("armv7-linux-gnueabihf", "arm-linux-gnueabihf", "qemu-arm", (), ("-cpu", "cortex-a9,neon=off")),
]
EACH = pytest.mark.parametrize("system", SYSTEMS, ids=[system.triple for system in SYSTEMS])

MIXED = """
def @main(%x: Tensor[(?, 16), float32], %w: Tensor[(24, 16), float32], %n: Tensor[(?), int64]) {
  let %h = nn.relu(nn.dense(%x, %w));
  (nn.softmax(%h), cast(multiply(%x, 100f), dtype="INTEGER"), floor_divide(multiply(%n, %n), 7i64), exp(cast(%h, dtype="float64")),
   cast(cast(%x, dtype="float16"), dtype="float32"), sum(%n), argmax(%h, axis=[1]))
}
"""
MIXED_MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "mixed.h"
#define SHOW(field, count, format, kind) for (int i = 0; i < (count); i++) printf(format " ", (kind)out.field[i]); printf("|")
int main(void) {
  int rows = 5, items = 9;
  float *x = malloc(rows * 16 * 4), *w = malloc(24 * 16 * 4);
  int64_t *n = malloc(items * 8);
  for (int i = 0; i < rows * 16; i++) x[i] = (float)(i % 11) * 0.3f - 1.5f;
  x[3] = 0.0f / (x[5] - x[5]);
  x[20] = 1e30f;
  for (int i = 0; i < 24 * 16; i++) w[i] = (float)(i % 7) * 0.125f - 0.25f;
  for (int i = 0; i < items; i++) n[i] = ((int64_t)i - 4) * 3000000001LL;
  struct mixed_inputs in = {.x = x, .x_dim0 = rows, .w = w, .n = n, .n_dim0 = items};
  struct mixed_outputs out = {0};
  SIZES
  out.out0 = malloc(rows * 24 * 4); out.out1 = malloc(rows * 16 * 4); out.out2 = malloc(items * 8); out.out3 = malloc(rows * 24 * 8);
  out.out4 = malloc(rows * 16 * 4); out.out5 = malloc(8); out.out6 = malloc(rows * 8);
  int status = mixed_run(&in, &out);
  if (status) { printf("%s", mixed_status(status)); return 0; }
  SHOW(out0, rows * 24, "%.9g", double);
  SHOW(out1, rows * 16, "%d", int);
  SHOW(out2, items, "%lld", long long);
  SHOW(out3, rows * 24, "%.17g", double);
  SHOW(out4, rows * 16, "%.9g", double);
  SHOW(out5, 1, "%lld", long long);
  SHOW(out6, rows, "%lld", long long);
  return 0;
}
"""


@EACH
def test_results_are_those_of_this_machine(tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    source = MIXED.replace("INTEGER", system.integer)
    exe = mirstack.compile(mirstack.parse(source), specialize=False)
    Path("mixed.mir").write_text(source)
    assert main(["mixed.mir", "-o", "mixed.o", "--triple", system.triple]) == 0
    Path("main.c").write_text(MIXED_MAIN.replace("SIZES", "mixed_sizes(&in, &out);"))
    # zig's own default uses NEON.
    plain = ("-mcpu=cortex_a9-neon",) if system.emulator == "qemu-arm" else ()
    found = system.run(system.compile(tmp_path, "mixed.o", *plain, static=True)).split("|")
    assert len(found) == 8, found
    x = (np.arange(80, dtype=np.float32) % 11 * np.float32(0.3) - np.float32(1.5)).reshape(5, 16)
    x[0, 3], x[1, 4] = np.nan, 1e30
    w = (np.arange(384, dtype=np.float32) % 7 * np.float32(0.125) - np.float32(0.25)).reshape(24, 16)
    n = (np.arange(9, dtype=np.int64) - 4) * 3000000001
    for text, wanted in zip(found, exe(x, w, n), strict=False):
        got = np.array(text.split(), np.float64 if wanted.dtype.kind == "f" else wanted.dtype)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted.ravel(), rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(got, wanted.ravel())
    if system.unable:
        lacks = system.run(tmp_path / "main", system.unable)
        assert lacks == Status.PROCESSOR.text


WIDE_MAIN = """
#include <stdio.h>
#include "wide.h"
static float x[64][256], out[64][128];
int main(void) {
  for (int i = 0; i < 64 * 256; i++) ((float *)x)[i] = (float)(i % 13) - 6;
  struct wide_inputs in = {.x = *x};
  struct wide_outputs result = {.out0 = *out};
  printf("%d ", wide_run(&in, &result));
  printf("%d ", wide_load("wide.h"));
  int loaded = wide_load("wide.bin");
  printf("%d %d ", loaded, wide_threads(2));
  for (int i = 0; i < 20; i++) if (wide_run(&in, &result)) return 1;
  for (int i = 0; i < 64 * 128; i += 97) printf("%.9g ", ((float *)out)[i]);
  return 0;
}
"""


@EACH
def test_shared_libraries_have_weights_in_files_and_threads(
    tmp_path: Path, system: System, monkeypatch: pytest.MonkeyPatch
):
    library("ziglang", "link")
    monkeypatch.chdir(tmp_path)
    weights = np.random.default_rng(0).normal(size=(128, 256)).astype(np.float32)
    relay = mirstack.relay
    x = relay.var("x", shape=(64, 256))
    function = relay.Function([x], relay.nn.relu(relay.nn.dense(x, relay.const(weights))))
    exe = mirstack.compile(mirstack.IRModule.from_expr(function), threads=2)
    cpu = {"aarch64": "neoverse-n1", "riscv64": "rv64gcv", "armv7": "cortex-a7"}[system.triple.partition("-")[0]]
    exe.export(tmp_path / "wide.so", cpus=[cpu], weights=tmp_path / "wide.bin")
    # They were packed here.
    assert (tmp_path / "wide.bin").stat().st_size == weights.nbytes
    Path("main.c").write_text(WIDE_MAIN)
    before, wrong, loaded, threads, *found = system.run(system.compile(tmp_path, "wide.so", "-Wl,-rpath,.")).split()
    assert (int(before), int(wrong), int(loaded), int(threads)) == (Status.WEIGHTS, Status.WEIGHTS, 0, 0)
    data = (np.arange(64 * 256, dtype=np.float32) % 13 - 6).reshape(64, 256)
    np.testing.assert_allclose(np.array(found, np.float32), exe(data).ravel()[::97], rtol=1e-5, atol=1e-4)


def test_without_a_linker_for_the_system_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    exe = mirstack.compile(mirstack.parse("def @main(%x: Tensor[(4), float32]) { nn.relu(%x) }"))
    monkeypatch.delenv("MIRSTACK_CC", raising=False)
    monkeypatch.setattr(link, "find_spec", lambda name: None)
    monkeypatch.setattr(link.shutil, "which", lambda name: None)
    with pytest.raises(mirstack.MirError, match=r"a shared library of riscv64-unknown-linux-gnu needs a linker for it"):
        exe.export(tmp_path / "net.so", cpus=["rv64gcv"])
    monkeypatch.setattr(link.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert link.cross_linker("armv7-unknown-linux-gnueabihf") == ["arm-linux-gnueabihf-gcc"]
    monkeypatch.setenv("MIRSTACK_CC", "my-cc -q")
    assert link.cross_linker("armv7-unknown-linux-gnueabihf") == ["my-cc", "-q"]


def test_fields_are_where_c_has_them():
    opened, fixed = Tensor((DYNAMIC, 4, DYNAMIC), "float32"), Tensor((4,), "float32")
    program = RelayProgram("main", (("a", fixed), ("b", opened), ("c", fixed)), fixed, {}, (), 0, 0, (), 0, ())
    places = [(f.offset, [place for _, place in f.open]) for f in Interface.of("net", program, 4).inputs]
    assert places == [(0, []), (4, [8, 16]), (24, [])]
    places = [(f.offset, [place for _, place in f.open]) for f in Interface.of("net", program).inputs]
    assert places == [(0, []), (8, [16, 24]), (32, [])]


def test_words_of_32_bits_are_passed_to_the_c_library():
    assert [pointer_bytes(t) for t in ("armv7-unknown-linux-gnueabihf", "arm64-apple-macosx", "wasm32")] == [4, 8, 4]
    text = (
        "declare ptr @mmap(ptr, i64, i32, i32, i32, i64)\ncall ptr @mmap(ptr null, i64 1, i32 1, i32 2, i32 3, i64 0)\n"
    )
    found = with_narrow_words(text, "armv7-unknown-linux-gnueabihf")
    assert "declare ptr @mmap(ptr, i32, i32, i32, i32, i32)" in found and "call ptr @wide.mmap(ptr null, i64 1" in found
    assert "@mmap(ptr, i32, i32, i32, i32, i64)" in with_narrow_words(text, "armv7-unknown-linux-musleabihf")


@pytest.mark.parametrize("bytes, runs", [(128, False), (512, True)])
def test_longer_vectors_of_risc_v_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes: int, runs: bool
):
    system = SYSTEMS[1]
    monkeypatch.chdir(tmp_path)
    mirstack.compile(mirstack.parse("def @main(%x: Tensor[(64), float32]) { nn.relu(%x) }")).export(
        tmp_path / "net.o", cpus=["sifive-x280"]
    )
    Path("main.c").write_text(
        """
#include <stdio.h>
#include "net.h"
int main(void) {
  float x[64], out[64];
  for (int i = 0; i < 64; i++) x[i] = i - 32;
  struct net_inputs in = {.x = x};
  struct net_outputs result = {.out0 = out};
  printf("%d", net_run(&in, &result));
  return !(out[63] == 31);
}""".replace("return !(out[63] == 31);", "return 0;" if not runs else "return !(out[63] == 31);")
    )
    program = system.compile(tmp_path, "net.o", static=True)
    options = ("-cpu", f"rv64,v=true,vlen={bytes}")
    assert system.run(program, options) == ("0" if runs else str(Status.PROCESSOR.value))
