"""Writes LLVM IR that asks a processor whether it has what code for another one uses.

On x86-64 by the instruction `cpuid` (Intel's Software Developer's Manual, volume 2) and, for registers that the system must save, `xgetbv`;
on Arm and RISC-V by Linux's hardware capabilities (`getauxval`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ....support.target import Target
from ...llvm.jit.load import RISCV_VECTORS

Register = Literal["a", "b", "c", "d"]
Bit = tuple[int, int, Register, int]
"""Leaf and subleaf of cpuid, the register, and the bit."""

BITS: dict[str, Bit] = {
    "sse4_2": (1, 0, "c", 20), "fma": (1, 0, "c", 12), "movbe": (1, 0, "c", 22), "avx": (1, 0, "c", 28),
    "f16c": (1, 0, "c", 29), "osxsave": (1, 0, "c", 27), "bmi1": (7, 0, "b", 3), "avx2": (7, 0, "b", 5),
    "bmi2": (7, 0, "b", 8), "avx512f": (7, 0, "b", 16), "avx512dq": (7, 0, "b", 17), "avx512ifma": (7, 0, "b", 21),
    "avx512cd": (7, 0, "b", 28), "avx512bw": (7, 0, "b", 30), "avx512vl": (7, 0, "b", 31),
    "avx512vbmi": (7, 0, "c", 1), "avx512_vbmi2": (7, 0, "c", 6), "gfni": (7, 0, "c", 8),
    "avx512_vnni": (7, 0, "c", 11), "avx512_bitalg": (7, 0, "c", 12), "avx512_vpopcntdq": (7, 0, "c", 14),
    "avx512_fp16": (7, 0, "d", 23), "avxvnni": (7, 1, "a", 4), "avx512_bf16": (7, 1, "a", 5), "avx_ifma": (7, 1, "a", 23),
    "avx_vnni_int8": (7, 1, "d", 4), "avx_ne_convert": (7, 1, "d", 5), "avx10_2": (7, 1, "d", 19),
    "abm": (0x80000001, 0, "c", 5), "sse4a": (0x80000001, 0, "c", 6),
}  # fmt: skip
"""Where cpuid shows a feature, by Linux's name."""

WIDE = {"vnni": "avx512_vnni", "bf16": "avx512_bf16", "fp16": "avx512_fp16"}
NARROW = {"vnni": "avxvnni"}
"""What `support.target` calls a feature with vectors of 64 bytes, and with others."""

CAPABILITIES: dict[str, dict[str, tuple[int, int]]] = {
    "aarch64": {"dotprod": (16, 20), "fp16": (16, 10), "sve": (16, 22), "i8mm": (26, 13), "bf16": (26, 14)},
    "arm": {"neon": (16, 12), "vfpv4": (16, 16)},
    "riscv64": {"v": (16, ord("V") - ord("A"))},
}  # fmt: skip
"""Linux's bits of AT_HWCAP (16) and AT_HWCAP2 (26) by kind of processor."""


def bits_of(target: Target) -> list[str]:
    """Returns the names of the features that code for an x86-64 processor may use."""
    wide = target.vector_bytes == 64
    names = [(WIDE if wide else NARROW).get(name, name) for name in sorted(target.features)]
    if target.vector_bytes >= 32:
        names += ["avx", "avx2", "fma"]
    if wide:
        names += ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]
    return list(dict.fromkeys(name for name in names if name in BITS))


def check_ir(target: Target, name: str) -> str:
    """Returns the function `i1 @name()`: whether the processor that runs it runs code for the target."""
    if target.arch in CAPABILITIES:
        return _capability_check(target, name)
    if target.arch == "wasm32":
        # A module that uses what a browser lacks is refused when it is compiled there.
        return f"define internal i1 @{name}() nounwind {{\n  ret i1 true\n}}"
    names = bits_of(target)
    lines = [f"define internal i1 @{name}() nounwind {{"]
    wanted = _masks(names)
    if not wanted:
        return "\n".join([*lines, "  ret i1 true", "}"])
    # What is not there must not be asked for: first the leaves, then the registers that the system saves.
    saved = (0xE6 if target.vector_bytes == 64 else 0x6) if "avx" in names else 0
    result = "true"
    lines += [*_cpuid("most", 0, 0), "  %most = extractvalue { i32, i32, i32, i32 } %most.all, 0"]
    lines += [*_cpuid("far", 2147483648, 0), "  %far = extractvalue { i32, i32, i32, i32 } %far.all, 0"]
    for leaf in sorted({leaf for leaf, _, _ in wanted}):
        highest = "%far" if leaf >= 0x80000000 else "%most"
        lines.append(f"  %has.{leaf} = icmp uge i32 {highest}, {_signed(leaf)}")
        result = _and(lines, result, f"%has.{leaf}")
    lines += [f"  br i1 {result}, label %ask, label %no", "no:", "  ret i1 false", "ask:"]
    result = "true"
    for leaf, sub in sorted({(leaf, sub) for leaf, sub, _ in wanted}):
        lines += _cpuid(f"l{leaf}.{sub}", leaf, sub)
    for (leaf, sub, register), mask in sorted(wanted.items()):
        base = f"l{leaf}.{sub}.{register}"
        lines += [
            f"  %{base} = extractvalue {{ i32, i32, i32, i32 }} %l{leaf}.{sub}.all, {'abcd'.index(register)}",
            f"  %{base}.and = and i32 %{base}, {_signed(mask)}",
            f"  %{base}.ok = icmp eq i32 %{base}.and, {_signed(mask)}",
        ]
        result = _and(lines, result, f"%{base}.ok")
    if saved:
        lines += [f"  br i1 {result}, label %state, label %no", "state:"]
        lines.append(
            '  %xcr = call { i32, i32 } asm sideeffect "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}"(i32 0)'
        )
        lines += ["  %low = extractvalue { i32, i32 } %xcr, 0", f"  %on = and i32 %low, {saved}"]
        lines += [f"  %saved = icmp eq i32 %on, {saved}"]
        result = "%saved"
    return "\n".join([*lines, f"  ret i1 {result}", "}"])


def _masks(names: Sequence[str]) -> dict[tuple[int, int, Register], int]:
    """Returns the bits of each register that must be set."""
    wanted: dict[tuple[int, int, Register], int] = {}
    if "avx" in names:
        names = [*names, "osxsave"]
    for name in names:
        leaf, sub, register, bit = BITS[name]
        wanted[leaf, sub, register] = wanted.get((leaf, sub, register), 0) | 1 << bit
    return wanted


def _cpuid(name: str, leaf: int, sub: int) -> list[str]:
    constraints = "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}"
    arguments = f"i32 {_signed(leaf)}, i32 {sub}"
    return [f'  %{name}.all = call {{ i32, i32, i32, i32 }} asm sideeffect "cpuid", "{constraints}"({arguments})']


def _and(lines: list[str], left: str, right: str) -> str:
    if left == "true":
        return right
    name = f"%all.{len(lines)}"
    lines.append(f"  {name} = and i1 {left}, {right}")
    return name


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _capability_check(target: Target, name: str) -> str:
    known = CAPABILITIES[target.arch]
    lines = [f"define internal i1 @{name}() nounwind {{"]
    result = "true"
    for feature in sorted(target.features & known.keys()):
        kind, bit = known[feature]
        lines += [
            f"  %{feature}.all = call i64 @getauxval(i64 {kind})",
            f"  %{feature}.bit = and i64 %{feature}.all, {1 << bit}",
            f"  %{feature}.ok = icmp ne i64 %{feature}.bit, 0",
        ]
        result = _and(lines, result, f"%{feature}.ok")
    if target.arch == "riscv64" and target.vector_bytes > 16:
        # Every V has 16 bytes. What has no V has no such register.
        lines += [f"  br i1 {result}, label %ask, label %no", "no:", "  ret i1 false", "ask:"]
        lines.append(f"  %units = call i64 @{name}.units()")
        lines.append(f"  %long = icmp uge i64 %units, {target.vector_bytes // 8}")
        result = "%long"
        # What reads the register is code for vectors.
        features = f'"target-cpu"="generic-rv64" "target-features"="{RISCV_VECTORS}"'
        lines = [
            "declare i64 @llvm.vscale.i64()",
            f"define internal i64 @{name}.units() {features} noinline nounwind {{",
            "  %units = call i64 @llvm.vscale.i64()",
            "  ret i64 %units",
            "}",
            *lines,
        ]
    return "\n".join([*lines, f"  ret i1 {result}", "}"])
