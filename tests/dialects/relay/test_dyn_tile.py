"""`dyn.tile` by negative numbers: the interpreter and compiled code refuse the same, and take a dimension without elements."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.api.compile import TargetName


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_negative_numbers_of_copies(target: TargetName) -> None:
    text = "def @main(%x: Tensor[(?, 3), float32], %r: Tensor[(2), int64]) { dyn.tile(%x, %r) }"
    tile = mirstack.compile(mirstack.parse(text), target=target)
    with pytest.raises(mirstack.MirError, match=r"dimension 1 of the result .*would be -3"):
        tile(np.ones((2, 3), np.float32), np.array([2, -1]))
    assert tile(np.ones((0, 3), np.float32), np.array([-1, 2])).shape == (0, 6)
