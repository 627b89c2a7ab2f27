"""The table that every target is held to: what operators make of the numbers at the edge, as data.

A row is one Relay expression on numbers that stand one after the other; `docs/semantics.md` shows the rows, and `test_semantics.py` runs
them. Nothing here knows of a processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, nan, pi

Number = float
Numbers = tuple[Number, ...]


@dataclass(frozen=True)
class Row:
    """Elementwise: `text` of %a, %b, … holds for each of the numbers, whatever stands beside them, in a tensor of any size."""

    operator: str
    text: str
    dtype: str
    inputs: tuple[Numbers, ...]
    expected: Numbers
    result: str = ""
    """The result's dtype where it is another."""
    close: float = 0.0
    """What the result may differ by, relative to it: 0 is to the bit."""
    any_zero: bool = False
    """Whether 0 and -0 are as good."""

    @property
    def out(self) -> str:
        """The dtype of the result."""
        return self.result or self.dtype


@dataclass(frozen=True)
class Array:
    """A tensor's dtype, shape and numbers."""

    dtype: str
    shape: tuple[int, ...]
    values: Numbers


@dataclass(frozen=True)
class Whole:
    """An expression on whole tensors: each argument is a dtype, a shape and its numbers in order; so is the result (or are those of a tuple)."""

    operator: str
    text: str
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    close: float = 0.0


FLOATS = ("float32", "float64", "float16")
SIGNED = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
UNSIGNED = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}
# float16's results are computed in float32 and rounded; the others are allowed two units of the last place.
CLOSE = {"float16": 1e-3, "float32": 3e-7, "float64": 1e-15}


def unary(
    operator: str, cases: Sequence[tuple[Number, Number]], dtypes: Iterable[str] = FLOATS, near: bool = False
) -> Iterator[Row]:
    """Rows of a function of one number, for each dtype; `near`: finite results may be off by two units of the last place."""
    for dtype in dtypes:
        given, expected = zip(*cases, strict=True)
        yield Row(operator, f"{operator}(%a)", dtype, (given,), expected, close=CLOSE[dtype] if near else 0.0)


def binary(
    operator: str,
    cases: Sequence[tuple[Number, Number, Number]],
    dtypes: Iterable[str],
    result: str = "",
    *,
    any_zero: bool = False,
) -> Iterator[Row]:
    """Rows of an operator of two numbers."""
    for dtype in dtypes:
        a, b, expected = zip(*cases, strict=True)
        yield Row(operator, f"{operator}(%a, %b)", dtype, (a, b), expected, result, any_zero=any_zero)


def functions() -> Iterator[Row]:
    """Functions of one float: limits, domains, signed zeros, NaN."""
    zeros = [(0.0, 0.0), (-0.0, -0.0)]
    for name in ("exp", "fast_exp"):
        yield from unary(name, [(nan, nan), (inf, inf), (-inf, 0.0), (0.0, 1.0), (-0.0, 1.0), (1e4, inf), (-1e4, 0.0)])
    for name in ("log", "log2", "log10"):
        yield from unary(
            name, [(nan, nan), (inf, inf), (0.0, -inf), (-0.0, -inf), (-1.0, nan), (-inf, nan), (1.0, 0.0)]
        )
    yield from unary("sqrt", [(nan, nan), (inf, inf), *zeros, (-1.0, nan), (-inf, nan), (4.0, 2.0)])
    yield from unary("rsqrt", [(nan, nan), (inf, 0.0), (0.0, inf), (-0.0, -inf), (-1.0, nan), (4.0, 0.5)])
    for name in ("sin", "tan"):
        yield from unary(name, [(nan, nan), (inf, nan), (-inf, nan), *zeros])
    yield from unary("cos", [(nan, nan), (inf, nan), (-inf, nan), (0.0, 1.0), (-0.0, 1.0)])
    yield from unary("sinh", [(nan, nan), (inf, inf), (-inf, -inf), *zeros, (1e4, inf), (-1e4, -inf)])
    yield from unary("cosh", [(nan, nan), (inf, inf), (-inf, inf), (0.0, 1.0), (-0.0, 1.0), (-1e4, inf)])
    for name in ("tanh", "fast_tanh"):
        yield from unary(name, [(nan, nan), (inf, 1.0), (-inf, -1.0), *zeros, (20.0, 1.0), (-1e4, -1.0)])
    for name in ("erf", "fast_erf"):
        yield from unary(name, [(nan, nan), (inf, 1.0), (-inf, -1.0), *zeros, (6.0, 1.0), (-1e4, -1.0)])
    yield from unary("erf", [(5.0, 1.0), (-5.0, -1.0), (4.0, 1.0)], ["float32", "float16"])
    yield from unary("asin", [(nan, nan), (inf, nan), (2.0, nan), (-2.0, nan), *zeros])
    yield from unary("acos", [(nan, nan), (inf, nan), (2.0, nan), (-2.0, nan), (1.0, 0.0)])
    yield from unary("atan", [(nan, nan), *zeros])
    yield from unary("atan", [(inf, pi / 2), (-inf, -pi / 2)], near=True)
    yield from unary("acos", [(-1.0, pi), (0.0, pi / 2), (-0.0, pi / 2)], near=True)
    yield from unary("asinh", [(nan, nan), (inf, inf), (-inf, -inf), *zeros])
    yield from unary("acosh", [(nan, nan), (inf, inf), (-inf, nan), (0.5, nan), (1.0, 0.0)])
    yield from unary("atanh", [(nan, nan), (inf, nan), (2.0, nan), (1.0, inf), (-1.0, -inf), *zeros])
    yield from unary("sigmoid", [(nan, nan), (inf, 1.0), (-inf, 0.0), (0.0, 0.5), (1e4, 1.0), (-1e4, 0.0)])
    big = 512.5
    yield from unary(
        "floor", [(nan, nan), (inf, inf), (-inf, -inf), *zeros, (0.5, 0.0), (-0.5, -1.0), (-2.5, -3.0), (big, 512.0)]
    )
    yield from unary(
        "ceil", [(nan, nan), (inf, inf), (-inf, -inf), *zeros, (0.5, 1.0), (-0.5, -0.0), (-2.5, -2.0), (big, 513.0)]
    )
    yield from unary(
        "trunc", [(nan, nan), (inf, inf), (-inf, -inf), *zeros, (0.5, 0.0), (-0.5, -0.0), (-2.5, -2.0), (big, 512.0)]
    )
    yield from unary("round", [(nan, nan), (inf, inf), (-inf, -inf), *zeros, (0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (-2.5, -3.0), (0.25, 0.0), (-0.25, -0.0)])  # fmt: skip
    yield from unary("round", [(0.49999997, 0.0), (-0.49999997, -0.0), (8388609.0, 8388609.0)], ["float32"])
    yield from unary("nearbyint", [(nan, nan), (inf, inf), (-inf, -inf), *zeros, (0.5, 0.0), (-0.5, -0.0), (1.5, 2.0), (2.5, 2.0), (-2.5, -2.0)])  # fmt: skip
    yield from unary("abs", [(nan, nan), (-inf, inf), (-0.0, 0.0), (0.0, 0.0)])
    yield from unary("negative", [(nan, nan), (inf, -inf), (0.0, -0.0), (-0.0, 0.0)])
    yield from unary("sign", [(nan, 0.0), (inf, 1.0), (-inf, -1.0), (0.0, 0.0), (-0.0, 0.0)])
    yield from unary("nn.relu", [(nan, nan), (inf, inf), (-inf, 0.0), (-3.0, 0.0)])
    yield from unary("nn.leaky_relu", [(nan, nan), (inf, inf), (-inf, -inf), (-4.0, -1.0)])
    yield from unary("copy", [(nan, nan), (inf, inf), (-0.0, -0.0)])
    for dtype in FLOATS:
        clip = Row(
            "clip", "clip(%a, a_min=-1f, a_max=2f)", dtype, ((nan, inf, -inf, 3.0, 0.5),), (nan, 2.0, -1.0, 2.0, 0.5)
        )
        yield clip
        for name, expected in (("isnan", (1, 0, 0, 0)), ("isinf", (0, 1, 1, 0)), ("isfinite", (0, 0, 0, 1))):
            yield Row(name, f"{name}(%a)", dtype, ((nan, inf, -inf, -0.0),), expected, "bool")
        yield Row("logical_not", "logical_not(%a)", dtype, ((nan, inf, -0.0, 0.5),), (0.0, 0.0, 1.0, 0.0))


def integers() -> Iterator[Row]:
    """Arithmetic of integers: it wraps around; divided by 0 is 0; shifts by any count."""
    for dtype, bits in SIGNED.items():
        low, high = -(1 << bits), (1 << bits) - 1
        own = [dtype]
        yield from unary("abs", [(low, low), (-3, 3)], own)
        yield from unary("negative", [(low, low), (high, -high)], own)
        yield from unary("bitwise_not", [(0, -1), (low, high)], own)
        yield from unary("sign", [(low, -1), (0, 0), (high, 1)], own)
        yield from unary("nn.relu", [(low, 0), (high, high)], own)
        yield from unary("logical_not", [(0, 1), (-2, 0)], own)
        yield from binary("add", [(high, 1, low), (low, -1, high)], own)
        yield from binary("subtract", [(low, 1, high), (0, low, low)], own)
        yield from binary("multiply", [(high, 2, -2), (low, -1, low)], own)
        division = [(7, 0), (low, 0), (low, -1), (-7, 2), (7, -2), (-7, -2), (0, 5)]
        for name, results in (
            ("divide", (0, 0, low, -3, -3, 3, 0)),
            ("trunc_divide", (0, 0, low, -3, -3, 3, 0)),
            ("floor_divide", (0, 0, low, -4, -4, 3, 0)),
            ("mod", (0, 0, 0, -1, 1, -1, 0)),
            ("trunc_mod", (0, 0, 0, -1, 1, -1, 0)),
            ("floor_mod", (0, 0, 0, 1, -1, -1, 0)),
        ):
            yield from binary(name, [(*pair, r) for pair, r in zip(division, results, strict=True)], own)
        width = bits + 1
        counts = (0, 1, bits, width, width + 1, high, -1, low)
        yield from binary(
            "left_shift", [(3, n, r) for n, r in zip(counts, (3, 6, low, 0, 0, 0, 0, 0), strict=True)], own
        )
        yield from binary("right_shift", [(-3, n, r) for n, r in zip(counts, (-3, -2, -1, -1, -1, -1, -1, -1), strict=True)], own)  # fmt: skip
        yield from binary("right_shift", [(high, n, r) for n, r in zip(counts, (high, high >> 1, 0, 0, 0, 0, 0, 0), strict=True)], own)  # fmt: skip
        powers = [(2, bits, low), (2, width, 0), (3, 0, 1), (0, 0, 1), (-1, high, -1), (2, -1, 0), (1, -5, 1), (-1, -5, -1), (-1, -4, 1), (0, -1, 0)]  # fmt: skip
        yield from binary("power", [*powers, (low, 2, 0), (-3, 3, -27)], own)
        yield from binary("maximum", [(low, high, high)], own)
        yield from binary("minimum", [(low, high, low)], own)
        yield from binary("less", [(low, high, 1), (high, low, 0)], own, "bool")
    for dtype, bits in UNSIGNED.items():
        high = (1 << bits) - 1
        own = [dtype]
        yield from unary("abs", [(high, high)], own)
        yield from unary("negative", [(1, high), (0, 0)], own)
        yield from unary("bitwise_not", [(0, high)], own)
        yield from unary("sign", [(0, 0), (high, 1)], own)
        yield from unary("logical_not", [(0, 1), (high, 0)], own)
        yield from binary("add", [(high, 1, 0)], own)
        yield from binary("subtract", [(0, 1, high)], own)
        yield from binary("multiply", [(high, 2, high - 1)], own)
        for name, results in (
            ("divide", (0, high // 2)),
            ("trunc_divide", (0, high // 2)),
            ("floor_divide", (0, high // 2)),
        ):
            yield from binary(name, [(7, 0, results[0]), (high, 2, results[1])], own)
        for name in ("mod", "trunc_mod", "floor_mod"):
            yield from binary(name, [(7, 0, 0), (high, 4, 3)], own)
        counts = (0, 1, bits - 1, bits, bits + 1, high)
        yield from binary(
            "left_shift", [(3, n, r) for n, r in zip(counts, (3, 6, 1 << (bits - 1), 0, 0, 0), strict=True)], own
        )
        yield from binary("right_shift", [(high, n, r) for n, r in zip(counts, (high, high >> 1, 1, 0, 0, 0), strict=True)], own)  # fmt: skip
        yield from binary(
            "power", [(2, bits - 1, 1 << (bits - 1)), (2, bits, 0), (3, 0, 1), (high, high, high), (0, 0, 1)], own
        )
        yield from binary("maximum", [(0, high, high)], own)
        yield from binary("minimum", [(0, high, 0)], own)
        yield from binary("less", [(0, high, 1), (high, 0, 0)], own, "bool")
    # Functions of floats are computed in float32, and cast back.
    yield from unary("exp", [(0, 1), (100, 127), (-1, 0)], ["int8"])
    yield from unary("log", [(0, -128), (-1, 0), (1, 0)], ["int8"])
    yield from unary("log", [(0, 0), (255, 5)], ["uint8"])
    yield from unary("sqrt", [(-1, 0), (100, 10)], ["int32"])
    yield from unary("exp", [(100, (1 << 31) - 1)], ["int32"])
    yield from unary("rsqrt", [(0, 127), (1, 1)], ["int8"])
    for name, results in (("bitwise_and", (1, 0)), ("bitwise_or", (7, -1)), ("bitwise_xor", (6, -1))):
        yield from binary(name, [(5, 3, results[0]), (-1, 0, results[1])], ["int32", "int8"])
    yield Row("clip", "clip(%a, a_min=-1000f, a_max=100f)", "int8", ((-128, 127, 5),), (-128, 100, 5))
    yield Row("clip", "clip(%a, a_min=-1000f, a_max=100f)", "uint8", ((0, 255, 5),), (0, 100, 5))


def bools() -> Iterator[Row]:
    """bool is one bit: sums are `or`, products are `and`, differences are `xor`."""
    pairs = ((0, 0, 1, 1), (0, 1, 0, 1))
    for name, expected in {
        "add": (0, 1, 1, 1), "subtract": (0, 1, 1, 0), "multiply": (0, 0, 0, 1), "divide": (0, 0, 0, 1),
        "trunc_divide": (0, 0, 0, 1), "floor_divide": (0, 0, 0, 1), "mod": (0, 0, 0, 0), "trunc_mod": (0, 0, 0, 0),
        "floor_mod": (0, 0, 0, 0), "power": (1, 0, 1, 1), "maximum": (0, 1, 1, 1), "minimum": (0, 0, 0, 1),
        "left_shift": (0, 0, 1, 0), "right_shift": (0, 0, 1, 0), "bitwise_and": (0, 0, 0, 1), "bitwise_or": (0, 1, 1, 1),
        "bitwise_xor": (0, 1, 1, 0), "logical_and": (0, 0, 0, 1), "logical_or": (0, 1, 1, 1), "logical_xor": (0, 1, 1, 0),
        "less": (0, 1, 0, 0), "equal": (1, 0, 0, 1),
    }.items():  # fmt: skip
        yield Row(name, f"{name}(%a, %b)", "bool", pairs, expected)
    for name, expected in {
        "negative": (0, 1),
        "abs": (0, 1),
        "sign": (0, 1),
        "logical_not": (1, 0),
        "bitwise_not": (1, 0),
    }.items():
        yield Row(name, f"{name}(%a)", "bool", ((0, 1),), expected)


def floats() -> Iterator[Row]:
    """Arithmetic and comparisons of floats: IEEE 754's; NaN goes through maxima; remainders are exact."""
    every = ("float32", "float64", "float16", "bfloat16")
    yield from binary(
        "add", [(inf, -inf, nan), (nan, 1.0, nan), (inf, 1.0, inf), (-0.0, -0.0, -0.0), (-0.0, 0.0, 0.0)], every
    )
    yield from binary("subtract", [(inf, inf, nan), (1.0, nan, nan), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0)], every)
    yield from binary(
        "multiply", [(inf, 0.0, nan), (0.0, -inf, nan), (-0.0, 3.0, -0.0), (inf, -2.0, -inf), (nan, 0.0, nan)], every
    )
    yield from binary(
        "divide", [(1.0, 0.0, inf), (1.0, -0.0, -inf), (0.0, 0.0, nan), (inf, inf, nan), (-1.0, inf, -0.0)], every
    )
    yield from binary(
        "trunc_divide", [(-7.0, 2.0, -3.0), (1.0, 0.0, inf), (0.0, 0.0, nan), (inf, 2.0, inf), (1.0, inf, 0.0)], every
    )
    yield from binary(
        "floor_divide", [(-7.0, 2.0, -4.0), (1.0, 0.0, inf), (0.0, 0.0, nan), (inf, 2.0, inf), (1.0, inf, 0.0)], every
    )
    truncated = [(7.5, 2.0, 1.5), (-7.5, 2.0, -1.5), (7.5, -2.0, 1.5), (-6.0, 3.0, -0.0), (1.0, 0.0, nan), (inf, 2.0, nan), (-2.0, inf, -2.0), (nan, 1.0, nan), (1.0, nan, nan), (0.0, 0.0, nan)]  # fmt: skip
    for name in ("mod", "trunc_mod"):
        yield from binary(name, truncated, every)
        yield from binary(name, [(3e9, 7.25, 3.25), (1e8, 3.0, 1.0), (-1e38, 0.75, -0.5)], ["float32"])
    floored = [(7.5, 2.0, 1.5), (-7.5, 2.0, 0.5), (7.5, -2.0, -0.5), (-6.0, 3.0, 0.0), (6.0, -3.0, -0.0), (1.0, 0.0, nan), (inf, 2.0, nan), (2.0, inf, 2.0), (-2.0, inf, inf), (nan, 1.0, nan), (1.0, nan, nan)]  # fmt: skip
    yield from binary("floor_mod", floored, every)
    yield from binary(
        "floor_mod", [(3e9, 7.25, 3.25), (1e8, 3.0, 1.0), (-3e9, 7.25, 4.0), (1e8, -3.0, -2.0)], ["float32", "float64"]
    )
    yield from binary(
        "floor_mod", [(1e300, 3.0, 1e300 % 3.0), (-1e300, 3.0, -1e300 % 3.0), (1.0, 0.1, 1.0 % 0.1)], ["float64"]
    )
    yield from binary(
        "mod", [(1e300, 3.0, 1e300 % 3.0), (9007199254740993.0, 2.0, 0.0), (1.0, 0.1, 1.0 % 0.1)], ["float64"]
    )
    powers = [(0.0, 0.0, 1.0), (nan, 0.0, 1.0), (1.0, nan, 1.0), (-1.0, inf, 1.0), (0.0, -1.0, inf), (-0.0, -1.0, -inf), (-8.0, 0.5, nan), (-2.0, 3.0, -8.0), (inf, -1.0, 0.0), (-inf, 3.0, -inf), (2.0, inf, inf), (0.5, inf, 0.0), (2.0, nan, nan)]  # fmt: skip
    yield from binary("power", powers, FLOATS)
    for name, results in (("maximum", (2.0, inf, nan, nan, nan)), ("minimum", (1.0, -inf, nan, nan, nan))):
        pairs = [(1.0, 2.0), (-inf, inf), (nan, 1.0), (1.0, nan), (nan, nan)]
        yield from binary(name, [(*p, r) for p, r in zip(pairs, results, strict=True)], every)
        yield from binary(name, [(0.0, -0.0, 0.0), (-0.0, 0.0, 0.0)], every, any_zero=True)
    pairs = [(1.0, 2.0), (nan, 1.0), (1.0, nan), (nan, nan), (0.0, -0.0), (inf, inf)]
    for name, results in {
        "less": (1, 0, 0, 0, 0, 0), "less_equal": (1, 0, 0, 0, 1, 1), "greater": (0, 0, 0, 0, 0, 0),
        "greater_equal": (0, 0, 0, 0, 1, 1), "equal": (0, 0, 0, 0, 1, 1), "not_equal": (1, 1, 1, 1, 0, 0),
    }.items():  # fmt: skip
        yield from binary(name, [(*p, r) for p, r in zip(pairs, results, strict=True)], every, "bool")
    truths = ((0.0, -0.0, nan, 2.0), (nan, 0.0, 0.0, -inf))
    for name, expected in (("logical_and", (0.0, 0.0, 0.0, 1.0)), ("logical_or", (1.0, 0.0, 1.0, 1.0)), ("logical_xor", (1.0, 0.0, 1.0, 0.0))):  # fmt: skip
        yield Row(name, f"{name}(%a, %b)", "float32", truths, expected)
    yield Row("where", "where(%a, %b, %c)", "float32", ((nan, 0.0, -0.0, 1.0), (1.0, nan, nan, inf), (nan, 2.0, 3.0, nan)), (1.0, 2.0, 3.0, inf))  # fmt: skip
    yield Row(
        "ewise_fma",
        "ewise_fma(%a, %b, %c)",
        "float32",
        ((inf, 0.0, 2.0), (0.0, nan, 3.0), (1.0, 1.0, 4.0)),
        (nan, nan, 10.0),
    )


def casts() -> Iterator[Row]:
    """Casts: floats to integers are limited to the range, NaN to 0; integers wrap around; to bool: whether it is not 0."""
    for source in ("float32", "float64", "float16", "bfloat16"):
        given = (nan, inf, -inf, 2.75, -2.75, -0.0, 300.0, -300.0)
        for target, bits in SIGNED.items():
            low, high = -(1 << bits), (1 << bits) - 1
            expected = (0, high, low, 2, -2, 0, min(300, high), max(-300, low))
            yield Row("cast", f'cast(%a, dtype="{target}")', source, (given,), expected, target)
        for target, bits in UNSIGNED.items():
            high = (1 << bits) - 1
            expected = (0, high, 0, 2, 0, 0, min(300, high), 0)
            yield Row("cast", f'cast(%a, dtype="{target}")', source, (given,), expected, target)
        yield Row("cast", 'cast(%a, dtype="bool")', source, ((nan, 0.0, -0.0, 0.25, inf),), (1, 0, 0, 1, 1), "bool")
    for source in ("float32", "float64"):
        for target, bits in {**SIGNED, **UNSIGNED}.items():
            signed = target in SIGNED
            low, high = (-(1 << bits), (1 << bits) - 1) if signed else (0, (1 << bits) - 1)
            given = (2.0**bits, -(2.0**bits), 2.0**70, -(2.0**70), 2.0 ** (bits - 1))
            expected = (high, low, high, low, 1 << (bits - 1))
            yield Row("cast", f'cast(%a, dtype="{target}")', source, (given,), expected, target)
    for source, target, given, expected in (
        ("int32", "int8", (300, -129, 127, -1), (44, 127, 127, -1)),
        ("int32", "uint8", (300, -1, 256), (44, 255, 0)),
        ("int64", "int32", (1 << 32, (1 << 31), -1), (0, -(1 << 31), -1)),
        ("uint32", "int32", ((1 << 32) - 1, 1 << 31), (-1, -(1 << 31))),
        ("int8", "uint32", (-1, -128), ((1 << 32) - 1, (1 << 32) - 128)),
        ("int64", "uint64", (-1, 5), ((1 << 64) - 1, 5)),
        ("int32", "bool", (0, 256, -1), (0, 1, 1)),
        ("bool", "int8", (0, 1), (0, 1)),
        ("bool", "float32", (0, 1), (0.0, 1.0)),
        ("uint64", "float32", ((1 << 64) - 1, 0), (2.0**64, 0.0)),
        ("int32", "float32", (16777217, -16777219), (16777216.0, -16777220.0)),
        ("float64", "float32", (1e300, -1e300, 1e-300, nan), (inf, -inf, 0.0, nan)),
        ("float32", "float16", (65520.0, 65519.0, -1e6, nan), (inf, 65504.0, -inf, nan)),
        ("float32", "bfloat16", (3.389e38, 3.4e38, nan), (3.3895313892515355e38, inf, nan)),
    ):  # fmt: skip
        yield Row("cast", f'cast(%a, dtype="{target}")', source, (given,), expected, target)
    yield Row("reinterpret", 'reinterpret(%a, dtype="int32")', "float32", ((-0.0, 1.0, inf),), (-(1 << 31), 0x3F800000, 0x7F800000), "int32")  # fmt: skip


FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")
NARROW = ("int4", "uint4", "int2", "uint2", *FLOAT8)
"""The dtypes that native code holds in bytes: Relay's kernels do, TIR's functions are refused."""
"""Which interpreters compute, and native code refuses."""


def four_bits() -> Iterator[Row]:
    """Integers of four bits follow the rules of the wider ones."""
    for name, signed, unsigned in (
        ("add", (-8, 7, 1), (0, 1, 14)), ("subtract", (6, -7, 7), (14, 15, 2)), ("multiply", (7, -8, 4), (15, 0, 0)),
        ("divide", (7, -8, -1), (15, 0, 1)), ("floor_divide", (7, -8, -2), (15, 0, 1)), ("floor_mod", (0, 0, -2), (0, 0, 2)),
        ("left_shift", (-2, 0, 0), (14, 0, 0)), ("right_shift", (3, -1, 0), (7, 0, 0)), ("power", (7, -1, 0), (15, 0, 0)),
        ("maximum", (7, -1, 4), (15, 1, 8)), ("minimum", (1, -8, -3), (1, 0, 6)), ("bitwise_xor", (6, 7, -7), (14, 1, 14)),
    ):  # fmt: skip
        a, b = ((7, -1, 4) if name == "power" else (7, -8, 4)), (1, -1, -3)
        yield Row(name, f"{name}(%a, %b)", "int4", (a, b), signed)
        yield Row(name, f"{name}(%a, %b)", "uint4", ((15, 0, 8), (1, 1, 6)), unsigned)
    yield from unary("abs", [(-8, -8), (-3, 3)], ["int4"])
    yield from unary("negative", [(-8, -8), (7, -7)], ["int4"])
    yield from unary("negative", [(1, 15), (0, 0)], ["uint4"])
    yield from unary("bitwise_not", [(0, -1), (-8, 7)], ["int4"])
    yield from unary("bitwise_not", [(0, 15), (9, 6)], ["uint4"])
    yield from unary("nn.relu", [(-8, 0), (7, 7)], ["int4"])
    yield Row("clip", "clip(%a, a_min=-3f, a_max=100f)", "int4", ((-8, 7, 0),), (-3, 7, 0))
    for source, target, values, expected in (
        ("float32", "int4", (nan, inf, -inf, 2.75, -2.75), (0, 7, -8, 2, -2)),
        ("float32", "uint4", (nan, inf, -inf, 2.75, -2.75), (0, 15, 0, 2, 0)),
        ("int32", "int4", (300, -129, 8), (-4, -1, -8)), ("int32", "uint4", (300, -129, 8), (12, 15, 8)),
        ("uint4", "int4", (15, 8, 7), (-1, -8, 7)), ("int4", "uint4", (-1, -8, 7), (15, 8, 7)),
        ("int4", "int32", (-8, 7), (-8, 7)), ("uint4", "float32", (15, 8), (15, 8)), ("int4", "bool", (-8, 0), (1, 0)),
    ):  # fmt: skip
        yield Row("cast", f'cast(%a, dtype="{target}")', source, (values,), expected, target)


def narrow_floats() -> Iterator[Row]:
    """Floats of eight and four bits are rounded to nearest even; what is too large is what the format has for it."""
    for target, given, expected in (
        ("float8_e4m3fn", (448.0, 464.0, 465.0, -inf, nan, 2.0**-10, -0.0, 1.0625), (448.0, 448.0, nan, nan, nan, 0.0, -0.0, 1.0)),
        ("float8_e5m2", (61439.0, 61440.0, -inf, nan, 2.0**-17, -0.0), (57344.0, inf, -inf, nan, 0.0, -0.0)),
        ("float8_e4m3fnuz", (247.0, 248.0, inf, nan, -0.0), (240.0, nan, nan, nan, 0.0)),
        ("float8_e5m2fnuz", (61439.0, 61440.0, inf, nan, -0.0), (57344.0, nan, nan, nan, 0.0)),
        ("float8_e8m0fnu", (1.0, 3.0, 0.0, -1.0, 2.0**-127, inf), (1.0, 4.0, nan, nan, 2.0**-127, nan)),
        ("float4_e2m1fn", (7.0, -inf, 2.5, 0.75, -0.25), (6.0, -6.0, 2.0, 1.0, -0.0)),
    ):  # fmt: skip
        yield Row("cast", f'cast(%a, dtype="{target}")', "float32", (given,), expected, target)
        held = tuple(dict.fromkeys(number for number in expected if number == number))
        yield Row("cast", 'cast(%a, dtype="float32")', target, ((*held, nan) if target != "float4_e2m1fn" else held,),
            (*held, nan) if target != "float4_e2m1fn" else held, "float32")  # fmt: skip
    for source, target, given, expected in (
        ("int32", "int2", (1, 2, 3, -3), (1, -2, -1, 1)), ("float32", "uint2", (7.0, -1.0, 2.5), (3, 0, 2)),
    ):  # fmt: skip
        yield Row("cast", f'cast(%a, dtype="{target}")', source, (given,), expected, target)


def rows() -> list[Row]:
    """Every elementwise row."""
    return [*functions(), *integers(), *bools(), *floats(), *casts(), *four_bits(), *narrow_floats()]


TIR: dict[str, str] = {
    **{name: f"T.{name}(%a)" for name in (
        "exp", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan",
        "asinh", "acosh", "atanh", "erf", "sigmoid", "floor", "ceil", "trunc", "round", "nearbyint", "isnan", "isinf", "isfinite", "abs",
    )},
    **{name: f"T.{name}(%a, %b)" for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "power")},
    "add": "%a + %b", "subtract": "%a - %b", "multiply": "%a * %b", "floor_divide": "%a // %b", "floor_mod": "%a % %b",
    "divide": "T.Div(%a, %b)", "trunc_mod": "T.truncmod(%a, %b)", "maximum": "T.max(%a, %b)", "minimum": "T.min(%a, %b)",
    "left_shift": "T.shift_left(%a, %b)", "right_shift": "T.shift_right(%a, %b)", "bitwise_not": "T.bitwise_not(%a)",
    "less": "%a < %b", "less_equal": "%a <= %b", "greater": "%a > %b", "greater_equal": "%a >= %b", "equal": "%a == %b",
    "not_equal": "%a != %b", "cast": 'T.Cast("%t", %a)', "reinterpret": 'T.reinterpret("%t", %a)',
}  # fmt: skip
"""TIR's expressions that mean what an operator of Relay does, `%t` being the result's dtype."""


def of(dtype: str, *values: Number, shape: tuple[int, ...] | None = None) -> Array:
    """A tensor of these numbers, a vector unless its shape is given."""
    return Array(dtype, (len(values),) if shape is None else shape, values)


def reductions() -> Iterator[Whole]:
    """Reductions over nothing, NaN, ties, integers that wrap around."""
    for dtype in ("float32", "float16", "int32", "uint8", "bool"):
        given = Array(dtype, (2, 0), ())
        lowest, highest = {
            "int32": (-(1 << 31), (1 << 31) - 1), "uint8": (0, 255), "bool": (0, 1),
        }.get(dtype, (-inf, inf))  # fmt: skip
        for name, start in (("sum", 0), ("prod", 1), ("max", lowest), ("min", highest), ("argmax", -1), ("argmin", -1)):
            out = "int32" if name.startswith("arg") else dtype
            yield Whole(name, f"{name}(%a, axis=[1])", (given,), (of(out, start, start),))
        if dtype != "bool":
            mean = nan if dtype.startswith("float") else 0
            yield Whole("mean", "mean(%a, axis=[1])", (given,), (of(dtype, mean, mean),))
    nothing = Array("bool", (2, 0), ())
    yield Whole("any", "any(%a, axis=[1])", (nothing,), (of("bool", 0, 0),))
    yield Whole("all", "all(%a, axis=[1])", (nothing,), (of("bool", 1, 1),))
    empty = Array("float32", (2, 0), ())
    yield Whole("argmax", "argmax(%a, axis=[1], select_last_index=True)", (empty,), (of("int32", -1, -1),))
    with_mean = (empty, of("float32", 0.0, 0.0, shape=(2, 1)))
    for unbiased in ("False", "True"):
        yield Whole(
            "variance", f"variance(%a, %b, axis=[1], unbiased={unbiased})", with_mean, (of("float32", nan, nan),)
        )
    one = (of("float32", 1.0, 3.0, shape=(2, 1)), of("float32", 1.0, 1.0, shape=(2, 1)))
    yield Whole("variance", "variance(%a, %b, axis=[1], unbiased=True)", one, (of("float32", nan, inf),))
    yield Whole(
        "nn.dense",
        "nn.dense(%a, %b)",
        (empty, Array("float32", (3, 0), ())),
        (of("float32", *[0.0] * 6, shape=(2, 3)),),
    )
    image = Array("float32", (1, 1, 0, 2), ())
    for name, of_nothing in (("max", -inf), ("avg", nan)):
        result = of("float32", of_nothing, shape=(1, 1, 1, 1))
        yield Whole(f"nn.global_{name}_pool2d", f"nn.global_{name}_pool2d(%a)", (image,), (result,))
        yield Whole(
            f"nn.adaptive_{name}_pool2d", f"nn.adaptive_{name}_pool2d(%a, output_size=[1, 1])", (image,), (result,)
        )
    for name in ("nn.softmax", "nn.log_softmax"):
        yield Whole(name, f"{name}(%a)", (empty,), (empty,))
    yield Whole(
        "nn.cross_entropy",
        "nn.cross_entropy(%a, %b)",
        (Array("float32", (0, 3), ()),) * 2,
        (of("float32", nan, shape=()),),
    )
    targets = (Array("float32", (0, 3), ()), Array("int32", (0,), ()), of("float32", 1.0, 1.0, 1.0))
    yield Whole("nn.nll_loss", "nn.nll_loss(%a, %b, %c, ignore_index=-1)", targets, (of("float32", nan, shape=()),))
    # NaN, infinities, ties
    numbers = of("float32", 1.0, nan, inf, -inf)
    for name, result in (("sum", nan), ("prod", nan), ("max", nan), ("min", nan), ("mean", nan)):
        yield Whole(name, f"{name}(%a)", (numbers,), (of("float32", result, shape=()),))
    infinite = of("float32", *[-inf] * 3, *[inf] * 3, shape=(2, 3))
    yield Whole("max", "max(%a, axis=[1])", (infinite,), (of("float32", -inf, inf),))
    yield Whole("min", "min(%a, axis=[1])", (infinite,), (of("float32", -inf, inf),))
    rows = of(
        "float32", nan, 1, nan, 1, nan, inf, -inf, -inf, -inf, inf, inf, inf, 0.0, -0.0, 0.0, 2, 2, 1, shape=(6, 3)
    )
    for name, last, result in (
        ("argmax", "False", (0, 1, 0, 0, 0, 0)), ("argmin", "False", (0, 1, 0, 0, 0, 2)),
        ("argmax", "True", (2, 1, 2, 2, 2, 1)), ("argmin", "True", (2, 1, 2, 2, 2, 2)),
    ):  # fmt: skip
        for dtype in ("float32", "float64", "float16"):
            given = Array(dtype, rows.shape, rows.values)
            yield Whole(name, f"{name}(%a, axis=[1], select_last_index={last})", (given,), (of("int32", *result),))
    # In vectors, with a NaN in the middle, in the tail, in one lane twice.
    for where in ((5,), (40,), (7, 23), (23, 7, 39)):
        values = [float(k % 10) for k in range(41)]
        for k in where:
            values[k] = nan
        for name in ("argmax", "argmin"):
            yield Whole(name, f"{name}(%a)", (of("float32", *values),), (of("int32", min(where), shape=()),))
            across = of("float32", *(v for v in values for _ in range(17)), shape=(41, 17))
            yield Whole(name, f"{name}(%a, axis=[0])", (across,), (of("int32", *[min(where)] * 17),))
        yield Whole("max", "max(%a)", (of("float32", *values),), (of("float32", nan, shape=()),))
    lowest = of("int8", *[-128] * 20)
    yield Whole("argmax", "argmax(%a)", (lowest,), (of("int32", 0, shape=()),))
    yield Whole("argmax", "argmax(%a, select_last_index=True)", (lowest,), (of("int32", 19, shape=()),))
    yield Whole("argmax", "argmax(%a)", (of("float32", *[-inf] * 40),), (of("int32", 0, shape=()),))
    yield Whole("sum", "sum(%a)", (of("int8", 100, 100),), (of("int8", -56, shape=()),))
    yield Whole("prod", "prod(%a)", (of("int8", 100, 100),), (of("int8", 16, shape=()),))
    yield Whole("mean", "mean(%a)", (of("int32", -3, -4),), (of("int32", -3, shape=()),))
    yield Whole("cumsum", "cumsum(%a)", (of("float32", 1.0, nan, 2.0, inf),), (of("float32", 1.0, nan, nan, nan),))
    yield Whole("cumprod", "cumprod(%a)", (of("int8", 100, 2, 2),), (of("int8", 100, -56, -112),))


def orders() -> Iterator[Whole]:
    """Sorting: NaN is greater than every number; equal elements stay in order, 0 and -0 among them."""
    given = of("float32", nan, 1, inf, -0.0, 0.0, -inf, nan, 1)
    yield Whole("sort", "sort(%a)", (given,), (of("float32", -inf, -0.0, 0.0, 1, 1, inf, nan, nan),))
    yield Whole("sort", "sort(%a, is_ascend=False)", (given,), (of("float32", nan, nan, inf, 1, 1, -0.0, 0.0, -inf),))
    yield Whole("argsort", 'argsort(%a, dtype="int32")', (given,), (of("int32", 5, 3, 4, 1, 7, 2, 0, 6),))
    yield Whole(
        "argsort", 'argsort(%a, is_ascend=False, dtype="int32")', (given,), (of("int32", 0, 6, 2, 1, 7, 3, 4, 5),)
    )
    yield Whole("topk", 'topk(%a, k=3, dtype="int32")', (given,), (of("float32", nan, nan, inf), of("int32", 0, 6, 2)))
    yield Whole(
        "topk", 'topk(%a, k=2, is_ascend=True, dtype="int32")', (given,), (of("float32", -inf, -0.0), of("int32", 5, 3))
    )
    yield Whole(
        "topk",
        'topk(%a, k=1, dtype="int32")',
        (Array("uint64", (0,), ()),),
        (Array("uint64", (0,), ()), Array("int32", (0,), ())),
    )
    rising, sought = of("float32", 1, 2, 3, nan), of("float32", nan, 2.5, -inf, inf, 2.0)
    yield Whole("searchsorted", "searchsorted(%a, %b)", (rising, sought), (of("int32", 3, 2, 0, 3, 1),))


def indices() -> Iterator[Whole]:
    """Indices out of range: each operator's rule."""
    data = of("float32", 10.0, 20.0, 30.0)
    at = of("int32", -1, 3, 7, -9, 0)
    for mode, result in (
        ("clip", (10, 30, 30, 10, 10)),
        ("fast", (10, 30, 30, 10, 10)),
        ("wrap", (30, 10, 20, 10, 10)),
    ):
        yield Whole("take", f'take(%a, %b, axis=0, mode="{mode}")', (data, at), (of("float32", *result),))
    placed = (of("float32", 30, 30, 30, 10, 10),)
    yield Whole("gather", "gather(%a, %b, axis=0)", (data, at), placed)
    yield Whole("gather_nd", "gather_nd(%a, %b)", (data, Array("int32", (1, 5), at.values)), placed)
    yield Whole("adv_index", "adv_index((%a, %b))", (data, at), placed)
    places, updates = of("int32", -1, 3, 1, 1), of("float32", 1.0, 2.0, 3.0, 5.0)
    for mode, result in (
        ("update", (10, 5, 1)), ("add", (10, 28, 31)), ("mul", (10, 300, 30)), ("min", (10, 3, 1)), ("max", (10, 20, 30)),
    ):  # fmt: skip
        expected = (of("float32", *result),)
        yield Whole("scatter_elements", f'scatter_elements(%a, %b, %c, axis=0, reduction="{mode}")', (data, places, updates), expected)  # fmt: skip
        nd = (data, Array("int32", (1, 4), places.values), updates)
        yield Whole("scatter_nd", f'scatter_nd(%a, %b, %c, mode="{mode}")', nd, expected)
    default = of("float32", 7.0, shape=())
    sparse = (of("int32", 0, 5, -1), of("float32", 1.0, 2.0, 3.0), default)
    yield Whole("sparse_to_dense", "sparse_to_dense(%a, %b, %c, output_shape=[3])", sparse, (of("float32", 1, 7, 3),))
    on, off = of("float32", 1.0, shape=()), of("float32", 0.0, shape=())
    hot = of("float32", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, shape=(4, 3))
    yield Whole("one_hot", "one_hot(%a, %b, %c, depth=3)", (of("int32", 0, 3, -1, 2), on, off), (hot,))
    yield Whole("unravel_index", "unravel_index(%a, %b)", (of("int32", -1, 3, 9), of("int32", 2, 3)), (of("int32", 1, 1, 1, 2, 0, 0, shape=(2, 3)),))  # fmt: skip
    yield Whole("strided_slice", "strided_slice(%a, begin=[-9], end=[9])", (data,), (data,))
    ones = of("float32", *[1.0] * 6, shape=(3, 2))
    lengths = of("int32", 9, -1)
    steps = of("float32", 0, 1, 2, 3, 4, 5, shape=(3, 2))
    turned = of("float32", 4, 1, 2, 3, 0, 5, shape=(3, 2))
    yield Whole("reverse_sequence", "reverse_sequence(%a, %b, seq_axis=0, batch_axis=1)", (steps, lengths), (turned,))
    yield Whole("sequence_mask", "sequence_mask(%a, %b)", (ones, of("int32", 9, -1)), (of("float32", 1, 0, 1, 0, 1, 0, shape=(3, 2)),))  # fmt: skip


def networks() -> Iterator[Whole]:
    """Sums of products are IEEE's; padding counts as zeros that are multiplied, but for transposed convolutions; norms of NaN."""
    yield Whole("nn.dense", "nn.dense(%a, %b)", (of("float32", inf, 0.0, shape=(1, 2)), of("float32", 0.0, 1.0, 1.0, 1.0, shape=(2, 2))), (of("float32", nan, inf, shape=(1, 2)),))  # fmt: skip
    image, kernel = of("float32", 1, 2, 3, 4, shape=(1, 1, 2, 2)), of("float32", inf, 0, 0, 1, shape=(1, 1, 2, 2))
    yield Whole("nn.conv2d", "nn.conv2d(%a, %b, padding=[1, 1])", (image, kernel), (of("float32", *[nan] * 4, inf, inf, nan, inf, inf, shape=(1, 1, 3, 3)),))  # fmt: skip
    image_of_ones = of("float32", 1, 2, 3, 4, shape=(1, 1, 2, 2))
    for name, side, result in (
        ("", 3, (inf, inf, 0, inf, inf, 2, 0, 3, 4)), (", padding=[1, 1]", 1, (inf,)),
        (", strides=[2, 2]", 4, (inf, 0, inf, 0, 0, 1, 0, 2, inf, 0, inf, 0, 0, 3, 0, 4)),
        (", dilation=[2, 2]", 4, (inf, inf, 0, 0, inf, inf, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4)),
        (", strides=[2, 2], dilation=[3, 3], padding=[1, 1]", 4, (0, 0, 0, 0, 0, inf, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0)),
    ):  # fmt: skip
        spread = of("float32", *result, shape=(1, 1, side, side))
        yield Whole("nn.conv2d_transpose", f"nn.conv2d_transpose(%a, %b{name})", (image_of_ones, kernel), (spread,))
    pooled = of("float32", -inf, nan, 3, -inf, shape=(1, 1, 2, 2))
    yield Whole("nn.max_pool2d", "nn.max_pool2d(%a, pool_size=[2, 2], padding=[1, 1])", (pooled,), (of("float32", -inf, nan, nan, 3, nan, nan, 3, 3, -inf, shape=(1, 1, 3, 3)),))  # fmt: skip
    yield Whole("nn.avg_pool2d", "nn.avg_pool2d(%a, pool_size=[1, 1], padding=[1, 1])", (pooled,), (of("float32", 0, 0, 0, 0, 0, -inf, nan, 0, 0, 3, -inf, 0, 0, 0, 0, 0, shape=(1, 1, 4, 4)),))  # fmt: skip
    below = of("float32", *[-inf] * 4, nan, 3, 1, 2, 9, shape=(1, 1, 3, 3))
    given, back = (
        of("float32", 5, 6, 7, 8, shape=(1, 1, 2, 2)),
        of("float32", 5, 6, 0, 0, 8, 0, 7, 0, 0, shape=(1, 1, 3, 3)),
    )
    yield Whole("nn.max_pool2d_grad", "nn.max_pool2d_grad(%a, %b, pool_size=[2, 2], strides=[2, 2], padding=[1, 1, 0, 0])", (given, below), (back,))  # fmt: skip
    scores = of("float32", 0.5, 0.25, nan, nan, 0.75, nan, 0.5, 0.125, nan, shape=(1, 3, 3))
    anchors = of("float32", 0, 0, 0.5, 0.5, 0.5, 0.5, 1, 1, 0, 0.5, 0.5, 1, shape=(1, 3, 4))
    moved = of("float32", 1, 0.5, 0, 0, 0.5, 0.5, 0, 0.75, 0.5, 0.5, 1, 1, *[-1] * 6, shape=(1, 3, 6))
    yield Whole("vision.multibox_transform_loc", "vision.multibox_transform_loc(%a, %b, %c)", (scores, of("float32", *[0] * 12, shape=(1, 12)), anchors), (moved, of("int32", 2)))  # fmt: skip
    soft = of("float32", inf, 1, nan, 1, -inf, -inf, 1000, -1000, shape=(4, 2))
    yield Whole("nn.softmax", "nn.softmax(%a)", (soft,), (of("float32", *[nan] * 6, 1, 0, shape=(4, 2)),))
    yield Whole("nn.log_softmax", "nn.log_softmax(%a)", (soft,), (of("float32", *[nan] * 6, 0, -2000, shape=(4, 2)),))
    vectors = of("float32", nan, 1, 2, 0, 0, 0, inf, 1, 2, shape=(3, 3))
    yield Whole("nn.l2_normalize", "nn.l2_normalize(%a, eps=1e-12f, axis=[1])", (vectors,), (of("float32", nan, nan, nan, 0, 0, 0, nan, 0, 0, shape=(3, 3)),))  # fmt: skip
    for dtype, expected in (("int8", (0, 127, -128, 127, 6, 0)), ("uint8", (0, 255, 0, 255, 6, 0))):
        given = of("float32", nan, inf, -inf, 1e30, 0.25, -0.25)
        yield Whole(
            "qnn.quantize", f'qnn.quantize(%a, 0.1f, 3, out_dtype="{dtype}")', (given,), (of(dtype, *expected),)
        )
    given = of("int32", (1 << 31) - 1, -(1 << 31), 10)
    yield Whole(
        "qnn.requantize",
        'qnn.requantize(%a, 0.5f, 0, 0.1f, 0, out_dtype="int8")',
        (given,),
        (of("int8", 127, -128, 50),),
    )
    for shift in (40, -70):
        yield Whole("fixed_point_multiply", f"fixed_point_multiply(%a, multiplier=1073741824, shift={shift})", (of("int32", 3, -3),), (of("int32", 0, 0),))  # fmt: skip


def wholes() -> list[Whole]:
    """Every row on whole tensors."""
    return [*reductions(), *orders(), *indices(), *networks()]
