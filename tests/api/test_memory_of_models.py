"""What compiling takes it gives back: no IR, array, loaded code, file, thread or process is left of a program that nobody holds."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.array import ArrayBox
from mirstack.lowering.llvm.jit import codegen_process
from mirstack.lowering.llvm.jit.load import CompiledModule
from xdsl.ir import Block, Operation, Region, SSAValue

KEPT_BY_NOBODY = (Operation, Block, Region, SSAValue, ArrayBox, np.ndarray, CompiledModule, mirstack.Executable)
CACHED = 150
"""Objects that may stay of each program: types, numbers and their texts, in caches that are bounded."""


def relay(number: int) -> tuple[str, list[np.ndarray[Any, Any]]]:
    n, k = 3 + number % 50, 2 + number // 50
    text = f"nn.relu(add(nn.dense(%x, %w), {number}f))"
    arrays = [np.ones((n, k), np.float32), np.ones((8, k), np.float32)]
    return f"def @main(%x: Tensor[({n}, {k}), float32], %w: Tensor[(8, {k}), float32]) {{ {text} }}", arrays


def tir(number: int) -> tuple[str, list[np.ndarray[Any, Any]]]:
    size = number + 3
    text = f"""# from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer(({size},), "float32"), B: T.Buffer(({size},), "float32")):
    for i in range({size}):
        with T.block("b"):
            v = T.axis.spatial({size}, i)
            B[v] = A[v] * T.float32({number}) + T.exp(A[v])
"""
    return text, [np.ones(size, np.float32), np.ones(size, np.float32)]


def compile_and_call(number: int, calls: int = 1) -> None:
    # Small and large ones in turn, so that the first hundred are of all kinds; all differ.
    text, arrays = (relay, tir)[number % 2](number * 389 % 1201)
    function = mirstack.compile(mirstack.parse(text), threads=1, cache=False)
    for _ in range(calls):
        function(*arrays)


def left() -> tuple[Counter[str], int, int, int, int]:
    """The objects that there are, by their classes, and how many in all; threads, files, processes."""
    gc.collect()
    objects = gc.get_objects()
    found = Counter(type(each).__qualname__ for each in objects if isinstance(each, KEPT_BY_NOBODY))
    files = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0
    workers = len(codegen_process._PROCESSES.idle) + len(codegen_process._PROCESSES.busy)
    return found, len(objects), threading.active_count(), files, workers


def test_nothing_is_left() -> None:
    # In a process of its own: what other tests have imported or cached does not count.
    ran = subprocess.run([sys.executable, __file__, "left"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def check_that_nothing_is_left() -> None:
    """Raises AssertionError where programs that nobody holds leave objects, threads, files or processes."""
    # What the first programs leave is of the compiler: rules that were read, functions of the runtime.
    for number in range(4):
        compile_and_call(number)
    # The first full collection changes what the collector looks at; the second finds it settled.
    left()
    before, objects, *others = left()
    grown: list[int] = []
    for first in (4, 12):
        for number in range(first, first + 8):
            compile_and_call(number)
        after, more, *others_after = left()
        assert after == before and others_after == others
        grown.append(more - objects)
        objects = more
    # Now and then a module is imported, or an engine made anew; what each program leaves is there every time.
    assert min(grown) <= 8 * CACHED


def resident() -> float:
    """MiB of this process that are in memory."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is told by /proc, which Linux has")
def test_a_thousand_programs_and_a_million_calls() -> None:
    # In a process of its own, whose collector has Python's thresholds.
    ran = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    assert float(ran.stdout) < 10


if __name__ == "__main__" and sys.argv[1:] == ["left"]:
    check_that_nothing_is_left()
elif __name__ == "__main__":
    for each in range(200):
        compile_and_call(each, 1000)
    gc.collect()
    before = resident()
    for each in range(200, 1200):
        compile_and_call(each, 1000)
    gc.collect()
    print(resident() - before)
