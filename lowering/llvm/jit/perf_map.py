"""Writes a map of compiled functions for Linux's `perf`.

    MIRSTACK_PERF=map perf record -g python net.py      →      7f12a4001000 2c0 fused_nn_dense.1f0c9be22d41

Each function's address, size and name, in hexadecimal, is a line of `/tmp/perf-PID.map`
(the kernel's "tools/perf/Documentation/jit-interface.txt").
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ....support.settings import choice, say_once
from .object_symbols import functions_of

if TYPE_CHECKING:
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


def add_to_map(module: CompiledModule) -> None:
    """Adds the functions of a module to this process's map, if `MIRSTACK_PERF` is `map`.

    A file that belongs to another user, or is a link, is not written to: others can write to its folder.
    """
    if choice("MIRSTACK_PERF", "map") is None:
        return
    path = _FOLDER / f"perf-{os.getpid()}.map"
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                raise PermissionError(0, "it belongs to another user")
            file.writelines(map_lines(module))
    except OSError as error:
        say_once(f"{path} is not written, so perf shows addresses: {error.strerror}")
