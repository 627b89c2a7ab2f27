"""Programs from the cache on disk: what `mirstack.compile` looks for before it compiles."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from ....dialects.array import ArrayBox
from ....support.external_names import names_one
from ....support.stopwatch import current_span, in_background, timed
from .keys import digest
from .programs import described, load_program, save_program
from .store import Store

if TYPE_CHECKING:
    from ..program import Program

HASHED_TOGETHER = 1 << 20
"""Bytes of arrays from which on it pays to hash them in several threads."""

_SIDE_FILE = re.compile(r'constants\s*=\s*"([^"\n]+)"')


class CachedProgram:
    """The place in the cache of what one source becomes with some options; `entry` None means the default one."""

    def __init__(self, store: Store, context: bytes, entry: str | None, text: str, boxes: Sequence[ArrayBox]):
        self.store = store
        _hash(boxes)
        self._arrays = {box.digest: box for box in boxes}
        arrays = b"".join(box.digest for box in boxes)
        self._key = digest(context, json.dumps(entry), text, arrays)

    @staticmethod
    def of_module(module: ModuleOp, context: bytes, entry: str | None, store: Store) -> CachedProgram | None:
        """Of a module: the key is its generic text, places in the source included, which messages tell; None where it names what
        code from outside defines."""
        from .module_text import module_text

        text, boxes = module_text(module)
        if names_one(text):
            return None
        return CachedProgram(store, context, entry, f"mlir {text}", boxes)

    @staticmethod
    def of_text(
        text: str, name: str, directory: Path | None, context: bytes, entry: str | None, store: Store
    ) -> CachedProgram | None:
        """Of a `.mir` text, which is not parsed; None where a side file that it may name cannot be read, and where it names what code
        from outside defines."""
        from ....parser.relay.side_file import SideFile

        if names_one(text):
            return None
        boxes: list[ArrayBox] = []
        listed: list[str] = []
        for side in sorted(set(_SIDE_FILE.findall(text))) if directory is not None else ():
            path = directory / side  # type: ignore[operator]
            if not path.is_file():
                continue
            try:
                file = SideFile(path)
                names = list(file.names())
                boxes += [ArrayBox(file.array(each)) for each in names]
            except (OSError, ValueError):
                return None
            listed.append(json.dumps([side, names]))
        return CachedProgram(store, context, entry, "\n".join(["mir", name, *listed, text]), boxes)

    def load(self) -> Program | None:
        """The program, if it is there."""
        return load_program(self.store, self._key, self._arrays.get)

    def save(self, program: Program, done: Callable[[], None]) -> None:
        """Keeps the program; it is written while the program runs already (`wait_for_writing`), and `done` is called then."""
        description, span = described(program), current_span()

        def write() -> None:
            with in_background(span, "cache, beside"), timed("keep"):
                save_program(self.store, self._key, program, description, self._arrays.get)
            done()

        thread = threading.Thread(target=write, name="mirstack-cache")
        # Python waits for it before it ends.
        thread.start()
        _WRITING.append(thread)


_WRITING: list[threading.Thread] = []
"""The threads that write what was compiled."""


def wait_for_writing() -> None:
    """Waits until all that was compiled so far is in the cache."""
    for thread in tuple(_WRITING):
        thread.join()
    _WRITING[:] = [thread for thread in _WRITING if thread.is_alive()]


def _hash(boxes: Sequence[ArrayBox]) -> None:
    """Computes digests, of large arrays in several threads: hashing does not hold the interpreter's lock."""
    large = [box for box in boxes if box.array.nbytes >= HASHED_TOGETHER]
    if len(large) > 1:
        with ThreadPoolExecutor() as pool:
            list(pool.map(_digest, large))


def _digest(box: ArrayBox) -> bytes:
    return box.digest
