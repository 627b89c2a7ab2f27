"""Numbers for tensors of no dimensions: taken as they are, or refused by the parameter's name."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest

TEXT = "def @main(%n: int32, %x: float32, %b: bool) { (%n, %x, %b) }"


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_numbers(target: str) -> None:
    run = mirstack.compile(mirstack.parse(TEXT), target)  # type: ignore[call-overload]
    for given in ((3, 2, True), (np.int64(3), np.float64(2), np.bool_(True)), (np.uint8(3), np.float16(2), 1)):
        assert [np.asarray(value).item() for value in run(*given)] == [3, 2.0, True]


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1.5, "'n' must be of dtype int32, not a float"),
        (np.float32(3), "'n' must be of dtype int32, not a float"),
        (2**40, "'n' is 1099511627776, which int32 cannot hold"),
        (np.uint32(2**31), "'n' is 2147483648, which int32 cannot hold"),
        ("3", "'n' must be a numpy array or a DLPack tensor, not str"),
    ],
)
def test_what_would_become_another_number(number: Any, said: str, target: str) -> None:
    run = mirstack.compile(mirstack.parse(TEXT), target)  # type: ignore[call-overload]
    with pytest.raises((TypeError, ValueError), match=said):
        run(number, 2.0, True)
