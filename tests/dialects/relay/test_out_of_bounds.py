"""Indices that lie outside a tensor: native code reads and writes no memory that is not its own."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.support.diagnostics import MirError

FAR = 900_000_000
MATRIX = np.arange(6, dtype=np.float32).reshape(3, 2)
ONES = np.ones(2, np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


USES: list[tuple[str, list[np.ndarray], list[float]]] = [
    ("gather_nd(%x0, %x1)", [MATRIX, ints(-FAR, FAR).reshape(2, 1)], [1]),
    ("gather(%x0, %x1, axis=0)", [MATRIX, ints(FAR, 0).reshape(1, 2)], [4, 1]),
    ('take(%x0, %x1, axis=0, mode="fast")', [MATRIX, ints(FAR)], [4, 5]),
    ("adv_index((%x0, %x1))", [MATRIX, ints(0, FAR)], [0, 1, 4, 5]),
    ("nn.nll_loss(%x0, %x1, %x2, ignore_index=-1)", [MATRIX[:2], ints(0, FAR), ONES], [-1.5]),
    ("nn.sparse_dense(%x0, %x1, %x2, %x3)", [MATRIX, ONES, ints(0, FAR), ints(0, 1, FAR)], [0, 1, 2, 3, 4, 5]),
    ("nn.sparse_add(%x0, %x1, %x2, %x3)", [MATRIX, ONES, ints(0, FAR), ints(0, 1, FAR, FAR)], [1, 1, 2, 4, 4, 5]),
    ("vision.roi_pool(%x0, %x1, pooled_size=[1, 1], spatial_scale=1f)", [MATRIX.reshape(1, 1, 3, 2), np.array([[FAR, 0, 0, 9, 9]], np.float32)], [5]),
]  # fmt: skip


@pytest.mark.parametrize(("use", "arrays", "wanted"), USES, ids=[use.split("(")[0] for use, *_ in USES])
def test_places_are_kept_inside(use: str, arrays: list[np.ndarray], wanted: list[float]) -> None:
    np.testing.assert_array_equal(np.asarray(run(use, arrays)).reshape(-1), wanted)


def test_rows_out_of_order_do_not_run_over() -> None:
    places = np.array([[FAR, 0], [0, 0], [-FAR, 0]], np.int64)
    arrays = [places, np.array([1, 2, 3], np.int64), np.array([2, 2], np.int64), np.array(7, np.int64)]
    with pytest.raises(MirError, match="the rows of 'sparse_indices' must ascend"):
        run("sparse_fill_empty_rows(%x0, %x1, %x2, %x3)", arrays)


def test_more_valid_boxes_than_there_are() -> None:
    boxes = np.array([[[0, 0.9, 0, 0, 1, 1], [0, 0.8, 2, 2, 3, 3]]], np.float32)
    arrays = [boxes, ints(FAR), ints(0, 1).reshape(1, 2), np.array(-1, np.int32), np.array(0.5, np.float32)]
    places, count = run("vision.non_max_suppression(%x0, %x1, %x2, %x3, %x4)", arrays)
    np.testing.assert_array_equal(places, [[0, 1]])
    np.testing.assert_array_equal(count, [[2]])


def run(use: str, arrays: list[np.ndarray]) -> Any:
    """A use of an operator, compiled."""
    types = [f"%x{n}: Tensor[({', '.join(map(str, a.shape))}), {a.dtype.name}]" if a.ndim else f"%x{n}: {a.dtype.name}" for n, a in enumerate(arrays)]  # fmt: skip
    return mirstack.compile(mirstack.parse(f"def @main({', '.join(types)}) {{ {use} }}"), "cpu")(*arrays)


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
def test_places_beyond_the_image_do_not_see_its_border(method: str):
    """Beyond the image there are zeros, also where its border, which is read there, is infinite."""
    x = np.full((1, 2, 3, 4), np.inf, np.float32)
    grid = np.full((1, 2, 5, 7), 3.5, np.float32)
    program = mirstack.compile(
        mirstack.parse(
            f"""def @main(%x: Tensor[(1, 2, 3, 4), float32], %g: Tensor[(1, 2, 5, 7), float32]) {{
          image.grid_sample(%x, %g, method="{method}") }}"""
        )
    )
    assert np.array_equal(program(x, grid), np.zeros((1, 2, 5, 7), np.float32))


@pytest.mark.parametrize("target", ["interp", "cpu"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(
    ("rows", "size"), [((0, 0, 5, 2), 6), ((0, 0, 2, 5), 5), ((-1, 0, 2, 5), 6), ((0, 0, 0, 0), -2)]
)
def test_rows_that_do_not_ascend(rows: tuple[int, ...], size: int, dtype: str, target: Any) -> None:
    module = mirstack.parse(
        f"def @main(%i: Tensor[(4, 2), {dtype}], %v: Tensor[(4), int64], %s: Tensor[(2), int64], %d: Tensor[(1), int64]) {{\n"
        "  sparse_fill_empty_rows(%i, %v, %s, %d)\n}",
        name="a.mir",
    )
    places = np.array([[row, 0] for row in rows], dtype)
    with pytest.raises(MirError) as error:
        mirstack.compile(module, target)(places, np.arange(4), np.array([size, 2]), np.array([7]))
    said = str(error.value)
    assert said.startswith("a.mir:2:3: error: sparse_fill_empty_rows")
    assert "the rows of 'sparse_indices' must ascend, from 0 on to below the first size of 'dense_shape'" in said
    if target == "interp":
        assert f"sparse_fill_empty_rows fails on ({dtype}[4, 2], int64[4], int64[2], int64[1]): the rows" in said


def test_inverse_of_what_is_not_a_permutation() -> None:
    module = mirstack.parse("def @main(%x: Tensor[(4), int32]) { invert_permutation(%x) }")
    for target in ("interp", "cpu"):
        assert mirstack.compile(module, target)(ints(7, -1, 7, 0)).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_regions_far_larger_than_the_image(mode: str, ratio: int) -> None:
    """Only samples near the image are looked at: a bin may have 2^31 of them along each axis. What is not finite is NaN."""
    x = np.random.default_rng(0).standard_normal((2, 2, 7, 6)).astype(np.float32)
    far = 1e10
    rois = [
        [0, -far, 0, far, 3],
        [1, -1e9, -1e9, 1e9, 1e9],
        [0, -3000, -2000, 4000, 100],
        [0, 1, 1, 3, 4],
        [5, far, far, 2 * far, 3e38],
        [1, -1.8e9, -1.5e9, 2.4e9, 2e9],  # Between places of float32 there are 128 samples.
    ]
    not_finite = [[0, -np.inf, 0, 2, 3], [0, 0, 0, np.inf, 3], [0, 0, np.nan, 3, 3], [0, -3.4e38, 0, 3.4e38, 2]]
    arrays = [x, np.array(rois + not_finite, np.float32)]
    text = f'vision.roi_align(%x, %r, pooled_size=[2, 3], spatial_scale=1f, sample_ratio={ratio}, mode="{mode}")'
    module = mirstack.parse(f"def @main(%x: Tensor[(2, 2, 7, 6), float32], %r: Tensor[(10, 5), float32]) {{ {text} }}")
    wanted = mirstack.compile(module, "interp")(*arrays)
    np.testing.assert_allclose(mirstack.compile(module)(*arrays), wanted, 1e-5, 1e-6)
    assert np.isfinite(wanted[:6]).all()
    assert np.isnan(wanted[6:]).all()


def test_ignored_targets_count_for_nothing() -> None:
    text = 'nn.nll_loss(%x, %t, %w, reduction="none", ignore_index=1)'
    module = mirstack.parse(
        f"def @main(%x: Tensor[(2, 2), float32], %t: Tensor[(2), int32], %w: Tensor[(2), float32]) {{ {text} }}"
    )
    arrays = [np.array([[np.nan, np.nan], [3, np.inf]], np.float32), ints(1, 0), ONES]
    for target in ("interp", "cpu"):
        assert mirstack.compile(module, target)(*arrays).tolist() == [0, -3]
