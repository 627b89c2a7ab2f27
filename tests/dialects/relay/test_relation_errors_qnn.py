"""What operators of simulated quantization say of uses that do not fit."""

from __future__ import annotations

import pytest
from test_relation_errors import test_message as check_message

ERRORS = [
    ("qnn.simulated_quantize", {}, "2,3:int8 :int32 :float32 :int32", "qnn.simulated_quantize: 'data' (Tensor[(2, 3), int8]) must be of a floating-point dtype"),
    ("qnn.simulated_quantize", {}, "2,3 2:int32 :float32 :int32", "qnn.simulated_quantize: 'out_dtype' (Tensor[(2), int32]) must be one integer, the dtype's number"),
    ("qnn.simulated_dequantize", {}, "2,3 :int32 2:float32 :int32", "qnn.simulated_dequantize: 'input_scale' (Tensor[(2), float32]) must be a scalar or a vector along axis -1 of 'data' (Tensor[(2, 3), float32])"),
    ("qnn.contrib_dense_pack", {}, "2,3:int8 1,4,8:int8 :int32 :int32 :float32 :float32", "qnn.contrib_dense_pack: 'data' (Tensor[(2, 3), int8]) has rows of 3, 'weight' (Tensor[(1, 4, 8), int8]) takes 4"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "attrs", "types", "message"), ERRORS)
def test_quantized(name: str, attrs: dict[str, object], types: str, message: str) -> None:
    check_message(name, attrs, types, message)
