"""any, all and the like over rows of bool, which are reduced as bytes in vectors."""

import mirstack
import numpy as np
import pytest


@pytest.mark.parametrize("cpu", [None, "haswell"])
@pytest.mark.parametrize("length", [1, 63, 300])
def test_rows(length: int, cpu: str | None) -> None:
    x = np.zeros((6, length), np.bool_)
    x[1:, length // 2] = True
    x[3:, :] = True
    x[4, -1] = False
    operators = {"any": np.any, "all": np.all, "max": np.any, "min": np.all, "sum": np.any, "prod": np.all}
    results = ", ".join(f"{name}(%x, axis=[1])" for name in operators)
    text = f"def @main(%x: Tensor[(6, {length}), bool]) {{ ({results}) }}"
    found = mirstack.compile(mirstack.parse(text), threads=1, cpu=cpu)(x)
    for array, meaning in zip(found, operators.values(), strict=True):
        np.testing.assert_array_equal(array, meaning(x, axis=1))
