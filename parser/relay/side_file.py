"""Arrays that stand in a file beside the `.mir`: `.npz` (numpy) and `.safetensors`.

The file is mapped into memory and an array is a view of it, so that only the arrays in use are read, once. Offsets and
sizes are checked against the file before an array is made; nothing is ever unpickled.
"""

from __future__ import annotations

import io
import json
import mmap
import struct
import zipfile
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...dialects.array import numpy_dtype
from ...support.mapped import map_file
from .untyped import as_dict, as_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_SAFETENSORS_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
_MAX_HEADER = 100 << 20


class SideFile:
    """An opened file of named arrays. Methods raise ValueError when the file is not what its name says."""

    def __init__(self, path: Path):
        """Maps the file. Raises OSError when it cannot be read."""
        with open(path, "rb") as file:
            self._map: mmap.mmap | bytes = b""
            if path.stat().st_size:
                self._map = map_file(file)
        self._arrays: dict[str, NDArray[np.generic]] = {}
        self._entries: dict[str, object] = {}
        self._zip: zipfile.ZipFile | None = None
        self._data_start = 0
        if path.suffix == ".npz":
            self._read_zip_directory(path)
        elif path.suffix == ".safetensors":
            self._read_safetensors_header()
        else:
            raise ValueError("constants are read from .npz and .safetensors files")

    def names(self) -> Iterable[str]:
        """The arrays in the file."""
        return self._entries

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def array(self, name: str) -> NDArray[np.generic]:
        """The array called `name`, which the file must contain."""
        found = self._arrays.get(name)
        if found is None:
            entry = self._entries[name]
            found = self._npy(entry) if isinstance(entry, zipfile.ZipInfo) else self._tensor(entry)
            self._arrays[name] = found
        return found

    # .npz: a zip of .npy files -------------------------------------------------------------------------------------

    def _read_zip_directory(self, path: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile:
            raise ValueError("the file is no .npz file") from None
        for info in self._zip.infolist():
            self._entries[info.filename.removesuffix(".npy")] = info

    def _npy(self, info: zipfile.ZipInfo) -> NDArray[np.generic]:
        import numpy as np

        if info.compress_type == zipfile.ZIP_STORED and not info.flag_bits & 1:
            start = self._member_start(info)
            shape, fortran, dtype, offset = self._npy_header(memoryview(self._map)[start : start + info.file_size])
            count = self._checked_count(shape, dtype, info.file_size - offset)
            flat = np.frombuffer(self._map, dtype, count, start + offset)
            array = flat.reshape(shape, order="F" if fortran else "C")
        else:
            assert self._zip is not None
            try:
                data = self._zip.read(info)
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
                raise ValueError(f"the member {info.filename} cannot be unpacked: {error}") from None
            shape, fortran, dtype, offset = self._npy_header(memoryview(data))
            count = self._checked_count(shape, dtype, len(data) - offset)
            array = np.frombuffer(data, dtype, count, offset).reshape(shape, order="F" if fortran else "C")
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("="))
        return array

    def _member_start(self, info: zipfile.ZipInfo) -> int:
        """Where a stored member's bytes begin in the file."""
        start = info.header_offset
        if start < 0 or start + _LOCAL_HEADER.size > len(self._map):
            raise ValueError(f"the member {info.filename} lies outside the file")
        signature, *_, name_length, extra_length = _LOCAL_HEADER.unpack_from(self._map, start)
        start += _LOCAL_HEADER.size + name_length + extra_length
        if signature != b"PK\x03\x04" or start + info.file_size > len(self._map):
            raise ValueError(f"the member {info.filename} lies outside the file")
        return start

    def _npy_header(self, data: memoryview) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
        from numpy.lib import format as npy

        stream = io.BytesIO(data[: min(len(data), 1 << 16)])
        try:
            version = npy.read_magic(stream)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, fortran, dtype = read(stream)
        except Exception as error:  # numpy raises ValueError, SyntaxError, TypeError and others on damaged headers
            raise ValueError(f"an array's header is damaged: {error}") from None
        return shape, fortran, dtype, stream.tell()

    def _checked_count(self, shape: tuple[int, ...], dtype: np.dtype[Any], room: int) -> int:
        if dtype.hasobject:
            raise ValueError("the array holds Python objects, which are not read")
        if dtype.kind not in "biuf":
            raise ValueError(f"an array of dtype {dtype} is no tensor; bfloat16 and float8 can be kept in .safetensors")
        count = prod(shape)
        if min(shape, default=0) < 0 or count * dtype.itemsize > room:
            raise ValueError(f"an array of shape {tuple(shape)} and {dtype} does not fit into its {room} bytes")
        return count

    # .safetensors: u64 header size, a JSON header, the data --------------------------------------------------------

    def _read_safetensors_header(self) -> None:
        size = struct.unpack_from("<Q", self._map)[0] if len(self._map) >= 8 else _MAX_HEADER
        if size >= _MAX_HEADER or 8 + size > len(self._map):
            raise ValueError("the file is no .safetensors file: its header does not fit")
        try:
            header = as_dict(json.loads(bytes(self._map[8 : 8 + size])))
        except (ValueError, RecursionError):
            header = None
        if header is None:
            raise ValueError("the file is no .safetensors file: its header is no JSON object")
        header.pop("__metadata__", None)
        self._entries = header
        self._data_start = 8 + size

    def _tensor(self, entry: object) -> NDArray[np.generic]:
        import numpy as np

        fields = as_dict(entry) or {}
        kind, sizes, offsets = fields.get("dtype"), as_list(fields.get("shape")), as_list(fields.get("data_offsets"))
        match kind, sizes, offsets:
            case str(), list(), [int(begin), int(end)]:
                pass
            case _:
                raise ValueError("its entry in the header is not understood")
        if kind not in _SAFETENSORS_DTYPES:
            raise ValueError(f"its dtype {kind} is not known")
        shape = [dim for dim in sizes if isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0]
        if len(shape) != len(sizes):
            raise ValueError("its shape is no list of sizes")
        dtype = numpy_dtype(_SAFETENSORS_DTYPES[kind])
        count = prod(shape)
        if not 0 <= begin <= end <= len(self._map) - self._data_start or count * dtype.itemsize != end - begin:
            raise ValueError(f"an array of shape {tuple(shape)} and {dtype} does not fit into its bytes")
        return np.frombuffer(self._map, dtype, count, self._data_start + begin).reshape(shape)
