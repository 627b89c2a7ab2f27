"""The thread pool: every iteration runs once, whoever calls, nested or not; failures; forks."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compiled_ir import compile_ir
from mirstack.dialects.llvm_ext import LLVMExt
from mirstack.lowering import runtime
from mirstack.lowering.llvm.convert.lower_std_to_llvm import lower_std_to_llvm
from mirstack.lowering.llvm.jit.load import CompiledModule
from mirstack.lowering.llvm.text.translation import translate
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.parser import Parser

PARALLEL = """
func.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %n: index, %s: f32) attributes {mirstack.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %u = memref.load %x[%i] : memref<?xf32>
    %p = arith.mulf %s, %u : f32
    memref.store %p, %y[%i] : memref<?xf32>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}
func.func @grid(%x: memref<12x10xi64>, %lo: index, %step: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c12 = arith.constant 12 : index
  %one = arith.constant 1 : i64
  "scf.parallel"(%lo, %c0, %c12, %c10, %step, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    %u = memref.load %x[%i, %j] : memref<12x10xi64>
    %v = arith.addi %u, %one : i64
    memref.store %v, %x[%i, %j] : memref<12x10xi64>
    "scf.reduce"() : () -> ()
  }) {mirstack.grain = 2 : i64} : (index, index, index, index, index, index) -> ()
  func.return
}
func.func @nested(%x: memref<64x64xi64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  "scf.parallel"(%c0, %c64, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    "scf.parallel"(%c0, %c64, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
    ^bb1(%j: index):
      func.call @touch(%x, %i, %j) : (memref<64x64xi64>, index, index) -> ()
      "scf.reduce"() : () -> ()
    }) : (index, index, index) -> ()
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}
func.func private @touch(%x: memref<64x64xi64>, %i: index, %j: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = arith.constant 3 : i64
  "scf.parallel"(%c0, %c1, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%z: index):
    %u = memref.load %x[%i, %j] : memref<64x64xi64>
    %v = arith.addi %u, %k : i64
    memref.store %v, %x[%i, %j] : memref<64x64xi64>
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}
func.func @checked(%n: index, %limit: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  "scf.parallel"(%c0, %n, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %ok = arith.cmpi slt, %i, %limit : index
    cf.assert %ok, "iteration beyond the limit"
    "scf.reduce"() : () -> ()
  }) : (index, index, index) -> ()
  func.return
}
"""


@pytest.fixture(scope="module")
def code() -> CompiledModule:
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    ctx.register_dialect("llvm_ext", lambda: LLVMExt)
    module = Parser(ctx, PARALLEL).parse_module()
    module.verify()
    lower_std_to_llvm(module)
    module.verify()
    return compile_ir(translate(module))


@pytest.fixture(autouse=True)
def thread_count() -> Iterator[None]:
    before = runtime.get_threads()
    yield
    runtime.set_threads(before)


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def function(code: CompiledModule, name: str, *types: Any) -> Callable[..., int]:
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(code.address(name))


def scale(code: CompiledModule) -> Callable[..., int]:
    return function(code, "scale", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [0, 1, 2, 7, 100_003])
def test_every_iteration_runs_once(code: CompiledModule, threads: int, size: int) -> None:
    runtime.set_threads(threads)
    x = np.arange(max(size, 1), dtype=np.float32)
    for _ in range(20):
        y = np.zeros_like(x)
        assert scale(code)(pointer(x), pointer(y), size, 2.0) == 0
        np.testing.assert_array_equal(y[:size], 2 * x[:size])


@pytest.mark.parametrize("threads", [1, 3])
def test_two_dimensions_steps_and_grain(code: CompiledModule, threads: int) -> None:
    runtime.set_threads(threads)
    x = np.zeros((12, 10), np.int64)
    grid = function(code, "grid", ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    assert grid(pointer(x), 1, 4) == 0
    want = np.zeros_like(x)
    want[1::4] = 1
    np.testing.assert_array_equal(x, want)


def test_nested_regions_run_serially_inside(code: CompiledModule) -> None:
    runtime.set_threads(4)
    nested = function(code, "nested", ctypes.c_void_p)
    x = np.zeros((64, 64), np.int64)
    for _ in range(10):
        assert nested(pointer(x)) == 0
    assert (x == 30).all()


def test_python_threads_at_once(code: CompiledModule) -> None:
    runtime.set_threads(3)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal(5000).astype(np.float32)
        for _ in range(300):
            y = np.zeros_like(x)
            scale(code)(pointer(x), pointer(y), x.size, 3.0)
            if not np.array_equal(y, np.float32(3.0) * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 4])
def test_a_failing_iteration_fails_the_loop_and_the_pool_goes_on(code: CompiledModule, threads: int) -> None:
    runtime.set_threads(threads)
    checked = function(code, "checked", ctypes.c_int64, ctypes.c_int64)
    for _ in range(50):
        assert checked(1000, 1000) == 0
        assert checked(1000, 500) != 0
    assert checked(1000, 1000) == 0


def test_the_number_of_threads_is_bounded() -> None:
    runtime.set_threads(0)
    assert runtime.get_threads() == 1
    runtime.set_threads(10_000)
    assert runtime.get_threads() == 256


def test_the_environment_sets_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRSTACK_THREADS", "7")
    assert runtime.default_threads() == 7
    monkeypatch.setenv("MIRSTACK_THREADS", "no number")
    assert runtime.default_threads() >= 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_pool_works_in_a_forked_child(code: CompiledModule) -> None:
    runtime.set_threads(3)
    x = np.arange(10_000, dtype=np.float32)
    first = np.zeros_like(x)
    scale(code)(pointer(x), pointer(first), x.size, 2.0)

    def child() -> None:
        y = np.zeros_like(x)
        scale(code)(pointer(x), pointer(y), x.size, 2.0)
        os._exit(0 if np.array_equal(y, 2 * x) else 1)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(30)
    assert process.exitcode == 0


def test_workers_can_be_ended_and_come_back(code: CompiledModule) -> None:
    runtime.set_threads(3)
    x = np.arange(10_000, dtype=np.float32)
    shutdown = ctypes.CFUNCTYPE(None)(runtime.runtime().address("mirstack_shutdown"))
    for _ in range(3):
        y = np.zeros_like(x)
        scale(code)(pointer(x), pointer(y), x.size, 2.0)
        shutdown()
        np.testing.assert_array_equal(y, 2 * x)


def test_pointers_stay_noalias_in_the_body() -> None:
    ctx = Context()
    for name, factory in get_all_dialects().items():
        ctx.register_dialect(name, factory)
    module = Parser(ctx, PARALLEL).parse_module()
    lower_std_to_llvm(module)
    text = translate(module)
    (body,) = [line for line in text.splitlines() if line.startswith("define internal i32 @scale.parallel.0.body")]
    assert body.count("ptr noalias nonnull") == 2


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be told where to run here")
def test_workers_stay_off_the_processor_of_the_caller(code: CompiledModule) -> None:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one processor")
    before = set(os.listdir("/proc/self/task"))
    # What exists of other tests is ended: the workers to be seen are new.
    ctypes.CFUNCTYPE(None)(runtime.runtime().address("mirstack_shutdown"))()
    before &= set(os.listdir("/proc/self/task"))
    x = np.arange(10_000, dtype=np.float32)
    y = np.zeros_like(x)

    def places() -> list[set[int]]:
        """Where workers may run after a region."""
        assert scale(code)(pointer(x), pointer(y), x.size, 2.0) == 0
        return [os.sched_getaffinity(int(task)) for task in set(os.listdir("/proc/self/task")) - before]

    try:
        runtime.set_threads(2)
        for own in sorted(allowed)[:2]:
            os.sched_setaffinity(0, {own})
            assert places()[0] <= allowed, "a caller that has one processor leaves its workers alone"
            os.sched_setaffinity(0, {own, max(allowed - {own})})
            (place,) = places()
            assert len(place) == 1 and place <= allowed
        os.sched_setaffinity(0, allowed)
        runtime.set_pinning(False)
        assert places() == [allowed]
        runtime.set_pinning(True)
        assert all(len(place) == len(allowed) - 1 for place in places())
        # More threads than processors: nobody is kept from any.
        runtime.set_threads(len(allowed) + 1)
        assert all(place == allowed for place in places())
    finally:
        os.sched_setaffinity(0, allowed)
        runtime.set_pinning(True)


PLACES = """
import os
import mirstack
import numpy as np
program = mirstack.compile(mirstack.parse("def @main(%x: Tensor[(2000, 2000), float32]) { exp(%x) }"), threads=2)
before = set(os.listdir("/proc/self/task"))
program(np.zeros((2000, 2000), np.float32))
print(*{len(os.sched_getaffinity(int(task))) for task in set(os.listdir("/proc/self/task")) - before})
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be told where to run here")
@pytest.mark.parametrize("pinning", ["on", "off"])
def test_pinning_can_be_turned_off_from_outside(pinning: str) -> None:
    allowed = len(os.sched_getaffinity(0))
    if allowed < 2:
        pytest.skip("one processor")
    environment = os.environ | {"MIRSTACK_PINNING": pinning}
    ran = subprocess.run([sys.executable, "-c", PLACES], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(allowed if pinning == "off" else allowed - 1)]


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("machine", ["x86_64", "arm64", "riscv64"])
def test_the_runtime_is_well_formed_everywhere(machine: str, system: str) -> None:
    from llvmlite import binding

    text = runtime.runtime_ir(machine, system)
    binding.parse_assembly(text).verify()
    assert ("pthread_setaffinity_np" in text) == (system == "linux")
