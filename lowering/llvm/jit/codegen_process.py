"""LLVM in processes of its own: what ends one ends nothing else.

`codegen.py` runs as a server that forks workers; each thread that compiles has one to itself while it waits. Where a worker dies, or takes
longer than `MIRSTACK_LLVM_SECONDS` of processor time, the text is compiled by safer pipelines, one after the other, which is said on
standard error; where none is safe enough, an error says so. Where no process can be started, LLVM runs inside of this one.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ....support.diagnostics import Diagnostic, MirError
from ....support.settings import say, say_once, whole_number
from ....support.source_text import text_bytes
from ....support.stopwatch import current_span
from .codegen import ANSWER, READY, REQUEST, Made, Refused, Request, compiled, received

SECONDS = 600
"""Processor time after which a compilation is given up; models of the zoo take a few seconds for all that is in them."""
PATIENCE = 10
"""How many times as long this process waits for an answer: the machine may be busy, and the worker keeps its limit by itself."""
USES = 500
"""Compilations after which a worker ends: a new one takes a millisecond, and LLVM keeps some memory of each."""
KEPT = 8
"""Workers without work that are kept for the next compilation."""
_STARTS = 3
"""How often a server is started in all."""
_ENDED = "the process that compiles ended when it began"
SCRIPT = Path(__file__).with_name("codegen.py")


class Died(Exception):
    """A worker ended, or was given up, during a compilation; the text says what LLVM said last."""


class Unavailable(Exception):
    """The system cannot start a worker. The text says why."""


@dataclass(eq=False)
class _Worker:
    connection: socket.socket
    errors: IO[bytes]
    """What it writes to standard error."""
    channel: socket.socket
    """The server's, who was asked for it."""
    ready: bool = False
    uses: int = 0

    def ask(self, request: Request, text: str) -> Made:
        """Compiles a text. Raises Refused, Died, and Unavailable where the worker never began."""
        line, data = request.encode(), text_bytes(text)
        began = time.monotonic()
        try:
            self.connection.settimeout(request.seconds * PATIENCE or None)
            if not self.ready:
                if bytes(received(self.connection, len(READY))) != READY:
                    raise Unavailable(_ENDED)
                self.ready = True
            self.connection.sendall(REQUEST.pack(len(line), len(data)) + line + data)
            head = received(self.connection, ANSWER.size)
            if len(head) == ANSWER.size:
                good, first, second, *seconds = ANSWER.unpack(head)
                body = received(self.connection, first + second)
                if len(body) == first + second:
                    self.uses += 1
                    if good:
                        return Made(bytes(body), (seconds[0], seconds[1], seconds[2]))
                    raise Refused(body[:first].decode(), body[first:].decode())
        except TimeoutError:
            pass
        except OSError as error:
            if not self.ready:
                raise Unavailable(str(error)) from None
        raise Died(self._last_words(request.seconds, time.monotonic() - began))

    def _last_words(self, limit: int, taken: float) -> str:
        self.errors.seek(0)
        said = self.errors.read(1 << 16).decode(errors="replace")
        found = next(filter(None, map(_REASON.search, said.splitlines())), None)
        if found is not None:
            # Of an assertion the words at its end, where it has such.
            words = re.findall(r'"([^"]+)"', found[1]) or [found[1]]
            return f"LLVM says: {words[-1].strip()[:_SHOWN]}"
        return f"it took more than {limit} s" if limit and taken >= limit else "its process was ended"

    def close(self) -> None:
        """Lets go of the worker, which ends."""
        self.connection.close()
        self.errors.close()


_SHOWN = 160
"""Characters of what LLVM says that are shown."""
_REASON = re.compile(
    r"(?:Assertion `|LLVM ERROR: |UNREACHABLE executed|Error: |terminate called )(.*?)(?:' failed\.|$)"
)


@dataclass
class _Processes:
    """The server of this process, and its workers: used under `lock`, forgotten in a fork."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    channel: socket.socket | None = None
    server: int = 0
    """The server's process, where it is a child of this one."""
    starts: int = 0
    unavailable: str = ""
    """Why there are none."""
    idle: list[_Worker] = field(default_factory=list[_Worker])
    busy: set[_Worker] = field(default_factory=set[_Worker])

    def start(self) -> socket.socket:
        """Returns the channel to the server, which is started where it is not there. Raises Unavailable."""
        with self.lock:
            if self.unavailable:
                raise Unavailable(self.unavailable)
            if self.channel is None:
                try:
                    self.channel, self.server = _started()
                    self.starts += 1
                except (OSError, NotImplementedError, AttributeError) as error:
                    self.unavailable = str(error) or type(error).__name__
                    raise Unavailable(self.unavailable) from None
            return self.channel

    def take(self) -> _Worker:
        """Returns a worker for one compilation. Raises Unavailable."""
        with self.lock:
            if self.idle:
                worker = self.idle.pop()
                self.busy.add(worker)
                return worker
        for _ in range(2):
            channel = self.start()
            here, there = socket.socketpair()
            errors = tempfile.TemporaryFile()  # noqa: SIM115
            worker = _Worker(here, errors, channel)
            try:
                with there:
                    socket.send_fds(channel, [b"w"], [there.fileno(), errors.fileno()])
            except OSError:
                worker.close()
                self.lose(channel)
                continue
            with self.lock:
                self.busy.add(worker)
            return worker
        raise Unavailable(_ENDED)

    def give(self, worker: _Worker, *, good: bool) -> None:
        """Takes a worker back: for the next compilation, or to end."""
        with self.lock:
            self.busy.discard(worker)
            if good and worker.uses < USES and len(self.idle) < KEPT:
                self.idle.append(worker)
                return
        worker.close()

    def lose(self, channel: socket.socket) -> None:
        """Forgets the server, whose end of the channel is gone; a later request starts another."""
        with self.lock:
            if self.channel is not channel:
                return
            channel.close()
            self.channel = None
            if self.server:
                with suppress(OSError):
                    os.waitpid(self.server, os.WNOHANG)
                self.server = 0
            if self.starts >= _STARTS:
                self.unavailable = _ENDED

    def forget(self) -> None:
        """Forgets the workers in a fork of this process; its server serves the fork, too."""
        self.lock = threading.Lock()
        self.server = 0
        for worker in (*self.idle, *self.busy):
            worker.close()
        self.idle, self.busy = [], set()


_PROCESSES = _Processes()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _PROCESSES.forget())


def _started() -> tuple[socket.socket, int]:
    """Starts a server; returns the channel to it, and its process."""
    if not sys.executable or not hasattr(os, "fork"):
        raise OSError("this Python starts no other")
    import llvmlite

    folder = os.path.dirname(os.path.dirname(llvmlite.__file__))
    here, there = socket.socketpair()
    with there:
        devices = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (1, 2)]
        process = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(SCRIPT), folder],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, there.fileno(), 0), *devices],
            setpgroup=0,
        )
    return here, process


def start() -> None:
    """Starts the server, if it is not there: it readies itself while this process goes on."""
    with suppress(Unavailable):
        _PROCESSES.start()


def channel_file() -> int | None:
    """Returns the number of the file over which this process reaches its server; None where there is none."""
    return None if _PROCESSES.channel is None else _PROCESSES.channel.fileno()


@dataclass(frozen=True)
class _Pipeline:
    """A way of compiling that is safer than the one before."""

    level: int
    vectorize: bool
    words: str


_UNKNOWN_PROCESSOR = "64-bit code requested on a subtarget that doesn't support it"
"""LLVM's message where it does not know an x86 processor's name: it takes it for a 32-bit one."""

SAFER = (
    _Pipeline(3, False, "without vectorizing its loops"),
    _Pipeline(1, False, "as with -O 1"),
    _Pipeline(0, False, "as with -O 0"),
)


def compile_apart(request: Request, text: str) -> Made:
    """Compiles a text in another process. Raises MirError if LLVM refuses it or no pipeline survives it."""
    request = request._replace(seconds=whole_number("MIRSTACK_LLVM_SECONDS", SECONDS))
    kept = None
    reason = ""
    for pipeline in (None, *(each for each in SAFER if each.level < request.level or request.level >= 2)):
        attempt = request
        if pipeline is not None:
            attempt = request._replace(level=min(pipeline.level, request.level), vectorize=pipeline.vectorize)
        try:
            made = _once(attempt, text)
        except Died as died:
            if _UNKNOWN_PROCESSOR in str(died):
                raise MirError(
                    Diagnostic(f"this version of LLVM does not know the processor '{request.cpu}'").with_note(
                        "name an older one of its family with -mcpu, such as znver4, or install a newer llvmlite"
                    )
                ) from None
            reason = reason or str(died)
            kept = kept or _kept(text)
            continue
        if pipeline is not None:
            say(
                f"LLVM does not survive {_functions(text)}, which is compiled {pipeline.words} instead "
                f"({reason}); the LLVM text is in {kept}"
            )
        return made
    raise MirError(
        Diagnostic(f"LLVM does not survive {_functions(text)}: {reason}")
        .with_note("this is a defect of LLVM or of what it was given, not of the program")
        .with_note(f"the LLVM text is in {kept}")
    )


def _once(request: Request, text: str) -> Made:
    try:
        for _ in range(2):
            worker = _PROCESSES.take()
            good = False
            try:
                made = worker.ask(request, text)
                good = True
                break
            except Refused:
                good = True
                raise
            except Unavailable:
                # The server ended before it forked the worker.
                _PROCESSES.lose(worker.channel)
            finally:
                _PROCESSES.give(worker, good=good)
        else:
            made = _inside(request, text, _ENDED)
    except Unavailable as error:
        made = _inside(request, text, str(error))
    except Refused as refused:
        raise as_error(refused) from None
    span = current_span()
    if span is not None:
        for name, seconds in zip(("read", "optimize", "generate code"), made.seconds, strict=True):
            span.add([0.0, 0, {name: [seconds, 1, {}]}])
    return made


def _inside(request: Request, text: str, reason: str) -> Made:
    say_once(f"no process for LLVM can be started ({reason}); it runs inside of this one, which ends where LLVM does")
    return compile_inside(request, text)


def compile_inside(request: Request, text: str) -> Made:
    """As `compile_apart`, in this process: for text that is known to be good."""
    try:
        return compiled(request, text)
    except Refused as refused:
        raise as_error(refused) from None


def as_error(refused: Refused) -> MirError:
    """Returns LLVM's refusal as an error of ours."""
    diagnostic = Diagnostic(refused.message)
    return MirError(diagnostic.with_note(refused.note) if refused.note else diagnostic)


_KEPT_TEXTS: dict[bytes, str] = {}
"""Where texts that ended LLVM were kept, by their digests."""


def _kept(text: str) -> str:
    digest = hashlib.sha256(text_bytes(text)).digest()
    if not os.path.exists(_KEPT_TEXTS.get(digest, "")):
        try:
            with tempfile.NamedTemporaryFile("w", prefix="mirstack-", suffix=".ll", delete=False) as file:
                file.write(text)
            _KEPT_TEXTS[digest] = file.name
        except OSError as error:
            return f"no file: {error.strerror}"
    return _KEPT_TEXTS[digest]


_DEFINITION = re.compile(r'^define [^@\n]*@(?:"([^"\n]+)"|([-\w.$]+))\(', re.MULTILINE)


def _functions(text: str) -> str:
    """Returns the functions of a text, as messages name them, without those that every program has."""
    from ...mangle_symbols import source_name

    names = [source_name(quoted or plain) for quoted, plain in _DEFINITION.findall(text)]
    own = [name for name in names if not name.startswith("mirstack_")]
    more = f" and {len(own) - 1} more" if len(own) > 1 else ""
    return f"the function '{own[0]}'{more}" if own else "a module"
