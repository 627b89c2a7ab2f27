"""Measures what this machine can do at most: float32 multiply-adds in registers, and copying memory.

The two limits of a roofline (Williams, Waterman, Patterson, "Roofline", 2009). They are measured once, for each number of threads, and
kept in the cache.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from time import perf_counter

from ...support.target import assumed_cpu, llvm_name, named

CHAINS = 12
"""Independent chains of multiply-adds: more than latency times units, fewer than registers."""
ITERATIONS = 200_000
COPIED = 64 << 20
"""Bytes of a copy: more than caches hold."""
_SECONDS = 0.2
"""How long each limit is tried for; the best counts, as other programs may run meanwhile."""
TRIES = 8
"""Tries at least: the system may keep this process waiting for longer than all of them take."""

KIND = "limits"
"""The kind of such files in the cache."""


@dataclass(frozen=True)
class MachineLimits:
    """The most that so many threads do: float32 GFLOP/s, and GB/s of memory read and written."""

    threads: int
    gflops: float
    gbytes: float


def machine_limits(threads: int) -> MachineLimits:
    """Returns the limits of this machine: from the cache, or measured now (in half a second)."""
    from .cache.keys import digest
    from .cache.store import Store

    store = Store.open()
    if store is None:
        return _measured(threads)
    machine = named("", threads)
    key = digest(json.dumps([KIND, {**vars(machine), "features": sorted(machine.features)}]))
    kept = store.read(KIND, key)
    try:
        if kept is not None:
            gflops, gbytes = map(float, json.loads(bytes(kept)))
            return MachineLimits(threads, gflops, gbytes)
    except (TypeError, ValueError):
        pass
    found = _measured(threads)
    store.write(KIND, key, [json.dumps([found.gflops, found.gbytes]).encode()])
    return found


@cache
def _measured(threads: int) -> MachineLimits:
    kernel = multiply_adds_kernel("")
    sources = [ctypes.create_string_buffer(COPIED) for _ in range(threads)]
    targets = [ctypes.create_string_buffer(COPIED) for _ in range(threads)]

    with ThreadPoolExecutor(threads) as pool:

        def rate(amount: float, each: Callable[[int], object]) -> float:
            """Returns the best rate of all threads together, in 10⁹ a second; `amount` is that of one thread."""
            best, begin, tries = float("inf"), perf_counter(), 0
            while tries < TRIES or perf_counter() - begin < _SECONDS:
                start, tries = perf_counter(), tries + 1
                list(pool.map(each, range(threads)))
                best = min(best, perf_counter() - start)
            return amount * threads / best / 1e9

        gflops = rate(4 * kernel.flops, lambda _: [kernel.run() for _ in range(4)])
        # ctypes releases the interpreter's lock.
        gbytes = rate(2.0 * COPIED, lambda number: ctypes.memmove(targets[number], sources[number], COPIED))
    return MachineLimits(threads, gflops, gbytes)


@dataclass(frozen=True)
class PeakKernel:
    """A loop of multiply-adds that never leaves registers: `run` does so many FLOPs."""

    run: Callable[[], None]
    flops: float


@cache
def multiply_adds_kernel(cpu: str) -> PeakKernel:
    """Returns the loop in vectors as a processor has them, LLVM's name or "" for this one."""
    from ..llvm.jit.load import Target, emit_object, link_objects

    lanes = named(cpu).lanes(4)
    code = link_objects([emit_object(_peak_text(lanes), Target(cpu=llvm_name(cpu) or assumed_cpu(), opt_level=2))])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("peak"))

    def run() -> None:
        # A vector of each thread's own; `code` is held.
        data = (ctypes.c_float * lanes)(*[0.5] * lanes)
        call(ctypes.addressof(data), ITERATIONS if code else 0)

    return PeakKernel(run, 2.0 * lanes * CHAINS * ITERATIONS)


def _peak_text(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    chains = range(CHAINS)
    phis = "\n".join(f"  %a{k} = phi {vector} [ zeroinitializer, %entry ], [ %b{k}, %loop ]" for k in chains)
    fmas = "\n".join(
        f"  %b{k} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{k}, {vector} %x, {vector} %x)" for k in chains
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
