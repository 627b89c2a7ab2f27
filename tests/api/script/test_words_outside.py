"""Words of TVMScript outside of scripts: numbers, variables, buffers and expressions, as TVM's `T` has them."""

# pyright: basic, reportInvalidTypeForm=false

from typing import Any

import pytest
from mirstack import ir, tir
from mirstack.api.script import tir as T
from mirstack.support.diagnostics import MirError

size = T.int32()

VALUES: list[tuple[Any, type, str, str]] = [
    (T.int32(1), tir.IntImm, "int32", "1"),
    (T.bool(True), tir.IntImm, "bool", "T.bool(True)"),
    (T.float16(0.5), tir.FloatImm, "float16", "T.float16(0.5)"),
    (T.float32("inf"), tir.FloatImm, "float32", 'T.float32("inf")'),
    (T.float32("-inf"), tir.FloatImm, "float32", 'T.float32("-inf")'),
    (size, tir.Var, "int32", "v"),
    (T.int64(is_size_var=True), tir.SizeVar, "int64", "v"),
    (T.float32(size), tir.Cast, "float32", 'T.Cast("float32", v)'),
    (T.cast(size, "int8"), tir.Cast, "int8", 'T.Cast("int8", v)'),
    (T.Cast("int8", size), tir.Cast, "int8", 'T.Cast("int8", v)'),
    (T.max(size, 3), tir.Max, "int32", "T.max(v, 3)"),
    (T.truncmod(size, 3), tir.Mod, "int32", "T.truncmod(v, 3)"),
    (T.exp(T.float32(1)), tir.Call, "float32", "T.exp(T.float32(1))"),
    (T.if_then_else(size > 1, 1, size).then_value, tir.IntImm, "int32", "1"),
    (T.call_extern("int32", "f", size), tir.Call, "int32", 'T.call_extern("int32", "f", v)'),
    (T.Ramp(size, 1, 4), tir.Ramp, "int32x4", "T.Ramp(v, 1, 4)"),
    (T.handle(), tir.Var, "handle", "v"),
]


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_values(number: int) -> None:
    value, kind, dtype, shown = VALUES[number]
    assert type(value) is kind and value.dtype == dtype and repr(value) == shown


def test_addresses_and_buffers() -> None:
    address = T.handle("float32", "shared").type_annotation
    assert isinstance(address, tir.PointerType) and address.element_type.dtype == "float32"
    assert address.storage_scope == "shared"
    assert T.handle(T.int8).type_annotation.element_type.dtype == "int8"
    for buffer in (T.Buffer((8, 4), "int8"), T.Buffer[(8, 4), "int8"]):
        assert isinstance(buffer, tir.Buffer) and buffer.shape == (8, 4) and buffer.dtype == "int8"
    assert T.Buffer(16).shape == T.Buffer[16].shape == (16,)
    placed = T.Buffer((size, 4), "float32", strides=[8, 1], elem_offset=2, scope="local", align=128, offset_factor=2)
    assert placed.shape == (size, 4) and placed.scope() == "local" and placed.data_alignment == 128
    assert [int(stride) for stride in placed.strides] == [8, 1] and int(placed.elem_offset) == 2


def test_words_that_only_scripts_know() -> None:
    for word, text in ((T.grid, "T.grid"), (T.axis.remap("S", [1]), "T.axis.remap"), (T.Ptr[T.int32], "T.Ptr")):
        assert repr(word) == text


def test_what_is_not_a_value() -> None:
    with pytest.raises(MirError, match="300 does not fit dtype int8"):
        T.int8(300)
    with pytest.raises(
        MirError, match=r"T\.int32 takes a number, not 'x'\nnote: floats are also 'inf', '-inf' and 'nan'"
    ):
        T.int32("x")


def test_values_in_a_script() -> None:
    three, buffer = T.float32(3), T.Buffer((16,), "float32")

    @T.prim_func
    def f(n: T.int32, A: T.Buffer((16,), "float32")):
        A[n] = three

    assert "A[n] = T.float32(3)" in f.script()
    assert ir.structural_equal(f.buffer_map[f.params[1]].shape, buffer.shape)
