"""`mir-lsp`: the language server of `.mir` files, on standard input and output."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence

from ..driver.arguments import add_load
from ..driver.command import command_parser
from ..driver.errors import OK, UsageError, guarded
from ..driver.extending import load_all
from ..support.diagnostics import MirError


def argument_parser() -> argparse.ArgumentParser:
    """Returns the options of `mir-lsp`."""
    parser = command_parser(
        "mir-lsp", "Serve an editor that shows .mir files, by the language server protocol.", "[--stdio]"
    )
    parser.add_argument(
        "--stdio", action="store_true", help="speak on standard input and output, as without the option"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until the editor ends it; returns 0, or 2 for a wrong command line or without pygls."""

    def body() -> int:
        parser = argument_parser()
        add_load(parser)
        args = parser.parse_args(sys.argv[1:] if argv is None else list(argv))
        if importlib.util.find_spec("pygls") is None:
            raise UsageError("the package pygls is not installed; pip install 'mirstack[lsp]' installs it")
        try:
            load_all(args.load)
        except MirError as error:
            raise UsageError(str(error)) from error
        from .server import serve

        serve()
        return OK

    return guarded("mir-lsp", body)


if __name__ == "__main__":
    sys.exit(main())
