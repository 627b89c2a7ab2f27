"""`python -m mirstack`: lists the commands, and runs them by their short names, `opt`, `run`, …"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

from .arguments import versions
from .errors import OK, UsageError, did_you_mean, guarded

NAME = "mirstack"
COMMANDS = {
    "opt": ("driver.mir_opt", "read a module, run passes over it, print it (mir-opt)"),
    "run": ("driver.mir_run", "compile a program and run it on arrays (mir-run)"),
    "build": ("driver.mir_build", "compile a program to a file: a package, a library, C's header (mir-build)"),
    "import": ("driver.mir_import", "write an ONNX or PyTorch model as text with weights beside it (mir-import)"),
    "quantize": ("driver.mir_quantize", "make layers of a model compute on bytes (mir-quantize)"),
    "view": ("driver.mir_view", "write a page that follows each line down to its instructions (mir-view)"),
    "lsp": ("editor.mir_lsp", "serve an editor (mir-lsp)"),
    "lit": ("driver.lit.main", "run tests of programs by lit"),
}
"""The module of each command, which has a `main`, and its summary."""

USAGE = f"usage: python -m {NAME} COMMAND [OPTION…]"
_COMPLETION = "--print-completion"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code, 2 where there is no such command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in COMMANDS:
        module = import_module(f"..{COMMANDS[arguments[0]][0]}", __package__)
        found: int = module.main(arguments[1:])
        return found
    return guarded(NAME, lambda: _about(arguments))


def _about(arguments: Sequence[str]) -> int:
    """Carries out what is asked of no command: help, versions, completion of a shell."""
    match arguments:
        case [] | ["-h" | "--help"]:
            width = max(map(len, COMMANDS))
            listed = "\n".join(f"  {name:{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
            print(
                f"{USAGE}\n\n{listed}\n\nCOMMAND --help shows a command's options; --version shows the versions;\n"
                f"{_COMPLETION} bash (or zsh) prints what makes the shell complete commands and options."
            )
        case ["--version"]:
            print(versions(NAME))
        case ["--print-completion", shell]:
            from .completion import completion

            print(completion(shell))
        case ["--print-completion", *_]:
            raise UsageError(f"{_COMPLETION} takes the name of the shell: bash or zsh")
        case _:
            near = did_you_mean(arguments[0], [*COMMANDS, "--help", "--version", _COMPLETION])
            raise UsageError(f"there is no command '{arguments[0]}'{near} (--help lists them)")
    return OK


if __name__ == "__main__":
    sys.exit(main())
