"""Ends the commands: exit codes, one-line errors of usage, a handler of unforeseen exceptions."""

from __future__ import annotations

import atexit
import errno
import gc
import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from ..support.text import did_you_mean, visible

OK = 0
INVALID = 1  # The input breaks a rule: diagnostics say where.
USAGE = 2  # The command line cannot be carried out.
INTERNAL = 70  # A bug of mirstack (EX_SOFTWARE of sysexits.h).
INTERRUPTED = 130


# When Python ends it looks for cycles among all that the commands have made, some 200 ms for a small program; nobody needs
# what that would release.
atexit.register(gc.freeze)


class UsageError(Exception):
    """A command line that names what does not exist: one line, or more where a caret helps."""


class InternalError(Exception):
    """An exception that no rule of the input explains; `where` is the stage or pass that it came from."""

    def __init__(self, where: str, cause: BaseException):
        super().__init__(f"{where}: {type(cause).__name__}: {cause}")
        self.where = where
        self.__cause__ = cause


def guarded(tool: str, body: Callable[[], int], debug: bool = False) -> int:
    """Returns the exit code of `body()`; prints exceptions, with a traceback only with `debug`."""
    # A stream that was closed before the start. Its number stays in use, lest a file that is opened next get it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stand_in = open(os.devnull, mode) if name != "stdout" else _ClosedOutput()  # noqa: SIM115
            setattr(sys, name, stand_in)
    try:
        try:
            return body()
        finally:
            sys.stdout.flush()
    except UsageError as error:
        print(visible(f"{tool}: error: {error}"), file=sys.stderr)
        return USAGE
    except BrokenPipeError:
        # The reader went away, as `head` does: nothing to tell, and nothing left to flush at exit.
        _drop_output()
        return OK
    except OSError as error:
        # Files that are written by name say which they are.
        if error.filename is not None or error.errno not in _OUTPUT_ERRORS:
            return _internal(tool, error, debug)
        print(f"{tool}: error: standard output cannot be written: {error.strerror}", file=sys.stderr)
        _drop_output()
        return USAGE
    except KeyboardInterrupt:
        # The work may go on in its thread; the only way to stop it is to leave.
        print(f"{tool}: interrupted", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)
    except MemoryError:
        print(f"{tool}: error: out of memory", file=sys.stderr)
        return INVALID
    except Exception as error:
        return _internal(tool, error, debug)


_OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EBADF)
"""What writing to standard output may fail with."""


class _ClosedOutput(io.TextIOWrapper):
    """Standard output closed before the start: `flush` raises OSError (EBADF) after something was written."""

    def __init__(self) -> None:
        super().__init__(open(os.devnull, "wb"), encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        self.lost = False

    def write(self, s: str, /) -> int:
        self.lost = self.lost or bool(s)
        return len(s)

    def flush(self) -> None:
        if self.lost:
            raise OSError(errno.EBADF, "it is closed")


def _drop_output() -> None:
    """Discards what was printed and could not be written: Python would try again when it ends."""
    if isinstance(sys.stdout, _ClosedOutput):
        sys.stdout.lost = False
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _internal(tool: str, error: Exception, debug: bool) -> int:
    """Tells of an exception that was not foreseen; its exit code."""
    cause = error.__cause__ if isinstance(error, InternalError) and error.__cause__ is not None else error
    where = error.where if isinstance(error, InternalError) else tool
    if debug:
        traceback.print_exception(cause, file=sys.stderr)
    message = visible(" ".join(str(cause).split())[:300])
    print(
        f"{tool}: internal error in {where}: {type(cause).__name__}: {message}\n"
        f"{tool}: this is a bug of mirstack, please report it with the input"
        + ("" if debug else " (--debug shows where it happened)"),
        file=sys.stderr,
    )
    return INTERNAL


__all__ = [
    "INTERNAL",
    "INTERRUPTED",
    "INVALID",
    "OK",
    "USAGE",
    "InternalError",
    "UsageError",
    "did_you_mean",
    "guarded",
]
