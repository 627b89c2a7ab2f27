"""Dtypes, constants and precedence of expressions, as TVM's operators have them."""

from __future__ import annotations

import pytest
from tvmscript_text import reprint

PARAMETERS = (
    'A: T.Buffer((8,), "float32"), H: T.Buffer((8,), "float16"), B: T.Buffer((8,), "int32"), L: T.Buffer((8,), "int64"), '
    'U: T.Buffer((8,), "uint8"), F: T.Buffer((8,), "bool"), i: T.int32, j: T.int64, p: T.handle'
)

CASES = {
    # A literal takes the dtype of what it meets.
    "L[0] = j + 1": "L[0] = j + T.int64(1)",
    "L[0] = 1 + j": "L[0] = T.int64(1) + j",
    "A[0] = A[1] * 2": "A[0] = A[1] * T.float32(2)",
    "A[0] = 2.5": "A[0] = T.float32(2.5)",
    "A[0] = 1": "A[0] = T.float32(1)",
    "U[0] = 7": "U[0] = T.uint8(7)",
    "F[0] = i < 3": "F[0] = i < 3",
    "F[0] = True": "F[0] = T.bool(True)",
    "L[0] = 4294967296": "L[0] = T.int64(4294967296)",
    "B[0] = 0xFF + 0b11 + 0o17 + 1_000": "B[0] = 1273",
    # Values are cast to the wider dtype, or to the float.
    "L[0] = i + j": 'L[0] = T.Cast("int64", i) + j',
    "A[0] = i + A[1]": 'A[0] = T.Cast("float32", i) + A[1]',
    "A[0] = H[0] + A[1]": 'A[0] = T.Cast("float32", H[0]) + A[1]',
    "A[0] = H[0]": 'A[0] = T.Cast("float32", H[0])',
    "H[0] = A[0]": 'H[0] = T.Cast("float16", A[0])',
    "L[0] = i": 'L[0] = T.Cast("int64", i)',
    "B[0] = U[0] + i": 'B[0] = T.Cast("int32", U[0]) + i',
    "A[0:4] = A[4:8] + 1.0": "A[0:4] = A[4:8] + T.Broadcast(T.float32(1), 4)",
    "A[0:4] = A[0]": "A[0:4] = T.Broadcast(A[0], 4)",
    # A stated dtype that follows from the arguments; casts by TVM's other name; pointers for foreign code.
    'A[0] = T.if_then_else(i < 8, A[i], T.float32(0), dtype="float32")': "A[0] = T.if_then_else(i < 8, A[i], T.float32(0))",
    'A[0] = T.exp(A[i], dtype="float32")': "A[0] = T.exp(A[i])",
    'A[0] = T.max(A[i], A[j], dtype="float32")': "A[0] = T.max(A[i], A[j])",
    'B[0] = T.cast(A[0], "int32")': 'B[0] = T.Cast("int32", A[0])',
    'B[0] = T.cast(value=7, dtype="int32")': "B[0] = 7",
    'T.evaluate(A.access_ptr("r"))': 'T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 8, 1)',
    'T.evaluate(A.access_ptr("rw", offset=2))': 'T.tvm_access_ptr(T.type_annotation("float32"), A.data, 2, 6, 3)',
    "T.evaluate(A.access_ptr(2, content_lanes=4, offset=i))": 'T.tvm_access_ptr(T.type_annotation("float32x4"), A.data, i, (8 - i) // 4, 2)',
    # Constants fold as in TVM's operators, not in the node's own name.
    "B[0] = i + 0": "B[0] = i",
    "B[0] = i * 1 - 0": "B[0] = i",
    "B[0] = i * 0": "B[0] = 0",
    "B[0] = 7 // 2 + 7 % 4": "B[0] = 6",
    "B[0] = -7 // 2": "B[0] = -4",
    "B[0] = T.Add(i, 0)": "B[0] = T.Add(i, 0)",
    "B[0] = T.max(1, 2)": "B[0] = T.max(1, 2)",
    "F[0] = i < 3 and True": "F[0] = i < 3",
    "F[0] = 1 < 2": "F[0] = T.bool(True)",
    "F[0] = T.And(T.bool(True), i < 3)": "F[0] = T.And(T.bool(True), i < 3)",
    "F[0] = not T.bool(False)": "F[0] = T.bool(True)",
    "A[0] = T.float32(0.1) + T.float32(0.2)": "A[0] = T.float32(0.29999999999999999)",
    "B[0] = 2147483647 + 1": "B[0] = T.int32(-2147483648)",
    "B[0] = T.int32(i)": "B[0] = i",
    "L[0] = T.int64(i)": 'L[0] = T.Cast("int64", i)',
    "A[0] = T.float32(2)": "A[0] = T.float32(2)",
    'A[0] = T.max_value("float32") + T.infinity("float32") + T.min_value("float32")': 'A[0] = T.float32("inf")',
    # Signs, chains and precedence.
    "B[0] = -i": "B[0] = i * -1",
    "B[0] = -2 + +i": "B[0] = -2 + i",
    "B[0] = ~i": "B[0] = T.bitwise_not(i)",
    "B[0] = i | 1 ^ i & i << 1": "B[0] = T.bitwise_or(i, T.bitwise_xor(1, T.bitwise_and(i, T.shift_left(i, 1))))",
    "F[0] = 0 <= i < 8": "F[0] = 0 <= i and i < 8",
    "F[0] = not i < 3 and i > 1 or i == 2": "F[0] = not i < 3 and i > 1 or i == 2",
    "F[0] = (i < 3) == (i < 4)": "F[0] = (i < 3) == (i < 4)",
    "B[0] = i - (i - 1)": "B[0] = i - (i - 1)",
    "B[0] = (i - i) - 1": "B[0] = i - i - 1",
    "B[0] = i * (i + 1) * i": "B[0] = i * (i + 1) * i",
    "B[0] = i // (i % 3)": "B[0] = i // (i % 3)",
    # Functions that stand for others.
    "B[0] = T.ceildiv(i, 4)": "B[0] = (i + 4 - 1) // 4",
    "B[0] = T.truncdiv(i, 2) + T.floordiv(i, 2)": "B[0] = T.Div(i, 2) + i // 2",
    "B[0] = T.abs(i)": "B[0] = T.Select(i >= 0, i, i * -1)",
    "A[0] = T.abs(A[1])": "A[0] = T.fabs(A[1])",
    "F[0] = T.all(i < 3, i > 1, i != 2)": "F[0] = i < 3 and i > 1 and i != 2",
    "F[0] = T.any(i < 3, i > 1)": "F[0] = i < 3 or i > 1",
    "B[0] = T.floor(i)": "B[0] = i",
    'A[0] = H[0].astype("float32")': 'A[0] = T.Cast("float32", H[0])',
    "A[0] = T.if_then_else(i < 3, H[0], A[1])": 'A[0] = T.if_then_else(i < 3, T.Cast("float32", H[0]), A[1])',
    "B[0] = T.Let(x + x, where={x: i * 2})": "x: T.int32 = i * 2\nB[0] = x + x",
    "B[0] = T.if_then_else(i < 3, T.Let(x + x, where={x: i * 2}), 0)": "B[0] = T.if_then_else(i < 3, T.Let(x + x, where={x: i * 2}), 0)",
    # Slices.
    "B[0:2] = B[i:i + 2]": "B[0:2] = B[i:i + 2]",
    "B[i + 1:i + 3] = B[i - 1:i + 1]": "B[i + 1:i + 1 + 2] = B[i - 1:i - 1 + 2]",
    "B[0] = B[i:i + 1]": "B[0] = B[i]",
    "B[0:8:2] = B[7:-1:-2]": "B[0:8:2] = B[7:-1:-2]",
    # Strings.
    "T.evaluate(T.call_extern('int32', 'a' \"b\\t\\x41\", r'\\n'))": 'T.call_extern("int32", "ab\\tA", "\\\\n")',
}  # fmt: skip


@pytest.mark.parametrize("written", CASES)
def test_written_and_printed(written: str) -> None:
    assert reprint(written, PARAMETERS) == CASES[written]


@pytest.mark.parametrize(
    "value",
    ["3.1400000000000001", "0.66666668653488159", "1.0000000000000001e-05", "-3.4028234663852886e+38", "1", "0.5"],
)
def test_floats_are_printed_as_they_were_given(value: str) -> None:
    assert reprint(f"A[0] = T.float32({value})", PARAMETERS) == f"A[0] = T.float32({value})"
