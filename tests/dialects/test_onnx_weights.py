"""The weights of ONNX files, found without the package onnx: files are written byte by byte."""

from __future__ import annotations

from pathlib import Path

import mirstack
import numpy as np
import pytest
from mirstack.dialects.side_file import SideFile


def varint(value: int) -> bytes:
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name: str, array: np.ndarray, *fields: bytes, kind: int = 1) -> bytes:
    shape = b"".join(number(1, size) for size in array.shape)
    return shape + number(2, kind) + block(8, name) + b"".join(fields or [block(9, array.tobytes())])


def external(**about: str) -> list[bytes]:
    return [*(block(13, block(1, key) + block(2, value)) for key, value in about.items()), number(14, 1)]


def model(*tensors: bytes) -> bytes:
    return number(1, 8) + block(7, b"".join(block(5, each) for each in tensors) + block(2, "g"))


W = np.arange(12, dtype="float32").reshape(3, 4)


def test_arrays_are_where_the_file_says(tmp_path: Path) -> None:
    packed = block(1, varint(3) + varint(4)) + number(2, 1) + block(8, "packed") + block(4, W.tobytes())
    (tmp_path / "m.onnx").write_bytes(
        model(tensor("w", W), packed, tensor("wide", W.astype("f8"), kind=11), tensor("rank 0", np.ones((), "float32")))
    )
    file = SideFile(tmp_path / "m.onnx")
    assert list(file.names()) == ["w", "packed", "wide"]
    np.testing.assert_array_equal(file.array("w"), W)
    np.testing.assert_array_equal(file.array("packed"), W)
    assert file.array("wide").dtype == "float64"


def test_a_program_takes_its_constants_from_a_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(model(tensor("layer/w", W)))
    (tmp_path / "p.mir").write_text(
        '#[constants = "m.onnx"]\ndef @main(%x: Tensor[(2, 4), float32]) { nn.dense(%x, meta[relay.Constant]["layer/w"]) }'
    )
    found = mirstack.compile(tmp_path / "p.mir", "interp")(np.ones((2, 4), "float32"))
    np.testing.assert_array_equal(found, np.ones((2, 4)) @ W.T)


def test_external_data(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"1234" + W.tobytes())
    fields = external(location="data", offset="4", length="48")
    (tmp_path / "m.onnx").write_bytes(model(tensor("w", W, *fields)))
    np.testing.assert_array_equal(SideFile(tmp_path / "m.onnx").array("w"), W)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"location": "../data"}, "its external data is in '../data', which is not in the folder of the model"),
        ({"location": "/etc/passwd"}, "its external data is in '/etc/passwd', which is not in the folder of the model"),
        ({"location": "none"}, "its external data 'none' cannot be read: No such file or directory"),
        ({"location": "data", "offset": "8"}, "its external data ends at byte 56 of 'data', which has 52"),
    ],
)
def test_external_data_that_cannot_be_read(tmp_path: Path, about: dict[str, str], message: str) -> None:
    (tmp_path / "data").write_bytes(b"1234" + W.tobytes())
    (tmp_path / "m.onnx").write_bytes(model(tensor("w", W, *external(**about))))
    with pytest.raises(ValueError, match="its external data") as error:
        SideFile(tmp_path / "m.onnx").array("w")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello world", "the file is not an ONNX model: byte 2 does not begin a field"),
        (model(tensor("w", W))[:-5], "the file is not an ONNX model: a part of "),
        (varint(7 << 3 | 2) + varint(1 << 60), f"a part of {1 << 60} bytes reaches behind the end"),
        (b"\xff" * 30, "the file is not an ONNX model: a number does not end"),
        (varint(1 << 3 | 1) + b"1234", "the file is not an ONNX model: a part ends inside of a field"),
    ],
)
def test_what_is_not_a_model(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ValueError, match="not an ONNX model") as error:
        SideFile(tmp_path / "m.onnx")
    assert message in str(error.value)


def test_claimed_sizes_take_no_memory(tmp_path: Path) -> None:
    """A tensor whose bytes do not fit its shape is none of the arrays; the importer tells of it."""
    huge = number(1, 1 << 40) + number(1, 1 << 20) + number(2, 1) + block(8, "w") + block(9, b"1234")
    (tmp_path / "m.onnx").write_bytes(model(huge, tensor("v", W)))
    assert list(SideFile(tmp_path / "m.onnx").names()) == ["v"]


def test_the_rest_is_all_but_the_weights(tmp_path: Path) -> None:
    def rest(*tensors: bytes) -> bytes:
        (tmp_path / "m.onnx").write_bytes(model(*tensors))
        return SideFile(tmp_path / "m.onnx").rest_digest()

    assert rest(tensor("w", W)) == rest(tensor("w", W + 1))
    assert rest(tensor("w", W)) != rest(tensor("v", W))
    assert rest(tensor("w", W)) != rest(tensor("w", W.T.copy()))
