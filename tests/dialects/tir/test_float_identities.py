"""What is made of float operations with constants holds for every float: NaN, infinities and both zeros included."""

from __future__ import annotations

import itertools
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.te import builder as te
from mirstack.passes.rules.annex.check.inputs import special_values

OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "floordiv": lambda a, b: np.floor(a / b),
}
CONSTANTS = ("0.0", "-0.0", "1.0", "-1.0")
TEXT = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    for i in range(8):
        Y[i] = {}
"""


def same_bits(a: Any, b: Any) -> bool:
    return bool(np.all((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("left", [False, True])
def test_tir_keeps_what_floats_are(operator: str, left: bool):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e38], np.float32)
    for number in CONSTANTS:
        constant = f"T.float32({number})"
        a, b = (constant, "X[i]") if left else ("X[i]", constant)
        text = f"T.floordiv({a}, {b})" if operator == "floordiv" else f"{a} {operator} {b}"
        module = mirstack.parse(TEXT.format(text))
        with np.errstate(all="ignore"):
            value = np.float32(number)
            wanted = OPERATORS[operator](*((value, x) if left else (x, value)))
        for target in ("cpu", "interp"):
            got = np.zeros(8, np.float32)
            mirstack.compile(module, target, cache=False)(x, got)
            assert same_bits(wanted, got), (target, number, wanted, got)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_relay_computes_with_constants_what_it_interprets(name: str):
    x = special_values("float32")
    sides = [f"{name}({a}, {b})" for c in ("0f", "-0f", "1f", "-1f") for a, b in (("%x", c), (c, "%x"))]
    module = mirstack.parse(f"def @main(%x: Tensor[({len(x)}), float32]) {{ ({', '.join(sides)}) }}")
    results = zip(sides, mirstack.compile(module, "interp")(x), strict=True)
    native = mirstack.compile(module, strict_math=True, cache=False)(x)
    for (side, wanted), got in zip(results, native, strict=True):
        assert same_bits(wanted, got), side


def test_constants_are_folded_as_they_are_compared():
    numbers = (float("nan"), 0.0, -0.0, 1.0)
    for a, b in itertools.product(numbers, repeat=2):
        for make, wins in ((te.min, a < b), (te.max, a > b)):
            folded = make(te.const(a), te.const(b))
            assert same_bits(np.float64(folded.value), np.float64(a if wins else b)), (a, b)
