"""Whole programs on disk: with one of them nothing is parsed and nothing lowered.

A program's constants are not kept if the source has them: the weights of a side file are known by their digests, and are looked for there
when the program is loaded. What compiling computed (scaled weights, folded expressions) is kept: small arrays with the program,
large ones each in a file named by its digest, which programs share.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ....dialects.array_box import ArrayBox, numpy_dtype
from ....support.external_names import names_one
from ....support.parallel import in_threads
from ....support.stopwatch import current_span, in_background, timed
from ..program import KernelProgram, Program, RelayProgram
from ..segments import ALIGNMENT, Segments, segment_of
from ..source import ProgramSource
from .file_digests import FileDigests, NamedArray
from .keys import digest
from .source_key import SourceKey
from .store import Store

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..loading.executable import Executable

KIND, ARRAY = "program", "array"

SMALL_BYTES = 64 << 10
"""Arrays up to this size are kept inside of their programs."""

Entry = tuple[str | None, Mapping[str, Sequence[int]]]
"""The name of the function that is called, None for the default one, and the shapes that its parameters are fixed to."""

HASHED_TOGETHER = 1 << 20
"""Bytes of arrays from which on it pays to hash them in several threads."""


def _key(entry: Entry, context: bytes, text: bytes, arrays: bytes) -> bytes:
    """Returns the key of an entry of a source; `text` and `arrays` are digests."""
    return digest(context, json.dumps(entry), text, arrays)


class CachedProgram:
    """The cache entry of one source with some options and an `Entry`."""

    def __init__(self, store: Store, context: bytes, entry: Entry, text: str, arrays: Sequence[NamedArray]):
        self.store = store
        self._arrays = {array.digest: array for array in arrays}
        self._source = context, digest(text), b"".join(array.digest for array in arrays)
        self._key = _key(entry, *self._source)

    @staticmethod
    def of(
        source: ProgramSource | ModuleOp, context: bytes, entry: Entry, store: Store, side: SourceKey | None = None
    ) -> CachedProgram | None:
        """Returns the entry of a source, or None where it names what code from outside defines.

        The key of a module is its generic text, with the places in the source, which messages show. A file is not parsed;
        it has no entry where a side file that it may name cannot be read. `side` is its key and arrays, where reading has begun.
        """
        if isinstance(source, ProgramSource):
            found = source.key(FileDigests(store)) if side is None else side.join()
            return None if found is None else CachedProgram(store, context, entry, *found)
        from .module_text import module_text

        text, boxes = module_text(source)
        if names_one(text):
            return None
        _hash(boxes)
        return CachedProgram(store, context, entry, f"mlir {text}", list(map(NamedArray.of, boxes)))

    def others(self) -> Callable[[Entry], bool]:
        """Returns a function that tells whether another entry of the source is kept; it holds no arrays."""
        store, source = self.store, self._source
        return lambda entry: store.has(KIND, _key(entry, *source))

    def write(self, program: Program) -> None:
        """Writes the program to the cache."""
        self._write(program, json.dumps(program.to_json(), separators=(",", ":")))

    def load(self) -> Program | None:
        """Returns the program; None where it, or an array that it needs, is not there."""
        payload = self.store.read(KIND, self._key)
        if payload is None:
            return None
        try:
            start = 8 + int.from_bytes(payload[:8], "little")
            head: dict[str, Any] = json.loads(bytes(payload[8:start]))
            body = payload[start:]
            objects = [bytes(segment_of(body, place)) for place in head["objects"]]
            description = json.loads(head["program"])
            if not head["relay"]:
                return KernelProgram.of_json(description, objects)
            count = len(head["constants"])
            boxes = _boxes(self.store, [*head["constants"], *head["contents"]], body, self._arrays)
            return None if boxes is None else RelayProgram.of_json(description, boxes[:count], objects, boxes[count:])
        except (KeyError, OSError, TypeError, ValueError):
            return None

    def save(self, program: Program, executable: Executable, done: Callable[[], None]) -> None:
        """Writes the program to the cache while it runs, then calls `done`; `wait_for_writing` waits for it."""
        # Types may be nested deep, and so does this recurse.
        description, span = json.dumps(program.to_json(), separators=(",", ":")), current_span()

        def write() -> None:
            with in_background(span, "cache, beside"), timed("keep"):
                self._write(self._packed(program, executable), description)
            done()

        thread = threading.Thread(target=write, name="mirstack-cache")
        # Python waits for it before it ends.
        thread.start()
        _WRITING.append(thread)

    def _packed(self, program: Program, executable: Executable) -> Program:
        """Returns a program with what its executable has prepared of constants that the source does not have.

        Those would have to be kept otherwise. Of constants in the source, and of less bytes, tensors are prepared again.
        """
        from ..loading.relay_executable import RelayExecutable

        if not isinstance(program, RelayProgram) or not isinstance(executable, RelayExecutable):
            return program
        if program.grows_by_preparing:
            return program
        computed = sum(box.array.nbytes for box in program.raw if box.digest not in self._arrays)
        if 2 * computed <= sum(box.array.nbytes for box in program.raw):
            return program
        return program.with_contents(list(map(ArrayBox, executable.prepared)))

    def _write(self, program: Program, description: str) -> None:
        """Writes the program, described as JSON; arrays that the source has are there again when it is loaded."""
        segments = Segments()
        head: dict[str, Any] = {
            "program": description,
            "relay": isinstance(program, RelayProgram),
            "objects": [segments.add(data) for data in program.objects],
        }
        if isinstance(program, RelayProgram):
            head["constants"] = [self._keep(box, segments) for box in program.constants]
            head["contents"] = [self._keep(box, segments) for box in program.contents]
        text = json.dumps(head, separators=(",", ":")).encode()
        text += b" " * (-(8 + len(text)) % ALIGNMENT)
        self.store.write(KIND, self._key, [len(text).to_bytes(8, "little"), text, *segments.parts])
        self.store.trim()

    def _keep(self, box: ArrayBox, segments: Segments) -> list[Any]:
        """Keeps an array that the source does not have; returns what it is found by."""
        data = box.array.reshape(-1).view("uint8").data
        about: list[Any] = [box.dtype, list(box.shape), box.digest.hex()]
        if box.digest not in self._arrays:
            if len(data) <= SMALL_BYTES:
                about.append(segments.add(data))
            elif not self.store.has(ARRAY, box.digest):
                self.store.write(ARRAY, box.digest, [data], box.contents)
        return about


_WRITING: list[threading.Thread] = []
"""The threads that write what was compiled."""


def wait_for_writing() -> None:
    """Waits until all that was compiled so far is in the cache."""
    for thread in tuple(_WRITING):
        thread.join()
    _WRITING[:] = [thread for thread in _WRITING if thread.is_alive()]


def _hash(boxes: Sequence[ArrayBox]) -> None:
    """Computes digests, of large arrays in several threads: hashing does not hold the interpreter's lock."""
    in_threads(
        attrgetter("digest"), [box for box in boxes if box.array.nbytes >= HASHED_TOGETHER and not box.is_hashed]
    )


def _boxes(
    store: Store, listed: Sequence[Sequence[Any]], body: memoryview, arrays: Mapping[bytes, NamedArray]
) -> list[ArrayBox] | None:
    import numpy as np

    def box_of(about: Sequence[Any]) -> ArrayBox | None:
        dtype, shape, name, *place = about
        key = bytes.fromhex(name)
        if not place and key in arrays:
            return arrays[key].box
        data = segment_of(body, place[0]) if place else store.read(ARRAY, key)
        return None if data is None else ArrayBox(np.frombuffer(data, numpy_dtype(dtype)).reshape(shape))

    # Reading and checking a file does not hold the interpreter's lock.
    boxes = in_threads(box_of, listed) if any(len(about) == 3 for about in listed) else list(map(box_of, listed))
    found = [box for box in boxes if box is not None]
    return found if len(found) == len(boxes) else None
