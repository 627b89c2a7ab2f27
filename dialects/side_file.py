"""Reads arrays from a file next to the `.mir`: `.npz` (numpy), `.safetensors` or `.onnx`.

Each array is read into memory of its own: later changes of the file do not change it. Several threads may read arrays. An array that is
still held is read only once. Offsets, sizes and the size of unpacked data are checked against the file and the machine's memory before memory
is allocated; nothing is ever unpickled.
"""

from __future__ import annotations

import io
import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast
from weakref import WeakValueDictionary

from ..support.file_identity import identity
from ..support.json_values import as_dict, as_list
from .array_box import numpy_dtype
from .onnx_weights import Weight, beside, find_weights, rest_digest

if TYPE_CHECKING:
    import zipfile

    import numpy as np
    from numpy.typing import NDArray

_SHARED: WeakValueDictionary[tuple[object, ...], NDArray[np.generic]] = WeakValueDictionary()
"""The arrays that somebody holds, by which file they are of, as of when, and their names."""

SAFETENSORS_DTYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
"""numpy's dtypes by safetensors' names."""

_MAX_HEADER = 100 << 20
_NPY_HEADER = 1 << 16
"""Bytes in which the header of a .npy file ends."""
_PIECE = 1 << 20
"""Bytes that are read at a time: what unpacks them keeps as many beside."""
_DEFLATE = 1032
"""How many times as long as compressed data what it comes to is at most (zlib's documentation, "Maximum compression")."""


class _Source(Protocol):
    """Reads bytes into a buffer."""

    def readinto(self, buffer: memoryview, /) -> int | None: ...


class _Stream(_Source, Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes: ...


class SideFile:
    """An opened file of named arrays. Methods raise ValueError when the file is not what its name says."""

    def __init__(self, path: Path, format: str | None = None, *, raw: bool = False):
        """Opens the file, of its suffix' format unless another is given. Raises OSError if it cannot be read.

        With `raw`, arrays of numpy's void types, of which only the element size is known, are read, too.
        """
        self._raw = raw
        self.name = path.name
        format = path.suffix if format is None else format
        self._file = open(path, "rb")  # noqa: SIM115
        about = os.fstat(self._file.fileno())
        self._identity = identity(about)
        self._length = about.st_size
        self._arrays: dict[str, NDArray[np.generic]] = {}
        self._entries: dict[str, object] = {}
        self._zip: zipfile.ZipFile | None = None
        self._data_start = 0
        self._folder = path.parent
        if format == ".npz":
            self._read_zip_directory()
        elif format == ".safetensors":
            self._read_safetensors_header()
        elif format == ".onnx":
            self._find_weights()
        else:
            raise ValueError("constants are read from .npz, .safetensors and .onnx files")

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def names(self) -> Iterable[str]:
        """The arrays in the file."""
        return self._entries

    def abouts(self) -> list[os.stat_result]:
        """Returns the `os.stat_result` of the file and of each file of external data.

        Raises OSError for one that cannot be read, and ValueError for one in another folder.
        """
        held = [each.location for each in self._entries.values() if isinstance(each, Weight) and each.location]
        return [
            os.fstat(self._file.fileno()),
            *(os.stat(beside(self._folder, location)) for location in dict.fromkeys(held)),
        ]

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def array(self, name: str) -> NDArray[np.generic]:
        """The array called `name`, which the file must contain."""
        found = self._arrays.get(name)
        entry = self._entries[name]
        if isinstance(entry, Weight) and entry.location is not None:
            # Of a file that may change while this one does not.
            found = self._weight(entry) if found is None else found
        if found is None:
            found = _SHARED.get((*self._identity, name))
        if found is None:
            if isinstance(entry, Weight):
                found = self._weight(entry)
            else:
                found = self._tensor(entry) if self._zip is None else self._npy(cast("zipfile.ZipInfo", entry))
            _SHARED[(*self._identity, name)] = found
        self._arrays[name] = found
        return found

    # .npz: a zip of .npy files -------------------------------------------------------------------------------------

    def _read_zip_directory(self) -> None:
        # Here, since no other format needs it.
        import zipfile

        try:
            self._zip = zipfile.ZipFile(self._file)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OverflowError) as error:
            # A zip of a later version than Python reads is said to be so.
            said = f": {error}" if isinstance(error, NotImplementedError) else ""
            raise ValueError(f"the file is no .npz file{said}") from None
        for info in self._zip.infolist():
            self._entries[info.filename.removesuffix(".npy")] = info

    def _npy(self, info: zipfile.ZipInfo) -> NDArray[np.generic]:
        import zipfile
        import zlib

        assert self._zip is not None
        most = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _DEFLATE}.get(info.compress_type, info.file_size)
        if info.compress_size > self._length or info.file_size > max(info.compress_size, 1) * most:
            raise ValueError(f"the member {info.filename} claims more bytes than it can come to")
        try:
            with self._zip.open(info) as stream:
                array = _npy_of(cast("_Stream", stream), info.file_size, self._raw)
        except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError, OSError) as error:
            raise ValueError(f"the member {info.filename} cannot be unpacked: {error}") from None
        return array

    # .safetensors: u64 header size, a JSON header, the data --------------------------------------------------------

    def _read_safetensors_header(self) -> None:
        start = self._file.read(8)
        size = struct.unpack("<Q", start)[0] if len(start) == 8 else _MAX_HEADER
        if size >= _MAX_HEADER or 8 + size > self._length:
            raise ValueError("the file is not a .safetensors file: its header does not fit")
        try:
            header = as_dict(json.loads(self._file.read(size)))
        except (ValueError, RecursionError):
            header = None
        if header is None:
            raise ValueError("the file is not a .safetensors file: its header is not a JSON object")
        header.pop("__metadata__", None)
        self._entries = header
        self._data_start = 8 + size

    def _tensor(self, entry: object) -> NDArray[np.generic]:
        fields = as_dict(entry) or {}
        kind, sizes, offsets = fields.get("dtype"), as_list(fields.get("shape")), as_list(fields.get("data_offsets"))
        match kind, sizes, offsets:
            case str(), list(), [int(begin), int(end)]:
                pass
            case _:
                raise ValueError("its entry in the header is not understood")
        if kind not in SAFETENSORS_DTYPES:
            raise ValueError(f"its dtype {kind} is not known")
        shape = [dim for dim in sizes if isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0]
        if len(shape) != len(sizes):
            raise ValueError("its shape is not a list of sizes")
        dtype = numpy_dtype(SAFETENSORS_DTYPES[kind])
        if not 0 <= begin <= end <= self._length - self._data_start or prod(shape) * dtype.itemsize != end - begin:
            raise ValueError(f"an array of shape {tuple(shape)} and {dtype} does not fit into its bytes")
        try:
            return _filled(_Place(self._file, self._data_start + begin), dtype, shape)
        except OSError as error:
            raise ValueError(f"its bytes cannot be read: {error.strerror}") from None

    # .onnx: initializers, in the file or beside it -------------------------------------------------------------------

    def _find_weights(self) -> None:
        try:
            self._entries = {**find_weights(self._file, self._length)}
        except ValueError as error:
            raise ValueError(f"the file is not an ONNX model: {error}") from None

    def rest_digest(self) -> bytes:
        """Returns the SHA-256 of all that is in a .onnx file besides the arrays."""
        held = [each for each in self._entries.values() if isinstance(each, Weight)]
        return rest_digest(self._file, self._length, held)

    def _weight(self, weight: Weight) -> NDArray[np.generic]:
        dtype = numpy_dtype(weight.dtype)
        if weight.location is None:
            return _filled(_Place(self._file, weight.start), dtype, weight.shape)
        path = beside(self._folder, weight.location)
        try:
            with open(path, "rb") as file:
                length = os.fstat(file.fileno()).st_size
                if weight.start + weight.length > length:
                    raise ValueError(
                        f"its external data ends at byte {weight.start + weight.length} of '{weight.location}', which has {length}"
                    )
                file.seek(weight.start)
                return _filled(file, dtype, weight.shape)
        except OSError as error:
            raise ValueError(f"its external data '{weight.location}' cannot be read: {error.strerror}") from None


def write_safetensors(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes arrays in the safetensors format: header size, JSON header, data aligned to 64 bytes.

    The format wants the data without holes, so that only arrays of a multiple of 64 bytes keep the next one aligned:
    the larger ones come first. Raises KeyError for a dtype that the format does not have, and OSError.
    """
    kinds = {numpy_name: name for name, numpy_name in SAFETENSORS_DTYPES.items()}
    ordered = sorted(arrays.items(), key=lambda item: -(item[1].nbytes & -item[1].nbytes))
    header: dict[str, object] = {}
    end = 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": kinds[array.dtype.name], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in ordered:
            # ml_dtypes' arrays have no buffers of their own.
            file.write(array.reshape(-1).view("uint8").data)


def read_npy(path: Path) -> NDArray[np.generic]:
    """The array of a `.npy` file. Raises OSError, and ValueError for a file that is none."""
    with open(path, "rb") as file:
        return _npy_of(file, os.fstat(file.fileno()).st_size, raw=True)


def _npy_of(stream: _Stream, length: int, raw: bool) -> NDArray[np.generic]:
    """The array of a .npy file of that many bytes."""
    start = stream.read(min(length, _NPY_HEADER))
    shape, fortran, dtype, offset = _npy_header(start)
    _check_size(shape, dtype, length - offset, "biufV" if raw else "biuf")
    array = _filled(stream, dtype, shape, start[offset:], fortran=fortran)
    return array.astype(array.dtype.newbyteorder("=")) if array.dtype.byteorder == ">" else array


def _npy_header(data: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    from numpy.lib import format as npy

    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as error:  # numpy raises ValueError, SyntaxError, TypeError and others on damaged headers
        raise ValueError(f"an array's header is damaged: {error}") from None
    return shape, fortran, dtype, stream.tell()


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], room: int, kinds: str) -> None:
    if dtype.hasobject:
        raise ValueError("the array holds Python objects, which are not read")
    if dtype.kind not in kinds:
        raise ValueError(f"an array of dtype {dtype} is not a tensor; bfloat16 and float8 can be kept in .safetensors")
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize > room:
        raise ValueError(f"an array of shape {tuple(shape)} and {dtype} does not fit into its {room} bytes")


def _filled(
    stream: _Source, dtype: np.dtype[Any], shape: Sequence[int], start: bytes = b"", *, fortran: bool = False
) -> NDArray[np.generic]:
    """An array in memory of its own, whose bytes begin with `start` and go on in the stream."""
    import numpy as np

    size = prod(shape) * dtype.itemsize
    if size > _memory():
        raise ValueError(f"an array of {size >> 20} MiB is more than this machine's memory")
    try:
        array = np.empty(shape, dtype, order="F" if fortran else "C")
    except (MemoryError, ValueError) as error:
        raise ValueError(f"an array of {size >> 20} MiB finds no memory: {error}") from None
    view = array.reshape(-1, order="A").view(np.uint8).data
    have = min(len(start), size)
    view[:have] = start[:have]
    while have < size:
        got = stream.readinto(view[have : have + _PIECE])
        if not got:
            raise ValueError(f"the file ends {size - have} bytes before the array does")
        have += got
    # Several may hold it.
    array.flags.writeable = False
    return array


class _Place:
    """Reads a file from a place on, without the position that all who hold the file share."""

    def __init__(self, file: BinaryIO, start: int):
        self._file, self._at = file, start

    def readinto(self, buffer: memoryview, /) -> int:
        """Reads bytes into a buffer; returns their number, 0 at the end of the file."""
        got = os.preadv(self._file.fileno(), [buffer], self._at)
        self._at += got
        return got


def _memory() -> int:
    """Bytes of this machine's memory; where the system does not tell, more than any has."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 62
