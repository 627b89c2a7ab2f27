"""Integer arith in native code against numpy, every op and width, scalars and vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

WIDTHS = (8, 16, 32, 64)
LANES = 4
SIZE = 8


def unsigned(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def div_toward_zero(a: Any, b: Any) -> Any:
    safe = np.where((b == 0) | (b == -1), 1, b)
    quotient = np.abs(a.astype(object)) // np.abs(safe.astype(object)) * np.sign(a) * np.sign(safe)
    quotient = quotient.astype(object)
    out = np.where(b == -1, -a, quotient.astype(a.dtype) if a.dtype != object else quotient)
    return np.where(b == 0, 0, out).astype(a.dtype)


def rem_toward_zero(a: Any, b: Any) -> Any:
    return np.where(b == 0, 0, a - div_toward_zero(a, b) * b).astype(a.dtype)


def ceil_div(a: Any, b: Any) -> Any:
    q = div_toward_zero(a, b)
    r = rem_toward_zero(a, b)
    return np.where((r != 0) & ((a < 0) == (b < 0)), q + 1, q).astype(a.dtype)


def floor_div(a: Any, b: Any) -> Any:
    q = div_toward_zero(a, b)
    r = rem_toward_zero(a, b)
    return np.where((r != 0) & ((a < 0) != (b < 0)), q - 1, q).astype(a.dtype)


def shift(b: Any) -> Any:
    return unsigned(b) % (8 * b.dtype.itemsize)


OPS: dict[str, Callable[[Any, Any], Any]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": div_toward_zero,
    "divui": lambda a, b: np.where(b == 0, 0, unsigned(a) // np.where(b == 0, 1, unsigned(b))).astype(
        unsigned(a).dtype
    ),
    "remsi": rem_toward_zero,
    "remui": lambda a, b: np.where(b == 0, 0, unsigned(a) % np.where(b == 0, 1, unsigned(b))).astype(unsigned(a).dtype),
    "floordivsi": floor_div,
    "ceildivsi": ceil_div,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": lambda a, b: np.minimum(unsigned(a), unsigned(b)),
    "maxui": lambda a, b: np.maximum(unsigned(a), unsigned(b)),
}
COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
    "ult": lambda a, b: unsigned(a) < unsigned(b),
    "ule": lambda a, b: unsigned(a) <= unsigned(b),
    "ugt": lambda a, b: unsigned(a) > unsigned(b),
    "uge": lambda a, b: unsigned(a) >= unsigned(b),
}
SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "shli": lambda a, b: a << shift(b).astype(a.dtype),
    "shrsi": lambda a, b: a >> shift(b).astype(a.dtype),
    "shrui": lambda a, b: unsigned(a) >> shift(b),
}


@pytest.fixture(scope="module")
def integer_code(
    request: pytest.FixtureRequest, build: Callable[[str], Any], elementwise: Callable[..., str]
) -> tuple[int, Any]:
    """A width, and the code of all ops on integers of it."""
    width = request.param
    text = ""
    for lanes in (0, LANES):
        t = f"vector<{lanes}xi{width}>" if lanes else f"i{width}"
        for op in OPS:
            text += elementwise(
                f"{op}_{lanes}", [f"%r = arith.{op} %a, %b : {t}"], [f"i{width}"] * 2, f"i{width}", lanes
            )
        for op in SHIFTS:
            dense = f"dense<{width}> : {t}" if lanes else f"{width} : {t}"
            body = [
                f"%w = arith.constant {dense}",
                f"%s = arith.remui %b, %w : {t}",
                f"%r = arith.{op} %a, %s : {t}",
            ]
            text += elementwise(f"{op}_{lanes}", body, [f"i{width}"] * 2, f"i{width}", lanes)
        for predicate in COMPARES:
            line = (
                f'%r = vector_ext.cmpi "{predicate}" %a, %b : {t} -> vector<{lanes}xi1>'
                if lanes
                else f"%r = arith.cmpi {predicate}, %a, %b : {t}"
            )
            text += elementwise(f"{predicate}_{lanes}", [line], [f"i{width}"] * 2, "i1", lanes)
    return width, build(text)


def pairs(width: int) -> st.SearchStrategy[tuple[Any, Any]]:
    edges = [0, 1, -1, 2 ** (width - 1) - 1, -(2 ** (width - 1))]
    numbers = st.one_of(st.sampled_from(edges), st.integers(-(2 ** (width - 1)), 2 ** (width - 1) - 1))
    array = arrays(f"int{width}", SIZE, elements=numbers)
    return st.tuples(array, array)


@pytest.mark.parametrize("integer_code", WIDTHS, indirect=True)
@given(data=st.data())
@settings(max_examples=25)
def test_integer_ops_agree_with_numpy(integer_code: tuple[int, Any], data: st.DataObject) -> None:
    width, code = integer_code
    a, b = data.draw(pairs(width))
    with np.errstate(all="ignore"):
        for table, dtype in ((OPS, a.dtype), (SHIFTS, a.dtype), (COMPARES, np.dtype(bool))):
            for name, meaning in table.items():
                want = meaning(a, b)
                for lanes in (0, LANES):
                    out = np.zeros(SIZE, dtype)
                    code.call(f"{name}_{lanes}", a, b, out, SIZE)
                    np.testing.assert_array_equal(
                        out, want if want.dtype.kind == "b" else want.view(dtype), f"{name} {lanes}"
                    )


DIVISORS = (1, 2, 3, 5, 7, 8, 10, 64, 100, 127)


@pytest.mark.parametrize("width", WIDTHS)
def test_floor_divisions_by_constants_agree_with_numpy(
    width: int, build: Callable[[str], Any], elementwise: Callable[..., str]
) -> None:
    text = ""
    for lanes in (0, LANES):
        t = f"vector<{lanes}xi{width}>" if lanes else f"i{width}"
        for divisor in DIVISORS:
            number = f"dense<{divisor}> : {t}" if lanes else f"{divisor} : {t}"
            body = [f"%c = arith.constant {number}", f"%r = arith.floordivsi %a, %c : {t}"]
            text += elementwise(f"by_{divisor}_{lanes}", body, [f"i{width}"], f"i{width}", lanes)
    code = build(text)
    ends = np.iinfo(f"int{width}")
    near = np.arange(-600, 600).clip(ends.min, ends.max)
    x = np.concatenate([near, [ends.min, ends.min + 1, ends.max, ends.max - 1]]).astype(f"int{width}")
    assert x.size % LANES == 0
    for divisor in DIVISORS:
        for lanes in (0, LANES):
            out = np.zeros_like(x)
            code.call(f"by_{divisor}_{lanes}", x, out, x.size)
            np.testing.assert_array_equal(out, x // divisor, f"// {divisor}, {lanes} lanes")


CASTS = [
    ("extsi", "i8", "i32"),
    ("extui", "i8", "i32"),
    ("extui", "i1", "i32"),
    ("trunci", "i64", "i8"),
    ("sitofp", "i32", "f32"),
    ("sitofp", "i64", "f64"),
    ("sitofp", "i32", "f16"),
    ("sitofp", "i32", "bf16"),
    ("uitofp", "i8", "f32"),
    ("uitofp", "i1", "f32"),
    ("uitofp", "i64", "f64"),
    ("fptosi", "f32", "i32"),
    ("fptosi", "f64", "i64"),
    ("fptosi", "f16", "i16"),
    ("fptosi", "bf16", "i32"),
    ("fptoui", "f32", "i8"),
    ("extf", "f16", "f32"),
    ("extf", "bf16", "f32"),
    ("extf", "f32", "f64"),
    ("truncf", "f32", "f16"),
    ("truncf", "f32", "bf16"),
    ("truncf", "f64", "f32"),
    ("truncf", "f64", "f16"),
    ("truncf", "f64", "bf16"),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_casts_agree_with_numpy(
    build: Callable[[str], Any], elementwise: Callable[..., str], numpy_types: dict[str, Any]
) -> None:
    text = ""
    for kind, source, target in CASTS:
        name = f"{kind}_{source}_{target}"
        text += elementwise(name, [f"%r = arith.{kind} %a : {source} to {target}"], [source], target)
        vectors = f"vector<8x{source}> to vector<8x{target}>"
        cast = f"arith.{kind} %a" if kind in ("extf", "truncf") else f'vector_ext.cast "{kind}" %a'
        text += elementwise(f"{name}_v", [f"%r = {cast} : {vectors}"], [source], target, 8)
    code = build(text)
    rng = np.random.default_rng(1)
    for kind, source, target in CASTS:
        x = random_values(rng, numpy_types[source], kind, target)
        given = x.view(f"u{x.dtype.itemsize}") if kind in ("extui", "uitofp") and source != "i1" else x
        want_type = np.dtype(numpy_types[target])
        if kind == "fptoui":
            want = given.astype(np.float64).astype(f"u{want_type.itemsize}").view(want_type)
        elif kind == "sitofp" and want_type.itemsize == 2:
            want = given.astype(np.float32).astype(want_type)
        else:
            want = given.astype(want_type)
        for suffix in ("", "_v"):
            out = np.zeros(x.shape, want_type)
            code.call(f"{kind}_{source}_{target}{suffix}", x, out, x.size)
            same = (out == want) | ((out != out) & (want != want))
            assert same.all(), (kind, source, target, suffix, x[~same][:3], out[~same][:3], want[~same][:3])


def random_values(rng: np.random.Generator, dtype: Any, kind: str, target: str) -> Any:
    size = 4096
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool)
    if dtype.kind in "iu":
        x = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8).view(dtype)
        return x[:size] >> rng.integers(0, 8 * dtype.itemsize, size).astype(dtype)
    if kind in ("fptosi", "fptoui"):
        low, high = (0, 127) if kind == "fptoui" else (-30000, 30000)
        return rng.uniform(low, high, size).astype(dtype)
    bits = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8).view(dtype)
    spread = np.exp(rng.uniform(-20, 12, size)) * rng.choice([-1, 1], size)
    limits = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.9, 65520, 2**-24, 2**-25, 1 + 2**-11, 1 + 2**-8]
    )
    with np.errstate(all="ignore"):
        return np.concatenate([bits[:1000], limits.astype(dtype), spread[: size - 1000 - limits.size].astype(dtype)])


def test_extended_arithmetic_gives_both_halves(build: Callable[[str], Any]) -> None:
    code = build("""
    func.func @f(%a: i32, %b: i32, %out: memref<5xi32>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %l, %h = arith.mulsi_extended %a, %b : i32
      %ul, %uh = arith.mului_extended %a, %b : i32
      %s, %o = arith.addui_extended %a, %b : i32, i1
      %ow = arith.extui %o : i1 to i32
      memref.store %l, %out[%c0] : memref<5xi32>
      memref.store %h, %out[%c1] : memref<5xi32>
      memref.store %uh, %out[%c2] : memref<5xi32>
      memref.store %s, %out[%c3] : memref<5xi32>
      memref.store %ow, %out[%c4] : memref<5xi32>
      func.return
    }
    """)
    for a, b in ((-3, 7), (2**31 - 1, 2**31 - 1), (-(2**31), -1), (5, 6)):
        out = np.zeros(5, np.int32)
        code.call("f", a, b, out)
        ua, ub = a % 2**32, b % 2**32
        want = [a * b, (a * b) >> 32, (ua * ub) >> 32, ua + ub, (ua + ub) >> 32]
        assert [int(x) % 2**32 for x in out] == [x % 2**32 for x in want]
