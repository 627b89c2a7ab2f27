"""Windows along rows: depthwise, grouped and thin convolutions and pooling against float64, on several processors."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.dialects.array import numpy_dtype
from mirstack.lowering.driver.build import assembly_text
from mirstack.lowering.pipeline import Options
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.autoschedule.default_schedule import DefaultSchedule
from xdsl.context import Context

CPUS = (None, "haswell", "x86-64")

# channels, height, width, filters, kernel, stride, dilation, groups, padding
CONVS = [
    (6, 14, 14, 6, 3, 1, 1, 6, 1),
    (5, 28, 56, 5, 3, 2, 1, 5, 1),
    (8, 13, 17, 8, 5, 1, 1, 8, 2),
    (4, 29, 31, 4, 5, 2, 1, 4, 2),
    (3, 30, 23, 12, 3, 1, 2, 3, 2),  # four filters to a channel
    (3, 32, 64, 20, 3, 1, 1, 1, 1),
    (3, 33, 47, 16, 7, 2, 1, 1, 3),
    (32, 12, 28, 32, 3, 1, 1, 8, 1),
    (48, 9, 20, 96, 3, 2, 1, 4, 0),
    (64, 10, 12, 64, 1, 1, 1, 2, 0),
    (3, 40, 64, 8, 3, 3, 1, 1, 1),
    (3, 20, 66, 8, 1, 4, 1, 1, 0),
    (3, 5, 37, 3, 3, 1, 1, 3, 1),  # rows that end within a vector
    (3, 11, 75, 24, 3, 2, 1, 1, 0),
    (2, 12, 19, 2, 7, 1, 1, 2, 3),
    (3, 31, 21, 3, 9, 1, 1, 3, 4),  # rows that fill no tile
    (3, 40, 37, 3, 5, 2, 2, 3, 4),
    (30, 14, 14, 30, 3, 2, 1, 30, 1),  # rows of whole vectors that are sorted out
    (4, 27, 28, 4, 5, 2, 1, 4, 2),
    (24, 9, 32, 20, 3, 1, 3, 1, 3),  # sums of many products along rows of whole vectors
    (3, 13, 47, 24, 5, 1, 1, 1, 2),
    (3, 41, 64, 24, 4, 4, 1, 1, 0),  # too far apart for that
]


def reference(x: Any, w: Any, stride: int, dilation: int, groups: int, padding: int) -> Any:
    """The convolution in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    reach = dilation * (w.shape[2] - 1) + 1
    views = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), axis=(2, 3))
    views = views[:, :, ::stride, ::stride, ::dilation, ::dilation]
    size = x.shape[1] // groups
    parts = [
        np.einsum("nchwij,kcij->nkhw", views[:, g * size : (g + 1) * size], part.astype(np.float64))
        for g, part in enumerate(np.split(w, groups))
    ]
    return np.concatenate(parts, axis=1)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("case", CONVS, ids=str)
def test_convolutions(case: tuple[int, ...], cpu: str | None) -> None:
    channels, height, width, filters, kernel, stride, dilation, groups, padding = case
    generator = np.random.default_rng(height)
    x = generator.standard_normal((2, channels, height, width), dtype=np.float32)
    depthwise = groups == channels
    shape = (channels, filters // channels) if depthwise else (filters, channels // groups)
    w = generator.standard_normal((*shape, kernel, kernel), dtype=np.float32)
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{x.shape}, float32], %w: Tensor[{w.shape}, float32], %b: Tensor[({filters}), float32]) {{
  %0 = nn.conv2d(%x, %w, strides=[{stride}, {stride}], padding=[{padding}, {padding}, {padding}, {padding}],
    dilation=[{dilation}, {dilation}], groups={groups}, channels={filters}, kernel_size=[{kernel}, {kernel}]);
  nn.relu(nn.bias_add(%0, %b))
}}"""
    b = generator.standard_normal(filters, dtype=np.float32)
    run: Any = mirstack.compile(mirstack.parse(text), cpu=cpu, threads=2)
    flat = w.reshape(filters, 1, kernel, kernel) if depthwise else w
    wanted = np.maximum(reference(x, flat, stride, dilation, groups, padding) + b[None, :, None, None], 0)
    np.testing.assert_allclose(run(x, w, b), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("case", [(21, 9, 10, 5, 1, 1), (40, 12, 17, 3, 2, 1), (16, 11, 15, 3, 1, 2)], ids=str)
def test_channels_last(case: tuple[int, ...], cpu: str | None) -> None:
    """Vectors of channels, each with filters of its own."""
    channels, height, width, kernel, stride, dilation = case
    padding = dilation * (kernel // 2)
    generator = np.random.default_rng(width)
    x = generator.standard_normal((1, height, width, channels), dtype=np.float32)
    w = generator.standard_normal((kernel, kernel, channels, 1), dtype=np.float32)
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{x.shape}, float32], %w: Tensor[{w.shape}, float32]) {{
  nn.relu(nn.conv2d(%x, %w, strides=[{stride}, {stride}], padding=[{padding}, {padding}, {padding}, {padding}],
    dilation=[{dilation}, {dilation}], groups={channels}, channels={channels}, kernel_size=[{kernel}, {kernel}],
    data_layout="NHWC", kernel_layout="HWOI"))
}}"""
    run: Any = mirstack.compile(mirstack.parse(text), cpu=cpu, threads=2)
    flat = (x.transpose(0, 3, 1, 2), w.transpose(2, 3, 0, 1))
    wanted = np.maximum(reference(*flat, stride, dilation, channels, padding), 0).transpose(0, 2, 3, 1)
    np.testing.assert_allclose(run(x, w), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("is_max", [True, False])
@pytest.mark.parametrize(
    "case", [(28, 3, 1, 1), (56, 3, 2, 1), (55, 3, 2, 0), (14, 2, 2, 0), (20, 5, 1, 2), (7, 3, 1, 1)], ids=str
)
def test_pooling(case: tuple[int, ...], is_max: bool, cpu: str | None) -> None:
    size, window, stride, padding = case
    generator = np.random.default_rng(size)
    x = generator.standard_normal((1, 5, size, size + 3), dtype=np.float32)
    name = "max" if is_max else "avg"
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{x.shape}, float32]) {{
  nn.{name}_pool2d(nn.relu(%x), pool_size=[{window}, {window}], strides=[{stride}, {stride}],
    padding=[{padding}, {padding}, {padding}, {padding}])
}}"""
    module = mirstack.parse(text)
    run: Any = mirstack.compile(module, cpu=cpu, threads=2)
    interpreted: Any = mirstack.compile(module, target="interp")
    np.testing.assert_allclose(run(x), interpreted(x), rtol=1e-5, atol=1e-6)


def test_what_follows_groups() -> None:
    """Three operators behind a convolution in groups, which other rules look at when its block is another one already."""
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((1, n, 9, 12), dtype=np.float32) for n in (8, 3))
    w = generator.standard_normal((16, 2, 3, 3), dtype=np.float32)
    text = f"""#[version = "0.0.5"]
def @main(%x: Tensor[{x.shape}, float32], %y: Tensor[{y.shape}, float32], %w: Tensor[{w.shape}, float32]) {{
  %0 = nn.conv2d(%x, %w, padding=[2, 2, 2, 2], dilation=[2, 2], groups=4, channels=16, kernel_size=[3, 3]);
  %1 = concatenate((%y, %0, %y), axis=1);
  nn.relu(reshape(%1, newshape=[22, 9, 12]))
}}"""
    module = mirstack.parse(text)
    run: Any = mirstack.compile(module, threads=1)
    interpreted: Any = mirstack.compile(module, target="interp")
    np.testing.assert_allclose(run(x, y, w), interpreted(x, y, w), rtol=1e-4, atol=1e-5)


def test_groups_have_an_axis() -> None:
    module = parse_mir("""
@T.prim_func
def main(A: T.Buffer((8, 34), "float32"), W: T.Buffer((8, 4, 3), "float32"), C: T.Buffer((8, 32), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    for k, x, c, r in T.grid(8, 32, 4, 3):
        with T.block("conv"):
            vk, vx, vc, vr = T.axis.remap("SSRR", [k, x, c, r])
            with T.init():
                C[vk, vx] = T.float32(0)
            C[vk, vx] = C[vk, vx] + A[vk // 4 * 4 + vc, vx + vr] * W[vk, vc, vr]
""")
    DefaultSchedule(cpu="znver4", threads=1).apply(Context(), module)
    printed = print_mir(module)
    assert "T.alloc_buffer((2, 4, 4, 3))" in printed  # the filters by groups
    assert "// 4 * 4" not in printed
    assert 'T.alloc_buffer((2, 4, 32), scope="local")' in printed


@pytest.mark.parametrize("cpu", CPUS)
def test_a_nan_is_the_maximum_of_its_windows(cpu: str | None) -> None:
    x = np.random.default_rng(0).standard_normal((1, 3, 17, 19), dtype=np.float32)
    x[0, 1, 8, 9], x[0, 2, 3, 3] = np.nan, -np.inf
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 17, 19), float32]) {
  nn.max_pool2d(%x, pool_size=[5, 5], padding=[2, 2, 2, 2])
}
"""
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), constant_values=np.finfo(np.float32).min)
    wanted = np.lib.stride_tricks.sliding_window_view(padded, (5, 5), axis=(2, 3)).max((4, 5))
    np.testing.assert_array_equal(mirstack.compile(mirstack.parse(text), cpu=cpu)(x), wanted)


@pytest.mark.parametrize(
    ("rank", "attributes", "dtype"),
    [
        (2, "pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]", "float32"),
        (2, "pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], ceil_mode=True", "float64"),
        (2, "pool_size=[5, 4], padding=[4, 0, 1, 3]", "float32"),
        (2, "pool_size=[3, 3], padding=[2, 2, 2, 2], dilation=[2, 2]", "float32"),
        (2, "pool_size=[3, 5], padding=[0, 4, 0, 4], dilation=[2, 2]", "float32"),
        (2, "pool_size=[3, 3], padding=[1, 1, 1, 1]", "int8"),
        (2, "pool_size=[3, 3], padding=[1, 1, 1, 1]", "float16"),
        (2, "pool_size=[3, 3], padding=[1, 1, 1, 1]", "bfloat16"),
        (3, "pool_size=[2, 3, 3], strides=[1, 2, 2], padding=[1, 1, 1, 1, 1, 1]", "float32"),
    ],
)
def test_maxima_across_rows_and_along_them(rank: int, attributes: str, dtype: str) -> None:
    shape = (2, 3, 5, 19, 37)[:2] + (5, 19, 37)[3 - rank :]
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(numpy_dtype(dtype))
    module = mirstack.parse(f"""#[version = "0.0.5"]
def @main(%x: Tensor[{shape}, {dtype}]) {{
  nn.max_pool{rank}d(%x, {attributes})
}}""")
    run: Any = mirstack.compile(module, threads=2)
    interpreted: Any = mirstack.compile(module, target="interp")
    np.testing.assert_array_equal(run(x), interpreted(x))


@pytest.mark.parametrize("cpu", ["haswell", "x86-64"])
def test_maxima_across_rows_stay_near(cpu: str) -> None:
    """They are made for a part of a plane at a time, by the thread that reads them, in whole registers."""
    printed: dict[str, str] = {}

    def keep(step: Any, module: Any) -> None:
        if step.name in ("default-schedule", "vectorize-loop"):
            printed[step.name] = print_mir(module)

    module = mirstack.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 16, 112, 112), float32]) {
  nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])
}""")
    mirstack.compile(module, cpu=cpu, threads=2, observers=(keep,))
    assert "T.parallel(16)" in printed["default-schedule"]
    assert "pool_rows = T.decl_buffer((1, 1, 14, 113))" in printed["vectorize-loop"]
    assert ".vstore(" not in printed["vectorize-loop"]


def scheduled(size: int, stride: int, kernel: int) -> str:
    """A depthwise convolution as it is scheduled for AVX2."""
    printed: list[str] = []

    def keep(step: Any, module: Any) -> None:
        if step.name == "default-schedule":
            printed.append(print_mir(module))

    mirstack.compile(mirstack.parse(depthwise(size, stride, kernel)), cpu="haswell", threads=2, observers=(keep,))
    return printed[0]


def depthwise(size: int, stride: int, kernel: int) -> str:
    return f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 32, {size}, {size}), float32], %w: Tensor[(32, 1, {kernel}, {kernel}), float32]) {{
  nn.conv2d(%x, %w, strides=[{stride}, {stride}], padding={[kernel // 2] * 4}, groups=32, channels=32, kernel_size=[{kernel}, {kernel}])
}}"""


@pytest.mark.parametrize(("cpu", "masked"), [("haswell", False), ("znver4", True)])
def test_masked_stores_where_they_are_quick(cpu: str, masked: bool) -> None:
    """Elsewhere rows of seven end in stores of four, two and one."""
    options = Options(cpu=cpu, triple="x86_64-unknown-linux-gnu", threads=1)
    text = assembly_text(mirstack.parse(depthwise(14, 2, 3)), options)
    stored = re.findall(r"vmaskmovps\s+%ymm\d+, %ymm|vmovups\s+%[yz]mm\d+, .*\{%k\d\}", text)
    assert bool(stored) is masked


@pytest.mark.parametrize(("channels", "kernel", "size"), [(32, 1, 112), (3, 3, 112)])
def test_filters_are_loaded_where_they_are_used(channels: int, kernel: int, size: int) -> None:
    """WebAssembly has as many locals as one asks for: LLVM would load all taps ahead of a row, and the engine store them."""
    module = mirstack.parse(f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, {channels}, {size}, {size}), float32], %w: Tensor[(64, {channels}, {kernel}, {kernel}), float32]) {{
  nn.conv2d(%x, %w, channels=64, kernel_size=[{kernel}, {kernel}])
}}""")
    text = assembly_text(module, Options(cpu="wasm32", triple="wasm32-unknown-unknown", threads=1))
    assert 4 <= text.count("v128.load32_splat") <= 14


def test_halves_of_vectors_take_as_long_as_whole_ones() -> None:
    text = scheduled(28, 1, 5)
    assert "T.vectorized(8)" in text and "T.vectorized(4)" not in text.split("conv2d_init")[0]


def test_strided_rows_are_sorted_out_once() -> None:
    text = scheduled(14, 2, 3)
    assert "T.alloc_buffer((1, 32, 16, 2, 8))" in text
    # Rows of 30 are no whole vectors.
    assert "T.alloc_buffer((1, 32, 30, 30))" in scheduled(28, 2, 3)


def test_long_rows_are_zero_before_they_are_copied() -> None:
    text = scheduled(28, 1, 3)
    assert "pad_const" in text and "pad_const" not in scheduled(14, 1, 3)
    assert "T.parallel(" in text


def test_groups_of_one_image_are_shared_out() -> None:
    """Filters of a group share its inputs: what pads them is computed before, for all groups."""
    printed: dict[str, str] = {}

    def keep(step: Any, module: Any) -> None:
        if step.name == "default-schedule":
            printed[step.name] = print_mir(module)

    module = mirstack.parse("""#[version = "0.0.5"]
def @main(%x: Tensor[(1, 256, 28, 28), float32], %w: Tensor[(256, 8, 3, 3), float32]) {
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=32, channels=256, kernel_size=[3, 3])
}""")
    mirstack.compile(module, cpu="znver4", threads=2, observers=(keep,))
    before, _, sums = printed["default-schedule"].partition('T.block("pad_temp")')
    assert "T.parallel(32)" in sums and "T.parallel(" in before
