"""Tuples of tensors as arguments of an entry, in native code and interpreted."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import Executable
from mirstack.support.diagnostics import MirError

PROGRAM = """
def @main(%t: (Tensor[(2), float32], (Tensor[(?, 3), float32], int32)), %x: Tensor[(2), float32]) {
  %0 = add(%t.0, %x);
  (%0, (exp(%t.1.0), %t.1.1))
}
"""
A, B, N = np.ones(2, "float32"), np.ones((4, 3), "float32"), np.int32(7)


@pytest.fixture(scope="module", params=["interp", "cpu"])
def program(request: pytest.FixtureRequest) -> Executable:
    return mirstack.compile(mirstack.parse(PROGRAM), target=request.param)


def test_nested_tuples(program: Executable):
    total, (power, count) = program((A, [B, N]), A)
    np.testing.assert_array_equal(total, [2, 2])
    np.testing.assert_allclose(power, np.exp(B), rtol=1e-6)
    assert count == 7


def test_by_name(program: Executable):
    assert [param.name for param in program.params] == ["t.0", "t.1.0", "t.1.1", "x"]
    assert program.run({"t.0": A, "t.1.0": B, "t.1.1": N, "x": A})["out2"] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((A, A), "'t' must be a tuple of 2, not ndarray"),
        (((A, (B,)), A), "'t.1' must be a tuple of 2, not one of 1"),
        (((A, (B, N)),), r"main takes 2 arguments \(t, x\), not 1"),
        (((A, (A, N)), A), r"'t.1.0' must have shape \(\?, 3\), not \(2,\)"),
    ],
)
def test_what_does_not_fit(program: Executable, arguments: Any, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        program(*arguments)


def test_a_closure_is_no_argument():
    module = mirstack.parse("def @main(%t: (float32, fn (float32) -> float32)) -> float32 { %t.0 }")
    with pytest.raises(MirError, match=r"parameter %t\.1 of @main is not a tensor"):
        mirstack.compile(module)
