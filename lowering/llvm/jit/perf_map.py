"""Writes a map of compiled functions for Linux's `perf`; `jit_dump` adds code and lines.

    MIRSTACK_PERF=map perf record -g python net.py      →      7f12a4001000 2c0 fused_nn_dense.1f0c9be22d41

Each function's address, size and name, in hexadecimal, is a line of `/tmp/perf-PID.map`
(the kernel's "tools/perf/Documentation/jit-interface.txt").
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ....support.settings import choice, say_once
from .object_symbols import functions_of

if TYPE_CHECKING:
    from .jit_dump import Dump
    from .load import CompiledModule

_FOLDER = Path("/tmp")
"""Where perf looks for maps, whatever the folder for temporary files is."""


def map_lines(module: CompiledModule) -> Iterator[str]:
    """Yields a line for each function of a loaded module, those that the linker does not export too."""
    for data in module.objects:
        functions = functions_of(data)
        # Sections are loaded as a whole: a section's begin follows from the address of one function in it.
        begins = {each.section: module.address(each.name) - each.offset for each in functions if each.is_global}
        for each in functions:
            if each.section in begins:
                yield f"{begins[each.section] + each.offset:x} {each.size:x} {each.name}\n"


_dumps: dict[int, Dump | None] = {}
"""The dump of each process: a fork has its own. None where it cannot be written."""
_LOCK = threading.Lock()


def tell_perf(module: CompiledModule) -> None:
    """Adds the functions of a module to this process's map, or dump, as `MIRSTACK_PERF` says.

    A file that belongs to another user, or is a link, is not written to: others can write to its folder.
    """
    match choice("MIRSTACK_PERF", "map", "jitdump"):
        case "map":
            path = _FOLDER / f"perf-{os.getpid()}.map"
            try:
                with _opened(path, os.O_WRONLY | os.O_APPEND) as file:
                    file.write("".join(map_lines(module)).encode())
            except OSError as error:
                _say(path, error)
        case "jitdump":
            with _LOCK:
                _add_to_dump(module)
        case _:
            pass


def _add_to_dump(module: CompiledModule) -> None:
    from .jit_dump import Dump

    path = _FOLDER / f"jit-{os.getpid()}.dump"
    try:
        if os.getpid() not in _dumps:
            _dumps[os.getpid()] = None
            machine = int.from_bytes(module.objects[0][18:20], "little")
            _dumps[os.getpid()] = Dump(_opened(path, os.O_RDWR | os.O_TRUNC), machine)
        dump = _dumps[os.getpid()]
        if dump is not None:
            dump.add(module)
    except OSError as error:
        _say(path, error)


def _opened(path: Path, flags: int) -> BinaryIO:
    handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
        os.close(handle)
        raise PermissionError(0, "it belongs to another user")
    return os.fdopen(handle, "r+b" if flags & os.O_RDWR else "ab")


def _say(path: Path, error: OSError) -> None:
    say_once(f"{path} is not written, so perf shows addresses: {error.strerror}")
