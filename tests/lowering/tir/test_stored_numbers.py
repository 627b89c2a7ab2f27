"""Integers that are stored wrap around at every step; numbers of float16 and bfloat16 have the next one of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest

HEAD = "from tvm.script import tir as T\n\n@T.prim_func\n"


def both(tmp_path: Path, text: str, arguments: list[Any]) -> list[list[Any]]:
    """The arguments after the program ran natively, and after it was interpreted."""
    file = tmp_path / "a.mir"
    file.write_text(HEAD + text)
    results: list[list[Any]] = []
    for target in ("cpu", "interp"):
        values = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        mirstack.compile(str(file), target=target)(*values)
        results.append(values)
    return results


@pytest.mark.parametrize(
    "value",
    [
        "T.max((n + n) * A[i], -1)",
        "T.floordiv(n * A[i] + i, 3)",
        "T.floormod((n + i) * n, 7)",
        "T.shift_right(T.shift_left(n, 2), 2)",
        "T.shift_left(n + i, 31)",
        "T.Select(n + n < A[i], 1, n * n * n * n)",
        "T.Cast('int32', T.Cast('float32', n * 4) > T.float32(0))",
        "T.if_then_else(i < 1, T.min(n * 4, A[i]), T.truncdiv(n * 8, 5))",
    ],
)
def test_stored_integers_wrap_around(tmp_path: Path, value: str) -> None:
    text = f"""def main(A: T.Buffer((4,), "int32"), n: T.int32, O: T.Buffer((4,), "int32")):
    for i in range(4):
        O[i] = {value}
"""
    numbers = np.array([2, -(2**31) + 3, 2**31 - 1, 1 << 30], np.int32)
    for n in (2**31 - 1, -(2**31), 1 << 29, -7):
        native, interpreted = both(tmp_path, text, [numbers, n, np.zeros(4, np.int32)])
        np.testing.assert_array_equal(native[2], interpreted[2], str(n))


@pytest.mark.parametrize(
    "value",
    [
        "T.Broadcast(T.min(i, n + n), 2)",
        "T.Broadcast(n, 2) + T.Broadcast(i * n, 2)",
        "T.Ramp(T.max(i, n * 4), n, 2)",
        "T.Shuffle([T.Broadcast(n * n + i, 2)], [0, 1])",
    ],
)
def test_stored_vectors_wrap_around(tmp_path: Path, value: str) -> None:
    text = f"""def main(n: T.int32, O: T.Buffer((8,), "int32")):
    for i in range(4):
        O[i * 2:i * 2 + 2] = {value}
"""
    for n in (2**31 - 1, -(2**31), 1 << 29, 3):
        native, interpreted = both(tmp_path, text, [n, np.zeros(8, np.int32)])
        np.testing.assert_array_equal(native[1], interpreted[1], str(n))


def test_stored_integers_of_vectorized_loops_wrap_around(tmp_path: Path) -> None:
    text = """def main(n: T.int32, O: T.Buffer((1, 1, 2), "int32")):
    for i, j, k in T.grid(1, 1, 2):
        with T.block("O"):
            x, y, z = T.axis.remap("SSS", [i, j, k])
            O[x, y, z] = T.min(x, T.min(y, T.max(n, 2147483647) + n))
"""
    native, interpreted = both(tmp_path, text, [3, np.zeros((1, 1, 2), np.int32)])
    assert native[1].tolist() == interpreted[1].tolist() == [[[3 - 2**31 - 1, 3 - 2**31 - 1]]]


def test_stored_products_of_lanes_wrap_around(tmp_path: Path) -> None:
    text = """def main(O: T.Buffer((4,), "int32")):
    for i in T.vectorized(4):
        O[i] = T.min(i, (0 - i) * -2147483641)
"""
    native, interpreted = both(tmp_path, text, [np.zeros(4, np.int32)])
    assert native[0].tolist() == interpreted[0].tolist() == [0, 1, -14, 3]


@pytest.mark.parametrize("loop", ["range", "T.vectorized"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_next_number(tmp_path: Path, dtype: str, loop: str) -> None:
    text = f"""def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}"), O: T.Buffer((16,), "{dtype}")):
    for i in {loop}(16):
        O[i] = T.nextafter(A[i], B[i])
"""
    type_ = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
    inf, nan = np.inf, np.nan
    a = np.array([inf, -inf, 1, 1, -1, -1, 0, -0.0, 0, -0.0, nan, 1, 0, 3, 3, -2], type_)
    b = np.array([0, 0, 0, 2, 0, -2, 0, 0, -1, 1, 1, nan, -0.0, inf, 3, -2], type_)
    native, interpreted = both(tmp_path, text, [a, b, np.zeros(16, type_)])
    np.testing.assert_array_equal(native[2].view(np.int16), interpreted[2].view(np.int16))
    steps = native[2].view(np.int16)[2:6] - a.view(np.int16)[2:6]
    assert list(steps) == [-1, 1, -1, 1]
