"""Measures the time of each kernel of a compiled Relay model, called alone on random data.

`python -m mirstack.benchmarks.kernels MODEL.mir [--threads 1] [--cpu …] [--top 20]` prints for each kernel how often the model calls it, its
median time, its share of all of them, and what it reaches: GFLOP/s of its operations, GB/s of what goes in and out.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import mirstack
import numpy as np
from mirstack.dialects import te, tir
from mirstack.dialects.array import numpy_dtype
from mirstack.dialects.relay.ir import CallTirOp, ConstantOp, FuncOp, ReturnOp
from mirstack.dialects.tir.types import type_to_dtype
from mirstack.lowering.driver.loading.executable import Executable
from mirstack.passes.tir.estimate_flops import estimate_flops
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp, TensorType, TupleType
from xdsl.ir import Attribute, SSAValue
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
    """Its operations, two for each multiply-add."""
    size: int
    """Bytes of its inputs and outputs."""


def profile(model: str | Path | ModuleOp, *, threads: int | None = None, cpu: str | None = None) -> list[Kernel]:
    """The model's kernels, the most expensive first. Those of sizes known only at run time are left out.

    A kernel is called as the model calls it first: what is constant there is, so that it is packed before.
    """
    programs: list[ModuleOp] = []
    flops: dict[str, int] = {}

    def keep(step: ModulePass, module: ModuleOp) -> None:
        if step.name == "lower-relay-to-te":
            programs.append(module.clone())
        elif step.name == "lower-te-to-tir":
            # Of the whole program, or of one kernel after the other.
            flops.update((f.sym_name.data, flops_of(f)) for f in module.ops if isinstance(f, tir.PrimFuncOp))

    mirstack.compile(model, threads=threads, cpu=cpu, observers=(keep,))
    (module,) = programs
    calls: dict[str, list[CallTirOp]] = {}
    for op in walk_ops(module):
        if isinstance(op, CallTirOp):
            calls.setdefault(op.callee.root_reference.data, []).append(op)
    kernels: list[Kernel] = []
    for function in module.ops:
        if not isinstance(function, te.FuncOp) or function.sym_name.data not in calls:
            continue
        name = function.sym_name.data
        call = calls[name][0]
        run = mirstack.compile(alone(function, call), threads=threads, cpu=cpu)
        if not is_open(call):
            leaves = iter(random_arguments(run))
            given = [v.type for v in dict.fromkeys(call.arguments) if not isinstance(v.owner, ConstantOp)]
            arguments = [nested(type_, leaves) for type_ in given]
            size = sum(bytes_of(value.type) for value in (*call.arguments, call.result))
            seconds = median_seconds(lambda run=run, arguments=arguments: run(*arguments))
            kernels.append(Kernel(name, len(calls[name]), seconds, flops.get(name, 0), size))
    return sorted(kernels, key=lambda kernel: -kernel.calls * kernel.seconds)


def alone(function: te.FuncOp, call: CallTirOp) -> ModuleOp:
    """Returns a program that calls the kernel once; constants are constants, all else are its parameters."""
    values = list(dict.fromkeys(call.arguments))
    given = [value for value in values if not isinstance(value.owner, ConstantOp)]
    main = FuncOp("main", [f"p{k}" for k in range(len(given))], [v.type for v in given], ret_type=call.result.type)
    block = main.body.block
    known: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
    for value in values:
        if isinstance(value.owner, ConstantOp):
            constant = value.owner.clone()
            block.add_op(constant)
            known[value] = constant.result
    copy = CallTirOp(call.callee.root_reference.data, [known[v] for v in call.arguments], call.result.type)
    block.add_ops([copy, ReturnOp(copy.result)])
    return ModuleOp([main, function.clone()])


def is_open(call: CallTirOp) -> bool:
    """Tells whether some size is known only at run time."""
    return any(size < 0 for value in (*call.arguments, call.result) for size in sizes_of(value.type))


def bytes_of(type_: Attribute) -> int:
    """Returns the bytes of a tensor, or of the tensors of a tuple."""
    if isinstance(type_, TupleType):
        return sum(bytes_of(field) for field in type_.types.data)
    if not isinstance(type_, TensorType):
        return 0
    return prod(type_.get_shape()) * numpy_dtype(type_to_dtype(type_.element_type)).itemsize


def sizes_of(type_: Attribute) -> list[int]:
    """Returns all dimensions of a type's tensors."""
    if isinstance(type_, TupleType):
        return [size for field in type_.types.data for size in sizes_of(field)]
    return list(type_.get_shape()) if isinstance(type_, TensorType) else []


def flops_of(function: tir.PrimFuncOp) -> int:
    """Returns the operations of a function, as profiles count them; 0 where sizes or data decide."""
    work = estimate_flops(function)
    return 0 if work is None else sum(terms.get((), 0) for terms in work.operations.values())


def random_arguments(run: Executable) -> list[np.ndarray[Any, Any]]:
    """Returns an array for each parameter: numbers around 0, zeros where they may be indices."""
    rng = np.random.default_rng(0)
    arguments: list[np.ndarray[Any, Any]] = []
    for param in run.params:
        shape = [extent for extent in param.shape if isinstance(extent, int)]
        dtype = numpy_dtype(param.dtype)
        is_float = np.issubdtype(dtype, np.floating)
        arguments.append(rng.standard_normal(shape).astype(dtype) if is_float else np.zeros(shape, dtype))
    return arguments


def nested(type_: Attribute, leaves: Iterator[np.ndarray[Any, Any]]) -> Any:
    """Returns the next arrays as a value of a type: one, or a tuple of them."""
    if isinstance(type_, TupleType):
        return tuple(nested(field, leaves) for field in type_.types.data)
    return next(leaves)


def median_seconds(call: Callable[[], object]) -> float:
    """Returns the median over `SECONDS`, after two calls that do not count."""
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
