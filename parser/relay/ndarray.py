"""TVM's serialized arrays (`NDArray::Save`), as base64 in a metadata section.

Layout, little endian: magic u64, reserved u64, device (type i32, id i32), rank i32, dtype (code u8, bits u8, lanes u16),
shape i64 × rank, byte count i64, the data in row-major order.
"""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING

from ...dialects.array import numpy_dtype

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = 0xDD5E40F096B4A13F
_HEAD = struct.Struct("<QQiiiBBH")
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}
_MAX_RANK = 32


def decode(blob: object) -> NDArray[np.generic]:
    """Decodes the array in a base64 blob. Raises ValueError if the blob is not such an array."""
    import numpy as np

    if not isinstance(blob, str):
        raise ValueError("an array in the metadata section is a base64 string")
    try:
        data = base64.b64decode(blob, validate=True)
    except ValueError:
        raise ValueError("an array in the metadata section is not valid base64") from None
    if len(data) < _HEAD.size:
        raise ValueError("an array in the metadata section is too short to have a header")
    magic, _, _, _, rank, code, bits, lanes = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("an array in the metadata section does not begin with TVM's mark")
    if not 0 <= rank <= _MAX_RANK or len(data) < _HEAD.size + 8 * (rank + 1):
        raise ValueError(f"an array in the metadata section has no room for its rank {rank}")
    *shape, size = struct.unpack_from(f"<{rank + 1}q", data, _HEAD.size)
    dtype = _dtype(code, bits, lanes)
    count = 1
    for dim in shape:
        count *= max(dim, -1)
    start = _HEAD.size + 8 * (rank + 1)
    if min(shape, default=0) < 0 or size != count * dtype.itemsize or size != len(data) - start:
        raise ValueError(f"an array of shape {tuple(shape)} and {dtype} has not {len(data) - start} bytes")
    return np.frombuffer(data, dtype, count, start).reshape(shape)


def _dtype(code: int, bits: int, lanes: int) -> np.dtype[np.generic]:
    name = "bool" if (code, bits) == (1, 1) else f"{_CODES.get(code)}{bits}"
    try:
        dtype = numpy_dtype(name)
    except TypeError:
        dtype = None
    if dtype is None or lanes != 1 or code not in _CODES or (bits != 1 and dtype.itemsize * 8 != bits):
        raise ValueError(f"arrays of dtype code {code}, {bits} bits, {lanes} lanes are not known")
    return dtype


def encode(array: NDArray[np.generic]) -> str:
    """The array as TVM would write it. Raises ValueError for a dtype that TVM's arrays do not have."""
    name = array.dtype.name
    kind = name.rstrip("0123456789")
    codes = {known: code for code, known in _CODES.items()}
    if name == "bool":
        code, bits = 1, 1
    elif kind in codes:
        code, bits = codes[kind], array.dtype.itemsize * 8
    else:
        raise ValueError(f"an array of {name} cannot be written in a metadata section")
    head = _HEAD.pack(MAGIC, 0, 1, 0, array.ndim, code, bits, 1)
    sizes = struct.pack(f"<{array.ndim + 1}q", *array.shape, array.nbytes)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(head + sizes + little.tobytes()).decode()
