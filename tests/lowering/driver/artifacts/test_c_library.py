"""Shared libraries are called from C, and give the numbers of Python."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import absent, library
from mirstack.lowering.driver.artifacts import levels
from mirstack.lowering.driver.artifacts.c_interface import Interface, Status, identifier
from mirstack.lowering.driver.artifacts.link import link_shared, linker
from mirstack.lowering.driver.program import RelayProgram, Tensor
from mirstack.support.target import named

if linker() is None:
    absent("ziglang", "link")
pytestmark = pytest.mark.extra

COMPILERS = [[name] for name in ("cc", "gcc", "clang") if shutil.which(name)]
X86 = named("").arch == "x86_64"

NET = """
def @main(%x: Tensor[(2, 16), float32], %w: Tensor[(8, 16), float32]) {
  nn.softmax(nn.relu(nn.dense(%x, %w)))
}
"""


def compiler() -> list[str]:
    """Returns the command of a C compiler; skips the test where there is only a linker."""
    if COMPILERS:
        return COMPILERS[0]
    found = linker()
    if found is None or "ziglang" not in found:
        pytest.skip("a C compiler is not installed")
    return found


def run_c(folder: Path, library: str, body: str, *, flags: Sequence[str] = ()) -> str:
    """Compiles a main function that includes the library's header, runs it, and returns what it prints."""
    source = f'#include <stdio.h>\n#include <stdlib.h>\n#include "{library}.h"\n{body}\n'
    (folder / "main.c").write_text(source)
    program = folder / "main"
    arguments = [*compiler(), "-Wall", "-Werror", "-O1", str(folder / "main.c"), str(folder / f"{library}.so")]
    subprocess.run([*arguments, *flags, f"-Wl,-rpath,{folder}", "-o", str(program)], check=True, timeout=300)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(text: str) -> np.ndarray:
    return np.array(text.split(), np.float32)


def test_c_computes_what_python_does(tmp_path: Path):
    exe = mirstack.compile(mirstack.parse(NET))
    assert exe.export(tmp_path / "net.so") == [tmp_path / "net.so", tmp_path / "net.h"]
    body = """
    int main(void) {
      float x[2][16], w[8][16], out[2][8];
      for (int i = 0; i < 32; i++) ((float *)x)[i] = (float)(i % 7) - 3;
      for (int i = 0; i < 128; i++) ((float *)w)[i] = (float)(i % 5) * 0.125f;
      struct net_inputs in = {.x = *x, .w = *w};
      struct net_outputs result = {.out0 = *out};
      int status = net_run(&in, &result);
      if (status) { fprintf(stderr, "%s", net_status(status)); return 1; }
      for (int i = 0; i < 16; i++) printf("%.9g ", ((float *)out)[i]);
      return net_run(NULL, &result) != -1;
    }"""
    x = (np.arange(32, dtype=np.float32) % 7 - 3).reshape(2, 16)
    w = (np.arange(128, dtype=np.float32) % 5 * np.float32(0.125)).reshape(8, 16)
    np.testing.assert_array_equal(numbers(run_c(tmp_path, "net", body)), exe(x, w).ravel())


OPEN = """
def @main(%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32]) {
  (add(%x, %y), sum(%x, axis=[1]))
}
"""

OPEN_BODY = """
int main(void) {
  float x[12], y[12];
  for (int i = 0; i < 12; i++) { x[i] = (float)i; y[i] = 1; }
  struct net_inputs in = {.x = x, .x_dim0 = 3, .y = y, .y_dim0 = 3};
  struct net_outputs out = {0};
  int status = net_sizes(&in, &out);
  if (status || out.out0_dim0 != 3 || out.out1_dim0 != 3) return 1;
  if (net_run(&in, &out) != -6) return 2;
  out.out0 = malloc(sizeof(float) * 4 * out.out0_dim0);
  out.out1 = malloc(sizeof(float) * out.out1_dim0);
  if (net_run(&in, &out)) return 3;
  for (int i = 0; i < 12; i++) printf("%g ", out.out0[i]);
  for (int i = 0; i < 3; i++) printf("%g ", out.out1[i]);
  in.y_dim0 = 2;
  status = net_run(&in, &out);
  if (status <= 0) return 4;
  fprintf(stdout, "| %s | ", net_status(status));
  in.y_dim0 = -1;
  printf("%s", net_status(net_run(&in, &out)));
  in.y_dim0 = 3;
  out.out1_dim0 = 7;
  printf(" | %s", net_status(net_run(&in, &out)));
  return 0;
}
"""


def test_open_sizes_are_passed_and_asked_for(tmp_path: Path):
    mirstack.compile(mirstack.parse(OPEN, "sum.mir")).export(tmp_path / "net.so")
    header = (tmp_path / "net.h").read_text()
    assert "const float *x; /* float32[?][4] */\n  int64_t x_dim0;" in header
    found, failed, size, result = run_c(tmp_path, "net", OPEN_BODY).split("|")
    np.testing.assert_array_equal(numbers(found), [*range(1, 13), 6, 22, 38])
    assert failed.startswith(" sum.mir:3:") and "do not broadcast: they are (a size) and (a size)" in failed
    assert size.strip() == Status.SIZE.text and result.strip() == Status.RESULT.text


THREADS_BODY = """
#include <pthread.h>
#include <string.h>
static float x[2][16], w[8][16], want[2][8];
static void *calls(void *number) {
  float out[2][8];
  struct net_inputs in = {.x = *x, .w = *w};
  struct net_outputs result = {.out0 = *out};
  for (int i = 0; i < 10000; i++)
    if (net_run(&in, &result) || memcmp(out, want, sizeof out)) return number;
  return NULL;
}
int main(void) {
  pthread_t threads[8];
  for (int i = 0; i < 32; i++) ((float *)x)[i] = (float)(i % 7) - 3;
  for (int i = 0; i < 128; i++) ((float *)w)[i] = (float)(i % 5) * 0.125f;
  struct net_inputs in = {.x = *x, .w = *w};
  struct net_outputs result = {.out0 = *want};
  if (net_run(&in, &result)) return 1;
  for (int i = 0; i < 8; i++) pthread_create(threads + i, NULL, calls, threads);
  int bad = 0;
  for (int i = 0; i < 8; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    bad |= failed != NULL;
  }
  return bad;
}
"""


def test_threads_call_at_once(tmp_path: Path):
    # For the least processor: valgrind does not know the newest instructions.
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.so", cpus=["x86-64"] if X86 else ())
    run_c(tmp_path, "net", THREADS_BODY, flags=["-lpthread"])
    valgrind = shutil.which("valgrind")
    if valgrind is not None:
        checked = [valgrind, "--tool=helgrind", "--error-exitcode=9", str(tmp_path / "main")]
        done = subprocess.run(checked, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr[-3000:]


def test_debuggers_find_who_called_a_function(tmp_path: Path):
    """Without tables they guess: valgrind then takes each call for one from another place, and minutes for seconds."""
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.ll")
    text = (tmp_path / "net.ll").read_text()
    groups = dict(re.findall(r"^attributes (#\d+) = (.*)$", text, re.M))
    defined = re.findall(r"^define .*$", text, re.M)
    assert len(defined) > 5
    for line in defined:
        group = re.search(r"#\d+", line)
        assert "uwtable" in line + (groups[group[0]] if group else ""), line


PARALLEL = """
def @main(%x: Tensor[(512, 512), float32], %w: Tensor[(512, 512), float32]) { nn.relu(nn.dense(%x, %w)) }
"""


def call(path: Path, name: str, arrays: Sequence[np.ndarray], out: np.ndarray) -> int:
    """Calls a library of fixed shapes in this process; returns its status."""
    library = ctypes.CDLL(str(path))
    inputs = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    return getattr(library, f"{name}_run")(inputs, (ctypes.c_void_p * 1)(out.ctypes.data))


def test_a_library_has_threads_of_its_own(tmp_path: Path):
    exe = mirstack.compile(mirstack.parse(PARALLEL), threads=4)
    exe.export(tmp_path / "wide.so")
    x, w = (np.random.default_rng(k).normal(size=(512, 512)).astype(np.float32) for k in (0, 1))
    out = np.empty((512, 512), np.float32)
    library = ctypes.CDLL(str(tmp_path / "wide.so"))
    for threads in (4, 1, 100, 0):
        assert library.wide_threads(threads) == 0
        out[:] = 0
        assert call(tmp_path / "wide.so", "wide", [x, w], out) == 0
        np.testing.assert_allclose(out, exe(x, w), rtol=1e-4, atol=1e-4)


def test_weights_are_in_a_file_that_is_mapped(tmp_path: Path):
    weights = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    x = mirstack.relay.var("x", shape=(2, 16))
    module = mirstack.IRModule.from_expr(
        mirstack.relay.Function([x], mirstack.relay.nn.dense(x, mirstack.relay.const(weights)))
    )
    exe = mirstack.compile(module)
    files = exe.export(tmp_path / "net.so", weights=tmp_path / "net.bin")
    assert [file.name for file in files] == ["net.so", "net.h", "net.bin"]
    data, out = np.ones((2, 16), np.float32), np.zeros((2, 8), np.float32)
    library = ctypes.CDLL(str(tmp_path / "net.so"))
    assert call(tmp_path / "net.so", "net", [data], out) == Status.WEIGHTS.value
    whole = (tmp_path / "net.bin").read_bytes()
    for wrong in (whole[:-1], bytes([whole[0] ^ 1]) + whole[1:], b""):
        (tmp_path / "wrong.bin").write_bytes(wrong)
        assert library.net_load(str(tmp_path / "wrong.bin").encode()) == Status.WEIGHTS.value
    assert library.net_load(b"absent.bin") == library.net_load(None) == Status.WEIGHTS.value
    assert library.net_load(str(tmp_path / "net.bin").encode()) == 0
    assert call(tmp_path / "net.so", "net", [data], out) == 0
    np.testing.assert_array_equal(out, exe(data))


@pytest.mark.skipif(not X86, reason="processors of x86-64 are named")
def test_the_code_for_this_processor_is_chosen(tmp_path: Path):
    exe = mirstack.compile(mirstack.parse(NET))
    exe.export(tmp_path / "net.so", cpus=["x86-64", "diamondrapids"])
    x, w = np.ones((2, 16), np.float32), np.ones((8, 16), np.float32)
    out = np.zeros((2, 8), np.float32)
    assert call(tmp_path / "net.so", "net", [x, w], out) == 0
    np.testing.assert_allclose(out, exe(x, w), rtol=1e-6)


@pytest.mark.skipif(not X86, reason="processors of x86-64 are named")
def test_a_processor_that_no_code_suits_is_refused(tmp_path: Path):
    mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.so", cpus=["diamondrapids"])
    x, w, out = np.ones((2, 16), np.float32), np.ones((8, 16), np.float32), np.zeros((2, 8), np.float32)
    for _ in range(2):
        assert call(tmp_path / "net.so", "net", [x, w], out) == Status.PROCESSOR.value


def test_it_needs_the_c_library_alone(tmp_path: Path):
    mirstack.compile(mirstack.parse(PARALLEL), threads=4).export(tmp_path / "wide.so")
    readelf = shutil.which("readelf")
    if readelf is None:
        pytest.skip("readelf is not installed")
    dynamic = subprocess.run(
        [readelf, "-d", str(tmp_path / "wide.so")], capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"NEEDED.*\[(\w+)", dynamic)) <= {"libc", "libm", "libpthread", "ld"}
    symbols = subprocess.run(
        [readelf, "-Ws", "--dyn-syms", str(tmp_path / "wide.so")], capture_output=True, text=True, check=True
    ).stdout
    defined = {
        line.split()[7]
        for line in symbols.split("'.dynsym'")[1].split("\n\n")[0].splitlines()[2:]
        if " UND " not in line
    }
    assert {name for name in defined if name} == {"wide_run", "wide_status", "wide_threads"}


def test_object_files_text_and_assembly(tmp_path: Path):
    exe = mirstack.compile(mirstack.parse(NET))
    for ending in ("o", "ll", "s"):
        files = exe.export(tmp_path / f"net.{ending}")
        assert [file.name for file in files] == [f"net.{ending}", "net.h"]
    assert "define i32 @net_run(ptr %inputs, ptr %outputs)" in (tmp_path / "net.ll").read_text()
    assert "net_run:" in (tmp_path / "net.s").read_text()
    link_shared([(tmp_path / "net.o").read_bytes()], tmp_path / "net.so", "net.so")
    x, w, out = np.ones((2, 16), np.float32), np.ones((8, 16), np.float32), np.zeros((2, 8), np.float32)
    assert call(tmp_path / "net.so", "net", [x, w], out) == 0
    np.testing.assert_array_equal(out, exe(x, w))


LINKERS = {
    "cc": None if shutil.which("cc") is None else "cc",
    "ld": None if shutil.which("ld") is None else "ld",
    "ziglang": f"{sys.executable} -m ziglang cc",
}


@pytest.mark.skipif(not X86, reason="processors of x86-64 are named")
@pytest.mark.parametrize("name", LINKERS)
def test_several_levels_are_joined_to_one_object_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    if name == "ziglang":
        library("ziglang", "link")
    if LINKERS[name] is None:
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("MIRSTACK_CC", LINKERS[name] or "")
    exe = mirstack.compile(mirstack.parse(NET))
    for each in ("net", "other"):
        exe.export(tmp_path / f"{each}.o", cpus=["x86-64", "haswell", "diamondrapids"])
    # Two libraries of several levels in one: none of their names is the same.
    monkeypatch.delenv("MIRSTACK_CC")
    link_shared([(tmp_path / f"{each}.o").read_bytes() for each in ("net", "other")], tmp_path / "net.so", "net.so")
    x, w, out = np.ones((2, 16), np.float32), np.ones((8, 16), np.float32), np.zeros((2, 8), np.float32)
    for each in ("net", "other"):
        out[:] = 0
        assert call(tmp_path / "net.so", each, [x, w], out) == 0
        np.testing.assert_allclose(out, exe(x, w), rtol=1e-6)


def test_several_levels_in_one_object_file_need_a_linker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mirstack.lowering.driver.artifacts.link.linker", lambda: None)
    cpus = ["x86-64", "haswell"] if X86 else ["cortex-a72", "neoverse-n1"]
    with pytest.raises(mirstack.MirError, match=r"code for several processors is joined by a linker, and this machine"):
        mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.o", cpus=cpus)


def dense(rows: int, columns: int, seed: int = 0) -> mirstack.Executable:
    """Returns a product with constant weights of rows × columns, which kernels read packed."""
    weights = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)
    x = mirstack.relay.var("x", shape=(64, columns))
    product = mirstack.relay.nn.dense(x, mirstack.relay.const(weights))
    return mirstack.compile(mirstack.IRModule.from_expr(mirstack.relay.Function([x], product)))


def test_weights_are_packed_when_the_library_is_built(tmp_path: Path):
    exe = dense(512, 256)
    exe.export(tmp_path / "net.ll")
    text = (tmp_path / "net.ll").read_text()
    assert "mirstack_prepare" not in text and "@prepared.0 = internal constant [1 x ptr]" in text
    exe.export(tmp_path / "net.so")
    assert 512 * 256 * 4 < (tmp_path / "net.so").stat().st_size < 1.2 * 512 * 256 * 4
    x, out = np.random.default_rng(1).normal(size=(64, 256)).astype(np.float32), np.zeros((64, 512), np.float32)
    assert call(tmp_path / "net.so", "net", [x], out) == 0
    np.testing.assert_array_equal(out, exe(x))


def test_packed_weights_are_in_the_file_of_weights(tmp_path: Path):
    exe = dense(512, 256)
    exe.export(tmp_path / "net.so", weights=tmp_path / "net.bin")
    assert (tmp_path / "net.bin").stat().st_size < 1.2 * 512 * 256 * 4
    library = ctypes.CDLL(str(tmp_path / "net.so"))
    assert library.net_load(str(tmp_path / "net.bin").encode()) == 0
    x, out = np.random.default_rng(1).normal(size=(64, 256)).astype(np.float32), np.zeros((64, 512), np.float32)
    assert call(tmp_path / "net.so", "net", [x], out) == 0
    np.testing.assert_array_equal(out, exe(x))


def test_weights_that_cannot_be_packed_here_are_packed_by_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(levels, "prepacked_by_text", lambda program, *_: program)
    exe = dense(2048, 1024)
    exe.export(tmp_path / "net.ll", weights=tmp_path / "net.bin")
    text = (tmp_path / "net.ll").read_text()
    assert "@aligned_alloc(i64 2097152, i64 8388608)" in text
    assert "@madvise(ptr %memory, i64 8388608, i32 14)" in text
    exe.export(tmp_path / "net.so")
    x, out = np.random.default_rng(1).normal(size=(64, 1024)).astype(np.float32), np.zeros((64, 2048), np.float32)
    assert call(tmp_path / "net.so", "net", [x], out) == 0
    np.testing.assert_array_equal(out, exe(x))


def test_recursive_programs_end_in_a_status(tmp_path: Path):
    text = """
def @steps(%n: int32, %x: float32) -> float32 { if (less_equal(%n, 0)) { %x } else { add(1f, @steps(subtract(%n, 1), %x)) } }
def @main(%n: int32) { @steps(%n, 0f) }
"""
    mirstack.compile(mirstack.parse(text)).export(tmp_path / "deep.so")
    out = np.zeros((), np.float32)
    assert call(tmp_path / "deep.so", "deep", [np.array(100, np.int32)], out) == 0 and out == 100
    status = call(tmp_path / "deep.so", "deep", [np.array(100_000_000, np.int32)], out)
    library = ctypes.CDLL(str(tmp_path / "deep.so"))
    library.deep_status.restype = ctypes.c_char_p
    assert status > 0 and b"the recursion is deeper than the stack allows" in library.deep_status(status)
    assert call(tmp_path / "deep.so", "deep", [np.array(50, np.int32)], out) == 0 and out == 50


def test_names_of_entries_end_no_comment():
    program = RelayProgram("a */ int b;\n", (), Tensor((1,), "float32"), {}, (), 0, 0, (), 0, ())
    header = Interface.of("net", program).header(parallel=False, external=False, most_threads=1)
    assert header.startswith("/* @a____int_b__, compiled by mirstack.")


def test_names_of_fields():
    assert [identifier(name) for name in ("x", "pair.0", "int", "3d", "class", "")] == [
        "x", "pair_0", "int_", "_3d", "class_", "_",
    ]  # fmt: skip


REFUSED = [
    (
        "net.txt",
        {},
        "net.txt: nothing is written to files that end in '.txt'\n.*the endings are .mirpkg, .so, .o, .ll, .s",
    ),
    ("absent/net.so", {}, "absent/net.so: cannot be written: No such file or directory"),
    ("net.mirpkg", {"weights": "net.bin"}, "a package holds its weights"),
    ("net.ll", {"cpus": ["haswell", "x86-64"]}, "code for several processors is several modules, and a text has one"),
    ("net.so", {"cpus": ["haswell", "neoverse-n1"]}, "processors of several kinds are asked for: aarch64, x86_64"),
    ("net.so", {"cpus": ["apple-m1"]}, "a shared library of aarch64-apple-macosx is linked there"),
    ("net.so", {"cpus": ["z80"]}, "nothing is known of a processor 'z80'"),
]


@pytest.mark.parametrize("name, options, message", REFUSED, ids=[message[:40] for *_, message in REFUSED])
def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options, message: str):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mirstack.MirError, match=message):
        mirstack.compile(mirstack.parse(NET)).export(name, **options)


def test_without_a_linker_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mirstack.lowering.driver.artifacts.link.linker", lambda: None)
    exe = mirstack.compile(mirstack.parse(NET))
    with pytest.raises(
        mirstack.MirError, match=r"a shared library needs a linker, and this machine has none\n.*ziglang"
    ):
        exe.export(tmp_path / "net.so")
    exe.export(tmp_path / "net.o")


def test_what_the_linker_says_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MIRSTACK_CC", f"{sys.executable} -c raise(SystemExit('no'))")
    with pytest.raises(mirstack.MirError, match=r"the linker .* fails: no"):
        mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.so")
    monkeypatch.setenv("MIRSTACK_CC", "/absent/cc")
    with pytest.raises(mirstack.MirError, match=r"the linker /absent/cc cannot be run"):
        mirstack.compile(mirstack.parse(NET)).export(tmp_path / "net.so")


CROSS_BODY = """
#include <stdio.h>
#include "net.h"
int main(void) {
  float x[2][16], w[8][16], out[2][8];
  for (int i = 0; i < 32; i++) ((float *)x)[i] = (float)(i % 7) - 3;
  for (int i = 0; i < 128; i++) ((float *)w)[i] = (float)(i % 5) * 0.125f;
  struct net_inputs in = {.x = *x, .w = *w};
  struct net_outputs result = {.out0 = *out};
  int status = net_run(&in, &result);
  printf("%d|", status);
  for (int i = 0; i < 16; i++) printf("%.9g ", ((float *)out)[i]);
  return 0;
}
"""


@pytest.mark.skipif(not X86, reason="code for Arm is foreign on x86-64")
def test_another_kind_of_processor_computes_the_same(tmp_path: Path):
    library("ziglang", "link")
    emulator = shutil.which("qemu-aarch64")
    if emulator is None:
        pytest.skip("qemu-aarch64 is not installed")
    exe = mirstack.compile(mirstack.parse(NET))
    exe.export(tmp_path / "net.o", cpus=["neoverse-n1"])
    (tmp_path / "main.c").write_text(CROSS_BODY)
    cross = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl"]
    files = [str(tmp_path / name) for name in ("main.c", "net.o", "main")]
    subprocess.run([*cross, *files[:2], "-o", files[2]], check=True, timeout=600)

    def run(*options: str) -> list[str]:
        done = subprocess.run([emulator, *options, files[2]], capture_output=True, text=True, timeout=300, check=True)
        return done.stdout.split("|")

    status, found = run()
    x = (np.arange(32, dtype=np.float32) % 7 - 3).reshape(2, 16)
    w = (np.arange(128, dtype=np.float32) % 5 * np.float32(0.125)).reshape(8, 16)
    assert status == "0"
    np.testing.assert_allclose(numbers(found), exe(x, w).ravel(), rtol=1e-6)
    # It has neither dot products nor arithmetic on float16.
    assert run("-cpu", "cortex-a57")[0] == str(Status.PROCESSOR.value)


def test_a_library_by_tvms_names_is_loaded_again(tmp_path: Path) -> None:
    built = mirstack.build(mirstack.IRModule.of_op(mirstack.parse(NET)))
    assert built.export_library(tmp_path / "net.so") == [tmp_path / "net.so", tmp_path / "net.h"]
    loaded = mirstack.runtime.load_module(tmp_path / "net.so")
    x, w = np.ones((2, 16), np.float32), np.eye(8, 16, dtype=np.float32)
    np.testing.assert_array_equal(loaded(x, w).numpy(), built(x, w).numpy())
    assert callable(ctypes.CDLL(str(tmp_path / "net.so")).net_run)
