"""Finds the weights of an ONNX file, without the package onnx: dtypes, shapes and places of bytes.

An ONNX file is a message of protocol buffers: fields of a number, a wire type and a value. Only three messages are entered:

    ModelProto.graph (7) → GraphProto.initializer (5) → TensorProto: dims (1), data_type (2), float_data (4), name (8), raw_data (9),
                                                        double_data (10), external_data (13), data_location (14)

Sources: https://protobuf.dev/programming-guides/encoding/, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath
from typing import BinaryIO

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64",
    12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8_e4m3fn", 19: "float8_e5m2",
}  # fmt: skip
"""numpy's dtypes by ONNX' numbers of element types, of those whose elements take whole bytes."""

_BYTES = {"float16": 2, "bfloat16": 2, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1}
_VARINT, _FIXED64, _BLOCK, _FIXED32 = 0, 1, 2, 5
_HEAD = 24
"""Bytes that the number of a field and its length take at most."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Weight:
    """An initializer whose elements are stored one after the other, from byte `start` of a file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int
    location: str | None = None
    """The file beside the ONNX file that has the bytes; None for the ONNX file itself."""


def find_weights(file: BinaryIO, length: int) -> dict[str, Weight]:
    """Returns the initializers of a model's graph by name.

    Those of rank 0, and of elements below a byte, are left out. Raises ValueError for what is not a model, and OSError.
    """
    found: dict[str, Weight] = {}
    for number, start, end in _fields(file, 0, length):
        if number != 7:
            continue
        for inner, first, last in _fields(file, start, end):
            name, weight = _weight(file, first, last) if inner == 5 else ("", None)
            if weight is not None and name:
                found[name] = weight
    return found


def rest_digest(file: BinaryIO, length: int, weights: Iterable[Weight]) -> bytes:
    """Returns the SHA-256 of all bytes of an ONNX file but the weights'."""
    hasher = hashlib.sha256()
    at = 0
    held = sorted((each.start, each.start + each.length) for each in weights if each.location is None)
    for start, end in [*held, (length, length)]:
        file.seek(at)
        hasher.update(f"{at} {start}\n".encode())
        while at < start:
            piece = file.read(min(start - at, _PIECE))
            if not piece:
                raise ValueError("the file is shorter than it was")
            hasher.update(piece)
            at += len(piece)
        at = max(at, end)
    return hasher.digest()


def beside(folder: Path, location: str) -> Path:
    """Returns the path of a file of external data. Raises ValueError if it is in another folder."""
    path = PurePosixPath(location)
    if path.is_absolute() or ".." in path.parts or "\\" in location or "\0" in location or not path.name:
        raise ValueError(f"its external data is in '{location}', which is not in the folder of the model")
    return folder / path


def _weight(file: BinaryIO, start: int, end: int) -> tuple[str, Weight | None]:
    shape: list[int] = []
    name, number, where = "", 0, 0
    data: tuple[int, int] | None = None
    external: dict[str, str] = {}
    for field, first, last in _fields(file, start, end):
        match field:
            case 1:
                shape += _integers(file, first, last)
            case 2:
                number = -last - 1
            case 8:
                name = _text(file, first, last)
            case 4 | 9 | 10 if last >= 0:
                # Numbers that are not packed, one after the other, are left to the package onnx.
                data = (first, last - first) if data is None else (0, -1)
            case 13:
                key, value = _entry(file, first, last)
                external[key] = value
            case 14:
                where = -last - 1
            case _:
                pass
    dtype = DTYPES.get(number)
    if dtype is None or not shape or any(size < 0 for size in shape):
        return name, None
    size = prod(shape) * (_BYTES.get(dtype) or int(dtype.lstrip("uintfloa")) // 8)
    if where == 1:
        offset, length = external.get("offset", "0"), external.get("length", str(size))
        known = offset.isdecimal() and len(offset) < 19 and length == str(size)
        return name, Weight(dtype, tuple(shape), int(offset), size, external.get("location", "")) if known else None
    return name, None if data is None or data[1] != size else Weight(dtype, tuple(shape), *data)


def _fields(file: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yields number, first byte and end of each field.

    Of an integer v these are its place and -v - 1, of other values of fixed size 0 and -1.
    """
    at = start
    while at < end:
        file.seek(at)
        head = file.read(_HEAD)
        key, used = _varint(head, 0)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, used = _varint(head, used)
            yield number, at, -value - 1
            at += used
        elif wire == _BLOCK:
            size, used = _varint(head, used)
            at += used
            if at + size > end:
                raise ValueError(f"a part of {size} bytes reaches behind the end")
            yield number, at, at + size
            at += size
        elif wire in (_FIXED32, _FIXED64):
            at += used + (4 if wire == _FIXED32 else 8)
            yield number, 0, -1
        else:
            raise ValueError(f"byte {at} does not begin a field")
    if at != end:
        raise ValueError("a part ends inside of a field")


def _integers(file: BinaryIO, first: int, last: int) -> list[int]:
    """Returns the integers of a field: one, or several that are packed."""
    if last < 0:
        return [-last - 1]
    packed = _read(file, first, last)
    found: list[int] = []
    at = 0
    while at < len(packed):
        value, at = _varint(packed, at)
        found.append(value)
    return found


def _entry(file: BinaryIO, first: int, last: int) -> tuple[str, str]:
    key = value = ""
    for number, start, end in _fields(file, first, last):
        if number == 1:
            key = _text(file, start, end)
        elif number == 2:
            value = _text(file, start, end)
    return key, value


def _text(file: BinaryIO, first: int, last: int) -> str:
    return "" if last < 0 else _read(file, first, last).decode("utf-8")


def _read(file: BinaryIO, first: int, last: int) -> bytes:
    file.seek(first)
    return file.read(last - first)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number does not end")
