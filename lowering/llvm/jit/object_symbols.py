"""Reads the symbols of an object file: those that it defines and those that it needs.

Formats: ELF of 64 bits ("System V ABI", chapter 4) and Mach-O of 64 bits (Apple's "Mach-O file format reference").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from typing import NamedTuple

from ....support.diagnostics import Diagnostic, MirError

ELF_SYMTAB = 2
"""The kind of a section that holds symbols."""
_ELF_LOCAL, _ELF_UNDEFINED, _ELF_FUNCTION = 0, 0, 2
_LINKER_TABLE = "_GLOBAL_OFFSET_TABLE_"  # made by the linker itself
_MACHO_MAGIC, _MACHO_SYMTAB, _MACHO_EXTERNAL, _MACHO_TYPE_MASK = 0xFEEDFACF, 2, 0x01, 0x0E


@dataclass(frozen=True)
class Symbol:
    """A symbol that is visible outside of its object file."""

    name: str
    defined: bool


@dataclass(frozen=True)
class Function:
    """A function of an object file: its place in a section, by number and in bytes, and its size."""

    name: str
    section: int
    offset: int
    size: int
    is_global: bool


class Section(NamedTuple):
    """A section of an ELF file, by the fields of its header."""

    name: int
    """The offset in the file of its name's bytes."""
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def sections_of(data: bytes | mmap) -> list[Section]:
    """Returns the sections of an ELF file of 64 bits, by their numbers."""
    table, _ = section_headers(data)
    each, count, names = struct.unpack_from("<HHH", data, 0x3A)
    found = [Section(*struct.unpack_from("<IIQQQQIIQQ", data, table + k * each)) for k in range(count)]
    return [section._replace(name=found[names].offset + section.name) for section in found]


def section_headers(data: bytes | mmap) -> tuple[int, int]:
    """Returns where the headers of an ELF file's sections begin, and the bytes of one."""
    return struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3A)[0]


def text_at(data: bytes, start: int) -> str:
    """Returns the text that ends with a zero byte."""
    return data[start : data.index(b"\0", start)].decode()


def functions_of(data: bytes) -> list[Function]:
    """Returns the functions that an ELF object file defines, local ones too; none of other formats."""
    if data[:5] != b"\x7fELF\x02":
        return []
    return [
        Function(name, section, value, size, kind >> 4 != _ELF_LOCAL)
        for name, kind, section, value, size in _elf_entries(data)
        if kind & 0xF == _ELF_FUNCTION and section != _ELF_UNDEFINED
    ]


def symbols_of(data: bytes) -> list[Symbol]:
    """Returns an object file's global symbols. Raises `MirError` for `data` in no known format."""
    if data[:5] == b"\x7fELF\x02":
        return _elf_symbols(data)
    if len(data) >= 32 and struct.unpack_from("<I", data)[0] == _MACHO_MAGIC:
        return _macho_symbols(data)
    raise MirError(Diagnostic("not an object file of a known format (ELF or Mach-O of 64 bits)"))


def _elf_symbols(data: bytes) -> list[Symbol]:
    return [
        Symbol(name, section != _ELF_UNDEFINED)
        for name, kind, section, _, _ in _elf_entries(data)
        if kind >> 4 != _ELF_LOCAL and name != _LINKER_TABLE
    ]


def _elf_entries(data: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """Yields name, binding and type, section, value and size of each symbol that has a name."""
    sections = sections_of(data)
    for section in sections:
        if section.kind != ELF_SYMTAB:
            continue
        names = sections[section.link].offset
        for position in range(section.offset, section.offset + section.size, section.entry_size):
            name, info, _, index, value, length = struct.unpack_from("<IBBHQQ", data, position)
            if name:
                yield text_at(data, names + name), info, index, value, length


def _macho_symbols(data: bytes) -> list[Symbol]:
    commands = struct.unpack_from("<I", data, 16)[0]
    position = 32
    out: list[Symbol] = []
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", data, position)
        if kind == _MACHO_SYMTAB:
            offset, count, names, _ = struct.unpack_from("<IIII", data, position + 8)
            for i in range(count):
                name, type_, _, _, _ = struct.unpack_from("<IBBHQ", data, offset + 16 * i)
                if type_ & _MACHO_EXTERNAL:
                    # Mach-O puts an underscore before every C name.
                    out.append(Symbol(text_at(data, names + name).removeprefix("_"), bool(type_ & _MACHO_TYPE_MASK)))
        position += size
    return out
