"""What is known of processors by LLVM's names of them: vectors, caches, instructions for dot products."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Arch = Literal["x86_64", "aarch64"]

KIB, MIB = 1 << 10, 1 << 20

VNNI = frozenset({"vnni"})
VNNI_BF16 = frozenset({"vnni", "bf16"})
DOT = frozenset({"dotprod"})
DOT_I8MM_BF16 = frozenset({"dotprod", "i8mm", "bf16"})
NONE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Family:
    """Processors that schedules need not tell apart. Sizes are in bytes; `l3` is what one core may count on."""

    names: str
    """A regular expression for LLVM's names."""
    arch: Arch
    vector_bytes: int
    l1: int
    l2: int
    l3: int
    features: frozenset[str] = NONE
    """`vnni` (dot products of 8 bits on x86, of whole vectors), `bf16` (of bfloat16), `dotprod` and `i8mm` (Arm's of 8 bits:
    of one signedness, of two), `fp16` (arithmetic on float16)."""


# The sizes are those that the makers' optimization guides and WikiChip give for the most common parts of a family.
FAMILIES = (
    # AVX-512
    Family("znver4", "x86_64", 64, 32 * KIB, 1 * MIB, 16 * MIB, VNNI_BF16),
    Family("znver[5-9]", "x86_64", 64, 48 * KIB, 1 * MIB, 16 * MIB, VNNI_BF16 | {"avxvnni"}),
    Family(
        "sapphirerapids|emeraldrapids|graniterapids.*|diamondrapids",
        *("x86_64", 64, 48 * KIB, 2 * MIB, 8 * MIB, VNNI_BF16 | {"avxvnni", "fp16"}),
    ),
    Family("cooperlake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, VNNI_BF16),
    Family("cascadelake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, VNNI),
    Family("icelake-server|rocketlake", "x86_64", 64, 48 * KIB, 1280 * KIB, 4 * MIB, VNNI),
    Family("icelake-client|tigerlake", "x86_64", 64, 48 * KIB, 512 * KIB, 4 * MIB, VNNI),
    Family("x86-64-v4|skylake-avx512|skx|cannonlake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB),
    # AVX2 and fused multiply-add
    Family(
        "alderlake|raptorlake|meteorlake|arrowlake.*|lunarlake|pantherlake|gracemont|sierraforest|grandridge",
        *("x86_64", 32, 32 * KIB, 1280 * KIB, 4 * MIB, VNNI | {"avxvnni"}),
    ),
    Family("znver[123]", "x86_64", 32, 32 * KIB, 512 * KIB, 8 * MIB),
    Family("x86-64-v3|haswell|broadwell|skylake|core-avx2", "x86_64", 32, 32 * KIB, 256 * KIB, 4 * MIB),
    # SSE
    Family(
        "x86-64|x86-64-v2|generic|nehalem|westmere|sandybridge|ivybridge|btver2|core2|corei7.*|silvermont|goldmont.*|tremont",
        *("x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB),
    ),
    # Arm
    Family("apple-m1|apple-a14", "aarch64", 16, 128 * KIB, 3 * MIB, 8 * MIB, DOT | {"fp16"}),
    Family("apple-m[2-9].*|apple-a1[5-9].*", "aarch64", 16, 128 * KIB, 4 * MIB, 8 * MIB, DOT_I8MM_BF16 | {"fp16"}),
    Family("apple-a1[23]|apple-s.*", "aarch64", 16, 64 * KIB, 2 * MIB, 4 * MIB, DOT | {"fp16"}),
    Family("neoverse-(v1|n2)", "aarch64", 16, 64 * KIB, 1 * MIB, 4 * MIB, DOT_I8MM_BF16 | {"fp16"}),
    Family("neoverse-(v[23].*|n3)|grace", "aarch64", 16, 64 * KIB, 2 * MIB, 4 * MIB, DOT_I8MM_BF16 | {"fp16"}),
    Family("neoverse-(n1|512tvb)|ampere1.*", "aarch64", 16, 64 * KIB, 1 * MIB, 2 * MIB, DOT | {"fp16"}),
    Family("neoverse-e1|carmel", "aarch64", 16, 64 * KIB, 1 * MIB, 2 * MIB, DOT | {"fp16"}),
    Family(
        "cortex-(x[2-9].*|x925|a71[05]|a72[05]|a51[0-9]|a520.*)",
        *("aarch64", 16, 64 * KIB, 512 * KIB, 2 * MIB, DOT_I8MM_BF16 | {"fp16"}),
    ),
    Family("cortex-(x1.*|a7[5678].*|a55|a65.*)", "aarch64", 16, 64 * KIB, 256 * KIB, 1 * MIB, DOT | {"fp16"}),
    Family("cortex-a(72|73|57)", "aarch64", 16, 32 * KIB, 1 * MIB, 1 * MIB),
    Family("a64fx", "aarch64", 16, 64 * KIB, 8 * MIB, 8 * MIB, frozenset({"fp16"})),
    Family(
        "generic-aarch64|aarch64|cortex-[ax].*|neoverse.*|apple-.*|thunderx.*|kryo|falkor|saphira|tsv110",
        *("aarch64", 16, 32 * KIB, 512 * KIB, 1 * MIB),
    ),
)
"""The first whose names match is meant."""


def family_of(cpu: str) -> Family | None:
    """What is known of the processor that LLVM calls `cpu`; None where nothing is."""
    return next((family for family in FAMILIES if re.fullmatch(family.names, cpu)), None)
