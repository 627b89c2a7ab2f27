"""Where a compiled Relay model spends its time: each of its kernels called alone, on random data.

`python -m mirstack.benchmarks.kernels MODEL.mir [--threads 1] [--cpu …] [--top 20]` prints for each kernel how often the model calls it, its
median time, its share of all of them, and what it reaches: GFLOP/s of its multiply-adds, GB/s of what goes in and out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.api.executable import Executable
from mirstack.dialects import te, tir
from mirstack.dialects.array import numpy_dtype
from mirstack.dialects.relay.ir import CallTirOp
from mirstack.passes.schedule.structure import const_int
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

SECONDS = 0.25
"""How long each kernel is called for, at least twice."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a model, and what it was measured at."""

    name: str
    calls: int
    """How many places of the model call it."""
    seconds: float
    flops: int
    """Two for each multiply-add of its contractions."""
    size: int
    """Bytes of its inputs and outputs."""


def profile(model: str | Path | ModuleOp, *, threads: int | None = None, cpu: str | None = None) -> list[Kernel]:
    """The model's kernels, the most expensive first. Those of sizes known only at run time are left out."""
    stages: dict[str, ModuleOp] = {}

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name in ("lower-relay-to-te", "lower-te-to-tir"):
            stages[step.name] = module.clone()

    mirstack.compile(model, threads=threads, cpu=cpu, observers=(keep,))
    module, lowered = stages["lower-relay-to-te"], stages["lower-te-to-tir"]
    calls = Counter(op.callee.root_reference.data for op in walk_ops(module) if isinstance(op, CallTirOp))
    flops = {f.sym_name.data: multiply_adds(f) for f in lowered.ops if isinstance(f, tir.PrimFuncOp)}
    kernels: list[Kernel] = []
    for function in module.ops:
        if not isinstance(function, te.FuncOp) or function.sym_name.data not in calls:
            continue
        name = function.sym_name.data
        alone = ModuleOp([function.clone()])
        run = mirstack.compile(alone, entry=name, threads=threads, cpu=cpu)
        arguments = random_arguments(run)
        if arguments is not None:
            size = sum(array.nbytes for array in arguments)
            seconds = median_seconds(lambda run=run, arguments=arguments: run(*arguments))
            kernels.append(Kernel(name, calls[name], seconds, flops.get(name, 0), size))
    return sorted(kernels, key=lambda kernel: -kernel.calls * kernel.seconds)


def multiply_adds(function: tir.PrimFuncOp) -> int:
    """Two for each point of a block that adds products up."""
    total = 0
    for block in walk_ops(function):
        if not isinstance(block, tir.BlockOp) or not any(kind.data == "R" for kind in block.iter_types.data):
            continue
        adds = any(isinstance(op, tir.AddOp) and isinstance(op.rhs.owner, tir.MulOp) for op in block.body.block.ops)
        total += 2 * prod(const_int(e) or 1 for e in block.dom_extents) if adds else 0
    return total


def random_arguments(run: Executable) -> list[np.ndarray[Any, Any]] | None:
    """An array for each parameter: numbers around 0, zeros where they may be indices; None for sizes that are open."""
    rng = np.random.default_rng(0)
    arguments: list[np.ndarray[Any, Any]] = []
    for param in run.params:
        shape = [extent for extent in param.shape if isinstance(extent, int)]
        if len(shape) < len(param.shape):
            return None
        dtype = numpy_dtype(param.dtype)
        is_float = np.issubdtype(dtype, np.floating)
        arguments.append(rng.standard_normal(shape).astype(dtype) if is_float else np.zeros(shape, dtype))
    return arguments


def median_seconds(call: Callable[[], object]) -> float:
    """The median over `SECONDS`, after two calls that do not count."""
    call()
    call()
    times: list[float] = []
    while len(times) < 2 or sum(times) < SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def show(kernels: list[Kernel], top: int) -> None:
    """Prints a line a kernel."""
    whole = sum(kernel.calls * kernel.seconds for kernel in kernels)
    print(f"{'kernel':<60} {'calls':>5} {'µs a call':>10} {'share':>6} {'GFLOP/s':>8} {'GB/s':>7}")
    for kernel in kernels[:top]:
        share = kernel.calls * kernel.seconds / whole
        rate = f"{kernel.flops / kernel.seconds / 1e9:8.1f}" if kernel.flops else f"{'':8}"
        stream = kernel.size / kernel.seconds / 1e9
        print(f"{kernel.name:<60} {kernel.calls:>5} {kernel.seconds * 1e6:>10.1f} {share:>6.1%} {rate} {stream:>7.1f}")
    print(f"{len(kernels)} kernels, {sum(k.calls for k in kernels)} calls: {whole * 1e3:.3f} ms")


def main(arguments: list[str] | None = None) -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description="The time of each kernel of a model.")
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu", default=None)
    parser.add_argument("--top", type=int, default=30)
    options = parser.parse_args(arguments)
    show(profile(options.model, threads=options.threads, cpu=options.cpu), options.top)


if __name__ == "__main__":
    main()
