"""Elementary functions on vectors of f32: within 2 units in the last place of float64's, and C's limits at the ends.

The quick test takes every binade's ends, the places where formulas change, and a stride through all bit patterns; the slow one takes all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest

COUNT = 1 << 18
PROGRAM = """# from tvm.script import tir as T

@T.prim_func
def main(x: T.Buffer(({count},), "float32"), y: T.Buffer(({count},), "float32")):
    for i, j in T.grid({count} // {lanes}, {lanes}):
        with T.block("y"):
            v = T.axis.spatial({count}, i * {lanes} + j)
            y[v] = T.{name}(x[v])
"""
_erf = np.frompyfunc(math.erf, 1, 1)


def _sigmoid(x: Any) -> Any:
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


REFERENCE: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": lambda x: np.asarray(_erf(x), np.float64),
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "atan": np.arctan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
MOST_ULPS = 2.0
# Where formulas change and results leave the range of f32.
EDGES = (
    *(88.722839, -87.336548, -103.97208, -86.0, 86.0, 89.0, -110.0, 60.0, -60.0, 128.0, -126.0, -149.0, -150.0),
    *(0.25, 0.75, 7.25, 7.75, 0.96875, 1.03125, 0.9375, 1.5, 0.60894966),
    *(
        0.12890625,
        0.38671875,
        0.28125,
        0.84375,
        0.625,
        1.875,
        8.125,
        -1.0986123,
        -1.14852,
        -1.9459101,
        -2.7080502,
        -104.0,
    ),
    *(9.1, 9.010913, 0.55, 3.95, 3.92, 1.0, -1.0, 0.5, 4096.0, -4096.0, math.pi, 100 * math.pi, 1e-3, 1e-4, 0.7071068),
)


def compiled(name: str, cpu: str | None = None, lanes: int = 16) -> Any:
    """The function over an array of COUNT elements, in vectors; without what is left of them."""
    count = COUNT - COUNT % lanes
    schedule = mirstack.tir.Schedule(mirstack.parse(PROGRAM.format(name=name, count=count, lanes=lanes)))
    schedule.vectorize(schedule.get_loops(schedule.get_block("y"))[-1])
    return mirstack.compile(schedule.mod, threads=1, cpu=cpu)


def sample(stride: int) -> Any:
    """Bit patterns of floats: special ones, 500 around each edge, and every `stride`-th of all."""
    special = np.array(
        [0, 0x7F800000, 0x7FC00000, 0x7F800001, 0x7FC00123, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF], np.uint32
    )
    edges = np.array(EDGES, np.float32).view(np.uint32).astype(np.int64)
    near = (edges[:, None] + np.arange(-250, 250)).ravel().astype(np.uint32)
    binades = (np.arange(256, dtype=np.int64)[:, None] * (1 << 23) + np.arange(-8, 8)).ravel().clip(0).astype(np.uint32)
    zeros = np.resize(np.array([0, 1 << 31], np.uint32), 48)  # with nothing beside them that takes another way
    strided = np.arange(0, 1 << 32, stride, dtype=np.uint64).astype(np.uint32)
    return np.concatenate(
        [zeros, special, special | np.uint32(1 << 31), near, binades, binades | np.uint32(1 << 31), strided]
    )


def ulps(result: Any, exact: Any) -> Any:
    """How many units in the last place of f32 a result is from float64's; infinite where it is of another kind."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        finite = np.isfinite(rounded) & np.isfinite(result)
        exponent = np.frexp(np.where(finite, exact, 1.0))[1]
        error = np.abs(result.astype(np.float64) - exact) / np.ldexp(1.0, np.maximum(exponent - 24, -149))
        same = (np.isnan(rounded) & np.isnan(result)) | (rounded == result)
        # The largest number and infinity are neighbours.
        same |= np.abs(np.abs(exact) - 2.0**128) < 2.0**105
        wrong_zero = (exact == 0) & (result == 0) & (np.signbit(exact) != np.signbit(result))
    return np.where(finite & ~wrong_zero, error, np.where(same & ~wrong_zero, 0.0, np.inf))


def check(name: str, bits: Any, cpu: str | None = None, lanes: int = 16) -> None:
    """Compares the function on all these bit patterns."""
    count = COUNT - COUNT % lanes
    function, result = compiled(name, cpu, lanes), np.empty(count, np.float32)
    for start in range(0, len(bits), count):
        part = np.resize(bits[start : start + count], count)
        x = part.view(np.float32)
        function(x, result)
        with np.errstate(all="ignore"):
            error = ulps(result, REFERENCE[name](x.astype(np.float64)))
        worst = int(np.argmax(error))
        assert error[worst] <= MOST_ULPS, (name, x[worst], result[worst], error[worst])


@pytest.mark.parametrize("name", REFERENCE)
def test_within_two_ulps(name: str) -> None:
    check(name, sample(8191))


@pytest.mark.parametrize("cpu", ["haswell", "x86-64"])
@pytest.mark.parametrize(
    "name",
    [
        *("exp", "tanh", "erf", "sigmoid", "sin", "cos", "log", "log2", "log10", "log1p"),
        *("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
    ],
)
def test_other_targets(name: str, cpu: str) -> None:
    # Without fused multiply-add there are more roundings.
    check(name, sample(65521), cpu)


@pytest.mark.parametrize(("cpu", "lanes"), [(None, 32), ("haswell", 8), ("haswell", 32)])
@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sigmoid", "log"])
def test_vectors_of_several_registers(name: str, cpu: str | None, lanes: int) -> None:
    check(name, sample(65521), cpu, lanes)


@pytest.mark.parametrize(("cpu", "lanes"), [(None, 5), (None, 8), (None, 14), ("haswell", 7)])
@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sigmoid", "log"])
def test_vectors_of_parts_of_registers(name: str, cpu: str | None, lanes: int) -> None:
    check(name, sample(131071), cpu, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_every_float(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "erf":
        # The standard library's takes one number at a time.
        monkeypatch.setitem(REFERENCE, name, pytest.importorskip("scipy.special").erf)
    for start in range(0, 1 << 32, 1 << 26):
        check(name, np.arange(start, start + (1 << 26), dtype=np.uint64).astype(np.uint32))


def test_power() -> None:
    """Within 4 units in the last place, and C's limits."""
    program = PROGRAM.replace(
        'y: T.Buffer(({count},), "float32")', 'e: T.Buffer(({count},), "float32"), y: T.Buffer(({count},), "float32")'
    )
    text = program.format(name="pow", count=COUNT, lanes=16).replace("T.pow(x[v])", "T.pow(x[v], e[v])")
    schedule = mirstack.tir.Schedule(mirstack.parse(text))
    schedule.vectorize(schedule.get_loops(schedule.get_block("y"))[-1])
    power = mirstack.compile(schedule.mod, threads=1)
    rng = np.random.default_rng(0)
    special = np.array(
        [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38], "f4"
    )
    x = np.exp(rng.uniform(-80, 80, COUNT)).astype(np.float32)
    e = (rng.uniform(-90, 90, COUNT) / np.log(x)).astype(np.float32)
    grid = np.array(np.meshgrid(special, special), np.float32).reshape(2, -1)
    x[: grid.shape[1]], e[: grid.shape[1]] = grid
    result = np.empty(COUNT, np.float32)
    power(x, e, result)
    with np.errstate(all="ignore"):
        error = ulps(result, np.power(x.astype(np.float64), e.astype(np.float64)))
    worst = int(np.argmax(error))
    assert error[worst] <= 4.0, (x[worst], e[worst], result[worst], error[worst])


@pytest.mark.parametrize("cpu", [None, "haswell", "x86-64"])
def test_exp_in_f64(cpu: str | None) -> None:
    """Within a unit in the last place and a half, and C's limits."""
    text = PROGRAM.format(name="exp", count=COUNT, lanes=16).replace("float32", "float64")
    schedule = mirstack.tir.Schedule(mirstack.parse(text))
    schedule.vectorize(schedule.get_loops(schedule.get_block("y"))[-1])
    function, result = mirstack.compile(schedule.mod, threads=1, cpu=cpu), np.empty(COUNT)
    x = np.random.default_rng(0).uniform(-746.0, 710.0, COUNT)
    x[:1000] *= 1e-3
    ends = (
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        5e-324,
        709.782712893384,
        709.79,
        -708.4,
        -745.13,
        -745.14,
        -700.0,
        1e300,
        -1e300,
    )
    x[1000 : 1000 + len(ends)] = ends
    function(x, result)
    with np.errstate(all="ignore"):
        exact = np.exp(x.astype(np.longdouble))
        expected = exact.astype(np.float64)
        usual = np.isfinite(expected) & (expected > 0)
        error = np.abs(result - exact)[usual] / np.spacing(expected[usual])
    assert error.max() <= 1.5, x[usual][int(np.argmax(error))]
    np.testing.assert_array_equal(result[~usual], expected[~usual])


def wide_sample() -> Any:
    """Numbers in f64 of all sizes, near 1, near multiples of pi / 2, and special ones."""
    rng = np.random.default_rng(0)
    count = COUNT // 8
    largest = np.finfo(np.float64).max
    ends = (
        *(
            0.0,
            np.inf,
            np.nan,
            5e-324,
            1e-310,
            2.0**-1022,
            largest,
            1.0,
            0.5,
            0.55,
            2.0,
            5.95,
            6.0,
            710.4758,
            710.475860073943,
        ),
        *(
            710.4759,
            711.0,
            1e300,
            1e9,
            1e15,
            1e22,
            2.0**20,
            1 - 2.0**-53,
            1 + 2.0**-52,
            1e-5,
            1e-9,
            1e-16,
            642615.9188844458,
        ),
    )
    parts = (
        *(rng.standard_normal(count), rng.uniform(-1, 1, count), rng.uniform(-700, 700, count)),
        *(np.exp(rng.uniform(-700, 700, count)), 1 + rng.standard_normal(count) * 1e-3),
        *(1 + np.exp(rng.uniform(-36, 0, count)), np.pi / 2 * rng.integers(-600000, 600000, count)),
    )
    return np.resize(np.concatenate([ends, np.negative(ends), *parts]), COUNT)


WIDE = {
    **{name: REFERENCE[name] for name in ("log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh")},
    **{name: REFERENCE[name] for name in ("atanh", "asin", "acos", "atan", "sin", "cos", "tan")},
}


@pytest.mark.parametrize("name", WIDE)
def test_functions_in_f64(name: str) -> None:
    """Within two units in the last place and a half, and C's limits."""
    text = PROGRAM.format(name=name, count=COUNT, lanes=16).replace("float32", "float64")
    schedule = mirstack.tir.Schedule(mirstack.parse(text))
    schedule.vectorize(schedule.get_loops(schedule.get_block("y"))[-1])
    function, result, x = mirstack.compile(schedule.mod, threads=1), np.empty(COUNT), wide_sample()
    function(x, result)
    with np.errstate(all="ignore"):
        exact = WIDE[name](x.astype(np.longdouble))
        rounded = exact.astype(np.float64)
        finite = np.isfinite(rounded) & np.isfinite(result)
        error = np.abs(result - exact) / np.spacing(np.maximum(np.abs(rounded), 2.0**-1022))
        same = (np.isnan(rounded) & np.isnan(result)) | (rounded == result)
        wrong_zero = (rounded == 0) & (result == 0) & (np.signbit(rounded) != np.signbit(result))
    error = np.where(finite & ~wrong_zero, error, np.where(same & ~wrong_zero, 0, np.inf))
    worst = int(np.argmax(error))
    assert error[worst] <= 2.5, (x[worst], result[worst], rounded[worst], error[worst])


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "trunc", "sqrt", "abs"])
def test_every_half(name: str) -> None:
    """Functions that are exact, or rounded once, of every f16."""
    shape = "Tensor[(65536,), float16]"
    text = f'#[version = "0.0.5"]\ndef @main(%x: {shape}) {{ {name}(%x) }}\n'
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = x.astype(np.float32)
    with np.errstate(all="ignore"):
        away = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
        expected = (away if name == "round" else getattr(np, name)(wide)).astype(np.float16)
    result = np.asarray(mirstack.compile(mirstack.parse(text), threads=1)(x))
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result)[expected == 0], np.signbit(expected)[expected == 0])
