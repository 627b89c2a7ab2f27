"""Files that documents, docstrings and comments name in backquotes are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "api", "benchmarks", "dialects", "driver", "editor", "examples", "frontends", "fuzz", "lowering", "parser", "passes", "support",
)  # fmt: skip
EVERYWHERE = (*FOLDERS, "docs", "filecheck", "install", "tests")
NAMED = re.compile(r"`((?:[\w.]+/)*\w+\.(?:py|lark|ll))`")
PLACEHOLDERS = {"passes/LEVEL/TOPIC/the_name.py", "mirstack/__init__.py"}
"""A name in instructions that the reader replaces, and the package by its own name."""


def existing() -> set[str]:
    """Returns every file of the project, and the ends of its path that may be written for short."""
    files = [file.relative_to(ROOT).parts for folder in EVERYWHERE for file in (ROOT / folder).rglob("*.*")]
    files += [(file.name,) for file in ROOT.glob("*.*")]
    return {"/".join(parts[start:]) for parts in files for start in range(len(parts))}


@pytest.mark.parametrize("folder", [*FOLDERS, "docs", "."])
def test_named_files_exist(folder: str) -> None:
    there = existing() | PLACEHOLDERS
    files = sorted((ROOT / folder).glob("*.md") if folder in (".", "docs") else (ROOT / folder).rglob("*.py"))
    made = re.compile(r"<!-- (?:file|append): (\S+) -->")
    missing = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for text in [file.read_text(encoding="utf-8")]
        for name in NAMED.findall(text)
        if name not in there and name not in made.findall(text)
    ]
    assert files and not missing, missing
