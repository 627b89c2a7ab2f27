"""Whole programs on disk: with one of them nothing is parsed and nothing lowered.

A program's constants are not kept if the source has them: the weights of a side file are known by their digests, and are looked for there
when the program is loaded. What compiling computed (scaled weights, folded expressions) is kept: small arrays with the program,
large ones each in a file named by its digest, which programs share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....dialects.array import ArrayBox, numpy_dtype
from ..program import KernelProgram, Program, RelayProgram
from .store import Buffer, Store

KIND, ARRAY = "program", "array"

SMALL_BYTES = 64 << 10
"""Arrays up to this size are kept inside of their programs."""

_ALIGNMENT = 64

Source = Callable[[bytes], "ArrayBox | None"]
"""Gives the array of the source that has a digest."""


def described(program: Program) -> str:
    """What a program is but for its objects and constants, as JSON. Types may be nested deep, and so goes this."""
    return json.dumps(program.to_json(), separators=(",", ":"))


def save_program(store: Store, key: bytes, program: Program, description: str, source: Source) -> None:
    """Keeps a program, with what `described` says of it, under a key; `source` has the arrays that will be there again when it is loaded."""
    segments = _Segments()
    head: dict[str, Any] = {
        "program": description,
        "relay": isinstance(program, RelayProgram),
        "objects": [segments.add(data) for data in program.objects],
    }
    constants: list[list[Any]] = []
    for box in program.constants if isinstance(program, RelayProgram) else ():
        data = box.array.reshape(-1).view("uint8").data
        about: list[Any] = [box.dtype, list(box.shape), box.digest.hex()]
        if source(box.digest) is None:
            if len(data) <= SMALL_BYTES:
                about.append(segments.add(data))
            elif not store.has(ARRAY, box.digest):
                store.write(ARRAY, box.digest, [data], box.contents)
        constants.append(about)
    head["constants"] = constants
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    store.write(KIND, key, [len(text).to_bytes(8, "little"), text, *segments.parts])
    store.trim()


def load_program(store: Store, key: bytes, source: Source) -> Program | None:
    """The program under a key; None where it, or an array that it needs, is not there."""
    payload = store.read(KIND, key)
    if payload is None:
        return None
    try:
        start = 8 + int.from_bytes(payload[:8], "little")
        head: dict[str, Any] = json.loads(bytes(payload[8:start]))
        body = payload[start:]
        objects = [bytes(_segment(body, place)) for place in head["objects"]]
        description = json.loads(head["program"])
        if not head["relay"]:
            return KernelProgram.of_json(description, objects)
        constants = _constants(store, head["constants"], body, source)
        return None if constants is None else RelayProgram.of_json(description, constants, objects)
    except (KeyError, TypeError, ValueError):
        return None


def _constants(
    store: Store, listed: Sequence[Sequence[Any]], body: memoryview, source: Source
) -> list[ArrayBox] | None:
    import numpy as np

    boxes: list[ArrayBox] = []
    for dtype, shape, digest, *place in listed:
        key = bytes.fromhex(digest)
        box = None if place else source(key)
        if box is None:
            data = _segment(body, place[0]) if place else store.read(ARRAY, key)
            if data is None:
                return None
            box = ArrayBox(np.frombuffer(data, numpy_dtype(dtype)).reshape(shape))
        boxes.append(box)
    return boxes


class _Segments:
    """Parts of a file, one behind the other, each at a multiple of the alignment that arrays need."""

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self._end = 0

    def add(self, data: Buffer) -> tuple[int, int]:
        """Where the part will be: its start and its length."""
        start = self._end
        padding = -len(data) % _ALIGNMENT
        self.parts += [data, b"\0" * padding]
        self._end += len(data) + padding
        return start, len(data)


def _segment(body: memoryview, place: Sequence[int]) -> memoryview:
    start, length = place
    if not 0 <= start <= start + length <= len(body):
        raise ValueError("a part lies outside of its file")
    return body[start : start + length]


def source_of(arrays: Mapping[bytes, ArrayBox]) -> Source:
    """The arrays of a module by their digests."""
    return arrays.get
