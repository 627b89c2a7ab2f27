"""Makes a WebAssembly module of an object file of one module of LLVM.

Such a file needs no linker: its indices are those of the module, and its addresses those of memory that begins at 0. What it lacks are
exports, whose functions its section "linking" names; sections for linkers are left out (the tool conventions of WebAssembly, "Linking").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = b"\0asm\1\0\0\0"
CUSTOM, IMPORT, EXPORT, DATA = 0, 2, 7, 11
ORDER = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11)
"""The order of sections in a module: the count of data segments (12) comes before the code (10)."""
SYMBOL_TABLE = 8
FUNCTION, DATA_SYMBOL, GLOBAL, SECTION = range(4)
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40


@dataclass(frozen=True)
class WasmModule:
    """A module, the names of the functions that it imports, and the first address after its data."""

    data: bytes
    imports: tuple[str, ...]
    end: int


class _Reader:
    """Reads numbers and names of a section."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def byte(self) -> int:
        """Returns the next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """Returns the next number, of any length (LEB128)."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        """Returns the next signed number."""
        start = self.at
        value = self.number()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def bytes(self, count: int) -> bytes:
        """Returns the next bytes."""
        self.at += count
        return self.data[self.at - count : self.at]

    def name(self) -> str:
        """Returns the next name."""
        return self.bytes(self.number()).decode()


def _number(value: int) -> bytes:
    out = bytearray()
    while True:
        byte, value = value & 0x7F, value >> 7
        out.append(byte | 0x80 if value else byte)
        if not value:
            return bytes(out)


def _name(text: str) -> bytes:
    data = text.encode()
    return _number(len(data)) + data


def module_of_object(data: bytes, exports: Sequence[str]) -> WasmModule:
    """Returns the module of an object file, which exports functions by their names."""
    sections: dict[int, bytes] = {}
    functions: dict[str, int] = {}
    for kind, body in _sections(data):
        if kind != CUSTOM:
            sections[kind] = body
        else:
            reader = _Reader(body)
            if reader.name() == "linking":
                functions = dict(_functions(reader))
    listed = b"".join(_name(name) + b"\0" + _number(functions[name]) for name in exports)
    sections[EXPORT] = _number(len(exports)) + listed
    out = bytearray(HEADER)
    for kind in ORDER:
        if kind in sections:
            out += bytes([kind]) + _number(len(sections[kind])) + sections[kind]
    return WasmModule(
        bytes(out), tuple(_imported_functions(sections.get(IMPORT, b"\0"))), _end(sections.get(DATA, b"\0"))
    )


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(data, len(HEADER))
    while reader.at < len(data):
        kind = reader.byte()
        yield kind, reader.bytes(reader.number())


def _functions(reader: _Reader) -> Iterator[tuple[str, int]]:
    """Yields the defined functions of a symbol table, with their indices."""
    reader.number()
    while reader.at < len(reader.data):
        kind, size = reader.byte(), reader.number()
        end = reader.at + size
        if kind == SYMBOL_TABLE:
            for _ in range(reader.number()):
                kind, flags = reader.byte(), reader.number()
                if kind == DATA_SYMBOL:
                    reader.name()
                    if not flags & UNDEFINED:
                        for _ in range(3):
                            reader.number()
                elif kind == SECTION:
                    reader.number()
                else:
                    index = reader.number()
                    if not flags & UNDEFINED or flags & EXPLICIT_NAME:
                        name = reader.name()
                        if kind == FUNCTION and not flags & UNDEFINED:
                            yield name, index
        reader.at = end


def _imported_functions(body: bytes) -> Iterator[str]:
    reader = _Reader(body)
    for _ in range(reader.number()):
        reader.name()
        name, kind = reader.name(), reader.byte()
        match kind:
            case 0:
                reader.number()
                yield name
            case 1:
                reader.byte()
                _limits(reader)
            case 2:
                _limits(reader)
            case _:
                reader.bytes(2)


def _limits(reader: _Reader) -> None:
    flags = reader.number()
    reader.number()
    if flags & 1:
        reader.number()


def _end(body: bytes) -> int:
    """Returns the first address after all segments of data, which begin at constants."""
    reader = _Reader(body)
    end = 0
    for _ in range(reader.number()):
        reader.number()
        reader.byte()
        start = reader.signed()
        reader.byte()
        length = reader.number()
        reader.at += length
        end = max(end, start + length)
    return end
