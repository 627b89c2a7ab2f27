"""Shows functions and lines of loaded code to gdb, by its interface for compilers in a process.

A debugger stops in `__jit_debug_register_code`, and reads of the list in `__jit_debug_descriptor` what was loaded (gdb's manual, "JIT
Interface"). LLVM has both, in llvmlite's library, but its linker `LLJIT` calls them only with a plugin that llvmlite does not reach: here
they are found in the library's table of symbols, and called.
"""

# llvmlite ships no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from __future__ import annotations

import ctypes
import mmap
import struct
import threading
import weakref
from functools import cache
from typing import TYPE_CHECKING

from .codegen import library_file
from .object_symbols import ELF_SYMTAB, functions_of, section_headers, sections_of

if TYPE_CHECKING:
    from .load import CompiledModule

_DESCRIPTOR, _REGISTER = b"__jit_debug_descriptor", b"__jit_debug_register_code"
_KNOWN = b"LLVMPY_GetBufferStart"
"""A function of the library whose address the process tells."""
_NONE, _ADD, _REMOVE = 0, 1, 2
_LOCK = threading.Lock()


class _Entry(ctypes.Structure):
    pass


_Entry._fields_ = [  # pyright: ignore[reportPrivateUsage]
    ("following", ctypes.POINTER(_Entry)),
    ("before", ctypes.POINTER(_Entry)),
    ("file", ctypes.c_void_p),
    ("size", ctypes.c_uint64),
]


class _Descriptor(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("action", ctypes.c_uint32),
        ("relevant", ctypes.POINTER(_Entry)),
        ("first", ctypes.POINTER(_Entry)),
    )


def show_to_gdb(module: CompiledModule) -> None:
    """Registers the object files of a loaded module until it is unloaded."""
    addresses = _interface()
    if addresses is None:
        return
    for data in module.objects:
        placed = _placed(data, module)
        if placed is not None:
            registration = _Registration(placed, addresses)
            registration.add()
            weakref.finalize(module, registration.remove)


class _Registration:
    """An object file in the list, and the bytes of it that a debugger reads."""

    def __init__(self, data: bytes, addresses: tuple[int, int]):
        self.buffer = ctypes.create_string_buffer(data, len(data))
        self.entry = _Entry(file=ctypes.addressof(self.buffer), size=len(data))
        self.descriptor = _Descriptor.from_address(addresses[0])
        self.notify = ctypes.CFUNCTYPE(None)(addresses[1])

    def add(self) -> None:
        with _LOCK:
            first = self.descriptor.first
            self.entry.following = first
            if first:
                first.contents.before = ctypes.pointer(self.entry)
            self.descriptor.first = ctypes.pointer(self.entry)
            self._tell(_ADD)

    def remove(self) -> None:
        with _LOCK:
            before, following = self.entry.before, self.entry.following
            if before:
                before.contents.following = following
            else:
                self.descriptor.first = following
            if following:
                following.contents.before = before
            self._tell(_REMOVE)

    def _tell(self, action: int) -> None:
        self.descriptor.relevant = ctypes.pointer(self.entry)
        self.descriptor.action = action
        self.notify()
        self.descriptor.action = _NONE


def _placed(data: bytes, module: CompiledModule) -> bytes | None:
    """Returns an object file with the addresses of its sections; None where no function tells them."""
    begins = {each.section: module.address(each.name) - each.offset for each in functions_of(data) if each.is_global}
    if not begins:
        return None
    placed = bytearray(data)
    table, size = section_headers(data)
    for section, address in begins.items():
        struct.pack_into("<Q", placed, table + section * size + 16, address)
    return bytes(placed)


@cache
def _interface() -> tuple[int, int] | None:
    """Returns the addresses of the list and of the function; None where llvmlite's library hides them."""
    path = library_file()
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            found = _values(data)
    except (OSError, ValueError):
        return None
    known = ctypes.cast(getattr(ctypes.CDLL(path), _KNOWN.decode()), ctypes.c_void_p).value
    if known is None or not {_DESCRIPTOR, _REGISTER, _KNOWN} <= found.keys():
        return None
    base = known - found[_KNOWN]
    return base + found[_DESCRIPTOR], base + found[_REGISTER]


def _values(data: mmap.mmap) -> dict[bytes, int]:
    """Returns the values of the three symbols in an ELF file's table, those that are there."""
    import numpy as np

    found: dict[bytes, int] = {}
    sections = sections_of(data) if data[:5] == b"\x7fELF\x02" else []
    for section in sections:
        if section.kind != ELF_SYMTAB:
            continue
        names = sections[section.link]
        fields = [
            ("name", "<u4"),
            ("info", "u1"),
            ("other", "u1"),
            ("section", "<u2"),
            ("value", "<u8"),
            ("size", "<u8"),
        ]
        table = np.frombuffer(data[section.offset : section.offset + section.size], np.dtype(fields))
        for name in (_DESCRIPTOR, _REGISTER, _KNOWN):
            start = data.find(b"\0" + name + b"\0", names.offset, names.offset + names.size)
            (places,) = np.nonzero(table["name"] == start + 1 - names.offset)
            if start >= 0 and len(places):
                found[name] = int(table["value"][places[0]])
    return found
