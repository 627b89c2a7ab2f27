"""Arrays of side files are the same however many threads read them."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from mirstack.dialects.side_file import SideFile, write_safetensors

ARRAYS = {f"w{number}": np.full((64, 1024), number, np.float32) for number in range(48)}
ROUNDS = 12


def onnx_model(path: Path) -> None:
    """Writes an ONNX model that has nothing but the arrays, by the fields of its protocol buffers."""

    def field(number: int, data: bytes) -> bytes:
        return _varint(number << 3 | 2) + _varint(len(data)) + data

    tensors = b""
    for name, array in ARRAYS.items():
        dims = b"".join(_varint(1 << 3) + _varint(dim) for dim in array.shape)
        tensors += field(5, dims + _varint(2 << 3) + _varint(1) + field(8, name.encode()) + field(9, array.tobytes()))
    path.write_bytes(field(7, tensors))


def _varint(value: int) -> bytes:
    made = b""
    while value >= 128:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def write(path: Path) -> None:
    match path.suffix:
        case ".safetensors":
            write_safetensors(path, ARRAYS)
        case ".npz":
            np.savez(path, **ARRAYS)  # pyright: ignore[reportArgumentType]
            assert zipfile.is_zipfile(path)
        case _:
            onnx_model(path)


@pytest.mark.parametrize("suffix", [".safetensors", ".onnx", ".npz"])
def test_threads_read_arrays_of_one_file(tmp_path: Path, suffix: str) -> None:
    """A file's own position would be moved by one thread before the other reads there."""
    path = tmp_path / f"weights{suffix}"
    write(path)
    for _ in range(ROUNDS):
        file = SideFile(path)
        with ThreadPoolExecutor(8) as threads:
            found = dict(zip(ARRAYS, threads.map(file.array, ARRAYS), strict=True))
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(found[name], array)
