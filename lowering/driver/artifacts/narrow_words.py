"""Calls C functions with words of 32 bits from LLVM IR that is written for words of 64.

    call ptr @aligned_alloc(i64 64, i64 %n)   →   call ptr @wide.aligned_alloc(i64 64, i64 %n)

    define internal ptr @wide.aligned_alloc(i64 %0, i64 %1) { … call ptr @aligned_alloc(i32 %2, i32 %3) … }

These are the functions whose parameters are `size_t`, `long`, `off_t` or `pthread_t` in C. All else in the IR has the same sizes on every
processor: addresses in tables are in words of 64 bits.
"""

from __future__ import annotations

import re

WORDS = (
    "aligned_alloc", "madvise", "getauxval", "lseek", "mmap", "munmap", "pthread_join", "sched_getaffinity",
    "pthread_setaffinity_np",
)  # fmt: skip
OFFSETS = {"lseek": (0, 2), "mmap": (6,)}
"""Where those of offsets have them: 0 is the result."""
_DECLARED = re.compile(rf"^declare (\S+) @({'|'.join(WORDS)})\(([^)]*)\)$", re.M)


def pointer_bytes(triple: str) -> int:
    """Returns the bytes of an address on a system."""
    return 4 if re.match(r"arm(?!64)|wasm32", triple) else 8


def with_narrow_words(text: str, triple: str) -> str:
    """Returns a module whose calls of these functions pass words of 32 bits."""
    added: list[str] = []

    def declared(found: re.Match[str]) -> str:
        result, name, kinds = found[1], found[2], found[3].split(", ")
        passed = [_narrow(kind) for kind in (result, *kinds)]
        if "musl" in triple and name in OFFSETS:
            # musl's offsets in files always have 64 bits.
            passed = [
                kind if place in OFFSETS[name] else each
                for place, (kind, each) in enumerate(zip((result, *kinds), passed, strict=True))
            ]
        added.append(_wide(result, name, kinds, passed))
        return f"declare {passed[0]} @narrow.{name}({', '.join(passed[1:])})"

    text = _DECLARED.sub(declared, text)
    text = re.sub(rf"@({'|'.join(WORDS)})\(", r"@wide.\1(", text)
    return re.sub(r"@narrow\.", "@", "\n".join([text, *added, ""]))


def _narrow(kind: str) -> str:
    return "i32" if kind == "i64" else kind


def _wide(result: str, name: str, kinds: list[str], passed: list[str]) -> str:
    params = ", ".join(f"{kind} %p{number}" for number, kind in enumerate(kinds))
    lines = [f"define internal {result} @wide.{name}({params}) nounwind {{"]
    values: list[str] = []
    for number, (kind, narrow) in enumerate(zip(kinds, passed[1:], strict=True)):
        if narrow != kind:
            lines.append(f"  %n{number} = trunc {kind} %p{number} to {narrow}")
        values.append(f"{narrow} %{'p' if narrow == kind else 'n'}{number}")
    lines.append(f"  %r = call {passed[0]} @narrow.{name}({', '.join(values)})")
    if passed[0] == result:
        return "\n".join([*lines, f"  ret {result} %r", "}"])
    return "\n".join([*lines, f"  %w = zext {passed[0]} %r to {result}", f"  ret {result} %w", "}"])
