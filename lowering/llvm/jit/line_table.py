"""Reads the table of lines of an object file: of which line of the source the code at an offset is.

Format: "DWARF Debugging Information Format", version 4, section 6.2, with the relocations of an ELF object file of 64 bits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from .object_symbols import ELF_SYMTAB, sections_of, text_at

_SET_ADDRESS, _END_SEQUENCE = 2, 1
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 2, 3, 4, 8, 9
_RELA = 4


class Line(NamedTuple):
    """A line of a source file, and where its code begins in its section."""

    offset: int
    file: str
    line: int


def lines_of(data: bytes) -> dict[int, list[Line]]:
    """Returns the lines of an ELF object file in the order of its code, by the section's number."""
    sections = sections_of(data)
    named = {text_at(data, section.name): section for section in sections}
    table, patches = named.get(".debug_line"), named.get(".rela.debug_line")
    symbols = next((section for section in sections if section.kind == ELF_SYMTAB), None)
    found: dict[int, list[Line]] = {}
    if table is None or patches is None or symbols is None or patches.kind != _RELA:
        return found
    places: dict[int, tuple[int, int]] = {}
    for position in range(patches.offset, patches.offset + patches.size, patches.entry_size):
        offset, info, addend = struct.unpack_from("<QQq", data, position)
        _, _, _, index, value, _ = struct.unpack_from(
            "<IBBHQQ", data, symbols.offset + (info >> 32) * symbols.entry_size
        )
        places[offset] = index, value + addend
    for section, line in _Reader(data[table.offset : table.offset + table.size], places).units():
        found.setdefault(section, []).append(line)
    for lines in found.values():
        lines.sort(key=lambda line: line.offset)
    return found


class _Reader:
    """Reads tables of lines; `places` are the addresses in them, as section and offset."""

    def __init__(self, data: bytes, places: Mapping[int, tuple[int, int]]):
        self.data, self.places, self.at = data, places, 0

    def units(self) -> Iterator[tuple[int, Line]]:
        """Yields the lines of each unit, with the number of the code's section.

        Raises ValueError for another version of the format.
        """
        while self.at < len(self.data):
            (length,) = struct.unpack_from("<I", self.data, self.at)
            end = self.at + 4 + length
            yield from self._unit(end)
            self.at = end

    def _unit(self, end: int) -> Iterator[tuple[int, Line]]:
        version, header = struct.unpack_from("<HI", self.data, self.at + 4)
        if not 2 <= version <= 4:
            raise ValueError(f"a table of lines of DWARF {version}")
        program = self.at + 10 + header
        self.at += 10
        step = self._byte()
        self.at += 2 if version == 4 else 1
        base, span, first = struct.unpack_from("<bBB", self.data, self.at)
        self.at += 3
        operands = self.data[self.at : self.at + first - 1]
        self.at += first - 1
        files = self._files()
        self.at = program
        yield from self._run(end, step, base, span, first, operands, files)

    def _files(self) -> list[str]:
        folders = ["."]
        while name := self._name():
            folders.append(name)
        files = [""]
        while name := self._name():
            folder = folders[self._number()]
            for _ in ("time", "bytes"):
                self._number()
            files.append(name if folder == "." else f"{folder}/{name}")
        return files

    def _run(
        self, end: int, step: int, base: int, span: int, first: int, operands: bytes, files: list[str]
    ) -> Iterator[tuple[int, Line]]:
        section, address, file, line = 0, 0, 1, 1
        while self.at < end:
            opcode = self._byte()
            emits = False
            if opcode >= first:
                address += step * ((opcode - first) // span)
                line += base + (opcode - first) % span
                emits = True
            elif opcode == 0:
                length = self._number()
                following = self.at + length
                kind = self._byte()
                if kind == _SET_ADDRESS:
                    section, address = self.places[self.at]
                elif kind == _END_SEQUENCE:
                    section, address, file, line = 0, 0, 1, 1
                self.at = following
            elif opcode == _COPY:
                emits = True
            elif opcode == _ADVANCE_PC:
                address += step * self._number()
            elif opcode == _ADVANCE_LINE:
                line += self._signed()
            elif opcode == _SET_FILE:
                file = self._number()
            elif opcode == _CONST_ADD_PC:
                address += step * ((255 - first) // span)
            elif opcode == _FIXED_ADVANCE_PC:
                address += struct.unpack_from("<H", self.data, self.at)[0]
                self.at += 2
            else:
                for _ in range(operands[opcode - 1]):
                    self._number()
            if emits:
                yield section, Line(address, files[file], line)

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _name(self) -> str:
        name = text_at(self.data, self.at)
        self.at += len(name.encode()) + 1
        return name

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def _signed(self) -> int:
        start = self.at
        value = self._number()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value
