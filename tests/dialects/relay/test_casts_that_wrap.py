"""Floats cast to integers of 8 and 16 bits that do not hold them: their lower bits, as in numpy, on every processor."""

from __future__ import annotations

from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest

NUMBERS = [-1, -1.75, 255.5, 256, 300, -129, -300, 40000, 65024, -50000, 3.875]
NARROW = ("int8", "uint8", "int16", "uint16")
FLOATS = ("float16", "bfloat16", "float32", "float64")


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
def test_casts(cpu: str | None) -> None:
    inputs: list[np.ndarray[Any, Any]] = []
    for name in FLOATS:
        dtype = ml_dtypes.bfloat16 if name == "bfloat16" else np.dtype(name)
        inputs.append(np.array(NUMBERS * 3, np.float64).astype(dtype))
    types = ", ".join(f"%{name}: Tensor[(33), {name}]" for name in FLOATS)
    casts = ", ".join(f'cast(%{name}, dtype="{narrow}")' for name in FLOATS for narrow in NARROW)
    results = mirstack.compile(mirstack.parse(f"def @main({types}) {{ ({casts}) }}"), cpu=cpu)(*inputs)
    wanted = [x.astype(np.float64).astype(np.int64).astype(narrow) for x in inputs for narrow in NARROW]
    for got, expected in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(got, expected)
