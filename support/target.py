"""What schedules need to know of a processor: its vectors, registers and caches. Nothing here loads LLVM."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .diagnostics import Diagnostic, MirError


@dataclass(frozen=True)
class Target:
    """A processor as schedules see it. Sizes are in bytes."""

    name: str
    vector_bytes: int
    vector_registers: int
    has_masks: bool
    """Whether loads and stores of single lanes cost no more than whole ones."""
    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20
    cores: int = 1

    def lanes(self, element_bytes: int) -> int:
        """How many elements a vector holds."""
        return max(self.vector_bytes // element_bytes, 1)


# By the vector extension that a compiler may count on for LLVM's name of the processor.
AVX512 = re.compile(
    r"x86-64-v4|znver[5-9]|znver4|skylake-avx512|cascadelake|cooperlake|cannonlake|icelake.*|tigerlake|rocketlake|sapphirerapids|emeraldrapids|graniterapids.*|knl|knm"
)
AVX2 = re.compile(
    r"x86-64-v3|haswell|broadwell|skylake|core-avx2|znver[123]|alderlake|raptorlake|meteorlake|arrowlake.*|lunarlake|gracemont|sierraforest"
)
NEON = re.compile(r"generic-aarch64|aarch64|cortex-[ax].*|neoverse.*|apple-.*|a64fx|ampere.*|carmel|thunderx.*|kryo")
SSE = re.compile(
    r"x86-64|x86-64-v2|generic|nehalem|westmere|sandybridge|ivybridge|btver2|core2|corei7.*|silvermont|goldmont.*|tremont"
)


def named(cpu: str, cores: int | None = None) -> Target:
    """The target that LLVM calls `cpu`; "" or "native" is this machine. Raises MirError for a name that is not known."""
    count = cores or os.cpu_count() or 1
    if cpu in ("", "native"):
        return _host(count)
    if AVX512.fullmatch(cpu):
        return Target(cpu, 64, 32, True, l2=1 << 20, l3=16 << 20, cores=count)
    if AVX2.fullmatch(cpu):
        return Target(cpu, 32, 16, True, l2=256 << 10, cores=count)
    if NEON.fullmatch(cpu):
        return Target(cpu, 16, 32, False, l1=64 << 10, l2=1 << 20, cores=count)
    if SSE.fullmatch(cpu):
        return Target(cpu, 16, 16, False, l2=256 << 10, cores=count)
    raise MirError(
        Diagnostic(f"nothing is known of a processor '{cpu}'").with_note(
            "use a name of LLVM's such as x86-64-v3, haswell, znver4, skylake-avx512, neoverse-n1 or apple-m1"
        )
    )


@cache
def _host(cores: int) -> Target:
    """This machine, from what its operating system says of it."""
    caches = _cache_sizes()
    l1, l2, l3 = caches.get(1, 32 << 10), caches.get(2, 512 << 10), caches.get(3, 8 << 20)
    if platform.machine().lower() in ("arm64", "aarch64"):
        return Target("native", 16, 32, False, l1, l2, l3, cores)
    flags = _cpu_flags()
    if {"avx512f", "avx512vl", "avx512bw"} <= flags:
        return Target("native", 64, 32, True, l1, l2, l3, cores)
    if {"avx2", "fma"} <= flags:
        return Target("native", 32, 16, True, l1, l2, l3, cores)
    return Target("native", 16, 16, False, l1, l2, l3, cores)


def _cpu_flags() -> set[str]:
    """The processor's features, from Linux's /proc/cpuinfo, else from LLVM."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    except OSError:
        pass
    import llvmlite.binding as llvm

    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    return {name for name, has in features.items() if has}


def _cache_sizes() -> dict[int, int]:
    """Bytes of data cache by level, as Linux tells them."""
    sizes: dict[int, int] = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (folder / "type").read_text().strip()
            level = int((folder / "level").read_text())
            text = (folder / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and (match := re.fullmatch(r"(\d+)([KMG]?)", text)):
            sizes[level] = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
    return sizes
