"""Runs an engine in a process of its own, by commands in lines of JSON.

python -m benchmarks.compare.worker ENGINE THREADS CPU FOLDER
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .setting import Setting

WARM = 0.02
"""Seconds of calls before a sample: threads that just woke may share a processor for some milliseconds."""


class Worker:
    """The parent's side of a worker: one engine, one workload after the other.

    The process is stopped while it has nothing to do: idle threads of a pool spin, for 200 ms with OpenMP, and would take
    processors from the engine that is being measured.
    """

    def __init__(self, engine: str, setting: Setting, folder: Path):
        self.engine = engine
        self._command = [sys.executable, "-m", __name__, engine, str(setting.threads), setting.cpu, str(folder)]
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, **command: Any) -> dict[str, Any]:
        """Sends a command to a live process; returns its answer. Raises RuntimeError with its message."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            self._process.send_signal(signal.SIGCONT)
            stdin.write(json.dumps(command) + "\n")
            stdin.flush()
            line = stdout.readline()
            self._process.send_signal(signal.SIGSTOP)
        except BrokenPipeError:
            line = ""
        if not line:
            status = self._process.wait()
            self._process = self._started()
            raise RuntimeError(f"the process ended with status {status}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def sample(self, calls: int) -> float:
        """As `measure.Timed`."""
        return float(self.ask(sample=calls)["seconds"])

    def kill(self) -> None:
        """Ends the process at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Ends the process."""
        self._process.send_signal(signal.SIGCONT)
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def main(engine: str, setting: Setting, folder: Path) -> None:
    """Runs the child's side. Answers go where nothing that an engine prints can get between them."""
    import os

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    setting.restrict()
    import numpy as np

    from .measure import Here
    from .run import load, short
    from .workloads import named

    timed: Here | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "load" in command:
                timed = None
                loaded = load(named(command["load"]), engine, setting, folder)
                timed = Here(loaded.call.run)
                if "results" in command:
                    np.savez(command["results"], *loaded.results)
                answer = {"first": loaded.first_seconds}
            elif timed is None:
                answer = {"error": "nothing is loaded"}
            else:
                # Wakes its threads, lets the system spread them, and fetches what the other engines pushed out of the caches.
                end = time.perf_counter() + WARM
                while time.perf_counter() < end:
                    timed.run()
                answer = {"seconds": timed.sample(command["sample"])}
        except Exception as error:
            # Whatever an engine raises is what the table says of it.
            answer = {"error": short(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], Setting(int(sys.argv[2]), sys.argv[3]), Path(sys.argv[4]))
