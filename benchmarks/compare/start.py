"""Measures how long programs take to be ready in a fresh process, the engine's import included.

    python -m benchmarks.compare --starts 5 --workload mobilenet

A start is cold with an empty cache and warm with what a cold one left there. The clock runs from before the engine is imported (Python
and numpy are there) to the executable or the session; the first call is not part of it. Starts of both engines are interleaved, and
the minimum counts: other work of the machine only adds to it. An engine that is not installed is left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .engine import OURS

ORT = "onnxruntime"
LIMIT = 600.0
"""Seconds that a process may take."""

CLOCK = """
import sys, time
import numpy
start = time.perf_counter()
{code}
print(time.perf_counter() - start)
"""
CODES = {
    OURS: "import mirstack; program = mirstack.compile(sys.argv[1], threads=int(sys.argv[2]))",
    ORT: """
import onnxruntime
imported = time.perf_counter()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = int(sys.argv[2]), 1, 3
program = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(time.perf_counter() - imported)
""",
}
"""Statements that import an engine and get a program ready: its file and the threads are the arguments."""


@dataclass
class Starts:
    """Minima of seconds, each of one kind of start; infinite before any was measured."""

    cold: float = float("inf")
    warm: float = float("inf")
    session: float = float("inf")
    """Creating onnxruntime's session, after its import."""
    imported: float = float("inf")
    """The same with its import."""

    def line(self, workload: str) -> str:
        """Returns a line of the table."""
        theirs = "" if self.session == float("inf") else f"{1e3 * self.session:9.0f} {1e3 * self.imported:12.0f}"
        ratio = "" if not theirs else f"{self.warm / self.session:12.2f} {self.warm / self.imported:12.2f}"
        return f"{workload:<16}{1e3 * self.cold:8.0f} {1e3 * self.warm:8.0f} {theirs} {ratio}".rstrip()


HEADER = (
    f"{'ms':<16}{'cold':>8} {'warm':>8} {'session':>9} {'with import':>12} {'warm/session':>12} {'with import':>12}"
)


def measured(source: Path, onnx: Path | None, threads: int, repeats: int) -> Starts:
    """Returns the minima of so many interleaved starts. Raises RuntimeError with an engine's message."""
    starts = Starts()
    # Files are read, and compiled to bytecode, before the first that counts.
    for number in range(repeats + 1):
        with TemporaryDirectory() as cache:
            cold, warm = (_seconds(OURS, source, threads, cache)[0] for _ in range(2))
            theirs = [] if onnx is None else _seconds(ORT, onnx, threads, cache)
        if number == 0:
            continue
        starts.cold, starts.warm = min(starts.cold, cold), min(starts.warm, warm)
        if theirs:
            starts.session, starts.imported = min(starts.session, theirs[0]), min(starts.imported, theirs[1])
    return starts


def _seconds(engine: str, file: Path, threads: int, cache: str) -> list[float]:
    """Returns the numbers that a process prints."""
    environment = {**os.environ, "MIRSTACK_CACHE": cache}
    # As an installed package, whose modules are compiled.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", CLOCK.format(code=CODES[engine]), str(file), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:160])
    return [float(line) for line in done.stdout.split()]
