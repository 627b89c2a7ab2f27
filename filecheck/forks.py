"""Commands written in Python in forks of lit's workers, which have imported what they need, rather than in processes of their own
that would import the same each: that takes four times as long as most tests.

A command is run so only if it is that of lit's own environment and finds the package where lit does. What it prints and gives back
is as ever: it has the process's standard streams, arguments, variables and folder to itself. `lit --param processes=1` starts processes.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import lit.TestRunner

COMMANDS = ("mir-opt", "mir-run", "xdsl-opt", "filecheck")


def install() -> None:
    """Has lit run `COMMANDS` in forks from now on."""
    from mirstack.api.compile import preload
    from mirstack.lowering.llvm.jit import codegen_process

    preload()
    # One for all commands.
    codegen_process.start()
    found = {script.name: script.load() for script in entry_points(group="console_scripts") if script.name in COMMANDS}
    # What is here now need not be looked at again by the collectors of the forks.
    gc.freeze()
    lit.TestRunner.subprocess = SimpleNamespace(**vars(subprocess) | {"Popen": partial(_start, found)})


def _start(
    commands: Mapping[str, Callable[[], Any]],
    arguments: Sequence[str],
    *,
    executable: str,
    env: Mapping[str, str],
    **options: Any,
) -> subprocess.Popen[str]:
    """The command's process. As lit starts processes."""
    folder, name = os.path.split(executable)
    is_lits_own = folder == os.path.dirname(sys.executable) and env.get("PYTHONPATH") == os.environ.get("PYTHONPATH")
    if name in commands and is_lits_own:
        # Between the fork and what would be executed.
        options["preexec_fn"] = partial(_run, commands[name], arguments, env)
    return subprocess.Popen(arguments, executable=executable, env=env, **options)


def _run(command: Callable[[], Any], arguments: Sequence[str], env: Mapping[str, str]) -> None:
    """Runs a command as a Python that has just started would, and ends the process."""
    from mirstack.lowering.llvm.jit.codegen_process import channel_file

    # Among them is the pipe that tells who started the process that it runs.
    kept = channel_file() or 3
    os.closerange(3, kept)
    os.closerange(kept + 1, min(os.sysconf("SC_OPEN_MAX"), 1 << 16))
    code: Any = 1
    try:
        os.environ.clear()
        os.environ.update(env)
        sys.argv = [*arguments]
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
        code = command()
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        traceback.print_exc()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))
