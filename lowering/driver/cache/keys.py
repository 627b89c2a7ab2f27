"""Computes the keys of cache entries from all that decides the compiler's output.

That is the input; the options; the machine, as LLVM and as schedules see it; and the compiler: its version, the size and time of
each of its source files (as Python decides whether its own compiled files are current), and the versions of its dependencies.
Code that others add to the compiler by a name has no such identity: a program that names it is not cached (`support.external_names`).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from .... import IMPORTED_AT
from ....support import extensions
from ....support.source_text import text_bytes
from ....support.target import named
from ...options import Options, target_of
from ...runtime import default_threads

SOURCES = ("api", "dialects", "frontends", "lowering", "parser", "passes", "support")
"""The folders that decide what is compiled, and how."""

BUILT_ON = ("llvmlite", "xdsl", "numpy", "lark", "ml_dtypes")


def digest(*parts: bytes | str) -> bytes:
    """Returns the SHA-256 of the parts, their lengths included."""
    hasher = hashlib.sha256()
    for part in parts:
        data = text_bytes(part) if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def context_key(options: Options) -> bytes | None:
    """Returns the key of options, machine, compiler and extensions; None if one is not identified."""
    known, added = compiler(), extensions.digest()
    if known is None or added is None:
        return None
    threads = default_threads() if options.threads is None else options.threads
    machine = named(options.cpu or "", threads, options.caches)
    facts = {**vars(machine), "features": sorted(machine.features)}
    # The entry is a part of the key by itself, where it is given.
    stated = {field.name: getattr(options, field.name) for field in fields(options) if field.name != "entry"}
    if not options.profile:
        # The key of kernels, which are the same in programs that are profiled.
        del stated["profile"]
    return digest(known, json.dumps([stated, threads, target_of(options).describe(), facts]), added)


@cache
def compiler() -> bytes | None:
    """Returns the key of the compiler, from sizes and times of its files.

    None where one of its files was written after it was imported: what runs may then be the old text.
    """
    root = Path(__file__).parents[3]
    lines = [sys.version]
    newest = 0
    for name in SOURCES:
        for path, about in _files(root / name):
            lines.append(f"{path} {about.st_size} {about.st_mtime_ns}")
            newest = max(newest, about.st_mtime_ns)
    if newest >= IMPORTED_AT:
        return None
    for name in BUILT_ON:
        spec = find_spec(name)
        if spec is not None:
            lines += _stats(Path(place) for place in spec.submodule_search_locations or ())
    return digest(*lines)


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yields each source file under a folder, in an order of their names."""
    root = str(folder)
    pending = [root]
    while pending:
        current = pending.pop()
        with os.scandir(current) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "__pycache__":
                        pending.append(entry.path)
                elif entry.name.endswith((".py", ".mir", ".lark", ".ll", ".json")):
                    yield entry.path[len(root) + 1 :], entry.stat()


def _stats(folders: Iterable[Path]) -> Iterator[str]:
    """Yields lines that identify an installed package, with the time of its installation."""
    for folder in folders:
        about = folder.stat()
        yield f"{folder} {about.st_mtime_ns}"
        for name in ("_version.py", "version.py", "__init__.py"):
            file = folder / name
            if file.is_file():
                found = file.stat()
                yield f"{name} {found.st_size} {found.st_mtime_ns}"
