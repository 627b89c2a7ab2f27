"""Values of `mirstack.runtime`: tuples, converted values, parameters as bytes."""

from __future__ import annotations

import struct

import mirstack
import numpy as np
import pytest
from mirstack import nd, runtime, tir
from mirstack.api.runtime import ADT


def test_converted_values() -> None:
    made = mirstack.convert([1, True, 2.5, "text", (2**40,), {"k": np.ones(2)}, None, nd.array([1.0])])
    assert [type(each) for each in made[:4]] == [tir.IntImm, tir.IntImm, tir.FloatImm, runtime.String]
    assert [made[0].dtype, made[1].dtype, made[2].dtype, made[4][0].dtype] == ["int32", "bool", "float32", "int64"]
    assert made[3] == "text" and made[5]["k"].numpy().tolist() == [1, 1] and made[6] is None
    assert runtime.convert(len) is len and runtime.convert(made[0]) is made[0]
    with pytest.raises(TypeError, match="set is not a value that TVM's objects hold"):
        mirstack.convert({1})


def test_tuples() -> None:
    pair = runtime.tuple_object([nd.array([1.0]), runtime.tuple_object()])
    assert isinstance(pair, ADT) and pair.tag == 0 and len(pair) == 2 and pair[1] == ()
    assert repr(ADT(3, [1])) == "ADT(tag=3, 1 fields)" and runtime.container.ADT is ADT
    with pytest.raises(TypeError, match=r"a tuple holds arrays and tuples, not 1; nd\.array makes an array of it"):
        runtime.tuple_object([1])


def test_names() -> None:
    assert (
        runtime.ndarray is nd and runtime.enabled("llvm") and not runtime.enabled("cuda") and not runtime.enabled("?")
    )
    assert runtime.Object is mirstack.ir.Node and runtime.device("cpu") == runtime.cpu()
    with pytest.raises(AttributeError, match=r"module 'mirstack\.runtime' has no attribute 'nothing'"):
        runtime.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_parameters_as_bytes() -> None:
    given = {
        "weight": np.arange(6, dtype="float32").reshape(2, 3), "ä": np.array([True, False]), "half": np.float16(3), "n": np.array(2**40),
        "u": np.array([255], "uint8"), "none": np.zeros((0, 2), "int8"), "brain": nd.empty((2,), "bfloat16"),
    }  # fmt: skip
    written = runtime.save_param_dict(given)
    read = runtime.load_param_dict(written)
    assert list(read) == list(given)
    for name, array in given.items():
        assert read[name].shape == array.shape and read[name].dtype == array.dtype
        assert read[name].numpy().tolist() == np.asarray(array).tolist()
    read["weight"][0] = 1
    assert struct.unpack("<Q", written[:8])[0] == 0xF7E58D4F05049CB7
    # Every shorter text of bytes is refused.
    for end in range(len(written)):
        with pytest.raises(ValueError, match=r"the bytes of parameters end too early$"):
            runtime.load_param_dict(written[:end])


def _with(written: bytearray, at: int, form: str, value: int) -> bytes:
    changed = bytearray(written)
    struct.pack_into(f"<{form}", changed, at, value)
    return bytes(changed)


def test_bytes_that_are_not_parameters() -> None:
    written = runtime.save_param_dict({"w": np.zeros(2, "float32")})
    start = 24 + 8 + 1 + 8
    for data, message in (
        (_with(written, 0, "Q", 1), "the bytes are not those of parameters"),
        (_with(written, start - 8, "Q", 0), "the bytes of parameters hold another number of names than of arrays"),
        (_with(written, start, "Q", 1), "the bytes of parameters hold something that is not an array"),
        (_with(written, start + 28, "B", 9), "the parameters hold an array of \\?32"),
        (_with(written, start + 32, "q", 3), r"an array of shape \(3,\) does not have 8 bytes"),
        (_with(written, start + 32, "q", -2), r"an array of shape \(-2,\) does not have 8 bytes"),
        (_with(written, 16, "Q", 1 << 60), "the bytes of parameters end too early"),
    ):
        with pytest.raises(ValueError, match=message):
            runtime.load_param_dict(data)
    with pytest.raises(TypeError, match="param_bytes is bytes, as save_param_dict returns, not 'text'"):
        runtime.load_param_dict("text")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="an array of float8_e4m3fn cannot be saved"):
        runtime.save_param_dict({"w": nd.empty((1,), "float8_e4m3fn")})
