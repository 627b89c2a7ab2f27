"""How the commands end: exit codes, one-line errors of usage, and a net under everything that was not foreseen."""

from __future__ import annotations

import difflib
import os
import sys
import traceback
from collections.abc import Callable, Iterable

OK = 0
INVALID = 1  # The input breaks a rule: diagnostics say where.
USAGE = 2  # The command line cannot be carried out.
INTERNAL = 70  # A bug of mirstack (EX_SOFTWARE of sysexits.h).
INTERRUPTED = 130


class UsageError(Exception):
    """The command line asks for what is not there: a pass, an option, a file. One line, or more where a caret helps."""


class InternalError(Exception):
    """An exception that no rule of the input explains; `where` is the stage or pass that it came from."""

    def __init__(self, where: str, cause: BaseException):
        super().__init__(f"{where}: {type(cause).__name__}: {cause}")
        self.where = where
        self.__cause__ = cause


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """ "; did you mean 'x'?" for the known word nearest to `word`, or nothing when none is near."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f"; did you mean '{near[0]}'?" if near else ""


def guarded(tool: str, body: Callable[[], int], debug: bool = False) -> int:
    """The exit code of `body()`; what it raises is told on standard error, never as a traceback (unless `debug`)."""
    try:
        code = body()
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"{tool}: error: {error}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # The reader went away, as `head` does: nothing to tell, and nothing left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        # The work may go on in its thread; there is no way to stop it but to leave.
        print(f"{tool}: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)
    except MemoryError:
        print(f"{tool}: error: out of memory", file=sys.stderr)
        return INVALID
    except Exception as error:
        cause = error.__cause__ if isinstance(error, InternalError) and error.__cause__ is not None else error
        where = error.where if isinstance(error, InternalError) else tool
        if debug:
            traceback.print_exception(cause, file=sys.stderr)
        message = " ".join(str(cause).split())[:300]
        print(
            f"{tool}: internal error in {where}: {type(cause).__name__}: {message}\n"
            f"{tool}: this is a bug of mirstack, please report it with the input"
            + ("" if debug else " (--debug shows where it happened)"),
            file=sys.stderr,
        )
        return INTERNAL
