"""Functions of TE and TIR are called from C, with memory and sizes that C brings."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import absent
from mirstack.lowering.driver.artifacts.c_interface import Status
from mirstack.lowering.driver.artifacts.link import linker

if linker() is None:
    absent("ziglang", "link")
pytestmark = pytest.mark.extra

SCALE = """
@T.prim_func
def scale(a: T.handle, b: T.handle, c: T.Buffer((4,), "float32"), k: T.float32, on: T.bool, shift: T.int8):
    n = T.int32(is_size_var=True)
    A = T.match_buffer(a, (n, 4))
    B = T.match_buffer(b, (n, 4))
    for i, j in T.grid(n, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(on, A[vi, vj] * k, c[vj]) + T.cast(shift, "float32")
"""
SCALE_BODY = """
int main(void) {
  float a[3][4], b[3][4], c[4] = {7, 8, 9, 10};
  for (int i = 0; i < 12; i++) a[i / 4][i % 4] = i;
  struct scale_inputs in = {.a = *a, .c = c, .k = 2.5f, .on = 1, .shift = -3, .n = 3};
  struct scale_outputs out = {.b = *b};
  for (int on = 1; on >= 0; on--) {
    in.on = on;
    printf("%d ", scale_run(&in, &out));
    for (int i = 0; i < 12; i++) printf("%.9g ", b[i / 4][i % 4]);
  }
  in.n = -1;
  printf("%d ", scale_run(&in, &out));
  in.n = 3;
  in.a = NULL;
  printf("%d %d", scale_run(&in, &out), scale_run(NULL, &out));
  return 0;
}
"""


def run_c(folder: Path, library: str, body: str) -> list[str]:
    """Compiles a main function that includes the library's header, runs it, and returns the words that it prints."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        pytest.skip("a C compiler is not installed")
    (folder / "main.c").write_text(f'#include <stdio.h>\n#include "{library}.h"\n{body}\n')
    flags: Sequence[str] = ("-Wall", "-Werror", "-O1", f"-Wl,-rpath,{folder}")
    files = [str(folder / name) for name in ("main.c", f"{library}.so")]
    subprocess.run([compiler, *flags, *files, "-o", str(folder / "main")], check=True, timeout=300)
    return subprocess.run(
        [str(folder / "main")], capture_output=True, text=True, timeout=300, check=True
    ).stdout.split()


@pytest.mark.parametrize("cpus", [(), ("x86-64", "x86-64-v3")], ids=["one level", "two levels"])
def test_a_function_of_tir_takes_memory_scalars_and_sizes(tmp_path: Path, cpus: Sequence[str]):
    exe = mirstack.compile(mirstack.parse(SCALE))
    try:
        exe.export(tmp_path / "scale.so", cpus=cpus)
    except mirstack.MirError as error:
        if "processors of several kinds" in str(error):
            pytest.skip("processors of x86-64 are named")
        raise
    header = (tmp_path / "scale.h").read_text()
    assert (
        "  const float *a; /* float32[n][4] */\n  const float *c; /* float32[4] */\n  float k; /* float32 */\n"
        in header
    )
    assert "  uint8_t on; /* bool */\n  int8_t shift; /* int8 */\n  int64_t n; /* int64 */\n};" in header
    assert "struct scale_outputs {\n  float *b; /* float32[n][4], written */\n};" in header
    found = run_c(tmp_path, "scale", SCALE_BODY)
    a, b, c = (
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.zeros((3, 4), np.float32),
        np.arange(7, 11, dtype=np.float32),
    )
    for start, on in ((0, True), (13, False)):
        exe(a, b, c, 2.5, on, -3)
        assert found[start] == "0"
        np.testing.assert_array_equal(np.array(found[start + 1 : start + 13], np.float32), b.ravel())
    assert found[26:] == [str(each.value) for each in (Status.SIZE, Status.NULL, Status.NULL)]


def test_a_te_function_and_the_errors_of_a_function(tmp_path: Path):
    text = """
@te.func
def pick():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    at = te.placeholder((4,), name="at", dtype="int32")
    B = te.compute((4,), lambda i: A[at[i]] + 1.0, name="B")
    return [A, at, B]
"""
    mirstack.compile(mirstack.parse(text, "pick.mir")).export(tmp_path / "pick.so")
    body = """
int main(void) {
  float a[6] = {10, 11, 12, 13, 14, 15}, b[4];
  int at[4] = {5, 0, 3, 3};
  struct pick_inputs in = {.A = a, .at = at, .n = 6};
  struct pick_outputs out = {.B = b};
  int status = pick_run(&in, &out);
  printf("%d %g %g %g %g ", status, b[0], b[1], b[2], b[3]);
  in.n = 5;
  printf("%s", pick_status(pick_run(&in, &out)));
  return 0;
}"""
    status, *found = run_c(tmp_path, "pick", body)
    assert status == "0" and found[:4] == ["16", "11", "14", "14"]
    assert "pick.mir:7" in found[4] and "outside" in " ".join(found)


def test_functions_of_mlir_return_scalars(tmp_path: Path):
    from mirstack.driver.mir_build import main

    (tmp_path / "twice.mlir").write_text(
        "func.func @twice(%a: i32, %m: memref<4xf32>) -> i32 {\n  %c = arith.constant 1 : index\n  %x = arith.constant 2.5 : f32\n"
        "  memref.store %x, %m[%c] : memref<4xf32>\n  %r = arith.addi %a, %a : i32\n  func.return %r : i32\n}\n"
    )
    assert main([str(tmp_path / "twice.mlir"), "-o", str(tmp_path / "twice.so")]) == 0
    body = """
int main(void) {
  float m[4] = {0};
  int result = 0;
  struct twice_inputs in = {.a = 21};
  struct twice_outputs out = {.m = m, .out0 = &result};
  int status = twice_run(&in, &out);
  printf("%d %d %g", status, result, m[1]);
  return 0;
}"""
    assert run_c(tmp_path, "twice", body) == ["0", "42", "2.5"]


HANDLE = """
@T.prim_func
def raw(h: T.handle, B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.float32(1)
"""
REFUSED = [
    (HANDLE, "raw.so", None, "a library for C cannot have @raw: 'h' is a handle whose elements are not described"),
    (
        SCALE,
        "scale.wasm",
        None,
        "a library for C cannot have @scale: a module of WebAssembly needs a function of Relay",
    ),
    (SCALE, "scale.so", "scale.bin", "a library for C cannot have @scale: a function of TE or TIR has no weights"),
]


@pytest.mark.parametrize("text, name, weights, message", REFUSED, ids=[message[30:70] for *_, message in REFUSED])
def test_what_is_refused(tmp_path: Path, text: str, name: str, weights: str | None, message: str):
    exe = mirstack.compile(mirstack.parse(text))
    with pytest.raises(mirstack.MirError, match=message):
        exe.export(tmp_path / name, weights=None if weights is None else tmp_path / weights)
