"""strict-math: native code on every processor computes floats bit for bit as the interpreter, and sums in the order that is stated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.array import numpy_dtype
from mirstack.lowering.driver.build import llvm_text
from mirstack.lowering.driver.cache.keys import context_key
from mirstack.lowering.pipeline import Options, lowering_passes
from mirstack.parser import parse_mir
from mirstack.passes.rules.annex.check.inputs import special_values
from mirstack.support.diagnostics import MirError
from numpy.typing import NDArray

Array = NDArray[Any]
CPUS = ("x86-64", "haswell", "skylake-avx512", "sapphirerapids")
UNARY = (
    "abs", "ceil", "cos", "erf", "exp", "floor", "log", "log2", "log10", "negative", "nn.relu", "round", "rsqrt", "sigmoid", "sign",
    "sin", "sqrt", "tan", "tanh", "trunc", "acos", "asin", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "nn.leaky_relu",
)  # fmt: skip
EXACT = ("abs", "ceil", "floor", "negative", "nn.relu", "round", "sign", "sqrt", "trunc", "rsqrt")
"""Those that are computed by operations which IEEE 754 defines to the last bit."""
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
SIZE = 203


def runnable() -> list[str]:
    """The processors whose code this one runs."""
    found: list[str] = []
    for cpu in CPUS:
        try:
            mirstack.compile(mirstack.parse("def @main(%x: float32) { %x }"), cpu=cpu, cache=False)
        except MirError:
            continue
        found.append(cpu)
    return found


@pytest.fixture(scope="module")
def cpus() -> list[str | None]:
    return [None, *runnable()]


def values(dtype: str, seed: int) -> Array:
    """Special and ordinary numbers."""
    generator = np.random.default_rng(seed)
    kind = numpy_dtype(dtype)
    with np.errstate(all="ignore"):
        ordinary = np.concatenate(
            [
                generator.uniform(-3, 3, SIZE // 4),
                generator.uniform(-90, 90, SIZE // 4),
                10.0 ** generator.uniform(-30, 30, SIZE // 4),
            ]
        ).astype(kind)
    special = generator.choice(special_values(dtype), SIZE - len(ordinary))
    return generator.permutation(np.concatenate([special, ordinary]))


def same_bits(a: Array, b: Array) -> Array:
    """Whether elements are equal, any NaN being as good as another."""
    if a.dtype.kind in "iub":
        return np.asarray(a == b)
    return np.asarray((a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b)))


def check_bits(text: str, args: Sequence[Array], cpus: Sequence[str | None], levels: Sequence[int] = (3,)) -> None:
    module = mirstack.parse(text)
    wanted = mirstack.compile(module, "interp")(*args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for cpu in cpus:
        for level in levels:
            got = mirstack.compile(module, strict_math=True, cpu=cpu, opt_level=level, cache=False)(*args)
            got = got if isinstance(got, tuple) else (got,)
            for number, (a, b) in enumerate(zip(wanted, got, strict=True)):
                a, b = np.asarray(a), np.asarray(b)
                wrong = ~same_bits(a, b)
                assert not wrong.any(), (cpu, level, number, a[wrong][:3], b[wrong][:3])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_operators(dtype: str, cpus: list[str | None]):
    unary = UNARY if dtype != "float64" else EXACT
    parts = [f"{name}(%x)" for name in unary] + [f"{name}(%x, %y)" for name in BINARY]
    if dtype != "float64":
        parts.append("power(%x, %y)")
    type_ = f"Tensor[({SIZE}), {dtype}]"
    # Of 16 bits they are those of float32, but for the rounding.
    some = cpus if dtype == "float32" else [None, *cpus[2:3]]
    check_bits(
        f"def @main(%x: {type_}, %y: {type_}) {{ ({', '.join(parts)}) }}", [values(dtype, 1), values(dtype, 2)], some
    )


def test_functions_of_float64_are_of_c():
    type_ = f"Tensor[({SIZE}), float64]"
    names = [name for name in UNARY if name not in EXACT and name not in ("erf", "sigmoid", "nn.leaky_relu")]
    module = mirstack.parse(f"def @main(%x: {type_}) {{ ({', '.join(f'{name}(%x)' for name in names)}) }}")
    x = values("float64", 1)
    for name, a, b in zip(
        names, mirstack.compile(module, "interp")(x), mirstack.compile(module, strict_math=True)(x), strict=True
    ):
        np.testing.assert_allclose(b, a, rtol=1e-15, atol=0, err_msg=name)


def expression(draw: random.Random, depth: int) -> str:
    """A random elementwise program of two arguments."""
    if not depth:
        return draw.choice(["%x", "%y", "%x", "%y", "0.5f", "3f", "-0f"])
    a = expression(draw, depth - 1)
    match draw.randrange(6):
        case 0:
            return f"{draw.choice(UNARY)}({a})"
        case 1:
            return f"where(less({a}, {expression(draw, depth - 1)}), {a}, %y)"
        case 2:
            return f'cast(cast({a}, dtype="float16"), dtype="float32")'
        case _:
            return f"{draw.choice(BINARY)}({a}, {expression(draw, depth - 1)})"


def test_random_programs(cpus: list[str | None]):
    draw = random.Random(7)
    parts = [f"add(multiply({expression(draw, 4)}, %x), {expression(draw, 3)})" for _ in range(12)]
    type_ = f"Tensor[({SIZE}), float32]"
    text = f"def @main(%x: {type_}, %y: {type_}) {{ ({', '.join(parts)}) }}"
    args = [values("float32", 3), values("float32", 4)]
    check_bits(text, args, cpus)
    check_bits(text, args, [None], (0, 1, 2))


SUMS = """
def @main(%x: Tensor[(6, 37), float32], %w: Tensor[(19, 37), float32], %v: Tensor[(37, 40), float32],
          %c: Tensor[(1, 3, 6, 7), float32], %k: Tensor[(5, 3, 3, 3), float32]) {
  (sum(%x, axis=[1]), sum(%x, axis=[0]), nn.dense(%x, %w), nn.matmul(%x, %v), nn.conv2d(%c, %k), prod(%x, axis=[1]))
}
"""


def in_order(terms: Array, axis: int, product: bool = False) -> Array:
    """The sum from 0, one term after the other."""
    start = np.full_like(np.take(terms, [0], axis), float(product))
    ufunc = np.multiply if product else np.add
    return np.take(ufunc.accumulate(np.concatenate([start, terms], axis), axis=axis), -1, axis)


def test_sums_take_their_terms_in_order(cpus: list[str | None]):
    generator = np.random.default_rng(0)
    shapes = ((6, 37), (19, 37), (37, 40), (1, 3, 6, 7), (5, 3, 3, 3))
    x, w, v, c, k = args = [generator.uniform(-9, 9, shape).astype(np.float32) for shape in shapes]
    windows = np.lib.stride_tricks.sliding_window_view(c[0], (3, 3), (1, 2)).transpose(1, 2, 0, 3, 4)
    products = (windows[None] * k[:, None, None]).reshape(5, 4, 5, -1)
    wanted = [
        in_order(x, 1), in_order(x, 0), in_order(x[:, None] * w[None], 2), in_order(x[:, :, None] * v[None], 1),
        in_order(products, 3)[None], in_order(x, 1, product=True),
    ]  # fmt: skip
    module = mirstack.parse(SUMS)
    for cpu in cpus:
        for level, threads in ((3, 1), (3, 4), (0, 1)):
            run = mirstack.compile(module, strict_math=True, cpu=cpu, opt_level=level, threads=threads, cache=False)
            for number, (a, b) in enumerate(zip(wanted, run(*args), strict=True)):
                assert np.array_equal(a, b), (cpu, level, threads, number)


NETWORK = """
def @main(%x: Tensor[(1, 8, 10, 10), float32], %k: Tensor[(8, 8, 3, 3), float32], %s: Tensor[(8), float32]) {
  %0 = nn.conv2d(%x, %k, padding=[1, 1]);
  %1 = nn.batch_norm(%0, %s, %s, %s, abs(%s));
  %2 = nn.relu(%1.0);
  %3 = nn.softmax(reshape(%2, newshape=[8, 100]));
  (nn.layer_norm(%3, sum(%3, axis=[0]), mean(%3, axis=[0])), nn.max_pool2d(%2, pool_size=[2, 2]), argmax(%3, axis=[1]))
}
"""


WINDOWS = """
def @main(%x: Tensor[(1, 8, 14, 14), float32], %w: Tensor[(8, 1, 3, 3), float32], %k: Tensor[(16, 4, 3, 3), float32]) {
  %0 = nn.conv2d(%x, %w, groups=8, padding=[1, 1]);
  (nn.conv2d(%0, %k, groups=2, strides=[2, 2]), nn.avg_pool2d(%0, pool_size=[3, 3]), nn.global_avg_pool2d(%x), nn.lrn(%x),
   cumsum(%x, axis=1), variance(%x, mean(%x, axis=[1], keepdims=True), axis=[1], keepdims=True), nn.log_softmax(%x))
}
"""
ROWS = """
def @main(%x: Tensor[(?, 40), float32], %w: Tensor[(24, 40), float32], %b: Tensor[(24), float32]) {
  %0 = nn.relu(add(nn.dense(%x, %w), %b));
  (nn.softmax(%0), mean(%0, axis=[0]), max(%0, axis=[1]), argmax(%0, axis=[1]))
}
"""
SHAPES = {
    NETWORK: ((1, 8, 10, 10), (8, 8, 3, 3), (8,)),
    WINDOWS: ((1, 8, 14, 14), (8, 1, 3, 3), (16, 4, 3, 3)),
    ROWS: ((13, 40), (24, 40), (24,)),
}


@pytest.mark.parametrize("text", SHAPES, ids=["network", "windows", "rows"])
def test_a_network_is_the_same_everywhere(text: str, cpus: list[str | None]):
    generator = np.random.default_rng(5)
    args = [generator.uniform(-1, 1, shape).astype(np.float32) for shape in SHAPES[text]]
    module = mirstack.parse(text)
    first: list[Array] | None = None
    for cpu in cpus:
        for level, threads in ((3, 2),) if cpu else ((3, 1), (3, 4), (1, 1), (0, 1)):
            run = mirstack.compile(module, strict_math=True, cpu=cpu, opt_level=level, threads=threads, cache=False)
            got = list(run(*args))
            first = first or got
            assert all(np.array_equal(a, b) for a, b in zip(first, got, strict=True)), (cpu, level, threads)
    assert first is not None
    for a, b in zip(mirstack.compile(module, "interp")(*args), first, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


def test_no_flag_is_left():
    text = llvm_text(parse_mir(SUMS), Options(strict_math=True))
    assert not any(word in text for word in (" contract ", " reassoc ", " nsz ", "llvm.fma", "llvm.fmuladd"))


def test_what_is_left_out():
    names = {name.name for name in lowering_passes(Options())}
    strict = {name.name for name in lowering_passes(Options(strict_math=True))}
    assert names - strict == {
        "backward-fold-scale-axis", "forward-fold-scale-axis", "conv2d-to-winograd", "fuse-attention",
    }  # fmt: skip
    assert strict <= names


def test_the_cache_tells_them_apart():
    assert context_key(Options(strict_math=True)) != context_key(Options())
