"""Runs tests of programs by lit, and writes their checks: `python -m mirstack.lit`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from ...support.diagnostics import MirError, Sources, render_all
from ..arguments import add_debug
from ..command import command_parser
from ..errors import INVALID, OK, UsageError, guarded
from .configuration import CONFIGURATION, configured, needs_lit

NAME = "mirstack.lit"


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `python -m mirstack.lit`."""
    parser = command_parser(
        NAME,
        "Run lit's tests in files and folders, configured for .mir, .mlir and .py files; "
        "a lit.cfg.py above a path is used instead. Further options are lit's, written with = (--filter=add).",
        "PATH…",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="tests, or folders of tests")
    parser.add_argument("--update-checks", action="store_true", help="write the CHECK lines from what RUN lines print")
    parser.add_argument(
        "--force", action="store_true", help="with --update-checks, replace checks written by hand, too"
    )
    parser.add_argument(
        "--print-config", action="store_true", help="print the configuration, to begin a lit.cfg.py with"
    )
    parser.add_argument("-j", metavar="N", help="run N tests at once")
    return parser


def run(args: argparse.Namespace, options: Sequence[str]) -> int:
    """Runs tests, or writes their checks; returns the exit code. `options` are lit's own."""
    if args.print_config:
        print(CONFIGURATION, end="")
        return OK
    if not args.paths:
        raise UsageError("name the tests to run, or a folder that holds them")
    if args.force and not args.update_checks:
        raise UsageError("--force is for --update-checks: it replaces checks written by hand")
    for path in args.paths:
        if options and not Path(path).exists():
            raise UsageError(f"{path}: no such file or folder (options of lit are written with =: --filter=NAME)")
    if options and args.update_checks:
        raise UsageError(f"--update-checks takes no options of lit, as {options[0]}")
    try:
        needs_lit()
    except MirError as error:
        print(render_all(error.diagnostics, Sources.current()), file=sys.stderr)
        return INVALID
    with configured(args.paths) as paths:
        if not paths:
            raise UsageError(
                f"there are no tests in {', '.join(args.paths)}: files named .mir, .mlir, or .py with a RUN line"
            )
        if args.update_checks:
            return _update(paths, args.force)
        return _run_lit([*(["-j", args.j] if args.j else []), *options, *paths])


def _run_lit(arguments: Sequence[str]) -> int:
    """Returns the exit code of `lit ARGUMENTS…`, run in this process."""
    lit_main: Any = import_module("lit.main").main
    before, environment = sys.argv, dict(os.environ)
    sys.argv = [NAME, *arguments]
    try:
        lit_main({})
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    finally:
        sys.argv = before
        # lit leaves names of a folder of its own there, which is gone by now.
        os.environ.clear()
        os.environ.update(environment)
    return OK


def _update(paths: Sequence[str], force: bool) -> int:
    """Writes the checks of all tests at these paths; returns 1 where one could not be."""
    from .lit_test import find_tests
    from .update_checks import update_checks

    code = OK
    for test in find_tests(paths, NAME):
        try:
            changed = update_checks(test, force)
            print(f"{test.name}: {'its checks are written' if changed else 'its checks are current'}")
        except MirError as error:
            sources = Sources()
            sources.add(test.name, test.path.read_text(encoding="utf-8", errors="replace"))
            print(render_all(error.diagnostics, sources), file=sys.stderr)
            code = INVALID
    return code


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `python -m mirstack.lit`; returns its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)

    def body() -> int:
        # Options of lit may be anywhere among the paths.
        parser = argument_parser()
        add_debug(parser)
        return run(*parser.parse_known_intermixed_args(arguments))

    return guarded(NAME, body, debug="--debug" in arguments)
