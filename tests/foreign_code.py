"""Whether this machine runs code that a test has made for another processor.

What the package says of that (`require_host`) is a claim under test. It counts only where LLVM's own list of this machine's features, and
the table here of what processors have, say the same: else a mistake in it would hide every test that runs such code.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable

from llvmlite import binding
from mirstack.support.target import assumed_cpu

AVX2 = frozenset({"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"})
AVX512 = AVX2 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
VBMI2 = AVX512 | {"avx512bitalg", "avx512ifma", "avx512vbmi", "avx512vbmi2", "avx512vnni", "avx512vpopcntdq", "gfni"}

NEEDS = {
    "x86-64": frozenset[str](),
    "haswell": AVX2,
    "x86-64-v3": AVX2,
    "znver3": AVX2 | {"sse4a"},
    "alderlake": AVX2 | {"avxvnni", "gfni"},
    "x86-64-v4": AVX512,
    "skylake-avx512": AVX512,
    "cascadelake": AVX512 | {"avx512vnni"},
    "icelake-server": VBMI2,
    "znver4": VBMI2 | {"avx512bf16", "sse4a"},
    "sapphirerapids": VBMI2 | {"avx512bf16", "avx512fp16", "avxvnni"},
}
"""What code for a processor may use, in LLVM's words, of the x86 processors that tests run code for."""

REFUSED = re.compile("code for the processor '([^']*)' does not run here: ")
"""How the package says that it does not run some."""


def is_here(feature: str) -> bool:
    """Whether LLVM finds a feature in this machine, or the machine is to be taken for one that has it."""
    if (cpu := assumed_cpu()) is not None:
        return feature in NEEDS[cpu]
    return bool(binding.get_host_cpu_features().get(feature))


def cannot_run(message: str, has: Callable[[str], bool] = is_here, machine: str | None = None) -> bool:
    """Whether an error is that code for a processor does not run here, and is right. A machine is Python's name of its kind; it
    `has` some features."""
    refused = REFUSED.search(message)
    if refused is None or refused[1] not in NEEDS:
        return False
    if (machine or platform.machine()).lower() not in ("x86_64", "amd64"):
        return True
    return not all(map(has, NEEDS[refused[1]]))
