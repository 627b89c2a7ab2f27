"""Stores files that are read whole or not at all, each under a key and with a checksum.

A file is a header of 128 bytes and a payload. The header holds a magic word, the format's version, the kind, the payload's
length, the key, and the SHA-256 of all this and of the payload's own hash. Files are written beside their place and renamed into it,
so that readers in other processes see all of a file or none; a file that is damaged, cut short, of another version, under a wrong name or
somebody else's counts as absent, and is replaced. A hit renews the time of a file, and the least recently used files are deleted when
the folder outgrows its limit. There are no locks.

The folder is `compiled` in `support.cache.cache_folder()`. `MIRSTACK_CACHE=off` disables it, `MIRSTACK_CACHE_LIMIT` is the most
bytes that it may take (`1G` by default, `512M`, …; 0 disables it, too).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ....support.cache import cache_folder, is_off
from ....support.memory import pages
from ....support.settings import meaningless, say_once, setting

Buffer: TypeAlias = "bytes | bytearray | memoryview"

VERSION = 2
"""The version of the files' format; versions of their contents differ by their keys."""

DEFAULT_LIMIT = 1 << 30
_LIMIT = "MIRSTACK_CACHE_LIMIT"
_NOT_OURS = "which cannot be written to, or others can write to it, too"
_KEPT = 0.8
"""How much of the limit is left full when files are deleted."""

_HEADER = struct.Struct("<8sII16sQ32s32s24x")
_MAGIC = b"MIRSTACK"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Usage:
    """The contents of a folder: the number of files of each kind, and the bytes of all."""

    folder: Path
    limit: int
    files: dict[str, int]
    bytes: int


class Store:
    """The files of one folder."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT):
        self.folder = folder
        self.limit = limit

    @staticmethod
    def open() -> Store | None:
        """Returns the environment's store; None where it is off, or where others may write to its folder."""
        limit = limit_of(setting(_LIMIT))
        if is_off() or limit == 0:
            return None
        store = Store(_folder(), limit)
        if store._is_ours():
            return store
        _nothing_kept(f"{store.folder}, {_NOT_OURS}")
        return None

    @staticmethod
    def why_off() -> str:
        """Returns the reason for which `open` returns None, as text."""
        if is_off():
            return "MIRSTACK_CACHE is off"
        if limit_of(setting(_LIMIT)) == 0:
            return f"{_LIMIT} is 0"
        return f"{_folder()} {_NOT_OURS.removeprefix('which ')}"

    def _is_ours(self) -> bool:
        """Returns whether only this user can write to the folder, whose files are run; makes the folder."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except (OSError, RuntimeError, ValueError):
            return False
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022

    def path(self, kind: str, key: bytes) -> Path:
        """Returns the path of the file of this key."""
        return self.folder / f"{key.hex()}.{kind}"

    def read(self, kind: str, key: bytes) -> memoryview | None:
        """Returns the payload kept under a key; None where there is none that is whole.

        It is read before it is checked, not mapped: who writes into the file later changes nothing. Memory of whole pages is
        aligned for weights.
        """
        path = self.path(kind, key)
        try:
            with path.open("rb") as file:
                about = os.fstat(file.fileno())
                if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
                    return None
                if not _HEADER.size <= about.st_size <= self.limit:
                    return None
                data = pages(about.st_size)
                if file.readinto(data) != about.st_size:
                    return None
                view = memoryview(data).toreadonly()
        except (OSError, ValueError):
            return None
        payload = view[_HEADER.size :]
        if bytes(view[: _HEADER.size]) != _header(kind, key, len(payload), sha256([payload])):
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return payload

    def has(self, kind: str, key: bytes) -> bool:
        """Returns whether there is a file under the key, whole or not."""
        return self.path(kind, key).exists()

    def write(self, kind: str, key: bytes, parts: Sequence[Buffer], hashed: bytes | None = None) -> None:
        """Writes the parts, one after the other, to the file of a key.

        `hashed` is their SHA-256, where it is known. An error in writing leaves no file.
        """
        length = sum(len(part) for part in parts)
        if length * 2 > self.limit:
            return
        # Here, since reading does not need it.
        import tempfile

        try:
            handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(_header(kind, key, length, hashed or sha256(parts)))
                    for part in parts:
                        file.write(part)
                os.replace(temporary, self.path(kind, key))
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary)
                raise
        except (OSError, RuntimeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            _nothing_kept(f"{self.folder}: {reason or error}")

    def files(self) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
        """Yields all files, those that are being written among them."""
        try:
            entries = list(os.scandir(self.folder))
        except OSError:
            return
        for entry in entries:
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    yield entry, entry.stat(follow_symlinks=False)

    def trim(self) -> None:
        """Deletes the files that were used the longest ago, if all together take more than the limit."""
        files = list(self.files())
        total = sum(about.st_size for _, about in files)
        if total <= self.limit:
            return
        for entry, about in sorted(files, key=lambda item: item[1].st_mtime_ns):
            with suppress(OSError):
                os.unlink(entry.path)
            total -= about.st_size
            if total <= self.limit * _KEPT:
                return

    def usage(self) -> Usage:
        """Returns the number of files of each kind, and their bytes."""
        counts: dict[str, int] = {}
        total = 0
        for entry, about in self.files():
            kind = entry.name.rpartition(".")[2]
            counts[kind] = counts.get(kind, 0) + 1
            total += about.st_size
        return Usage(self.folder, self.limit, dict(sorted(counts.items())), total)

    def clear(self) -> int:
        """Deletes all files; returns their number."""
        count = 0
        for entry, _ in self.files():
            with suppress(OSError):
                os.unlink(entry.path)
                count += 1
        return count


def sha256(parts: Iterable[Buffer]) -> bytes:
    """Returns the hash of parts, one after the other."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
    return hasher.digest()


def _header(kind: str, key: bytes, length: int, hashed: bytes) -> bytes:
    """Returns the header of a payload of this length and SHA-256."""
    checksum = hashlib.sha256(hashed + struct.pack("<I16sQ", VERSION, kind.encode(), length) + key)
    return _HEADER.pack(_MAGIC, VERSION, 0, kind.encode(), length, key, checksum.digest())


def _folder() -> Path:
    return cache_folder() / "compiled"


def megabytes(size: int) -> str:
    """Bytes for people."""
    return f"{size / (1 << 20):.1f} MiB"


def limit_of(text: str | None) -> int:
    """Returns the bytes of `512M`, `2G`, `0`; the default for no text, and after a report for nonsense."""
    found = re.fullmatch(r"(\d{1,15})([KMG]?)B?", (text or "").strip().upper())
    if found is not None:
        return int(found[1]) * _UNITS[found[2]]
    if text:
        meaningless(_LIMIT, text, "a number of bytes such as 512M or 2G")
    return DEFAULT_LIMIT


def _nothing_kept(where: str) -> None:
    say_once(f"nothing is kept in {where}; MIRSTACK_CACHE=off does without")
