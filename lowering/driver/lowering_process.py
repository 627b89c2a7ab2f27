"""A process that imports what lowers kernels while this one reads the program, and then lowers them.

In a fresh process most of compiling a small model is imports, and those of the first half (reading Relay, its passes) do not need those of
the second (schedules, TIR, LLVM). So where a program must be compiled and there are several processors, the process is forked at the
very beginning: the fork imports the second half meanwhile. Kernels go to it as text, and come back as facts and LLVM IR, so that
this process imports the second half only where something is left for it: a kernel that the text does not express, or one with an error.

    this process    imports, reads the program, its passes      sends kernels, has LLVM compile them      lowers the program
    the fork        imports what lowers kernels                 lowers one after the other
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import struct
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...support.diagnostics import Sources
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
    """A fork of this process that lowers kernels; `close` ends it."""

    def __init__(self, options: Options):
        """Forks. Raises OSError where the system starts no process."""
        here, there = socket.socketpair()
        self._channel = here
        with warnings.catch_warnings():
            # Python warns of other threads, of which there is only one that waits for this one (`can_fork`).
            warnings.simplefilter("ignore", DeprecationWarning)
            self.number = os.fork()
        if self.number == 0:
            try:
                here.close()
                gc.disable()
                # Who interrupts the first process means this one, too: it ends with the channel.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                _serve(there, options)
            finally:
                os._exit(0)
        there.close()

    def lower(self, candidate: Candidate, unit: Unit, entry: str) -> tuple[Facts, str] | None:
        """Returns the facts of a kernel and its LLVM IR; None where this process must lower it itself."""
        from .cache.kernel_reader import location_json, locations_json

        (call, *_), (function, *_) = next(iter(unit.calls.values())), unit.module.ops
        locations, call_location = locations_json(function), location_json(call.location)
        if locations is None or call_location is None or None in candidate.types:
            return None
        request = [candidate.text, candidate.symbol, candidate.types, locations, call_location, entry]
        try:
            _send(self._channel, json.dumps(request).encode())
            # What this process needs next is imported while the other lowers its first kernel.
            import_module(".cache.kernel_facts", __package__)

            answer = _receive(self._channel)
        except OSError:
            return None
        if answer is None:
            return None
        facts, text, times = json.loads(answer)
        span = current_span()
        if span is not None:
            span.child("lowering, beside").add_beside(times)
        return None if facts is None else (facts, text)

    def close(self) -> None:
        """Ends the process, once."""
        if self._channel.fileno() < 0:
            return
        self._channel.close()
        with suppress(OSError):
            # It may be at its imports still.
            os.kill(self.number, signal.SIGKILL)
            os.waitpid(self.number, 0)


def start(options: Options) -> LoweringProcess | None:
    """Returns a process that gets ready to lower kernels; None where one is not worth its while."""
    from ...support.trace import anyone_listens
    from .workers import can_fork, workers_wanted

    if _IMPORTED in sys.modules or workers_wanted() == 0 or anyone_listens() or not can_fork():
        return None
    try:
        return LoweringProcess(options)
    except OSError:
        return None


def _serve(channel: socket.socket, options: Options) -> None:
    lowered = _lowerer(options)
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
        with timed("read"):
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
        with timed("translate"):
            return facts, translate(result_of.module, externs=options.allow_extern)

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
