"""Sizes that do not fit are refused at run time, by the interpreter as by native code, in the same words where both count."""

from __future__ import annotations

from collections.abc import Sequence

import mirstack
import numpy as np
import pytest
from mirstack.support.diagnostics import MirError

CONV = "nn.conv2d(%x, %w, groups=2, channels=4, kernel_size=[3, 3])"
CASES = [
    (CONV, "?, ?, ?, ?", "?, ?, ?, 3", (1, 4, 5, 5), (6, 2, 3, 3), "nn.conv2d: dimension 0 of 'weight' is 6, but must be 4"),
    (CONV, "?, ?, ?, ?", "?, ?, ?, 3", (1, 4, 5, 5), (4, 2, 2, 3), "nn.conv2d: dimension 2 of 'weight' is 2, but must be 3"),
    ("add(%x, %w)", "?, 2", "?, 2", (3, 2), (4, 2), "add: dimension 0 of 'lhs' and dimension 0 of 'rhs' do not broadcast: they are 3 and 4"),
    ("nn.dense(%x, %w)", "2, ?", "3, ?", (2, 3), (3, 4), "nn.dense: dimension 1 of 'weight' is 4, but dimension 1 of 'data' is 3"),
    ("nn.conv2d(%x, %w, groups=2)", "?, ?, ?, ?", "?, ?, 1, 1", (1, 6, 2, 2), (4, 2, 1, 1), "nn.conv2d: dimension 1 of 'data' is 6, but dimension 1 of 'weight' * 2 is 4"),
    ("nn.conv2d(%x, %w, groups=2)", "?, ?, ?, ?", "?, ?, 1, 1", (1, 5, 2, 2), (4, 2, 1, 1), "nn.conv2d: dimension 1 of 'data' leaves 1 when it is divided by 2"),
    ('layout_transform(%x, src_layout="NC", dst_layout="NC4c")', "2, ?", "1", (2, 6), (1,), "layout_transform: dimension 1 of 'data' leaves 2 when it is divided by 4"),
    ("vision.yolo_reorg(%x, stride=2)", "?, 4, ?, 2", "1", (1, 4, 0, 2), (1,), "vision.yolo_reorg: dimension 2 of 'data' must be 1 at least, but is 0"),
    ("vision.yolo_reorg(%x, stride=2)", "?, 4, ?, 2", "1", (1, 4, 3, 2), (1,), "vision.yolo_reorg: dimension 2 of 'data' leaves 1 when it is divided by 2"),
    ("nn.avg_pool2d_grad(%x, %w, pool_size=[2, 2], strides=[2, 2], padding=[0, 0])", "1, 1, ?, 1", "1, 1, ?, 2", (1, 1, 3, 1), (1, 1, 5, 2), "nn.avg_pool2d_grad: (dimension 2 of 'data' - 2) // 2 + 1 is 2, but dimension 2 of 'out_grad' is 3"),
    ("nn.fifo_buffer(%x, %w, axis=0)", "?, 1", "?, 1", (3, 1), (2, 1), "nn.fifo_buffer: dimension 0 of 'data' is 3, but must be at most dimension 0 of 'buffer', 2"),
    ("nn.fifo_buffer(%x, %w, axis=0)", "?, 1", "2, 1", (3, 1), (2, 1), "nn.fifo_buffer: dimension 0 of 'data' is 3, but must be at most 2"),
    ("variance(%x, %w, axis=[1], keepdims=True)", "?, 2", "?, 1", (3, 2), (2, 1), "variance: dimension 0 of 'with_mean' is 2, which does not broadcast to 3, dimension 0 of 'data'"),
    ("variance(%x, %w, axis=[1], keepdims=True)", "3, 2", "?, 1", (3, 2), (2, 1), "variance: dimension 0 of 'with_mean' is 2, which does not broadcast to 3"),
    ("variance(%x, %w, axis=[1], keepdims=True)", "?, 2", "2, 1", (3, 2), (2, 1), "variance: 2 does not broadcast to 3, dimension 0 of 'data'"),
    ("nn.layer_norm(%x, %w, %w, center=False, scale=False)", "2, ?", "?", (2, 3), (1,), "nn.layer_norm: dimension 0 of 'gamma' is 1, but dimension 1 of 'data' is 3"),
    ("nn.sparse_add(%x, %w, zeros(shape=[2], dtype=\"int32\"), zeros(shape=[3], dtype=\"int32\"))", "?, 2", "?", (3, 2), (2,), "nn.sparse_add: dimension 0 of 'dense_data' is 3, but must be 2"),
    ("sliding_window(%x, axis=0, window_shape=[3], strides=[1])", "?", "1", (2,), (1,), "sliding_window: dimension 0 of 'data' must be 3 at least, but is 2"),
    ('qnn.dequantize(cast(%x, dtype="int8"), %w, zeros(shape=[2], dtype="int32"), axis=0)', "?, 3", "?", (2, 3), (1,), "qnn.dequantize: dimension 0 of 'input_scale' is 1, but dimension 0 of 'data' is 2"),
    ("nn.contrib_conv2d_winograd_without_weight_transform(%x, %w, tile_size=2, channels=1, kernel_size=[3, 3])", "1, 1, ?, 4", "4, 4, 1, 1", (1, 1, 2, 4), (4, 4, 1, 1), "nn.contrib_conv2d_winograd_without_weight_transform: dimension 2 of 'data' - 3 + 1 must be 1 at least, but is 0"),
    ("concatenate((%x, %w), axis=0)", "2, ?", "2, ?", (2, 3), (2, 4), "dimension 1 of field 0 of 'data' is 3, but dimension 1 of field 1 of 'data' is 4"),
]  # fmt: skip


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize(("body", "left", "right", "x", "w", "said"), CASES)
def test_sizes_that_do_not_fit(
    body: str, left: str, right: str, x: Sequence[int], w: Sequence[int], said: str, target: str
) -> None:
    text = f"def @main(%x: Tensor[({left}), float32], %w: Tensor[({right}), float32]) {{\n  {body}\n}}"
    executable = mirstack.compile(mirstack.parse(text, name="a.mir"), target)  # type: ignore[call-overload]
    with pytest.raises(MirError) as error:
        executable(np.ones(x, np.float32), np.ones(w, np.float32))
    assert said in str(error.value)
    assert str(error.value).startswith("a.mir:2:3: error: ")


REFUSED = [
    ("nn.contrib_conv2d_winograd_output_transform(%y, tile_size=2, output_size=[6, 6])", "nn.contrib_conv2d_winograd_output_transform: 'products' (Tensor[(2, ?, ?, 9, 2), float32]) must be of known size"),
    ("squeeze(%x)", "squeeze: a dimension of 'data' (Tensor[(?, 1), float32]) is known only at run time, but says how many axes are left"),
    ("scatter_nd(%x, %i, %x)", "scatter_nd: dimension 0 of 'indices' (Tensor[(?, 1), int32]) is known only at run time, but says how many axes are indexed"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "said"), REFUSED)
def test_a_rank_of_sizes_of_the_call(body: str, said: str) -> None:
    """How many dimensions a result has is known when the program is compiled."""
    with pytest.raises(MirError) as error:
        mirstack.compile(
            mirstack.parse(
                f"def @main(%x: Tensor[(?, 1), float32], %y: Tensor[(2, ?, ?, 9, 2), float32], %i: Tensor[(?, 1), int32]) {{\n  {body}\n}}",
                name="a.mir",
            )
        )
    assert str(error.value).startswith(f"a.mir:2:3: error: {said}")


@pytest.mark.parametrize("data", ["2, 3, 2", "?, ?, ?"])
def test_sums_down_to_sizes_of_the_call(data: str) -> None:
    """What is summed is known when a size turns out as 1; where nothing is, elements arrive as they were."""
    module = mirstack.parse(
        f"""def @main(%x: Tensor[({data}), float32], %y: Tensor[(?, ?), float32], %z: Tensor[(?, ?, ?), float32]) {{
          (collapse_sum_like(%x, %y), collapse_sum_like(%x, %z)) }}"""
    )
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    x[0, 0, 0] = -0.0
    runs = [mirstack.compile(module, "interp"), mirstack.compile(module, opt_level=0), mirstack.compile(module)]
    for sizes in np.ndindex(2, 2, 2):
        like = np.zeros([size if keep else 1 for size, keep in zip(x.shape, sizes, strict=True)], np.float32)
        gone = tuple(axis for axis in range(3) if not sizes[axis])
        for run in runs:
            below, beside = map(np.asarray, run(x, like[0], like))
            np.testing.assert_array_equal(below, x.sum(0, keepdims=True).sum(gone, keepdims=True)[0])
            np.testing.assert_array_equal(beside, x.sum(gone, keepdims=True))
            assert np.signbit(beside).any() == (not gone)
    for run in runs:
        with pytest.raises(MirError, match="dimension 1 of 'collapse_type'"):
            run(x, np.ones((3, 1), np.float32), np.ones((2, 2, 2), np.float32))


@pytest.mark.parametrize(
    "body",
    [
        'nn.mirror_pad(%x, mode="SYMMETRIC", pad_width=[[0, 0], [3, 5]])',
        'nn.mirror_pad(%x, mode="REFLECT", pad_width=[[1, 0], [3, 5]])',
        'nn.pad(%x, 0f, pad_mode="reflect", pad_width=[[0, 0], [1, 7]])',
    ],
)
def test_reflections_of_few_elements(body: str) -> None:
    """Fewer elements than are asked for beside them are reflected again and again."""
    module = mirstack.parse(f"def @main(%x: Tensor[(?, ?), float32]) {{ {body} }}")
    runs = [mirstack.compile(module, "interp"), mirstack.compile(module, opt_level=0), mirstack.compile(module)]
    for size in (1, 2, 4, 9):
        x = np.arange(3 * size, dtype=np.float32).reshape(3, size)
        wanted, *others = (np.asarray(run(x)) for run in runs)
        for got in others:
            np.testing.assert_array_equal(got, wanted)


def test_stretching_to_fewer_dimensions() -> None:
    text = "def @main(%x: Tensor[(3, 1), float32], %s: Tensor[(1), int64]) {\n  dyn.broadcast_to(%x, %s)\n}"
    with pytest.raises(MirError) as error:
        mirstack.parse(text, name="a.mir")
    said = "dyn.broadcast_to: 'data' (Tensor[(3, 1), float32]) has rank 2, but the new shape has 1 dimension"
    assert str(error.value).startswith(f"a.mir:2:3: error: {said}")
