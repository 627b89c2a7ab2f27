"""Programs in Rust and Go call libraries, and get the numbers of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import absent
from mirstack.lowering.driver.artifacts.link import linker

if linker() is None:
    absent("ziglang", "link")
pytestmark = pytest.mark.extra

NET = """
def @main(%x: Tensor[(?, 4), float32], %w: Tensor[(3, 4), float32]) {
  nn.softmax(nn.dense(%x, %w))
}
"""
RUST = """
use std::ffi::{c_char, c_int, CStr};

#[repr(C)]
struct NetInputs { x: *const f32, x_dim0: i64, w: *const f32 }
#[repr(C)]
struct NetOutputs { out0: *mut f32, out0_dim0: i64 }

#[link(name = "net")]
extern "C" {
    fn net_sizes(inputs: *const NetInputs, outputs: *mut NetOutputs) -> c_int;
    fn net_run(inputs: *const NetInputs, outputs: *mut NetOutputs) -> c_int;
    fn net_status(status: c_int) -> *const c_char;
}

fn check(status: c_int) {
    if status != 0 {
        let text = unsafe { CStr::from_ptr(net_status(status)) };
        eprintln!("{}", text.to_string_lossy());
        std::process::exit(1);
    }
}

fn main() {
    let x: Vec<f32> = (0..20).map(|i| (i % 7) as f32 - 3.0).collect();
    let w: Vec<f32> = (0..12).map(|i| (i % 5) as f32 * 0.125).collect();
    let inputs = NetInputs { x: x.as_ptr(), x_dim0: 5, w: w.as_ptr() };
    let mut outputs = NetOutputs { out0: std::ptr::null_mut(), out0_dim0: 0 };
    check(unsafe { net_sizes(&inputs, &mut outputs) });
    let mut result = vec![0f32; outputs.out0_dim0 as usize * 3];
    outputs.out0 = result.as_mut_ptr();
    check(unsafe { net_run(&inputs, &mut outputs) });
    for value in result { print!("{value} "); }
}
"""
GO = """
package main

// #cgo LDFLAGS: -L. -lnet
// #include <stdlib.h>
// #include "net.h"
import "C"
import (
	"fmt"
	"unsafe"
)

func main() {
	x := (*[20]float32)(C.malloc(80))
	w := (*[12]float32)(C.malloc(48))
	out := (*[15]float32)(C.malloc(60))
	for i := range x { x[i] = float32(i%7) - 3 }
	for i := range w { w[i] = float32(i%5) * 0.125 }
	inputs := C.struct_net_inputs{x: (*C.float)(unsafe.Pointer(x)), x_dim0: 5, w: (*C.float)(unsafe.Pointer(w))}
	outputs := C.struct_net_outputs{out0: (*C.float)(unsafe.Pointer(out)), out0_dim0: 5}
	if status := C.net_run(&inputs, &outputs); status != 0 { panic(C.GoString(C.net_status(status))) }
	for _, value := range out { fmt.Print(value, " ") }
}
"""


def exported(folder: Path) -> np.ndarray:
    """Exports the library libnet.so with net.h; returns what Python computes."""
    exe = mirstack.compile(mirstack.parse(NET), specialize=False)
    exe.export(folder / "net.so")
    (folder / "net.so").rename(folder / "libnet.so")
    (folder / "net.so").symlink_to("libnet.so")
    x = (np.arange(20, dtype=np.float32) % 7 - 3).reshape(5, 4)
    w = (np.arange(12, dtype=np.float32) % 5 * np.float32(0.125)).reshape(3, 4)
    return exe(x, w)


def test_rust_computes_what_python_does(tmp_path: Path):
    rustc = shutil.which("rustc") or shutil.which("rustc", path=str(Path.home() / ".cargo/bin"))
    if rustc is None:
        pytest.skip("rustc is not installed")
    if shutil.which("cc") is None:
        pytest.skip("rustc links by cc, which is not installed")
    wanted = exported(tmp_path)
    (tmp_path / "main.rs").write_text(RUST)
    command = [rustc, "-O", "-L", ".", "-C", f"link-arg=-Wl,-rpath,{tmp_path}", "main.rs", "-o", "main"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    np.testing.assert_array_equal(np.array(done.stdout.split(), np.float32), wanted.ravel())


def test_go_computes_what_python_does(tmp_path: Path):
    go = shutil.which("go")
    if go is None:
        pytest.skip("go is not installed")
    wanted = exported(tmp_path)
    (tmp_path / "main.go").write_text(GO)
    environment = {
        **os.environ,
        "CGO_ENABLED": "1",
        "GOCACHE": str(tmp_path / "cache"),
        "GOFLAGS": "-mod=mod",
        "LD_LIBRARY_PATH": ".",
    }
    built = subprocess.run(
        [go, "build", "-o", "main", "main.go"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        ["./main"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True, env=environment
    )
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32), wanted.ravel(), rtol=1e-6)
