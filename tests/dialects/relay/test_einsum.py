"""einsum multiplies every term: infinities show where a factor that a sum leaves alone would be multiplied once."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ik,ij->ij", [(2, 3), (2, 4)]),
        ("ik,ik->i", [(2, 1), (2, 3)]),
        ("ik,kj->ij", [(2, 3), (3, 4)]),
        ("i,j,k->i", [(2,), (3,), (4,)]),
        ("...k,k->...", [(2, 3, 4), (4,)]),
        ("ii,j->i", [(3, 3), (2,)]),
        ("i,j->", [(3,), (2,)]),
        ("ij,k->ji", [(1, 2), (0,)]),
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_sums_of_infinities(equation: str, shapes: list[tuple[int, ...]], dtype: str) -> None:
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-4, 4, shape).astype(dtype) for shape in shapes]
    if dtype != "int32":
        for x in inputs:
            x.reshape(-1)[-1:] = -np.inf
    params = ", ".join(f"%x{n}: Tensor[({', '.join(map(str, x.shape))}), {dtype}]" for n, x in enumerate(inputs))
    fields = ", ".join(f"%x{n}" for n in range(len(inputs)))
    module = mirstack.parse(f'def @main({params}) {{ einsum(({fields}), equation="{equation}") }}')
    wanted = mirstack.compile(module, "interp")(*inputs)
    for level in (0, 3):
        np.testing.assert_array_equal(mirstack.compile(module, opt_level=level)(*inputs), wanted)
