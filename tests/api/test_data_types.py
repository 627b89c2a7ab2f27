"""`DataType` has the parts of a dtype's text, as TVM's."""

from __future__ import annotations

import mirstack
import pytest
from mirstack import runtime


def test_data_types() -> None:
    vector = mirstack.DataType("int8x4")
    assert str(vector) == "int8x4" and (vector.bits, vector.lanes, vector.itemsize()) == (8, 4, 4)
    assert vector.type_code == mirstack.DataTypeCode.INT and vector.with_lanes(1) == "int8"
    assert (mirstack.DataType("bool").bits, mirstack.DataType("handle").bits) == (1, 64)
    assert runtime.DataType("e4m3_float8").type_code == runtime.DataTypeCode.E4M3Float
    assert repr(runtime.ShapeTuple([2, 3])) == "ShapeTuple([2, 3])" and runtime.const(3, "int8").dtype == "int8"
    for text in ("", "void"):
        assert runtime.DataType(text).bits == 0
    for text in ("int", "number8", "float32x0"):
        with pytest.raises(ValueError, match=f"'{text}' is not a dtype"):
            runtime.DataType(text)
