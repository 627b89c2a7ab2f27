"""Weights by name in one block of bytes: TVM's and DLPack's form, of which TVM's `.params` files are.

u64 magic, u64 0 | u64 n, then for each name: u64 length, UTF-8
                 | u64 n, then for each array: u64 magic, u64 0, i32 device type, i32 device id, i32 rank,
                   u8 kind, u8 bits, u16 lanes, i64 sizes…, i64 bytes, data in row-major order
All numbers are little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ...dialects.array import numpy_dtype
from ...support.arguments import check
from ...support.diagnostics import Diagnostic, MirValueError
from ...support.public_names import public_names
from ..nd import NDArray, as_numpy

_LIST = 0xF7E58D4F05049CB7
_ARRAY = 0xDD5E40F096B4A13F
_KINDS = {"i": 0, "u": 1, "f": 2, "b": 1}
_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """Returns arrays by name as bytes, which `load_param_dict` reads, as TVM does."""
    check(params, "params", "a dictionary of arrays by name", Mapping)
    result = bytearray(struct.pack("<QQQ", _LIST, 0, len(params)))
    for name in params:
        encoded = name.encode()
        result += struct.pack("<Q", len(encoded)) + encoded
    result += struct.pack("<Q", len(params))
    for value in params.values():
        array = np.asarray(as_numpy(value), order="C")
        name = array.dtype.name
        kind = 4 if name == "bfloat16" else _KINDS.get(array.dtype.kind)
        if kind is None:
            raise MirValueError(Diagnostic(f"an array of {name} cannot be saved"))
        bits = 1 if name == "bool" else array.dtype.itemsize * 8
        result += struct.pack("<QQiiiBBH", _ARRAY, 0, 1, 0, array.ndim, kind, bits, 1)
        result += struct.pack(f"<{array.ndim}qq", *array.shape, array.nbytes)
        result += array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return result


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, NDArray]:
    """Returns the arrays that `save_param_dict` or TVM wrote. Raises MirValueError for other bytes."""
    check(param_bytes, "param_bytes", "bytes, as save_param_dict returns", bytes, bytearray)
    reader = _Reader(bytes(param_bytes))
    if reader.take("Q")[0] != _LIST:
        raise MirValueError(Diagnostic("the bytes are not those of parameters"))
    reader.take("Q")
    names = [reader.data(reader.count()).decode(errors="replace") for _ in range(reader.count())]
    if reader.count() != len(names):
        raise MirValueError(Diagnostic("the bytes of parameters hold another number of names than of arrays"))
    return {name: reader.array() for name in names}


class _Reader:
    def __init__(self, data: bytes):
        self._data, self._at = data, 0

    def take(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{form}", self.data(struct.calcsize(f"<{form}")))

    def count(self) -> int:
        """Returns a number of parts, of which each has bytes: no more than there are."""
        count: int = self.take("Q")[0]
        if count > len(self._data) - self._at:
            raise _cut()
        return count

    def data(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise _cut()
        found, self._at = self._data[self._at : end], end
        return found

    def array(self) -> NDArray:
        magic, _, _, _, rank, kind, bits, lanes = self.take("QQiiiBBH")
        dtype = "bool" if (kind, bits) == (1, 1) else f"{_NAMES.get(kind, '?')}{bits}"
        if magic != _ARRAY or not 0 <= rank <= 64 or lanes != 1:
            raise MirValueError(Diagnostic("the bytes of parameters hold something that is not an array"))
        *shape, size = self.take(f"{rank}qq")
        try:
            element = numpy_dtype(dtype)
        except TypeError:
            raise MirValueError(Diagnostic(f"the parameters hold an array of {dtype}")) from None
        if min(shape, default=0) < 0 or prod(shape) * element.itemsize != size:
            raise MirValueError(Diagnostic(f"an array of shape {tuple(shape)} does not have {size} bytes"))
        flat = np.frombuffer(self.data(size), element.newbyteorder("<"))
        return NDArray(flat.astype(element).reshape(shape))


def _cut() -> MirValueError:
    return MirValueError(Diagnostic("the bytes of parameters end too early"))


__all__ = ["load_param_dict", "save_param_dict"]


__dir__ = public_names(__name__)
