"""Measures this processor's limits: fused multiply-adds in registers, and copying."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from llvmlite import binding
from mirstack.support.target import named

from .setting import NATIVE

CHAINS = 12
"""Independent chains of multiply-adds: more than latency times units, fewer than registers."""
ITERATIONS = 200_000


def _peak_kernel(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    phis = "\n".join(f"  %a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in range(CHAINS))
    fmas = "\n".join(
        f"  %b{k} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{k}, {vector} %x, {vector} %x)"
        for k in range(CHAINS)
    )
    sums = [f"  %s0 = fadd {vector} %b0, %b0"]
    sums += [f"  %s{k} = fadd {vector} %s{k - 1}, %b{k}" for k in range(1, CHAINS)]
    return f"""
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define void @peak(ptr %p, i64 %n) {{
entry:
  %x = load {vector}, ptr %p, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{fmas}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{chr(10).join(sums)}
  store {vector} %s{CHAINS - 1}, ptr %p, align 4
  ret void
}}
"""


@cache
def _engine(cpu: str) -> tuple[binding.ExecutionEngine, Callable[[int, int], None], int]:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = "" if cpu else binding.get_host_cpu_features().flatten()
    lanes = named(cpu).lanes(4)
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=cpu or binding.get_host_cpu_name(), features=features, opt=2
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(_peak_kernel(lanes)), machine)
    engine.finalize_object()
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("peak"))
    return engine, call, lanes


@dataclass(frozen=True)
class Limit:
    """Something that shows what the processor can do at most: `run` does `amount` of it, GFLOP or GB."""

    run: Callable[[], object]
    amount: float


def multiply_adds(cpu: str = NATIVE) -> Limit:
    """GFLOP of float32 multiply-adds of one core that never leave registers, in vectors as `cpu` has."""
    _, call, lanes = _engine(cpu)
    data = np.full(lanes, 0.5, np.float32)
    return Limit(lambda: call(data.ctypes.data, ITERATIONS), 2 * lanes * CHAINS * ITERATIONS / 1e9)


def copying(megabytes: int = 64) -> Limit:
    """GB, read and written counted, of copying arrays of this size by one core (`memcpy`)."""
    source = np.ones(megabytes << 18, np.float32)
    target = np.zeros_like(source)
    return Limit(lambda: ctypes.memmove(target.ctypes.data, source.ctypes.data, source.nbytes), 2 * source.nbytes / 1e9)
