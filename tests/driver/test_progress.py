"""The line of progress on a terminal, stages in a log, and nothing of either where nobody asked."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.driver import mir_build, mir_run, progress
from mirstack.support.stages import COMPILE, PASSES, STAGES, counted, displayed, steps
from mirstack.support.stopwatch import timed

ROOT = Path(__file__).parents[2]
NET = """\
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(16, 8), float32], %v: Tensor[(4, 16), float32]) {
  %0 = nn.relu(nn.dense(%x, %w));
  %1 = nn.softmax(nn.dense(%0, %v));
  (%1, sum(%1, axis=[0]), tanh(%0), nn.softmax(%0))
}
"""


@pytest.fixture(autouse=True)
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.mir").write_text(NET)


def names(text: str) -> list[str]:
    """Returns the lines of a log without their times."""
    return [re.sub(r": [\d.]+ ms$", "", line) for line in text.splitlines() if line.startswith("mirstack.")]


def test_verbose_logs_stages(capsys: pytest.CaptureFixture[str]) -> None:
    for command, arguments in (
        (mir_run, ["net.mir", "--random", "1", "--no-cache", "-v"]),
        (mir_build, ["net.mir", "-o", "net.mirpkg", "--verbose"]),
    ):
        assert command.main(arguments) == 0
        shown = names(capsys.readouterr().err)
        prefix = "compile > " if command is mir_run else ""
        for name in ("parse", "graph", "kernels", "program"):
            assert f"mirstack.stages: {prefix}{name}" in shown
        assert not any(line.startswith("mirstack.passes") for line in shown)
    assert mir_run.main(["net.mir", "--random", "1", "--no-cache"]) == 0
    assert not names(capsys.readouterr().err)


def test_twice_verbose_logs_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert mir_run.main(["net.mir", "--random", "1", "--no-cache", "-vv"]) == 0
    shown = names(capsys.readouterr().err)
    assert "mirstack.passes: compile > graph > fuse-ops" in shown and "mirstack.stages: compile > graph" in shown


def test_loggers_of_a_program_hear_of_stages(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "mirstack"):
        mirstack.compile("net.mir", cache=False)
    assert {record.name for record in caplog.records} == {STAGES, COMPILE}
    assert {"parse", "graph", "kernels"} <= {record.getMessage().partition(":")[0] for record in caplog.records}
    caplog.clear()
    with caplog.at_level("DEBUG", PASSES):
        mirstack.compile("net.mir", cache=False)
    assert "graph > fuse-ops" in {record.getMessage().partition(":")[0] for record in caplog.records}
    caplog.clear()
    mirstack.compile("net.mir", cache=False)
    assert not caplog.records


def test_a_pipe_shows_no_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    assert mir_run.main(["net.mir", "--random", "1", "--no-cache"]) == 0
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    """A terminal that keeps what is written."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("term", "verbose"), [("dumb", 0), ("xterm", 1)])
def test_a_terminal_without_lines_and_a_log_show_no_progress(
    term: str, verbose: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", term)
    with progress.logged(verbose), progress.shown("mir-run"), timed("compile"):
        pass
    assert "\x1b" not in terminal.getvalue() and ("compile" in terminal.getvalue()) == bool(verbose)


def test_a_closed_standard_error_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with progress.shown("mir-run"), timed("compile"):
        pass


class Kept:
    """A display that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def stage(self, names: object) -> None:
        self.told.append(names)

    def step(self, name: str, done: int, total: int) -> None:
        self.told.append((name, done, total))


def test_a_display_is_told_of_stages_and_steps() -> None:
    kept = Kept()
    with displayed(kept), timed("outer"):
        assert list(steps("parts", "ab")) == ["a", "b"]
        with timed("pass", fine=True), timed("inside"):
            pass
        assert list(counted("others", iter("cd"), 3, 5)) == ["c", "d"]
    expected = [("outer",), ("parts", 0, 2), ("parts", 1, 2), ("parts", 2, 2), ("others", 4, 5), ("others", 5, 5), ()]
    assert kept.told == expected
    assert list(steps("parts", "ab")) == ["a", "b"] and len(kept.told) == len(expected)


def test_kernels_are_counted_to_the_last() -> None:
    for cache in (True, False):
        kept = Kept()
        with displayed(kept):
            mirstack.compile("net.mir", cache=cache)
        kernels = [
            each for each in kept.told if isinstance(each, tuple) and each[:1] == ("kernels",) and len(each) == 3
        ]
        assert kernels and kernels[-1][1] == kernels[-1][2] >= 3
        assert [each[1] for each in kernels] == sorted(each[1] for each in kernels)


@pytest.mark.extra
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize("command", ["mir_run", "mir_build", "mir_quantize"])
def test_a_terminal_shows_a_line_that_goes(command: str) -> None:
    library("rich", "progress")
    import pty

    arguments = {
        "mir_run": ["net.mir", "--random", "1", "--no-cache"],
        "mir_build": ["net.mir", "-o", "net.mirpkg"],
        "mir_quantize": [str(ROOT / "examples/digits/digits.mir"), "--data", "data.npz"],
    }[command]
    if command == "mir_quantize":
        images = np.load(ROOT / "examples/digits/test_images.npz")["images"]
        np.savez("data.npz", image=(images[:8] / 16).astype("float32"))
    code = (
        f"import sys; from mirstack.driver import {command} as command, progress\n"
        f"progress.PATIENCE = progress.PAUSE = 0.0\nsys.exit(command.main({arguments!r}))"
    )
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm", COLUMNS="400")
        os.execv(sys.executable, [sys.executable, "-c", code])
    shown = b""
    while True:
        try:
            data = os.read(terminal, 1 << 16)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    text = shown.decode()
    assert os.waitstatus_to_exitcode(status) == 0, text
    title = f"{command.replace('_', '-')} {arguments[0]}"
    assert title in text
    # In the end the line is deleted, and the cursor is shown again.
    last = text.rindex(title)
    assert "\x1b[2K" in text[last:] and "\x1b[?25h" in text[last:]
