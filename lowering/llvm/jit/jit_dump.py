"""Writes compiled functions, their code and their lines for Linux's `perf`.

    MIRSTACK_PERF=jitdump perf record -k mono python net.py; perf inject --jit -i perf.data -o net.data; perf annotate -i net.data

The file `/tmp/jit-PID.dump` has a record for each function, and before it one of its lines where the program was compiled with `debug_info`
(the kernel's "tools/perf/Documentation/jitdump-specification.txt").
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

from .line_table import Line, lines_of
from .object_symbols import functions_of

if TYPE_CHECKING:
    from .load import CompiledModule

MAGIC, VERSION = 0x4A695444, 1
HEADER = struct.Struct("<IIIIIIQQ")
"""Magic, version, its bytes, ELF's number of the machine, nothing, process, time, flags."""
PREFIX = struct.Struct("<IIQ")
"""The kind of a record, its bytes, time."""
LOAD, DEBUG_INFO = 0, 2
CODE = struct.Struct("<IIQQQQ")
"""Process, thread, address (twice), bytes, number; then name and code."""
LINES = struct.Struct("<QQ")
"""Address of the function, number of lines."""
LINE = struct.Struct("<QII")
"""Address, line, discriminator; then the file's name."""


class Dump:
    """The file of this process, which is open until it ends."""

    def __init__(self, file: BinaryIO, machine: int):
        self.file = file
        self.count = 0
        file.write(HEADER.pack(MAGIC, VERSION, HEADER.size, machine, 0, os.getpid(), time.monotonic_ns(), 0))
        file.flush()
        # perf learns of the file by this mapping of it, which is never read.
        self.marker = mmap.mmap(file.fileno(), HEADER.size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)

    def add(self, module: CompiledModule) -> None:
        """Adds the functions of a loaded module."""
        for record in self.records(module):
            self.file.write(record)
        self.file.flush()

    def records(self, module: CompiledModule) -> Iterator[bytes]:
        """Yields the records of a module's functions."""
        for data in module.objects:
            functions = functions_of(data)
            begins = {each.section: module.address(each.name) - each.offset for each in functions if each.is_global}
            lines = lines_of(data) if functions else {}
            for each in functions:
                if each.section not in begins:
                    continue
                begin = begins[each.section]
                inside = [
                    line for line in lines.get(each.section, ()) if each.offset <= line.offset < each.offset + each.size
                ]
                if inside:
                    yield _lines(begin + each.offset, begin, inside)
                yield self._code(each.name, begin + each.offset, each.size)

    def _code(self, name: str, address: int, size: int) -> bytes:
        self.count += 1
        about = CODE.pack(os.getpid(), threading.get_native_id(), address, address, size, self.count)
        # No padding may follow: perf counts the code's place from the end of its record.
        return _record(LOAD, about + name.encode() + b"\0" + ctypes.string_at(address, size))


def _lines(function: int, begin: int, lines: list[Line]) -> bytes:
    entries = [LINE.pack(begin + each.offset, each.line, 0) + each.file.encode() + b"\0" for each in lines]
    body = LINES.pack(function, len(entries)) + b"".join(entries)
    return _record(DEBUG_INFO, body + b"\0" * (-len(body) % 8))


def _record(kind: int, body: bytes) -> bytes:
    return PREFIX.pack(kind, PREFIX.size + len(body), time.monotonic_ns()) + body
