"""What is wrong with streams, seeds and files ends in one line of the commands, and never in an internal error."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from conftest import Ran

PROGRAM = "def @main(%x: Tensor[(4), float32]) { add(%x, 1f) }\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.mir"
    path.write_text(PROGRAM)
    return path


def command(module: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", f"mirstack.driver.{module}", *map(str, arguments)]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
@pytest.mark.parametrize(
    "arguments", [("mir_opt", "{}"), ("mir_opt", "--list-passes"), ("mir_run", "--cache-info"), ("mir_run", "--help")]
)
def test_output_that_cannot_be_written(program: Path, arguments: Sequence[str]) -> None:
    with open("/dev/full", "w") as full:
        line = command(*(each.format(program) for each in arguments))
        ran = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    tool = arguments[0].replace("_", "-")
    assert (ran.returncode, ran.stderr) == (
        2,
        f"{tool}: error: standard output cannot be written: No space left on device\n",
    )


def test_a_reader_that_goes_away(program: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(command("mir_opt", program), stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream in a shell")
def test_streams_that_are_closed(program: Path) -> None:
    line = " ".join(command("mir_run", program, "--random", 1, "--target", "interp"))
    for closed, code in (("<&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 2)):
        ran = subprocess.run(["sh", "-c", f"{line} {closed}"], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (code, "")


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream in a shell")
@pytest.mark.parametrize(
    "arguments",
    [
        ("mir_opt", "{}"),
        ("mir_opt", "--list-passes"),
        ("mir_opt", "--help"),
        ("mir_run", "{}", "--random", "1", "--target", "interp"),
        ("mir_run", "--cache-info"),
    ],
)
def test_output_that_is_closed(program: Path, arguments: Sequence[str]) -> None:
    line = " ".join(command(*(each.format(program) for each in arguments)))
    ran = subprocess.run(["sh", "-c", f"{line} >&-"], stderr=subprocess.PIPE, text=True, check=False)
    tool = arguments[0].replace("_", "-")
    assert (ran.returncode, ran.stderr) == (2, f"{tool}: error: standard output cannot be written: it is closed\n")


@pytest.mark.skipif(sys.platform == "win32", reason="closes a stream in a shell")
def test_output_that_is_closed_and_not_used(program: Path) -> None:
    written = program.with_name("written.mir")
    line = " ".join(command("mir_opt", program, "-o", written))
    ran = subprocess.run(["sh", "-c", f"{line} >&-"], stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "") and "add" in written.read_text()


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", ""])
def test_seeds(mir_run: Callable[..., Ran], mir_opt: Callable[..., Ran], program: Path, seed: str) -> None:
    for ran in (
        mir_run(program, f"--random={seed}"),
        mir_opt(program, "--check-each", "-p", "cse", f"--inputs={seed}"),
    ):
        assert ran.code == 2 and f"'{seed}' is not a whole number from 0 on" in ran.err


@pytest.mark.parametrize("content", ["cut", "junk", "empty", "huge", "objects"])
@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_inputs_that_are_none(
    mir_run: Callable[..., Ran], tmp_path: Path, program: Path, content: str, ending: str
) -> None:
    path = tmp_path / f"x.{ending}"
    if ending == "npz":
        np.savez(path, x=np.ones(4, np.float32))
    else:
        np.save(path, np.ones(4, np.float32))
    data = path.read_bytes()
    match content:
        case "cut":
            data = data[: len(data) // 2]
        case "junk":
            data = data[:4] + b"junk" * 30
        case "empty":
            data = b""
        case "huge":
            data = data.replace(b"(4,), }" + b" " * 17, b"(1152921504606846976,), }"[:24])
        case _:
            data = data.replace(b"'<f4'", b"'|O' ")
    path.write_bytes(data)
    for flag in ("--input", "--expect"):
        ran = mir_run(
            program,
            "--random",
            1,
            "--target",
            "interp",
            flag,
            path if ending == "npz" or flag == "--expect" else f"x={path}",
        )
        assert ran.code == 2 and ran.err.startswith(f"mir-run: error: {path}: ")


def test_output_has_names(mir_run: Callable[..., Ran], program: Path, tmp_path: Path) -> None:
    ran = mir_run(program, "--random", 1, "--output", tmp_path / "o.npy")
    assert (ran.code, ran.err) == (
        2,
        f"mir-run: error: {tmp_path / 'o.npy'}: results are written by name, into a .npz file\n",
    )
    assert not (tmp_path / "o.npy").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("fuse-ops{fuse-opt-level=99}", "fuse-opt-level must be from 0 to 4, not 99"),
        ("fuse-ops{max-depth=0}", "max-depth must be 1 or more, not 0"),
        ("combine-parallel-dense{min-num-branches=-3}", "min-num-branches must be 1 or more, not -3"),
        ("combine-parallel-conv2d{min-num-branches=0}", "min-num-branches must be 1 or more, not 0"),
        ("combine-parallel-batch-matmul{min-num-branches=0}", "min-num-branches must be 1 or more, not 0"),
        ("unroll-loop{auto-max-step=-1}", "auto-max-step must be 0 or more, not -1"),
        ("remove-no-op{max-simplification-steps=-1}", "max-simplification-steps must be 0 or more, not -1"),
        ("default-schedule{threads=-1}", "threads must be 0 or more, not -1"),
    ],
)
def test_options_that_passes_do_not_take(mir_opt: Callable[..., Ran], program: Path, option: str, message: str) -> None:
    ran = mir_opt(program, "-p", option)
    assert ran.code == 1 and f"error: {message}\n" in ran.err
