"""`python -m mirstack.lit`: lit with a ready configuration, and `--update-checks`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from mirstack.driver.lit.check_lines import Style, check_lines
from mirstack.driver.lit.main import main


class Ran(NamedTuple):
    """How a command ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str


RELAY = "def @main(%x: float32) { exp(exp(%x)) }\n"


@pytest.fixture
def lit(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Runs `python -m mirstack.lit ARGUMENTS…` in this process, in the test's folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ran:
        environment = dict(os.environ)
        code = main(arguments)
        assert dict(os.environ) == environment
        printed = capfd.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


def test_checks_are_written_and_pass(lit: Callable[..., Ran], tmp_path: Path):
    path = tmp_path / "a.mir"
    path.write_text(
        f"// RUN: echo b > %t\n// RUN: cat %t && mir-opt %s | \\\n// RUN:   filecheck %s\n// RUN: mir-opt %s | filecheck %s --check-prefix SAME\n\n// Why.\n{RELAY}"
    )
    assert lit("--update-checks", "a.mir").out == "a.mir: its checks are written\n"
    text = path.read_text()
    assert text.startswith("// NOTE: the checks are written by")
    assert (
        "// Why.\n"
        '// CHECK:       #[version = "0.0.5"]\n'
        "// CHECK-LABEL: def @main(\n"
        "// CHECK-SAME:  %x: float32 /* ty=float32 */) -> float32 {\n"
        "// CHECK-NEXT:    [[VAL_0:%[0-9]+]] = exp(%x) /* ty=float32 */;\n"
        "// CHECK-NEXT:    exp([[VAL_0]]) /* ty=float32 */\n"
        "// CHECK-NEXT:  }\n"
    ) in text
    assert text.endswith(RELAY)
    assert lit("--update-checks", ".").out == "a.mir: its checks are current\n"
    # A changed program: its checks fail, and are written again.
    path.write_text(text.replace("{ exp(exp(%x)) }", "{ log(exp(%x)) }"))
    assert lit("-q", ".").code == 1
    assert lit("--update-checks", ".").code == 0
    assert "log([[VAL_0]])" in path.read_text() and lit("-q", ".").code == 0


def test_tests_are_found_and_configured(lit: Callable[..., Ran], tmp_path: Path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/lit.cfg.py").write_text(
        "import lit.formats\nconfig.name = 'own'\nconfig.suffixes = ['.txt']\n"
        "config.test_format = lit.formats.ShTest(execute_external=False)\nconfig.test_source_root = None\n"
    )
    (tmp_path / "own/a.txt").write_text("RUN: true\n")
    (tmp_path / "more/Inputs").mkdir(parents=True)
    (tmp_path / "more/Inputs/a.mir").write_text(RELAY)
    (tmp_path / "more/helper.py").write_text("not a test\n")
    (tmp_path / "more/b.py").write_text("# RUN: %python %s | grep 3\nprint(3)\n".replace("%python", "python"))
    ran = lit("-v", "-j", "1", "own", "more")
    assert ran.code == 0 and "PASS: own :: a.txt" in ran.out and "PASS: mirstack :: more/b.py" in ran.out
    assert "Total Discovered Tests: 2" in ran.out
    assert not (tmp_path / "more/Output").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// RUN: mir-opt %s\n", "there is no RUN line with filecheck: nothing says which output is checked"),
        ("// RUN: filecheck %s && true\n", "this RUN line does not pipe its output into one filecheck at its end"),
        (
            "// RUN: cat %s | filecheck %s | filecheck %s\n",
            "this RUN line does not pipe its output into one filecheck at its end",
        ),
        ("// RUN: cat %s | filecheck other\n", "this RUN line's filecheck does not read its checks from %s"),
        ("// RUN: cat %s | filecheck %s --input-file=a\n", "checks are not written for filecheck with --input-file=a"),
        ("// RUN: cat %s | filecheck %s\n// XFAIL: *\n", "checks are not written for a test with XFAIL:"),
        ("// RUN: cat %s | \\\n", "the last RUN line is continued, and nothing follows"),
        (
            "// RUN: mir-opt %s | filecheck %s\n// CHECK: a\n",
            "this check was written by hand, and the file is left as it is",
        ),
        ("// RUN: true | filecheck %s\n", "this command prints nothing that could be checked"),
        ("// RUN: cat nowhere | filecheck %s\n", "this command ends with exit code 1"),
        ("// RUN: cat 'a %s | filecheck %s\n", "lit's shell cannot read this command"),
        (
            "// RUN: cat %s | filecheck %s\n// RUN: mir-opt %s | filecheck %s\n",
            "this RUN line and that of line 2 print different texts, and both are checked by CHECK",
        ),
        (
            "// RUN: date +%%N | filecheck %s\n",
            "the test does not pass with the checks of its own output: it prints something else each time",
        ),
    ],
)
def test_refusals_leave_the_file(lit: Callable[..., Ran], tmp_path: Path, text: str, message: str):
    path = tmp_path / "a.mir"
    path.write_text(text + RELAY)
    ran = lit("--update-checks", "a.mir")
    assert ran.code == 1 and message in ran.err
    assert path.read_text() == text + RELAY
    if "by hand" in message:
        assert lit("--update-checks", "--force", "a.mir").code == 0


def test_files_that_are_no_text_of_lines(lit: Callable[..., Ran], tmp_path: Path):
    run = b"// RUN: mir-opt %s | filecheck %s\n"
    for more, message in ((b"// \xff\n", "a.mir:2:4: error: "), (b"\r\n", "error: lines of this file end in \\r\\n")):
        (tmp_path / "a.mir").write_bytes(run + more)
        ran = lit("--update-checks", "a.mir")
        assert ran.code == 1 and message in ran.err and (tmp_path / "a.mir").read_bytes() == run + more


def test_wrong_command_lines(lit: Callable[..., Ran], tmp_path: Path):
    (tmp_path / "tests").mkdir()
    for arguments, message in (
        ((), "name the tests to run, or a folder that holds them"),
        (("--force", "tests"), "--force is for --update-checks: it replaces checks written by hand"),
        (("test",), "test: no such file or folder; did you mean 'tests'?"),
        (("--filter", "a", "tests"), "a: no such file or folder (options of lit are written with =: --filter=NAME)"),
        (("--update-checks", "-v", "tests"), "--update-checks takes no options of lit, as -v"),
        (("tests",), "there are no tests in tests: files named .mir, .mlir, or .py with a RUN line"),
    ):
        ran = lit(*arguments)
        assert ran.code == 2 and f"mirstack.lit: error: {message}\n" == ran.err


def test_where_lit_is_not_installed(lit: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.mir").write_text(RELAY)
    monkeypatch.setitem(__import__("sys").modules, "filecheck", None)
    ran = lit("a.mir")
    assert ran.code == 1
    assert (
        "error: tests need the package filecheck, which is not installed\nnote: pip install 'mirstack[lit]'" in ran.err
    )


def test_patterns_in_lines():
    (item,) = check_lines("[[A {{ /tmp/x/f.mir:1 took 1.5 ms %p0 %p0, %x\n", Style("C", folders=("/tmp/x/",)))
    assert item.lines == [
        r"// C:       {{\[\[}}A {{\{\{}} {{[^ ]*}}f.mir:1 took {{[0-9.e+-]+ ?(ns|us|µs|ms|s)}} [[P0:%[A-Za-z0-9_]+]] [[P0]], %x"
    ]
    whole, *_ = check_lines("  a\n", Style("C", "#", full_lines=True, exact_blanks=True))
    assert whole.lines == ["# C:  a"]
