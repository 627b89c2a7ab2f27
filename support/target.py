"""Describes processors for schedules: vectors, registers, caches, dot products. Does not load LLVM."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from .diagnostics import Diagnostic, MirError
from .target_description import Description, DescriptionError
from .text import counted, did_you_mean

Arch = Literal["x86_64", "aarch64", "arm", "riscv64", "wasm32"]

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
    """Processors alike to schedules. Sizes are in bytes; `l3` is the part that one core may count on."""

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
        "sapphirerapids|emeraldrapids|graniterapids.*", *("x86_64", 64, 48 * KIB, 2 * MIB, 8 * MIB, SAPPHIRE_RAPIDS)
    ),
    Family("diamondrapids", "x86_64", 64, 48 * KIB, 2 * MIB, 8 * MIB, SAPPHIRE_RAPIDS | AVX_IFMA | {"avx10_2"}),
    Family("cooperlake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX2 | {"vnni", "bf16"}),
    Family("cascadelake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX2 | {"vnni"}),
    Family("icelake-server|rocketlake", "x86_64", 64, 48 * KIB, 1280 * KIB, 4 * MIB, AVX512_VBMI2),
    Family("icelake-client|tigerlake", "x86_64", 64, 48 * KIB, 512 * KIB, 4 * MIB, AVX512_VBMI2),
    Family("x86-64-v4|skylake-avx512|skx", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX2),
    Family("cannonlake", "x86_64", 64, 32 * KIB, 1 * MIB, 4 * MIB, AVX512_VBMI),
    # AVX2 and fused multiply-add
    Family("alderlake|raptorlake|meteorlake|gracemont", *("x86_64", 32, 32 * KIB, 1280 * KIB, 4 * MIB, AVX_VNNI)),
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
    # WebAssembly: vectors of 16 bytes, in the registers of the machine that the browser runs on.
    Family("wasm32", "wasm32", 16, 32 * KIB, 256 * KIB, 4 * MIB),
    Family("wasm32-relaxed", "wasm32", 16, 32 * KIB, 256 * KIB, 4 * MIB, frozenset({"relaxed-simd"})),
    # Arm of 32 bits with NEON: vectors of 16 bytes
    Family(
        "cortex-a7|cortex-a(5|12|15|17)|krait", "arm", 16, 32 * KIB, 512 * KIB, 512 * KIB, frozenset({"neon", "vfpv4"})
    ),
    Family("armv7|cortex-a(8|9)", "arm", 16, 32 * KIB, 256 * KIB, 256 * KIB, frozenset({"neon"})),
    # RISC-V with vectors (V) of at least as many bytes
    Family("sifive-x280", "riscv64", 64, 32 * KIB, 512 * KIB, 2 * MIB, frozenset({"v"})),
    Family("spacemit-x60", "riscv64", 32, 32 * KIB, 512 * KIB, 512 * KIB, frozenset({"v"})),
    Family("rv64gcv|sifive-p[46]70", "riscv64", 16, 32 * KIB, 512 * KIB, 1 * MIB, frozenset({"v"})),
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
        "cortex-(x[2-9].*|x925|a71[05]|a72[05]|a51[0-9]|a520.*)", *("aarch64", 16, 64 * KIB, 512 * KIB, 2 * MIB, SVE)
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


@dataclass(frozen=True)
class Target:
    """A processor as schedules see it. Sizes are in bytes."""

    name: str
    vector_bytes: int
    vector_registers: int
    has_masks: bool
    """Whether loads of single lanes cost no more than whole ones."""
    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20
    cores: int = 1
    arch: Arch = "x86_64"
    features: frozenset[str] = frozenset()
    """What it has beyond its vectors, in the words of `processors.Family`."""

    def lanes(self, element_bytes: int) -> int:
        """Returns the number of elements that a vector holds."""
        return max(self.vector_bytes // element_bytes, 1)

    @property
    def has_fma(self) -> bool:
        """Tells whether a multiplication and an addition are one instruction."""
        return self.arch in ("aarch64", "riscv64") or "vfpv4" in self.features or self.vector_bytes >= 32

    @property
    def independent_sums(self) -> int:
        """Returns the number of independent multiply-adds that keep all units busy.

        It is the latency of one in cycles times how many a cycle begins. Arm's widest cores begin four that take four, those with AVX2
        two that take four or five; with vectors of 64 bytes one to two are begun, as the width of the units goes.
        """
        if self.arch == "aarch64":
            return 16
        return 10 if self.vector_bytes == 32 else 6

    @property
    def has_endless_registers(self) -> bool:
        """Tells whether LLVM sees no limit of registers, though there is one.

        WebAssembly's locals have none. LLVM then loads ahead of a loop all that is the same in each iteration, and engines keep on the
        stack what they have no registers for.
        """
        return self.arch == "wasm32"

    @property
    def has_masked_stores(self) -> bool:
        """Tells whether masked stores cost no more than whole ones.

        AVX2's take 4 steps on Intel's processors, and 16 cycles on AMD's (measured on Zen 4), more than storing pieces.
        """
        return self.has_masks and self.vector_bytes == 64

    @property
    def has_int8_dot(self) -> bool:
        """Tells whether one instruction adds four 8-bit products to a lane of 32 bits (VNNI, Arm's sdot)."""
        return bool(self.features & {"vnni", "dotprod"})

    @property
    def has_bf16_dot(self) -> bool:
        """Tells whether one instruction adds two bfloat16 products to a lane (AVX512-BF16, Arm's bfdot)."""
        return "bf16" in self.features


def named(cpu: str, cores: int | None = None, caches: str = "") -> Target:
    """Returns the target that LLVM or a description calls `cpu`; "" or "native" is this machine.

    `caches` says otherwise of its data caches, first, second and third level: `32K,1M,16M`, a level left empty being what
    is known. Raises MirError for a name of which nothing is known, and for sizes that are none.
    """
    count = cores or processors()
    described = description_of(cpu)
    if described is not None:
        try:
            target = with_description(described, cores)
        except DescriptionError as error:
            raise MirError(
                Diagnostic(f"the target '{described.name}': {error.message}").with_note(error.note)
            ) from None
    else:
        target = host(count) if cpu in ("", "native") else _known(cpu, count)
    return _with_caches(target, caches) if caches else target


@cache
def _described(cpu: str) -> Description | None:
    """Returns the description that a processor's text is, or that is loaded under that name."""
    try:
        return Description.read(cpu)
    except DescriptionError as error:
        raise MirError(Diagnostic(f"the processor '{cpu}': {error.message}").with_note(error.note)) from None


def description_of(cpu: str | None) -> Description | None:
    """Returns the description of a processor: its text, or one that is loaded under that name."""
    if not cpu:
        return None
    found = _described(cpu)
    from .extensions import find

    if found is None and (loaded := find(DESCRIPTION, cpu)) is not None:
        found = getattr(loaded.value, "description", None)
    return found if isinstance(found, Description) else None


DESCRIPTION = "mirstack.target"
"""The name of the op that describes a target, whose property `description` holds what it says."""


def llvm_name(cpu: str | None) -> str | None:
    """Returns LLVM's name of a processor that may be described."""
    described = description_of(cpu)
    return cpu if described is None else described.cpu


def with_description(description: Description, cores: int | None = None) -> Target:
    """Returns the target that a description is of. Raises DescriptionError for what its processor has not."""
    fields = description.fields
    try:
        base = _known(description.cpu, cores or processors())
    except MirError as error:
        raise DescriptionError("cpu", error.diagnostics[0].message, error.diagnostics[0].notes[0].message) from None
    values: dict[str, object] = {"name": description.name}
    lanes = fields.get("lanes")
    if isinstance(lanes, int):
        if lanes > base.lanes(4) or lanes & (lanes - 1):
            raise DescriptionError(
                "lanes",
                f"'lanes' is a power of two up to {base.lanes(4)}, as {description.cpu} has, not {lanes}",
                "code is made for the processor that cpu names",
            )
        width = 4 * lanes
        values |= {"vector_bytes": width, "has_masks": base.has_masks and width >= 32}
    features = fields.get("features")
    if isinstance(features, tuple):
        missing = [each for each in features if each not in base.features]
        if missing:
            raise DescriptionError(
                "features",
                f"{description.cpu} has no '{missing[0]}'{did_you_mean(missing[0], base.features)}",
                f"it has {', '.join(sorted(base.features)) or 'none'}; name another cpu for more",
            )
        values["features"] = frozenset(features)
    values |= {name: fields[name] for name in ("vector_registers", "l1", "l2", "l3") if name in fields}
    if cores is None and "cores" in fields:
        values["cores"] = fields["cores"]
    return replace(base, **values)  # type: ignore[arg-type]


def _known(cpu: str, cores: int) -> Target:
    family = family_of(cpu)
    if family is None:
        raise MirError(
            Diagnostic(f"nothing is known of a processor '{cpu}'").with_note(
                "use a name of LLVM's such as x86-64-v3, haswell, znver4, skylake-avx512, neoverse-n1, apple-m1, cortex-a7 or rv64gcv, "
                f'or describe it: target "{cpu[:40]}" {{ cpu = "haswell", … }}'
            )
        )
    width = family.vector_bytes
    return Target(
        cpu, width, _registers(family.arch, width), _masks(family.arch, width), family.l1, family.l2, family.l3, cores,
        family.arch, family.features,
    )  # fmt: skip


def _registers(arch: Arch, vector_bytes: int) -> int:
    if arch == "wasm32":
        # Of the 16 of x86-64 engines keep some for themselves.
        return 14
    return 32 if arch in ("aarch64", "riscv64") or vector_bytes == 64 else 16


def _masks(arch: Arch, vector_bytes: int) -> bool:
    return arch == "x86_64" and vector_bytes >= 32


SIZE = re.compile(r"(\d+)([KMG]?)")
LEAST_CACHE = 1 << 10
"""Bytes of a cache that rules may count on: they divide by parts of it."""


def _with_caches(target: Target, text: str) -> Target:
    parts = [part.strip() for part in text.split(",")]
    sizes = [SIZE.fullmatch(part) for part in parts]
    if len(parts) > 3 or any(part and not (size and int(size[1])) for part, size in zip(parts, sizes, strict=True)):
        raise MirError(
            Diagnostic(f"'{text}' does not say how large caches are").with_note(
                "give the sizes of the first, second and third level, such as 32K,1M,16M; a level left empty is as it is known"
            )
        )
    given = {level: _bytes(size) for level, size in zip(("l1", "l2", "l3"), sizes, strict=False) if size}
    least = min(given.values(), default=LEAST_CACHE)
    if least < LEAST_CACHE:
        raise MirError(
            Diagnostic(f"'{text}' has a cache of {counted(least, 'byte')}, which is smaller than any").with_note(
                f"a cache has at least {LEAST_CACHE} bytes; K, M and G stand for powers of 1024"
            )
        )
    l1, l2, l3 = given.get("l1", target.l1), given.get("l2", target.l2), given.get("l3", target.l3)
    return replace(target, l1=l1, l2=l2, l3=l3)


def _bytes(size: re.Match[str]) -> int:
    return int(size[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[size[2]]


# Whether code runs here, and what it is made for where it does not


LEAST: dict[str, tuple[str, str]] = {
    "x86_64": ("x86-64", ""), "riscv64": ("generic-rv64", "+m,+a,+f,+d,+c"), "arm": ("generic", "-neon"),
}  # fmt: skip
"""LLVM's name of the least processor of a kind, and its features; of others it is `generic`."""


def least_cpu(arch: str) -> tuple[str, str]:
    """Returns LLVM's name and features of the least processor of a kind that code is made for."""
    return LEAST.get(arch, ("generic", ""))


KINDS: dict[str, tuple[Arch, str]] = {
    "x86_64": ("x86_64", "x86-64"), "amd64": ("x86_64", "x86-64"),
    "aarch64": ("aarch64", "generic-aarch64"), "arm64": ("aarch64", "generic-aarch64"),
    "armv7": ("arm", "armv7"), "armv7a": ("arm", "armv7"), "arm": ("arm", "armv7"),
    "riscv64": ("riscv64", "rv64gcv"), "wasm32": ("wasm32", "wasm32"),
}  # fmt: skip
"""The kinds of processors that triples begin with, and the one that code is made for where none is named."""


def cpu_of_triple(triple: str, cpu: str | None) -> str:
    """Returns the processor to compile for on a system. Raises MirError for another kind of processor."""
    kind = KINDS.get(triple.partition("-")[0])
    if kind is None:
        raise MirError(
            Diagnostic(f"nothing is known of processors of '{triple}'").with_note(
                f"a triple begins with one of {', '.join(KINDS)}: riscv64-linux-gnu"
            )
        )
    chosen = cpu or kind[1]
    if named(chosen).arch != kind[0]:
        raise MirError(
            Diagnostic(f"'{chosen}' is not a processor of '{triple}'").with_note(
                f"leave the processor out, which means {kind[1]}, or name one of its kind"
            )
        )
    return chosen


def whole_triple(triple: str) -> str:
    """Returns a triple with its maker, which many leave out: without, LLVM takes the system for it."""
    parts = triple.split("-")
    return "-".join((parts[0], "unknown", *parts[1:])) if len(parts) == 3 and parts[1] == "linux" else triple


def foreign_triple(cpu: str | None) -> str | None:
    """Returns LLVM's triple for a processor of another kind than this machine's; None for its own."""
    target = named(cpu or "")
    if target.arch == _arch():
        return None
    if target.arch == "wasm32":
        return "wasm32-unknown-unknown"
    if target.arch == "arm":
        return "armv7-unknown-linux-gnueabihf"
    return (
        f"{target.arch}-apple-macosx"
        if (llvm_name(cpu) or "").startswith("apple-")
        else f"{target.arch}-unknown-linux-gnu"
    )


def require_host(cpu: str | None) -> None:
    """Raises MirError unless this machine runs code made for `cpu`, which would end the process otherwise."""
    # Code may use all that the processor has, whatever a description leaves to schedules.
    _runnable(named(llvm_name(cpu) or ""), named(""))


def _runnable(target: Target, machine: Target) -> Target:
    """Returns `target`; raises MirError unless `machine` runs code made for it."""
    lacks = _missing(target.arch, target.vector_bytes, target.features, machine)
    if lacks is None:
        return target
    raise MirError(
        Diagnostic(f"code for the processor '{target.name}' does not run here: {lacks}").with_note(
            f"compile for this machine, without -mcpu, or look at the code: mir-opt -t asm -mcpu={target.name}"
        )
    )


def missing_here(arch: str, vector_bytes: int, features: frozenset[str]) -> str | None:
    """Returns what this machine lacks to run code that uses these; None where it runs it."""
    return _missing(arch, vector_bytes, features, named(""))


def _missing(arch: str, vector_bytes: int, features: frozenset[str], machine: Target) -> str | None:
    if arch != machine.arch:
        return f"it is of another kind, {arch}"
    if vector_bytes > machine.vector_bytes:
        return f"this machine has no vectors of {vector_bytes} bytes"
    missing = sorted(features - machine.features)
    return f"this machine has no {', '.join(missing)}" if missing else None


# This machine


def host(cores: int) -> Target:
    """Returns this machine, or the one that it is to be taken for.

    `MIRSTACK_CPU=haswell` compiles for a lesser processor wherever none is named, as a fleet of unlike machines wants it;
    `MIRSTACK_CACHES=32K,256K,8M` states its caches. Raises MirError for a processor that is unknown, or whose code does not run here.
    """
    cpu, caches = assumed_cpu(), os.environ.get("MIRSTACK_CACHES", "")
    machine = _machine(cores)
    if cpu is not None:
        machine = replace(_runnable(_known(cpu, cores), machine), name="native")
    return _with_caches(machine, caches) if caches else machine


def assumed_cpu() -> str | None:
    """Returns LLVM's name of the processor to assume for this machine; None to detect it."""
    cpu = os.environ.get("MIRSTACK_CPU", "").strip()
    return None if cpu in ("", "native") else cpu


def processors() -> int:
    """Returns how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _arch() -> Arch:
    return "aarch64" if platform.machine().lower() in ("arm64", "aarch64") else "x86_64"


FLAGS = {
    **{"avx512_vnni": "vnni", "avx512vnni": "vnni", "avx_vnni": "avxvnni", "avxvnni": "avxvnni"},
    **{"avx512_bf16": "bf16", "avx512bf16": "bf16", "avx512_fp16": "fp16", "avx512fp16": "fp16"},
    **{"asimddp": "dotprod", "asimdhp": "fp16", "fullfp16": "fp16"},
    **{"bmi": "bmi1", "lzcnt": "abm", "sse4.2": "sse4_2"},
    **{"avx512bitalg": "avx512_bitalg", "avx512vbmi2": "avx512_vbmi2", "avx512vpopcntdq": "avx512_vpopcntdq"},
    **{"avxifma": "avx_ifma", "avxneconvert": "avx_ne_convert", "avxvnniint8": "avx_vnni_int8", "avx10.2": "avx10_2"},
}
"""What Linux and LLVM call features otherwise than `processors.Family` does."""

AVX512 = frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
"""What LLVM's code in vectors of 64 bytes uses on all processors that have them."""


@cache
def _machine(cores: int) -> Target:
    """Returns this machine, from what its operating system says of it."""
    caches = _cache_sizes()
    l1, l2, l3 = caches.get(1, 32 << 10), caches.get(2, 512 << 10), caches.get(3, 8 << 20)
    arch, flags = _arch(), _cpu_flags()
    features = {FLAGS.get(flag, flag) for flag in flags} & frozenset().union(*(f.features for f in FAMILIES))
    width = 16
    if arch == "x86_64" and flags >= AVX512:
        width = 64
    elif arch == "x86_64":
        width = 32 if {"avx2", "fma"} <= flags else 16
        # Without AVX-512 it is the other VNNI that counts.
        features -= {"vnni", "bf16", "fp16"}
        features |= {"vnni"} if "avxvnni" in features else set[str]()
    return Target(
        "native", width, _registers(arch, width), _masks(arch, width), l1, l2, l3, cores, arch, frozenset(features)
    )  # fmt: skip


def _cpu_flags() -> set[str]:
    """Returns the processor's features, from Linux's /proc/cpuinfo, otherwise from LLVM."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return set(line.partition(":")[2].split())
    except OSError:
        pass
    import llvmlite.binding as llvm

    features: dict[str, bool] = dict(llvm.get_host_cpu_features())
    return {name for name, has in features.items() if has}


def _cache_sizes() -> dict[int, int]:
    """Returns the bytes of data cache by level, as Linux lists them."""
    sizes: dict[int, int] = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind = (folder / "type").read_text().strip()
            level = int((folder / "level").read_text())
            text = (folder / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and (match := SIZE.fullmatch(text)):
            sizes[level] = _bytes(match)
    return sizes
