"""Prints what makes a shell complete commands, options, files and names of passes.

The package shtab writes it from the options that each command declares.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from .command import with_common
from .errors import UsageError

SHELLS = ("bash", "zsh")
_PARSERS = {
    "mir-opt": "driver.mir_opt:option_parser",
    "mir-run": "driver.mir_run:argument_parser",
    "mir-build": "driver.mir_build:argument_parser",
    "mir-import": "driver.mir_import:argument_parser",
    "mir-quantize": "driver.mir_quantize:argument_parser",
    "mir-view": "driver.mir_view:argument_parser",
    "mir-lsp": "editor.mir_lsp:argument_parser",
}
"""The function that returns the options of each command."""

# `-p` takes several names with commas between.
_PASSES = {
    "bash": """\
_mirstack_passes() {{
  local before=""
  [[ $1 == *,* ]] && before="${{1%,*}},"
  compgen -P "$before" -W "{names}" -- "${{1##*,}}"
}}""",
    "zsh": """\
_mirstack_passes() {{
  _values -s , pass {names}
}}""",
}


def completion(shell: str) -> str:
    """Returns the text that a shell reads. Raises UsageError for another shell, and without shtab."""
    if shell not in SHELLS:
        raise UsageError(f"there is no completion for '{shell}': there is {' and '.join(SHELLS)}")
    if find_spec("shtab") is None:
        raise UsageError("the package shtab is not installed; pip install 'mirstack[completion]' installs it")
    shtab = import_module("shtab")
    from ..passes.registry import PASSES

    names = " ".join(sorted(entry.name for entry in PASSES))
    texts: list[str] = []
    for command, place in _PARSERS.items():
        module, _, name = place.partition(":")
        make: Callable[[], argparse.ArgumentParser] = getattr(import_module(f"..{module}", __package__), name)
        parser = make() if command in ("mir-opt", "mir-lsp") else with_common(make())
        parser.prog = command
        for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
            completed = _completed(action, shtab.FILE)
            if completed is not None:
                action.complete = completed  # type: ignore[attr-defined]
        texts.append(shtab.complete(parser, shell, preamble={}))
    return "\n".join([_PASSES[shell].format(names=names), *texts])


def _completed(action: argparse.Action, file: dict[str, str]) -> dict[str, str] | None:
    """Returns how an option's value is completed, where choices do not say."""
    if action.dest == "passes":
        return dict.fromkeys(SHELLS, "_mirstack_passes")
    takes_file = "FILE" in str(action.metavar) or action.dest == "input_file"
    return file if takes_file and action.choices is None else None
