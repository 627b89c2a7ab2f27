"""The upper halves of products: fixed-point multiplication exact to the last bit, by `pmuldq` of even and of odd lanes."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.dialects.relay.operators.elementwise.unary import LEAST_RIGHT, MOST_RIGHT, fixed_point_multiply
from mirstack.lowering.driver.build import assembly_text
from mirstack.lowering.pipeline import Options
from mirstack.parser import parse_mir
from mirstack.support.target import named

IS_X86 = named("").arch == "x86_64"
CPUS = (None, "haswell", "x86-64") if IS_X86 else (None,)
COUNT = 37


def program(operator: str) -> str:
    vectors = ", ".join(f"%{name}: Tensor[({COUNT}), int32]" for name in "mlr")
    return f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(9, {COUNT}), int32], {vectors}) {{ {operator} }}'


def draw() -> np.ndarray:
    numbers = np.random.default_rng(0).integers(-(2**31), 2**31, (9, COUNT))
    numbers[0, :5] = [-(2**31), 2**31 - 1, 0, 1, -1]
    return numbers.astype("int32")


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(
    ("multiplier", "shift"),
    [(2**31 - 1, -LEAST_RIGHT), (2**31 - 1, -MOST_RIGHT), (1934653115, -9), (1 << 30, -1), (1 << 30, -33)],
)
def test_one_multiplier(multiplier: int, shift: int, cpu: str | None) -> None:
    text = program(f"fixed_point_multiply(%x, multiplier={multiplier}, shift={shift})")
    x, none = draw(), np.zeros(COUNT, "int32")
    found = mirstack.compile(mirstack.parse(text), cpu=cpu)(x, none, none, none)
    np.testing.assert_array_equal(found, fixed_point_multiply(x, multiplier, shift))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("least", [0, 1, 2])
def test_a_multiplier_for_each_channel(least: int, cpu: str | None) -> None:
    attributes = f"is_rshift_required=True, axes=[1], least_rshift={least}"
    rng = np.random.default_rng(least)
    multiplier, right = rng.integers(1 << 30, 1 << 31, COUNT), rng.integers(least, 32, COUNT)
    right[:2] = least, 32 if least else 31
    x, left = draw(), np.zeros(COUNT, "int32")
    text = program(f"fixed_point_multiply_per_axis(%x, %m, %l, %r, {attributes})")
    found = mirstack.compile(mirstack.parse(text), cpu=cpu)(x, multiplier.astype("int32"), left, right.astype("int32"))
    exact = x.astype(object) * multiplier.astype(object) + 2 ** (30 + right.astype(object)) >> 31 + right.astype(object)
    np.testing.assert_array_equal(found, exact.astype("int64").astype("int32"))


@pytest.mark.parametrize("cpu", ["znver4", "haswell"])
def test_the_instruction(cpu: str) -> None:
    text = program("fixed_point_multiply(%x, multiplier=1934653115, shift=-9)")
    assembly = assembly_text(parse_mir(text), Options(cpu=cpu, triple="x86_64-unknown-linux-gnu", threads=1))
    assert "vpmuldq" in assembly
    assert "vpmullq" not in assembly
