"""Writes what the commands print for the repository's programs, to compare two states of the compiler.

    python -m benchmarks.goldens before/        # then change the compiler
    python -m benchmarks.goldens after/
    diff -r before after

`OUT/filecheck` has the output and the errors of each `mir-opt` and `mir-run` that a RUN line begins with, `OUT/models` the LLVM IR of the
example models, `OUT/imports` the modules that each command imports for one program of each level.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILECHECK = ROOT / "filecheck"
COMMANDS = ("mir-opt", "mir-run")
LEVELS = {
    "relay": "filecheck/passes/relay/fusion/fuse_ops.mir",
    "te": "filecheck/lowering/te/lower_te_to_tir.mir",
    "tir": "filecheck/passes/tir/buffers/flatten_buffer.mir",
}
"""A program of each level, whose imports are listed."""


def main() -> None:
    """Writes the goldens that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.goldens", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the folder to write; made where it is missing")
    parser.add_argument(
        "--models", nargs="*", default=["lenet", "squeezenet", "bert"], help="models of `examples.models` to compile"
    )
    options = parser.parse_args()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(_filecheck, source, options.out) for source in sorted(FILECHECK.rglob("*.m*ir"))]
        jobs += [pool.submit(_model, name, options.out) for name in options.models]
        jobs += [pool.submit(_imports, level, options.out) for level in LEVELS]
        for job in jobs:
            job.result()


def run_lines(source: Path) -> list[list[str]]:
    """Returns the commands that begin the RUN lines of a lit test, without what reads their output.

    // RUN: mir-opt %s -p simplify | filecheck %s    →    [["mir-opt", SOURCE, "-p", "simplify"]]
    """
    lines = [line.split("RUN:", 1)[1].strip() for line in source.read_text().splitlines() if "RUN:" in line]
    found: list[list[str]] = []
    for line in lines:
        words = shlex.split(
            line.replace("%s", str(source.relative_to(ROOT))).replace("%S", str(source.parent.relative_to(ROOT))),
            comments=False,
        )
        if words[0] == "not":
            words = words[1:]
        ends = [i for i, word in enumerate(words) if word in ("|", "&&", ">", "2>&1", "2>", ";", ">/dev/null")]
        command = words[: ends[0]] if ends else words
        if command[0] in COMMANDS and not any("%" in word for word in command):
            found.append(command)
    return found


def _filecheck(source: Path, out: Path) -> None:
    for number, command in enumerate(run_lines(source)):
        target = out / "filecheck" / source.relative_to(FILECHECK).with_suffix(f".{number}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_output(command))


def _model(name: str, out: Path) -> None:
    # Paths are part of what failed checks return, so they are counted from the checkout.
    folder = ROOT / "build" / "goldens" / name
    made = [sys.executable, "-m", "mirstack.examples.models", name, "--out", str(folder)]
    subprocess.run(made, check=True, capture_output=True)
    (source,) = folder.glob("*.mir")
    target = out / "models" / f"{name}.ll"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_output(["mir-opt", str(source.relative_to(ROOT)), "-t", "llvm", "--mcpu", "haswell"]))


def _imports(level: str, out: Path) -> None:
    code = (
        "import sys; from mirstack.driver.mir_opt import main; sys.argv = ['mir-opt', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.stderr.write('\\n'.join(sorted(name for name in sys.modules if name.startswith('mirstack'))))"
    )
    target = out / "imports" / f"{level}.txt"
    target.parent.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(
        [sys.executable, "-c", code, str(ROOT / LEVELS[level])], capture_output=True, text=True, check=True
    )
    target.write_text(made.stderr + "\n")


def _output(command: list[str]) -> str:
    """Returns what a command prints, then its errors; paths of the checkout are left out."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "MIRSTACK_CACHE_LIMIT": "0"}
    made = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    told = f"{made.stdout}\n--- errors, exit code {made.returncode}\n{made.stderr}".replace(str(ROOT), "")
    return re.sub(r" in [\d.]+ (s|ms|µs)\b", " in TIME", told)


if __name__ == "__main__":
    main()
