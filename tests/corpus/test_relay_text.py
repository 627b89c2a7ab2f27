"""Every Relay text of the corpus: it parses, prints as a fixed point, and its types are those that TVM found."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.dialects.builtin import ModuleOp

# What TVM printed of these contradicts itself or cannot be told from something else.
UNREADABLE = {
    "relay_passes/Defunctionalization/002.out.relay": "constructors that are called 0 and 2",
    "relay_passes/AlterOpLayout/llvm_023.in.relay": "a weight of rank 6 where kernel_layout says OIHW",
    "relay_passes/AlterOpLayout/llvm_023.out.relay": "a weight of rank 6 where kernel_layout says OIHW",
}

_COMMENT = re.compile(r" /\*.*?\*/")
_TYPE = re.compile(r"/\* ty=(.*?)(?: span=[^*]*?)? \*/")
_SPAN = re.compile(r" /\* span=[^*]*\*/| span=[^*]*?(?= \*/)")
_SYMBOLIC = re.compile(r"meta\[tir\.\w+\]\[\d+\]")


@dataclass(frozen=True)
class Read:
    """A text, the module it describes, and how that is printed; or why it cannot be read."""

    text: str
    module: ModuleOp | None = None
    printed: str = ""
    error: str = ""


@pytest.fixture(scope="module")
def programs(corpus: Path) -> dict[str, Read]:
    """All Relay texts, by their path in the corpus."""
    found: dict[str, Read] = {}
    for path in sorted([*corpus.glob("relay/*.relay"), *corpus.glob("relay_passes/*/*.relay")]):
        name, text = str(path.relative_to(corpus)), path.read_text()
        if name in UNREADABLE:
            continue
        try:
            module = parse_mir(text, name)
            found[name] = Read(text, module, print_mir(module))
        except MirError as error:
            found[name] = Read(text, error=str(error))
    return found


def test_round_trip(programs: dict[str, Read]) -> None:
    failures: list[str] = []
    same = Counter[str]()
    for name, program in programs.items():
        if program.module is None:
            failures.append(f"{name}: {program.error}")
            continue
        errors = find_errors(program.module)
        again = parse_mir(program.printed, name)
        if errors:
            failures.append(f"{name}: {errors[0].message}")
        elif print_mir(again) != program.printed:
            failures.append(f"{name}: printing is no fixed point")
        elif not again.is_structurally_equivalent(program.module):
            failures.append(f"{name}: what is printed reads as another module")
        if "ty=" in program.text:
            same["typed"] += 1
            same["typed and equal to TVM's"] += _SPAN.sub("", program.text).strip() == program.printed.strip()
    print(dict(same))
    assert not failures, "\n".join(failures)
    # What differs: spans in the metadata section, symbolic sizes (`?` here), values that TVM prints inside a branch.
    assert same["typed and equal to TVM's"] > 0.85 * same["typed"]


def typed_lines(text: str) -> dict[str, list[str]]:
    """Each line without its comments, and the types that it ends with, wherever it stands."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        types = _TYPE.findall(line)
        if types and line.rstrip().rstrip(";").endswith("*/"):
            found.setdefault(_COMMENT.sub("", line).strip(), []).append(types[-1])
    return found


def plain(type: str) -> str:
    """A type of TVM's with symbolic sizes and 64-bit sizes as they are written here."""
    return re.sub(r"\b(\d+)i64\b", r"\1", _SYMBOLIC.sub("?", type))


def test_types_are_those_of_tvm(programs: dict[str, Read]) -> None:
    """Compared line by line, where a line is the same in both texts."""
    compared, different = 0, list[str]()
    for name, program in programs.items():
        ours = typed_lines(program.printed)
        for line, types in typed_lines(program.text).items():
            found = ours.get(line, [])
            if len(found) == len(types):
                compared += len(types)
                different += [
                    f"{name}: {line}\n  TVM: {t}\n  here: {f}"
                    for t, f in zip(types, found, strict=True)
                    if plain(t) != f
                ]
    print(f"{compared} types compared")
    assert compared > 10_000
    # TVM leaves the result of @compose(%f6, %8) generic over a parameter that nothing uses.
    assert len(different) <= 1, "\n".join(different)
