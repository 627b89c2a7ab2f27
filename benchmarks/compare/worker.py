"""An engine in a process of its own, told by lines of JSON what to do: `python -m benchmarks.compare.worker ENGINE THREADS FOLDER`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import processors


class Worker:
    """The parent's side: one engine, one workload after the other."""

    def __init__(self, engine: str, threads: int, folder: Path):
        self.engine = engine
        command = [sys.executable, "-m", __name__, engine, str(threads), str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, **command: Any) -> dict[str, Any]:
        """The answer to a command. Raises RuntimeError with the engine's own words where it failed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(command) + "\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the process ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def sample(self, calls: int) -> float:
        return float(self.ask(sample=calls)["seconds"])

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def main(engine: str, threads: int, folder: Path) -> None:
    """The child's side. Answers go where nothing that an engine prints can get between them."""
    import os

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    processors.restrict(threads)
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
                loaded = load(named(command["load"]), engine, threads, folder)
                timed = Here(loaded.call.run)
                if "results" in command:
                    np.savez(command["results"], *loaded.results)
                answer = {"first": loaded.first_seconds}
            elif timed is None:
                answer = {"error": "nothing is loaded"}
            else:
                answer = {"seconds": timed.sample(command["sample"])}
        except Exception as error:
            # Whatever an engine raises is what the table says of it.
            answer = {"error": short(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
