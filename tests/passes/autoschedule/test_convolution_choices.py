"""Which way the vectors of a convolution run, and how large its tiles are, by its shape and the target."""

from __future__ import annotations

import re
from typing import Any

import mirstack
import pytest
from mirstack.parser import print_mir
from mirstack.passes.autoschedule.contraction.tile import best_tile


def scheduled(text: str, cpu: str, threads: int = 1) -> str:
    """A program of one kernel as it is scheduled for a processor."""
    printed: list[str] = []

    def keep(step: Any, module: Any) -> None:
        if step.name == "default-schedule":
            printed.append(print_mir(module))

    mirstack.compile(mirstack.parse(text), cpu=cpu, threads=threads, observers=(keep,))
    return printed[0]


@pytest.mark.parametrize(
    ("channels", "size", "filters", "kernel", "stride", "dilation", "along_rows"),
    [
        (3, 64, 64, 5, 1, 1, True),
        (3, 28, 64, 7, 1, 1, False),  # rows that fill no whole vectors
        (24, 32, 24, 3, 1, 3, True),  # filters that fill fewer
        (24, 32, 48, 3, 1, 3, False),
        (24, 33, 24, 3, 1, 3, False),
        (3, 64, 32, 3, 2, 1, True),
        (3, 64, 48, 5, 2, 1, False),
        (3, 64, 24, 5, 2, 1, True),
        (3, 64, 48, 4, 4, 1, False),  # inputs far apart
    ],
)
def test_which_way_vectors_run(
    channels: int, size: int, filters: int, kernel: int, stride: int, dilation: int, along_rows: bool
) -> None:
    padding = dilation * (kernel // 2) if stride < 4 else 0
    text = scheduled(
        f"""#[version = "0.0.5"]
def @main(%x: Tensor[(1, {channels}, {size}, {size}), float32], %w: Tensor[({filters}, {channels}, {kernel}, {kernel}), float32]) {{
  nn.relu(nn.conv2d(%x, %w, strides=[{stride}, {stride}], padding={[padding] * 4}, dilation=[{dilation}, {dilation}],
    channels={filters}, kernel_size=[{kernel}, {kernel}]))
}}""",
        "znver4",
    )
    after = size // stride
    sums = f'conv2d = T.alloc_buffer((1, {filters}, {after}, {after}), scope="local")'
    assert (sums in text) is along_rows


def test_lines_that_push_each_other_out_are_completed_at_once() -> None:
    """Planes of 2**k bytes share places in the cache: a tile stores more of each line where that is much of its time."""
    tile = best_tile(128, 64, 16, 32, depth=600)[1]
    missing = best_tile(128, 64, 16, 32, depth=600, missed=0.05, run=16)[1]
    assert missing.rows >= 8 > tile.rows
    assert best_tile(128, 64, 16, 32, depth=600, missed=0.0005, run=16)[1] == tile


@pytest.mark.parametrize("cpu", ["znver4", "haswell"])
def test_few_filters_of_a_transposed_convolution_are_summed_in_vectors(cpu: str) -> None:
    text = scheduled(
        """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 16, 32, 32), float32], %w: Tensor[(16, 3, 4, 4), float32]) {
  tanh(nn.conv2d_transpose(%x, %w, channels=3, kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]))
}""",
        cpu,
    )
    sums, _, result = text.partition('T.block("col_sums")')
    assert "col_sums = T.alloc_buffer((1, 3, 64, 4, 2, 8))" in sums
    assert re.search(r"in T.vectorized\(8\):\s+with $", sums)
    assert re.search(r"in T.vectorized\((8|64)\):", result)


def test_lines_of_all_panels_are_shared_out() -> None:
    """Few lines, each of which ends in a part of a tile, of few panels: together they are enough."""
    text = scheduled(
        """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 232, 7, 7), float32]) {
  nn.relu(nn.conv2d(%x, full(0.5f, shape=[232, 232, 1, 1], dtype="float32"), channels=232, kernel_size=[1, 1]))
}""",
        "znver4",
        2,
    )
    assert "T.parallel(21)" in text
