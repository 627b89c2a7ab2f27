"""Names on the command line that are nearly right: options, passes in TVM's spelling; passes that messages and documents name exist."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mirstack.passes.registry import PASSES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("given", ["FuseOps", "fuse_ops", "fuseOps", "fuse-op"])
def test_passes_in_other_spellings(tmp_path: Path, mir_opt: Callable[..., Any], given: str):
    file = tmp_path / "a.mir"
    file.write_text("def @main(%x: float32) { %x }\n")
    ran = mir_opt(file, "-p", given)
    assert ran.code == 2
    assert f"there is no pass '{given}'; did you mean 'fuse-ops'?" in ran.err


def test_options(mir_opt: Callable[..., Any], mir_run: Callable[..., Any]):
    assert "unrecognized arguments: --verify-eahc; did you mean '--verify-each'?" in mir_opt("--verify-eahc").err
    assert "unrecognized arguments: --tread=3; did you mean '--threads'?" in mir_run("a.mir", "--tread=3").err
    ran = mir_run("a.mir", "--qqqqqq\x1b")
    assert ran.code == 2 and "unrecognized arguments: --qqqqqq\\x1b\n" in ran.err


def test_values_that_are_not_quoted(mir_opt: Callable[..., Any]):
    ran = mir_opt("a.mir", "-p", "apply-rules{file=a1.mir}")
    assert '-p: text of other signs than letters, digits, - and _ is quoted: file="a1.mir"' in ran.err


_NAMED = (
    re.compile(r"-p ([a-z0-9]+(?:-[a-z0-9]+)*)"),
    re.compile(r"\brun ((?:[a-z0-9]+-)+[a-z0-9]+)"),
    re.compile(r"`(lower-[a-z0-9-]+)`"),
)


def test_passes_that_are_named_exist():
    # `xdsl-opt` knows the passes that xDSL has one of the same name of by a prefix; the README shows what is said of `csee`.
    known = {name for entry in PASSES for name in (entry.name, f"mirstack-{entry.name}")} | {"csee"}
    folders = ("api", "dialects", "driver", "lowering", "parser", "passes", "support")
    files = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    files += [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    found = [(name, file) for file in files for pattern in _NAMED for name in pattern.findall(file.read_text())]
    assert len(found) > 30
    assert [f"{file.relative_to(ROOT)}: {name}" for name, file in found if name not in known] == []
