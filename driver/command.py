"""Runs a command from its options to its exit code: `mir-run`, `mir-import`, `mir-quantize`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from ..support.deep_stack import in_deep_stack
from ..support.diagnostics import MirError, Sources, render_all
from .arguments import add_debug, add_load, add_version, suggest_options
from .errors import INVALID, guarded
from .extending import load_all
from .progress import add_verbose, logged


def command_parser(name: str, description: str, usage: str) -> argparse.ArgumentParser:
    """Returns a parser of options that suggests the nearest one; `usage` is what follows the name.

    mir-import: error: unrecognized arguments: --shapes; did you mean '--shape'?
    """
    parser = argparse.ArgumentParser(name, f"{name} {usage} [OPTION…] (--help shows all options)", description)
    suggest_options(parser)
    add_version(parser)
    return parser


def with_common(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Returns a command's options with those that `run_command` adds: `--debug`, `--load`, `-v`."""
    add_debug(parser)
    add_load(parser)
    add_verbose(parser)
    return parser


def run_command(
    name: str,
    argument_parser: Callable[[], argparse.ArgumentParser],
    run: Callable[[argparse.Namespace], int],
    argv: Sequence[str] | None,
) -> int:
    """Returns the exit code of a command; prints its errors, and those of the program as diagnostics.

    0, or what `run` returns; 1 where it raises MirError; 2 for a wrong command line. `argv` is None for the process's own.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)

    def body() -> int:
        args = with_common(argument_parser()).parse_args(arguments)
        sources = Sources()
        with sources.reading(), logged(args.verbose):
            try:
                load_all(args.load)
                return run(args)
            except MirError as error:
                print(render_all(error.diagnostics, sources), file=sys.stderr)
                return INVALID

    return guarded(name, lambda: in_deep_stack(body), debug="--debug" in arguments)
