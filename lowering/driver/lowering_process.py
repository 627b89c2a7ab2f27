"""Processes that import what lowers kernels while this one reads the program, and then lower them.

In a fresh process most of compiling a small model is imports, and those of the first half (reading Relay, its passes) do not need those of
the second (schedules, TIR, LLVM). So where a program must be compiled and there are several processors, the process is forked at the
very beginning: the fork imports the second half meanwhile, and is then forked itself, so that there is one for each processor. Kernels go to
them as text, and come back as facts and LLVM IR, so that this process imports the second half only where something is left for it: a
kernel that the text does not express, or one with an error.

    this process    imports, reads the program, its passes      sends kernels, has LLVM compile them      lowers the program
    the fork        imports what lowers kernels                 lowers one after the other
    its forks                                                   lower others
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...support.diagnostics import Sources
from ...support.stages import silence
from ...support.stopwatch import current_span, timed, timing

if TYPE_CHECKING:
    from ..options import Options
    from .cache.kernel_types import Facts
    from .cache.kernels import Candidate
    from .units import Unit

_HEAD = struct.Struct("<Q")
_IMPORTED = f"{__name__.partition('.driver.')[0]}.tir.lower_tir_to_scf"
"""A module of the second half: where it is imported already, a process for that has nothing to do."""


class LoweringProcess:
    """A fork of this process that lowers kernels, with forks of its own; `close` ends them."""

    def __init__(self, options: Options, count: int = 1):
        """Forks; `count` processes lower kernels in all. Raises OSError where the system starts no process."""
        from .workers import forking

        pairs = [socket.socketpair() for _ in range(count)]
        self._channels = [here for here, _ in pairs]
        with forking():
            self.number = os.fork()
        if self.number == 0:
            try:
                for here in self._channels:
                    here.close()
                gc.disable()
                silence()
                # Who interrupts the first process means this one, too: it ends with its channel.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                _serve([there for _, there in pairs], options)
            finally:
                os._exit(0)
        for _, there in pairs:
            there.close()

    def lower_all(
        self, kernels: Sequence[tuple[Candidate, Unit]], entry: str
    ) -> Iterator[tuple[int, tuple[Facts, str] | None]]:
        """Sends kernels, in their order; returns an iterator of what becomes of them.

        It yields the number of a kernel with its facts and its LLVM IR as soon as it is lowered; None for a kernel that is left to
        this process.
        """
        exchange = _Exchange(kernels, entry)
        for channel in self._channels:
            exchange.ask(channel)
        # What this process needs next is imported while the others lower their first kernels.
        import_module(".cache.kernel_facts", __package__)
        return exchange.answers()

    def close(self) -> None:
        """Ends the processes, once."""
        if self._channels[0].fileno() < 0:
            return
        for channel in self._channels:
            channel.close()
        with suppress(OSError):
            # It may be at its imports still.
            os.kill(self.number, signal.SIGTERM)
            os.waitpid(self.number, 0)


def start(options: Options) -> LoweringProcess | None:
    """Returns a process that gets ready to lower kernels; None where one is not worth its while."""
    from ...support.trace import anyone_listens
    from .workers import can_fork, workers_wanted

    if _IMPORTED in sys.modules or workers_wanted() == 0 or anyone_listens() or not can_fork():
        return None
    try:
        # This process waits while the others lower.
        return LoweringProcess(options, workers_wanted() + 1)
    except OSError:
        return None


class _Exchange:
    """Sends kernels to other processes, each of which has one at a time, and receives what they become."""

    def __init__(self, kernels: Sequence[tuple[Candidate, Unit]], entry: str):
        self._left = deque(enumerate(kernels))
        self._entry = entry
        self._kept: list[int] = []
        """Kernels that plain data does not express."""
        self._asked: dict[int, tuple[socket.socket, int]] = {}
        """The channels through which an answer will come, and its kernel's number, by the file's number."""
        self._poll = select.poll()

    def ask(self, channel: socket.socket) -> None:
        """Sends the next kernel, if one is left and the process still runs."""
        while self._left:
            number, (candidate, unit) = self._left.popleft()
            request = _request(candidate, unit, self._entry)
            if request is None:
                self._kept.append(number)
                continue
            try:
                _send(channel, request)
            except OSError:
                self._left.appendleft((number, (candidate, unit)))
                return
            self._asked[channel.fileno()] = channel, number
            self._poll.register(channel, select.POLLIN)
            return

    def answers(self) -> Iterator[tuple[int, tuple[Facts, str] | None]]:
        """Yields answers as they come, and asks for further kernels; then None for those that nobody lowers."""
        while self._asked:
            for file, _ in self._poll.poll():
                channel, number = self._asked.pop(file)
                self._poll.unregister(file)
                answer = _answer_from(channel)
                if answer is None:
                    yield number, None
                    continue
                self.ask(channel)
                facts, text, times = answer
                span = current_span()
                if span is not None:
                    span.child("lowering, beside").add_beside(times)
                yield number, None if facts is None else (facts, text)
        for number in (*self._kept, *(number for number, _ in self._left)):
            yield number, None


def _request(candidate: Candidate, unit: Unit, entry: str) -> bytes | None:
    """Returns a kernel as the other process reads it; None for one that plain data does not express."""
    from .cache.kernel_reader import location_json, locations_json

    (call, *_), (function, *_) = next(iter(unit.calls.values())), unit.module.ops
    locations, call_location = locations_json(function), location_json(call.location)
    if locations is None or call_location is None or None in candidate.types:
        return None
    request = [candidate.text, candidate.symbol, candidate.types, locations, call_location, entry]
    return json.dumps(request).encode()


def _answer_from(channel: socket.socket) -> list[Any] | None:
    """Returns facts, LLVM IR and times; None where the other process ended."""
    try:
        answer = _receive(channel)
    except OSError:
        return None
    return None if answer is None else json.loads(answer)


def _serve(channels: Sequence[socket.socket], options: Options) -> None:
    """Imports what lowers kernels, and lowers those that come through the channels, one process for each."""
    from .workers import forking

    lowered = _lowerer(options)
    forks: list[int] = []

    def end(*_: object) -> None:
        for fork in forks:
            os.kill(fork, signal.SIGKILL)
            os.waitpid(fork, 0)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    own, *others = channels
    for number, channel in enumerate(others):
        with suppress(OSError):
            with forking():
                fork = os.fork()
            if fork == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                for other in (own, *others[:number], *others[number + 1 :]):
                    other.close()
                _serve_channel(channel, lowered)
                os._exit(0)
            forks.append(fork)
        channel.close()
    _serve_channel(own, lowered)
    end()


def _serve_channel(channel: socket.socket, lowered: Callable[..., tuple[Facts, str] | None]) -> None:
    while (request := _receive(channel)) is not None:
        with timing() as times:
            try:
                answer = lowered(*json.loads(request))
            except Exception:
                # The first process meets the same error, and reports it in the program's order.
                answer = None
        facts, text = answer or (None, "")
        _send(channel, json.dumps([facts, text, times.to_json()]).encode())


def _lowerer(options: Options) -> Callable[..., tuple[Facts, str] | None]:
    """Imports what lowers kernels; returns the function that does."""
    from ...support.xdsl_patches import apply

    apply()
    from xdsl.dialects.builtin import ModuleOp, StringAttr
    from xdsl.ir import Block

    from ...dialects import te
    from ...dialects.relay import ir as relay
    from ...passes.schedule.engine import primitive
    from ..llvm.text.translation import translate
    from .build import Passes
    from .cache.kernel_facts import facts_of
    from .cache.kernel_reader import KernelReader, location_of_json
    from .cache.kernel_types import type_of_json
    from .cache.kernels import places_of
    from .lowered_unit import LoweredUnit, unit_passes
    from .units import Unit

    primitive.load_all()
    passes = Passes()
    # Imports their modules.
    unit_passes(options)
    reader = KernelReader()

    def lowered(
        text: str, symbol: str, types: list[Any], locations: list[Any], call_location: list[Any], entry: str
    ) -> tuple[Facts, str] | None:
        with timed("read", fine=True):
            function = reader(text, locations)
            assert isinstance(function, te.FuncOp)
            function.sym_name = StringAttr(symbol)
            *arguments, result = map(type_of_json, types)
            call = relay.CallTirOp(symbol, Block(arg_types=arguments).args, result)
            call.location = location_of_json(call_location)
            unit = Unit(ModuleOp([function]), {symbol: [call]})
            places = places_of(function)
            unit.add_stubs()
        before = len(Sources.current().warnings)
        passes.run(unit_passes(replace(options, entry=entry)), unit.module)
        result_of = LoweredUnit.of(unit)
        facts = facts_of(result_of, places)
        if facts is None or len(Sources.current().warnings) > before:
            return None
        with timed("translate", fine=True):
            text = translate(result_of.module, externs=options.allow_extern, debug=options.debug_info)
        return facts, text

    return lowered


def _send(channel: socket.socket, data: bytes) -> None:
    channel.sendall(_HEAD.pack(len(data)) + data)


def _receive(channel: socket.socket) -> bytes | None:
    """Returns the next message; None where the other end is closed."""
    head = _read(channel, _HEAD.size)
    return None if head is None else _read(channel, _HEAD.unpack(head)[0])


def _read(channel: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(min(count - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return bytes(data)
