"""Functions of quantized tensors at every integer: the interpreter and compiled code round at the same places."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest


@pytest.mark.parametrize("name", ["hardswish", "rsqrt", "sigmoid"])
def test_every_integer(name: str) -> None:
    values = np.arange(-128, 128, dtype=np.int8)
    for parameters in ("0.03f, 10, 0.01f, -2", "0.05f, -7, 0.02f, 3"):
        text = f"def @main(%x: Tensor[(256), int8]) {{ qnn.{name}(%x, {parameters}) }}"
        expected = mirstack.compile(mirstack.parse(text), target="interp")(values)
        for strict in (False, True):
            result = mirstack.compile(mirstack.parse(text), strict_math=strict)(values)
            np.testing.assert_array_equal(result, expected)
