"""Constants in Relay text: literals, the metadata section, side files."""

from __future__ import annotations

import base64
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from mirstack.dialects import side_file
from mirstack.dialects.array import ArrayValueAttr
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.infer import infer_types
from mirstack.parser import parse_mir, print_mir
from mirstack.parser.relay.ndarray import decode, encode
from mirstack.support.diagnostics import MirError
from mirstack.support.walk import walk_ops
from safetensors.numpy import save_file
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Region


def constants(module: ModuleOp) -> list[np.ndarray[Any, Any]]:
    return [op.value.array for op in walk_ops(module) if isinstance(op, ir.ConstantOp)]


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("3", "int32", 3), ("-3", "int32", -3), ("3i64", "int64", 3), ("3i16", "int16", 3), ("1u8", "uint8", 1),
        ("-7i8", "int8", -7), ("1f", "float32", 1), ("2.5f", "float32", 2.5), ("1e-05f", "float32", np.float32(1e-05)),
        ("2.5", "float32", 2.5), ("1f64", "float64", 1), ("0f16", "float16", 0), ("-1f", "float32", -1),
        ("inff", "float32", np.inf), ("-inff64", "float64", -np.inf), ("True", "bool", True), ("False", "bool", False),
        ("1e+20f", "float32", np.float32(1e20)), ("0.333333f", "float32", np.float32(0.333333)), ("1bf16", "bfloat16", 1),
    ],
)  # fmt: skip
def test_literals(text: str, dtype: str, value: object) -> None:
    module = parse_mir(f"def @main() {{ {text} }}")
    (array,) = constants(module)
    assert array.dtype.name == dtype and array.shape == () and array == value
    printed = print_mir(module)
    assert print_mir(parse_mir(printed)) == printed
    if text != "2.5":
        assert f"  {text} /* ty={dtype} */" in printed


def module_of(*arrays: np.ndarray[Any, Any] | np.generic) -> ModuleOp:
    """@main() gives a tuple of the arrays, made without text."""
    block = Block()
    values = [ir.ConstantOp(ArrayValueAttr.of(np.asarray(a)), TensorType(f32, list(a.shape))) for a in arrays]
    result = ir.TupleOp(values)
    block.add_ops([*values, result, ir.ReturnOp(result)])
    module = ModuleOp([ir.FuncOp("main", [], [], body=Region(block))])
    infer_types(module)
    return module


def test_every_bit_of_a_float_is_kept() -> None:
    generator = np.random.default_rng(0)
    values = generator.integers(0, 1 << 32, 200, np.uint32).view(np.float32)
    tricky = np.array([1 / 3, 1e-45, 3.4028235e38, -0.0, 16777217, np.nan, -np.nan, np.inf], np.float32)
    module = module_of(*values, *tricky)
    again = parse_mir(print_mir(module))
    assert [a.tobytes() for a in constants(again)] == [a.tobytes() for a in constants(module)]
    assert "0.33333334f" in print_mir(module)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "bfloat16"])
def test_blobs(dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    again = decode(encode(array))
    assert again.dtype == array.dtype and np.array_equal(again, array)


def blob(
    magic: int = 0xDD5E40F096B4A13F, rank: int = 1, code: int = 2, bits: int = 32, shape: int = 2, size: int = 8
) -> str:
    head = struct.pack("<QQiiiBBH", magic, 0, 1, 0, rank, code, bits, 1)
    return base64.b64encode(head + struct.pack("<qq", shape, size) + b"\0" * 8).decode()


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (blob(magic=1), "does not begin with TVM's mark"),
        (blob(rank=-1), "has no room for its rank -1"),
        (blob(rank=30), "has no room for its rank 30"),
        (blob(code=9), "dtype code 9"),
        (blob(bits=24), "24 bits"),
        (blob(shape=-2), "has not 8 bytes"),
        (blob(shape=1 << 62), "has not 8 bytes"),
        (blob(size=4), "has not 8 bytes"),
        ("AAAA", "too short"),
        ("%%%", "not valid base64"),
        (7, "base64 string"),
    ],
)
def test_damaged_blobs(damaged: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode(damaged)


def test_metadata_section() -> None:
    arrays = [np.arange(4, dtype=np.float32), np.ones((2, 2), np.float32)]
    module = module_of(*arrays)
    text = print_mir(module)
    assert "(meta[relay.Constant][0] /* ty=Tensor[(4), float32] */, meta[relay.Constant][1]" in text
    section = json.loads(text.partition("#[metadata]")[2])
    assert section["attrs"] == {"tvm_version": "0.16.0"} and len(section["b64ndarrays"]) == 2
    again = parse_mir(text)
    assert all(np.array_equal(a, b) for a, b in zip(constants(again), arrays, strict=True))
    assert print_mir(again) == text


def with_metadata(section: str) -> str:
    return f"def @main() {{ meta[relay.Constant][0] }}\n#[metadata]\n{section}"


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{1}", "the #[metadata] section is not JSON"),
        ("{}", 'a metadata section is a JSON object with a list "nodes"'),
        ('{"root": 7, "nodes": [{}]}', "there is no node 7"),
        ('{"root": 0, "nodes": [{"keys": ["a"], "data": []}]}', "the root node is not a map"),
        ('{"root": 0, "nodes": [{"keys": ["relay.Attrs"], "data": [0]}]}', "has no 'relay.Constant'; it has relay.Attrs"),
        ('{"root": 0, "nodes": [{"keys": ["relay.Constant"], "data": [1]}, {"data": [9]}]}', "there is no node 9"),
        ('{"root": 0, "nodes": [{"keys": ["relay.Constant"], "data": [1]}, {"data": [2]}, {"attrs": {"data": "3"}}]}', "there is no array '3'"),
    ],
)  # fmt: skip
def test_damaged_metadata(section: str, message: str) -> None:
    with pytest.raises(MirError) as error:
        parse_mir(with_metadata(section))
    assert message in str(error.value)


def test_attributes_and_sizes_in_metadata() -> None:
    nodes: list[dict[str, Any]] = [
        {"type_key": ""},
        {"type_key": "Map", "keys": ["VirtualDevice", "tir.SizeVar"], "data": [2, 6]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "VirtualDevice", "attrs": {"device_type_int": "1", "memory_scope": "4", "target": "0", "virtual_device_id": "0"}},
        {"type_key": "runtime.String", "repr_str": "global"},
        {"type_key": "tir.SizeVar", "attrs": {"dtype": "int32", "name": "4"}},
        {"type_key": "Array", "data": [5]},
    ]  # fmt: skip
    section = json.dumps({"root": 1, "nodes": nodes})
    text = f"def @main(%x: Tensor[(meta[tir.SizeVar][0], 2), float32], d=meta[VirtualDevice][0]) {{ %x }}\n#[metadata]\n{section}"
    printed = print_mir(parse_mir(text))
    assert 'd=VirtualDevice(device_type=1, memory_scope="global", virtual_device_id=0)' in printed
    assert "%x: Tensor[(?, 2), float32]" in printed


ARRAYS: dict[str, Any] = {
    "7": np.arange(6, dtype=np.float32).reshape(2, 3),
    "fc1.weight": np.arange(4, dtype=np.int64),
    "a/b:0": np.array(2.5, np.float16),
    "columns": np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    "mask": np.array([True, False]),
}
PROGRAM = """#[constants = "FILE"]
def @main() {
  (meta[relay.Constant][7], meta[relay.Constant][fc1.weight], meta[relay.Constant]["a/b:0"], meta[relay.Constant][columns], meta[relay.Constant][mask])
}
"""


def save(path: Path) -> None:
    match path.name:
        case "stored.npz":
            np.savez(path, **ARRAYS)
        case "packed.npz":
            np.savez_compressed(path, **ARRAYS)
        case _:
            save_file({name: array.copy(order="C") for name, array in ARRAYS.items()}, path)


@pytest.mark.parametrize("name", ["stored.npz", "packed.npz", "weights.safetensors"])
def test_side_files(tmp_path: Path, name: str) -> None:
    save(tmp_path / name)
    module = parse_mir(PROGRAM.replace("FILE", name), directory=str(tmp_path))
    found = constants(module)
    assert len(found) == len(ARRAYS)
    for array, wanted in zip(found, ARRAYS.values(), strict=True):
        assert array.dtype == wanted.dtype and np.array_equal(array, wanted)
    text = print_mir(module)
    assert f'#[constants = "{name}"]' in text and "#[metadata]" not in text
    assert "meta[relay.Constant][fc1.weight]" in text and 'meta[relay.Constant]["a/b:0"]' in text
    assert print_mir(parse_mir(text, directory=str(tmp_path))) == text


@pytest.mark.parametrize("name", ["stored.npz", "packed.npz", "weights.safetensors"])
def test_what_was_read_does_not_change_with_the_file(tmp_path: Path, name: str) -> None:
    save(tmp_path / name)
    first = parse_mir(PROGRAM.replace("FILE", name), directory=str(tmp_path))
    again = parse_mir(PROGRAM.replace("FILE", name), directory=str(tmp_path))
    assert not any(array.flags.writeable for array in constants(first)[:3])
    assert all(np.shares_memory(a, b) for a, b in zip(constants(first)[:3], constants(again)[:3], strict=True))
    with open(tmp_path / name, "r+b") as file:
        file.write(b"\xff" * (tmp_path / name).stat().st_size)
        file.truncate(100)
    for array, wanted in zip(constants(first), ARRAYS.values(), strict=True):
        assert np.array_equal(array, wanted)


def zipped(member: bytes, **changes: int) -> bytes:
    """A .npz file of one compressed member `w.npy`, of whose entry in the directory some fields say something else."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", member)
        for field, value in changes.items():
            setattr(archive.infolist()[0], field, value)
    return stream.getvalue()


HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,)}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda: zipped(npy(HUGE % (1 << 60))), "an array of shape (1152921504606846976,) and float32 does not fit"),
        (lambda: zipped(npy(HUGE % (1 << 60)), file_size=1 << 62), "the member w.npy claims more bytes than it can come to"),
        (lambda: zipped(npy(HUGE % (1 << 20)), file_size=(1 << 22) + 70), "the member w.npy claims more bytes than"),
        (lambda: zipped(npy(HUGE % 1000), file_size=5000), "before the array does"),
        (lambda: zipped(npy(HUGE % 2), extract_version=99), "is no .npz file: zip file version 9.9"),
        (lambda: zipped(npy(HUGE % 2), compress_type=77), "cannot be unpacked: That compression method is not supported"),
        (lambda: zipped(npy(HUGE % 2), flag_bits=1), "is encrypted, password required"),
        (lambda: zipped(npy(HUGE % 2))[:-30], "the file is no .npz file"),
        (lambda: zipped(npy(HUGE % 2))[40:], "the member w.npy cannot be unpacked"),
    ],
)  # fmt: skip
def test_damaged_archives(tmp_path: Path, content: Callable[[], bytes], message: str) -> None:
    (tmp_path / "w.npz").write_bytes(content())
    with pytest.raises(MirError) as error:
        parse_mir('#[constants = "w.npz"]\ndef @main() { meta[relay.Constant][w] }', directory=str(tmp_path))
    assert message in str(error.value)


def test_more_than_the_machine_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_file({"w": np.zeros(1 << 20, np.float32)}, tmp_path / "w.safetensors")
    monkeypatch.setattr(side_file, "_memory", lambda: 1 << 20)
    with pytest.raises(MirError, match="an array of 4 MiB is more than this machine's memory"):
        parse_mir('#[constants = "w.safetensors"]\ndef @main() { meta[relay.Constant][w] }', directory=str(tmp_path))


def test_bfloat16_in_safetensors(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    data = np.array([1, 2.5], ml_dtypes.bfloat16).tobytes()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    text = '#[constants = "w.safetensors"]\ndef @main() { meta[relay.Constant][w] }'
    (array,) = constants(parse_mir(text, directory=str(tmp_path)))
    assert array.dtype == ml_dtypes.bfloat16 and array.tolist() == [1, 2.5]


def test_numbers_of_both_kinds(tmp_path: Path) -> None:
    """A number means the metadata section where that has it; else the side file's array of that name."""
    np.savez(tmp_path / "w.npz", **dict[str, Any]({"0": np.zeros(3, np.float32), "1": np.ones(3, np.float32)}))
    inline = print_mir(module_of(np.full(3, 5, np.float32))).partition("#[metadata]")
    body = '#[constants = "w.npz"]\ndef @main() { (meta[relay.Constant][0], meta[relay.Constant][1], meta[relay.Constant]["0"]) }\n'
    module = parse_mir(body + inline[1] + inline[2], directory=str(tmp_path))
    assert [a[0] for a in constants(module)] == [5, 1, 0]
    text = print_mir(module)
    again = parse_mir(text, directory=str(tmp_path))
    assert [a[0] for a in constants(again)] == [5, 1, 0] and print_mir(again) == text


def header_only(entry: object) -> bytes:
    header = json.dumps({"w": entry}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0" * 8


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("w.npz", b"nothing", "the file is no .npz file"),
        ("w.npz", b"", "the file is no .npz file"),
        ("w.txt", b"nothing", "constants are read from .npz, .safetensors and .onnx files"),
        ("w.safetensors", b"", "its header does not fit"),
        ("w.safetensors", struct.pack("<Q", 1 << 60) + b"{}", "its header does not fit"),
        ("w.safetensors", struct.pack("<Q", 2) + b"[]", "its header is not a JSON object"),
        ("w.safetensors", header_only(3), "its entry in the header is not understood"),
        ("w.safetensors", header_only({"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}), "its dtype C64 is not known"),
        ("w.safetensors", header_only({"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}), "its shape is not a list of sizes"),
        ("w.safetensors", header_only({"dtype": "F32", "shape": [2], "data_offsets": [0, 80]}), "does not fit into its bytes"),
        ("w.safetensors", header_only({"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]}), "does not fit"),
    ],
)  # fmt: skip
def test_damaged_side_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MirError) as error:
        parse_mir(f'#[constants = "{name}"]\ndef @main() {{ meta[relay.Constant][w] }}', directory=str(tmp_path))
    assert message in str(error.value)


def npy(header: str, data: bytes = b"\0" * 8) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n"), "the array holds Python objects"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (900,)}\n"), "does not fit into its 8 bytes"),
        (npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}\n"), "does not fit into its 8 bytes"),
        (npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}\n"), "is not a tensor"),
        (npy("{'descr': '<f4'}\n"), "an array's header is damaged"),
        (b"junk", "an array's header is damaged"),
    ],
)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_members(tmp_path: Path, member: bytes, message: str, compression: int) -> None:
    with zipfile.ZipFile(tmp_path / "w.npz", "w", compression) as archive:
        archive.writestr("w.npy", member)
    with pytest.raises(MirError) as error:
        parse_mir('#[constants = "w.npz"]\ndef @main() { meta[relay.Constant][w] }', directory=str(tmp_path))
    assert message in str(error.value)


def test_suggestions(tmp_path: Path) -> None:
    np.savez(tmp_path / "weights.npz", **dict[str, Any]({"fc1.weight": np.zeros(1)}))
    with pytest.raises(MirError, match=r"'weights.npz' has no array 'fc1.weigth'; did you mean 'fc1.weight'\?"):
        parse_mir(
            '#[constants = "weights.npz"]\ndef @main() { meta[relay.Constant][fc1.weigth] }', directory=str(tmp_path)
        )
    with pytest.raises(
        MirError, match=r"'weight.npz' cannot be read: No such file or directory; did you mean 'weights.npz'\?"
    ):
        parse_mir('#[constants = "weight.npz"]\ndef @main() { 1 }', directory=str(tmp_path))
    with pytest.raises(MirError, match="cannot be looked up: this text is in no folder"):
        parse_mir('#[constants = "weights.npz"]\ndef @main() { 1 }')
    with pytest.raises(MirError, match=r"the constants of this file are in 'weights.npz' already"):
        parse_mir('#[constants = "weights.npz"]\n#[constants = "b.npz"]\ndef @main() { 1 }', directory=str(tmp_path))
    for outside in ("/etc/a.npz", "../a.npz", "sub/../../a.npz"):
        with pytest.raises(MirError, match="is not beside this file"):
            parse_mir(f'#[constants = "{outside}"]\ndef @main() {{ 1 }}', directory=str(tmp_path))


def test_a_side_file_needs_a_folder() -> None:
    text = '#[constants = "a.npz"]\ndef @main(%x: float32) { add(%x, meta[relay.Constant][a]) }'
    with pytest.raises(MirError, match=r"the side file 'a\.npz' cannot be looked up: this text is in no folder"):
        parse_mir(text)


@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("%0 = meta[relay.attrs.A][0]; %x", 28),
        ("add(%x, 1 == meta[relay.attrs.A][0])", 36),
        ("meta[relay.attrs.A][0]", 23),
    ],
)
def test_attributes_in_metadata_are_no_value(body: str, column: int) -> None:
    nodes: list[dict[str, Any]] = [
        {"type_key": ""},
        {"type_key": "StrMap", "keys": ["relay.attrs.A"], "data": [2]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "relay.attrs.A", "attrs": {"a": "1"}},
    ]
    section = json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": [], "attrs": {"tvm_version": "0.16.0"}})
    program = "def @main(%x: int32) {{ {} }}\n#[metadata]\n" + section.replace("{", "{{").replace("}", "}}")
    with pytest.raises(MirError, match=f"<input>:1:{column + 1}: error: attributes are not a value\n"):
        parse_mir(program.format(body))
    assert "add(%x, %x)" in print_mir(parse_mir(program.format("add(%x, %x, meta[relay.attrs.A][0])")))
