"""Compile time and memory of one workload in one engine, in a process of its own: `python -m benchmarks.compare.cost --help`.

The clock runs from the form that the engine reads (for mirstack the `.mir` text) to the first result; imports are done
before, files are written before. Memory is what the process takes beyond what it took when the clock started.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .engine import OURS
from .results import Cost

REPEATS = 3
"""Cold and warm starts of each at most; the median counts."""
ENOUGH = 8.0
"""Seconds after which no more are done."""
CALLS = 5
"""After the first."""
LIMIT = 600.0
"""Seconds that a process may take."""


def measured(engine: str, workload: str, threads: int, folder: Path, repeats: int = REPEATS) -> Cost:
    """The costs, each the median of up to `repeats` processes. Raises RuntimeError with the engine's words where it fails."""
    prepared = folder / f"{workload}.{engine}.prepared"
    if not prepared.exists():
        _process("prepare", engine, workload, threads, folder, {})
        prepared.touch()
    cold: list[dict[str, Any]] = []
    warm: list[float] = []
    begin = time.monotonic()
    while not cold or (len(cold) < repeats and time.monotonic() - begin < ENOUGH):
        with TemporaryDirectory() as cache:
            environment = {"MIRSTACK_CACHE": cache}
            cold.append(_process("run", engine, workload, threads, folder, environment))
            if engine == OURS:
                warm.append(_process("run", engine, workload, threads, folder, environment)["seconds"])
    middle = sorted(cold, key=lambda answer: answer["seconds"])[len(cold) // 2]
    arena = middle["arena"]
    return Cost(
        middle["seconds"],
        sorted(warm)[len(warm) // 2] if warm else None,
        middle["compile_bytes"],
        middle["run_bytes"],
        (arena[0], arena[1]) if arena else None,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _process(
    what: str, engine: str, workload: str, threads: int, folder: Path, environment: dict[str, str]
) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, what, engine, workload, str(threads), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=LIMIT)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:160])
    return json.loads(lines[-1])


def _status(key: str) -> int:
    """A number of bytes from the system's status of this process: VmRSS now, VmHWM the most since `_reset_peak`."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main(what: str, engine_name: str, workload: str, threads: int, folder: Path) -> None:
    """The child's side; the last line that it prints is the answer."""
    from . import processors

    processors.restrict(threads)
    from .engine import engine_of
    from .material import Material
    from .workloads import named

    engine = engine_of(engine_name)
    material = Material(named(workload), folder)
    inputs = material.inputs
    prepared = engine.prepare(material)
    if what == "prepare":
        print("{}")
        return
    before = _status("VmRSS")
    _reset_peak()
    start = time.perf_counter()
    program = engine.load(prepared, threads)
    call = engine.bind(program, inputs)
    call.run()
    seconds = time.perf_counter() - start
    # An engine may have its compiler in a process of its own.
    compiled = max(_status("VmHWM"), before + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
    _reset_peak()
    for _ in range(CALLS):
        call.run()
    arena = [getattr(program, name, 0) for name in ("arena_bytes", "arena_lower_bound")]
    answer = {
        "seconds": seconds,
        "compile_bytes": compiled - before,
        "run_bytes": _status("VmHWM") - before,
        "arena": arena if any(arena) else None,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
