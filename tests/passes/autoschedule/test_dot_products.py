"""Contractions of bytes and bfloat16 by dot products: exact for bytes, summed in float32, for any extents and on every target."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import ml_dtypes
import numpy as np
import pytest
from mirstack.lowering.pipeline import Options, lowering_passes
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from mirstack.passes.schedule.engine.dot_intrinsics import dot_intrinsic, dot_name, interleave_name
from mirstack.support.target import named
from xdsl.context import Context

CPUS = (None, "haswell", "x86-64") if named("").arch == "x86_64" else (None,)
SHAPES = [(4, 16, 4), (16, 64, 64), (33, 17, 29), (5, 100, 130), (67, 131, 41), (48, 96, 256), (7, 10, 1000)]


def product(m: int, n: int, k: int, a: str, b: str, *, by_columns: bool = False, swapped: bool = False) -> str:
    """D = max(A B, -5), B given as n x k, or k x n `by_columns`; `swapped`: as B A."""
    c = "float32" if a == "bfloat16" else "int32"
    shape, index = (f"({k}, {n})", "vk, vj") if by_columns else (f"({n}, {k})", "vj, vk")
    factors = [f'T.Cast("{c}", A[vi, vk])', f'T.Cast("{c}", B[{index}])']
    if swapped:
        factors.reverse()
    return f"""
@T.prim_func
def main(A: T.Buffer(({m}, {k}), "{a}"), B: T.Buffer({shape}, "{b}"), D: T.Buffer(({m}, {n}), "{c}")):
    T.func_attr({{"tir.noalias": T.bool(True)}})
    C = T.alloc_buffer(({m}, {n}), "{c}")
    for i, j, k in T.grid({m}, {n}, {k}):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.{c}(0)
            C[vi, vj] = C[vi, vj] + {factors[0]} * {factors[1]}
    for i, j in T.grid({m}, {n}):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.{c}(-5))
"""


def draw(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    if dtype == "bfloat16":
        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    limits = np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)
    # Whole rows of the least and the greatest: sums of pairs that 16 bits do not hold.
    values[0], values[-1] = limits.min, limits.max
    return values


def scheduled(text: str, cpu: str) -> str:
    module = parse_mir(text)
    DefaultSchedule(cpu=cpu, threads=1).apply(Context(), module)
    return print_mir(module)


SIGNS = [("uint8", "int8"), ("int8", "int8"), ("int8", "uint8"), ("uint8", "uint8")]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(
    ("shape", "signs"), [*zip(SHAPES, SIGNS * 2, strict=False), (SHAPES[2], SIGNS[1]), (SHAPES[4], SIGNS[3])]
)
def test_bytes_are_exact(shape: tuple[int, int, int], signs: tuple[str, str], cpu: str | None) -> None:
    (m, n, k), (a, b) = shape, signs
    by_columns, swapped = m % 2 == 1, n % 2 == 1
    x, y = draw(a, (m, k), 0), draw(b, (k, n) if by_columns else (n, k), 1)
    d = np.zeros((m, n), "int32")
    mirstack.compile(mirstack.parse(product(m, n, k, a, b, by_columns=by_columns, swapped=swapped)), cpu=cpu)(x, y, d)
    wide = x.astype("int64") @ (y if by_columns else y.T).astype("int64")
    np.testing.assert_array_equal(d, np.maximum(wide, -5))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape", [*SHAPES, (13, 40, 600)])
def test_shorts_wrap_as_int32_does(shape: tuple[int, int, int], cpu: str | None) -> None:
    m, n, k = shape
    x, y, d = draw("int16", (m, k), 0), draw("int16", (n, k), 1), np.zeros((m, n), "int32")
    mirstack.compile(mirstack.parse(product(m, n, k, "int16", "int16")), cpu=cpu)(x, y, d)
    wide = x.astype("int64") @ y.T.astype("int64")
    np.testing.assert_array_equal(d, np.maximum(wide.astype("int32"), -5))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("shape", SHAPES)
def test_bfloat16_is_summed_in_float32(shape: tuple[int, int, int], cpu: str | None) -> None:
    m, n, k = shape
    x, y, d = draw("bfloat16", (m, k), 0), draw("bfloat16", (n, k), 1), np.zeros((m, n), "float32")
    mirstack.compile(mirstack.parse(product(m, n, k, "bfloat16", "bfloat16")), cpu=cpu)(x, y, d)
    exact = x.astype("float64") @ y.astype("float64").T
    np.testing.assert_allclose(d, np.maximum(exact, -5), rtol=1e-4, atol=1e-4 * k**0.5)


@pytest.mark.parametrize(
    ("cpu", "intrinsic"),
    [
        ("znver4", "dot_16x4_u8i8i32"),
        ("alderlake", "dot_8x4_u8i8i32"),
        ("haswell", "dot_8x2_u8i8i32"),
        ("neoverse-n1", "dot_4x4_u8i8i32"),
    ],
)
def test_the_intrinsic_fits_the_target(cpu: str, intrinsic: str) -> None:
    text = DefaultSchedule(cpu=cpu, threads=1, print=True)
    module = parse_mir(product(32, 64, 64, "uint8", "int8"))
    text.apply(Context(), module)
    assert f'tensor_intrin="{intrinsic}"' in print_mir(module)
    assert "T.vector_dot(" in scheduled(product(32, 64, 64, "uint8", "int8"), cpu)


def test_arm_without_dot_products_widens() -> None:
    assert "T.vector_dot(" not in scheduled(product(32, 64, 64, "uint8", "int8"), "cortex-a72")


@pytest.mark.parametrize(
    "edit",
    [
        ("C[vi, vj] + T.Cast", "C[vi, vj] - T.Cast"),
        ('T.Cast("int32", A[vi, vk])', 'T.Cast("int32", T.Cast("int16", A[vi, vk]))'),
        ("A[vi, vk]", "A[vi, T.max(vk - 1, 0)]"),
    ],
)
def test_other_sums_are_left_to_other_rules(edit: tuple[str, str]) -> None:
    text = product(32, 64, 64, "uint8", "int8").replace(*edit)
    assert "T.vector_dot(" not in scheduled(text, "znver4")


def convolution(layout: str, kind: str, image: tuple[int, ...], channels: int, window: int, attrs: str) -> str:
    n, c, h, w = image
    data = f"({n}, {c}, {h}, {w})" if layout == "NCHW" else f"({n}, {h}, {w}, {c})"
    weight = f"({channels}, {c}, {window}, {window})" if layout == "NCHW" else f"({window}, {window}, {c}, {channels})"
    wide = "float32" if kind == "bfloat16" else "int32"
    other = kind if kind == "bfloat16" else "int8"
    kernel = "OIHW" if layout == "NCHW" else "HWIO"
    return f"""#[version = "0.0.5"]
def @main(%x: Tensor[{data}, {kind}], %w: Tensor[{weight}, {other}]) {{
  nn.relu(nn.conv2d(%x, %w, channels={channels}, kernel_size=[{window}, {window}], data_layout="{layout}", kernel_layout="{kernel}", out_dtype="{wide}", {attrs}))
}}"""


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(
    ("image", "channels", "window", "attrs"),
    [
        ((1, 16, 8, 8), 32, 3, "padding=[1, 1]"),
        ((2, 3, 9, 11), 20, 3, "padding=[1, 1]"),
        ((1, 8, 7, 7), 17, 1, "padding=[0, 0]"),
        ((1, 5, 13, 13), 16, 5, "padding=[2, 2], strides=[2, 2]"),
        ((1, 8, 12, 12), 16, 3, "padding=[2, 2], dilation=[2, 2]"),
    ],
)
@pytest.mark.parametrize("kind", ["uint8", "int8", "bfloat16"])
def test_convolutions(kind: str, image: tuple[int, ...], channels: int, window: int, attrs: str, layout: str) -> None:
    module = mirstack.parse(convolution(layout, kind, image, channels, window, attrs))
    fast, plain = mirstack.compile(module), mirstack.compile(module, opt_level=0)
    inputs = [draw(str(p.dtype), tuple(map(int, p.shape)), k) for k, p in enumerate(fast.params)]
    found, expected = fast(*inputs), plain(*inputs)
    if kind == "bfloat16":
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize(("kind", "stored"), [("uint8", "int8"), ("bfloat16", "bfloat16"), ("float16", "float16")])
def test_sums_are_stored_as_smaller_elements(kind: str, stored: str, cpu: str | None) -> None:
    """Rows of them lie across the vectors of sums."""
    other = "int8" if kind == "uint8" else kind
    wide = "int32" if kind == "uint8" else "float32"
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8, 9, 10), {kind}], %w: Tensor[(20, 8, 3, 3), {other}]) {{
  cast(nn.relu(nn.conv2d(%x, %w, channels=20, kernel_size=[3, 3], padding=[1, 1], out_dtype="{wide}")), dtype="{stored}")
}}"""
    module = mirstack.parse(text)
    fast, plain = mirstack.compile(module, cpu=cpu), mirstack.compile(module, opt_level=0)
    x, w = (
        np.random.default_rng(0).integers(0, 9, (1, 8, 9, 10)),
        np.random.default_rng(1).integers(-3, 4, (20, 8, 3, 3)),
    )
    types = {"bfloat16": ml_dtypes.bfloat16}
    inputs = [x.astype(types.get(kind, kind)), w.astype(types.get(other, other))]
    np.testing.assert_array_equal(np.asarray(fast(*inputs)), np.asarray(plain(*inputs)))


@pytest.mark.parametrize(("a", "b", "group"), [("uint8", "int8", 4), ("bfloat16", "bfloat16", 2)])
def test_groups_are_packed_as_words(a: str, b: str, group: int) -> None:
    """What is packed at every call is not moved byte by byte, where it lies along k."""
    text = scheduled(product(32, 64, 64, a, b), "znver4")
    assert re.search(rf'in T\.vectorized\({group}\):\s+with T\.block\("B_global"\)', text)


def test_names_of_intrinsics() -> None:
    assert dot_name(16, 4, "uint8", "int8", "int32") == "dot_16x4_u8i8i32"
    assert dot_name(8, 2, "bfloat16", "bfloat16", "float32", True) == "dot_8x2_bf16bf16f32_ba"
    for name in ("dot_16x4_u8i8i32", "dot_8x2_bf16bf16f32_ba", "dot_5x3_i8u8i32", "dot_4x1_f32f32f32"):
        assert dot_intrinsic(name) is not None
    for name in ("dot_1x4_u8i8i32", "dot_16x4_u8f32i32", "dot_16x0_u8i8i32", "dp4a"):
        assert dot_intrinsic(name) is None


def test_rows_are_interleaved() -> None:
    text = convolution("NCHW", "uint8", (1, 8, 12, 12), 16, 3, "padding=[0, 0]")
    module = mirstack.parse(text)
    for step in lowering_passes(Options(cpu="znver4", threads=1)):
        if step.name == "default-schedule":
            DefaultSchedule(cpu="znver4", threads=1, print=True).apply(Context(), module)
            break
        step.apply(Context(), module)
    assert 'tensor_intrin="interleave_12x4_u8_3d"' in print_mir(module)
    assert interleave_name(12, 4, "uint8", 3) == "interleave_12x4_u8_3d"


def test_interpreted_after_scheduling() -> None:
    """The implementations of the intrinsics are programs, too, which the interpreter runs."""
    text = product(8, 32, 24, "int8", "int8")
    x, y = draw("int8", (8, 24), 0), draw("int8", (32, 24), 1)
    d = np.zeros((8, 32), "int32")
    mirstack.compile(mirstack.parse(scheduled(text, "znver4")), "interp")(x, y, d)
    np.testing.assert_array_equal(d, np.maximum(x.astype("int64") @ y.astype("int64").T, -5))


@pytest.mark.parametrize(
    "operator",
    [
        "nn.dense(%x, %w, units=40)",
        "nn.batch_matmul(expand_dims(%x, axis=0), expand_dims(%w, axis=0), transpose_b=True)",
    ],
)
@pytest.mark.parametrize("opt_level", [0, 3])
def test_half_precision_is_rounded_once(operator: str, opt_level: int) -> None:
    """Sums of 2000 terms in bfloat16 itself would be off by several percent."""
    text = f"def @main(%x: Tensor[(8, 2000), bfloat16], %w: Tensor[(40, 2000), bfloat16]) {{ {operator} }}"
    x, w = np.abs(draw("bfloat16", (8, 2000), 0)), np.abs(draw("bfloat16", (40, 2000), 1))
    found = np.asarray(mirstack.compile(mirstack.parse(text), opt_level=opt_level)(x, w)).reshape(8, 40)
    exact = x.astype("float64") @ w.astype("float64").T
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(found.astype("float64"), exact, rtol=2.0**-8)
