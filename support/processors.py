"""Describes processors by LLVM's names: vectors, caches, instructions for dot products."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Arch = Literal["x86_64", "aarch64"]

KIB, MIB = 1 << 10, 1 << 20

NONE: frozenset[str] = frozenset()
AVX = frozenset({"avx"})
AVX2 = AVX | {"abm", "bmi1", "bmi2", "f16c", "movbe"}
AVX_VNNI = AVX2 | {"vnni", "avxvnni", "gfni"}
AVX_IFMA = AVX_VNNI | {"avx_ifma", "avx_ne_convert", "avx_vnni_int8"}
AVX512_VBMI = AVX2 | {"avx512ifma", "avx512vbmi"}
AVX512_VBMI2 = AVX512_VBMI | {"avx512_bitalg", "avx512_vbmi2", "avx512_vpopcntdq", "gfni", "vnni"}
ZEN4 = AVX512_VBMI2 | {"bf16", "sse4a"}
SAPPHIRE_RAPIDS = AVX512_VBMI2 | {"avxvnni", "bf16", "fp16"}
DOT = frozenset({"dotprod"})
DOT_I8MM_BF16 = frozenset({"dotprod", "i8mm", "bf16"})
SVE = DOT_I8MM_BF16 | {"fp16", "sve"}


@dataclass(frozen=True)
class Family:
    """Processors that schedules need not tell apart.

    Sizes are in bytes; `l3` is the part that one core may count on.
    """

    names: str
    """A regular expression for LLVM's names."""
    arch: Arch
    vector_bytes: int
    l1: int
    l2: int
    l3: int
    features: frozenset[str] = NONE
    """`vnni` (dot products of 8 bits on x86, of whole vectors), `bf16` (of bfloat16), `dotprod` and `i8mm` (Arm's of 8 bits:
    of one signedness, of two), `fp16` (arithmetic on float16); and, in Linux's words, what else LLVM's code for the processor may
    use, so that code is not run where it would end the process (`support.target.require_host`)."""


# The sizes are those that the makers' optimization guides and WikiChip list for the most common parts of a family.
FAMILIES = (
    # AVX-512
    Family("znver4", "x86_64", 64, 32 * KIB, 1 * MIB, 16 * MIB, ZEN4),
    Family("znver[5-9]", "x86_64", 64, 48 * KIB, 1 * MIB, 16 * MIB, ZEN4 | {"avxvnni"}),
    Family(
        "sapphirerapids|emeraldrapids|graniterapids.*",
        *("x86_64", 64, 48 * KIB, 2 * MIB, 8 * MIB, SAPPHIRE_RAPIDS),
    ),
    Family("diamondrapids", "x86_64", 64, 48 * KIB, 2 * MIB, 8 * MIB, SAPPHIRE_RAPIDS | AVX_IFMA | {"avx10_2"}),
    Family("cooperlake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX2 | {"vnni", "bf16"}),
    Family("cascadelake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX2 | {"vnni"}),
    Family("icelake-server|rocketlake", "x86_64", 64, 48 * KIB, 1280 * KIB, 4 * MIB, AVX512_VBMI2),
    Family("icelake-client|tigerlake", "x86_64", 64, 48 * KIB, 512 * KIB, 4 * MIB, AVX512_VBMI2),
    Family("x86-64-v4|skylake-avx512|skx", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX2),
    Family("cannonlake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX512_VBMI),
    # AVX2 and fused multiply-add
    Family(
        "alderlake|raptorlake|meteorlake|gracemont",
        *("x86_64", 32, 32 * KIB, 1280 * KIB, 4 * MIB, AVX_VNNI),
    ),
    Family(
        "arrowlake.*|lunarlake|pantherlake|sierraforest|grandridge",
        *("x86_64", 32, 32 * KIB, 1280 * KIB, 4 * MIB, AVX_IFMA),
    ),
    Family("znver[123]", "x86_64", 32, 32 * KIB, 512 * KIB, 8 * MIB, AVX2 | {"sse4a"}),
    Family("x86-64-v3|haswell|broadwell|skylake|core-avx2", "x86_64", 32, 32 * KIB, 256 * KIB, 4 * MIB, AVX2),
    # SSE
    Family("x86-64|generic|core2", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB),
    Family("x86-64-v2|nehalem|westmere|corei7", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB, frozenset({"sse4_2"})),
    Family("silvermont|goldmont.*", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB, frozenset({"sse4_2", "movbe"})),
    Family("tremont", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB, frozenset({"sse4_2", "movbe", "gfni"})),
    Family("sandybridge|corei7-avx", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB, AVX),
    Family("ivybridge|core-avx-i", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB, AVX | {"f16c"}),
    Family("btver2", "x86_64", 16, 32 * KIB, 256 * KIB, 4 * MIB, AVX | {"abm", "bmi1", "f16c", "movbe", "sse4a"}),
    # Arm
    Family("apple-m1|apple-a14", "aarch64", 16, 128 * KIB, 3 * MIB, 8 * MIB, DOT | {"fp16"}),
    Family("apple-m[2-9].*|apple-a1[5-9].*", "aarch64", 16, 128 * KIB, 4 * MIB, 8 * MIB, DOT_I8MM_BF16 | {"fp16"}),
    Family("apple-a1[23]|apple-s.*", "aarch64", 16, 64 * KIB, 2 * MIB, 4 * MIB, DOT | {"fp16"}),
    Family("neoverse-(v1|n2)", "aarch64", 16, 64 * KIB, 1 * MIB, 4 * MIB, SVE),
    Family("neoverse-(v[23].*|n3)|grace", "aarch64", 16, 64 * KIB, 2 * MIB, 4 * MIB, SVE),
    Family("neoverse-n1|ampere1.*", "aarch64", 16, 64 * KIB, 1 * MIB, 2 * MIB, DOT | {"fp16"}),
    Family("neoverse-512tvb", "aarch64", 16, 64 * KIB, 1 * MIB, 2 * MIB, DOT | {"fp16", "sve"}),
    Family("neoverse-e1|carmel", "aarch64", 16, 64 * KIB, 1 * MIB, 2 * MIB, DOT | {"fp16"}),
    Family(
        "cortex-(x[2-9].*|x925|a71[05]|a72[05]|a51[0-9]|a520.*)",
        *("aarch64", 16, 64 * KIB, 512 * KIB, 2 * MIB, SVE),
    ),
    Family("cortex-(x1.*|a7[5678].*|a55|a65.*)", "aarch64", 16, 64 * KIB, 256 * KIB, 1 * MIB, DOT | {"fp16"}),
    Family("cortex-a(72|73|57)", "aarch64", 16, 32 * KIB, 1 * MIB, 1 * MIB),
    Family("a64fx", "aarch64", 16, 64 * KIB, 8 * MIB, 8 * MIB, frozenset({"fp16", "sve"})),
    Family(
        "generic-aarch64|aarch64|cortex-[ax].*|neoverse.*|apple-.*|thunderx.*|kryo|falkor|saphira|tsv110",
        *("aarch64", 16, 32 * KIB, 512 * KIB, 1 * MIB),
    ),
)
"""The first whose names match is meant."""


def family_of(cpu: str) -> Family | None:
    """Returns the family of the processor that LLVM calls `cpu`; None where it is unknown."""
    return next((family for family in FAMILIES if re.fullmatch(family.names, cpu)), None)
