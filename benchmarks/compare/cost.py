"""Measures compile time and memory of one workload in one engine, in a process of its own.

    python -m benchmarks.compare.cost --help

The clock runs from the form that the engine reads (for mirstack the `.mir` text) to the first result; imports are done
before, files are written before. Memory is what the process takes beyond what it took when the clock started.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
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
BEGINS = "compiling begins"
LOOK = 0.01
"""Seconds between two looks at memory."""


def measured(engine: str, workload: str, threads: int, folder: Path, repeats: int = REPEATS) -> Cost:
    """Returns medians of up to `repeats` processes. Raises RuntimeError with the engine's message."""
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
    with TemporaryDirectory() as cache:
        compile_bytes = _most_memory(_command("compile", engine, workload, threads, folder), {"MIRSTACK_CACHE": cache})
    middle = sorted(cold, key=lambda answer: answer["seconds"])[len(cold) // 2]
    arena = middle["arena"]
    return Cost(
        middle["seconds"],
        sorted(warm)[len(warm) // 2] if warm else None,
        compile_bytes,
        middle["run_bytes"],
        (arena[0], arena[1]) if arena else None,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _command(what: str, engine: str, workload: str, threads: int, folder: Path) -> list[str]:
    return [sys.executable, "-m", __name__, what, engine, workload, str(threads), str(folder)]


def _most_memory(command: list[str], environment: dict[str, str]) -> int:
    """Returns the peak memory of a process and its descendants, beyond that at the line `BEGINS`.

    A page that several share counts once. Samples are taken until the last line, which holds the process's own count: that is
    used where it exceeds the samples. Sampling takes time, so that no time is measured meanwhile. Raises RuntimeError where
    the process fails.
    """
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, **environment}, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == BEGINS:
                break
        before = most = _memory_of(child.pid)
        while not select.select([child.stdout], [], [], LOOK)[0]:
            most = max(most, _memory_of(child.pid))
        lines = child.stdout.read().splitlines()
    if child.returncode != 0 or not lines:
        raise RuntimeError(f"status {child.returncode}")
    return max(most - before, int(lines[-1]))


def _memory_of(process: int) -> int:
    """Returns the proportional set sizes of a process and its descendants; 0 for those just ended."""
    total, pending = 0, [process]
    while pending:
        folder = Path(f"/proc/{pending.pop()}")
        with suppress(OSError, ValueError):
            lines = folder.joinpath("smaps_rollup").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
            for children in folder.glob("task/*/children"):
                pending += map(int, children.read_text(encoding="ascii").split())
    return total


def _process(
    what: str, engine: str, workload: str, threads: int, folder: Path, environment: dict[str, str]
) -> dict[str, Any]:
    command = _command(what, engine, workload, threads, folder)
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=LIMIT)
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1][:160])
    return json.loads(lines[-1])


def _status(key: str) -> int:
    """Returns a size in bytes from this process's status: VmRSS (now) or VmHWM (peak since `_reset_peak`)."""
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def main(what: str, engine_name: str, workload: str, threads: int, folder: Path) -> None:
    """Runs the child's side; the last line that it prints is the answer."""
    from .setting import Setting

    setting = Setting(threads)
    setting.restrict()
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
    if what == "compile":
        print(BEGINS, flush=True)
    start = time.perf_counter()
    program = engine.load(prepared, setting)
    call = engine.bind(program, inputs)
    call.run()
    seconds = time.perf_counter() - start
    if what == "compile":
        print(_status("VmHWM") - before)
        return
    _reset_peak()
    for _ in range(CALLS):
        call.run()
    arena = [getattr(program, name, 0) for name in ("arena_bytes", "arena_lower_bound")]
    answer = {"seconds": seconds, "run_bytes": _status("VmHWM") - before, "arena": arena if any(arena) else None}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))
