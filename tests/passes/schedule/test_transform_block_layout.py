"""transform_block_layout: new axes and loops, the body in terms of them, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled


def test_axes_of_digits() -> None:
    text = scheduled(
        MATMUL, lambda s: s.transform_block_layout(s.get_block("C"), lambda i, j, k: (k, i // 6, j * 6 + i % 6))
    )
    assert "for ax0, ax1, ax2 in T.grid(16, 4, 120):" in text
    assert 'v0, v1, v2 = T.axis.remap("RSS", [ax0, ax1, ax2])' in text
    assert "C[v1 * 6 + v2 % 6, v2 // 6] + A[v1 * 6 + v2 % 6, v0] * B[v2 // 6, v0]" in text


def test_handle_survives_and_loops_are_new() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("B")
        s.transform_block_layout(block, lambda *axes: (axes[0] * 30 + axes[1],))
        (loop,) = s.get_loops(block)
        s.split(loop, [None, 32])

    assert "for ax0_0, ax0_1 in T.grid(15, 32):" in scheduled(CHAIN, steps)


def test_axes_of_one_value_stay() -> None:
    text = CHAIN.replace("16", "1")
    printed = scheduled(text, lambda s: s.transform_block_layout(s.get_block("B"), lambda i, j: (j, i)))
    assert "B[v1, v0] = A[v1, v0] * T.float32(2)" in printed


def steps_on(name: str, index_map: Any, before: Any = None) -> Any:
    def steps(s: Schedule) -> None:
        block = s.get_block(name)
        if before is not None:
            before(s, block)
        s.transform_block_layout(block, index_map)

    return steps


TWO = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int32):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.float32(1)
    for i in range(4):
        if n > 0:
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(2)
    if n > 1:
        for i in range(4):
            with T.block("D"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(2)
"""


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            CHAIN,
            steps_on("B", lambda i: (i,)),
            "transform_block_layout: the map takes 1 index, but block 'B' has 2 axes",
        ),
        (
            CHAIN,
            steps_on("B", lambda i, j: (i, "j")),
            "transform_block_layout: the map gives 'j', which is not an index",
        ),
        (
            CHAIN,
            steps_on("B", lambda i, j: (i, i)),
            "transform_block_layout: the map is not one-to-one on the axes of block 'B': ",
        ),
        (CHAIN, steps_on("B", lambda i, j: (i // 4, j)), "note: each new index takes whole digits of the axes"),
        (
            MATMUL,
            steps_on("C", lambda i, j, k: (i * 16 + k, j)),
            "transform_block_layout: new axis 0 of block 'C' mixes axes of the kinds R and S\nnote: make each new axis of spatial axes or of",
        ),
        (
            CHAIN,
            steps_on("B", lambda i, j: (j, i), lambda s, b: s.split(s.get_loops(b)[1], [None, 8])),
            "transform_block_layout: block 'B' runs under a condition (T.where)",
        ),
        (
            CHAIN,
            steps_on("B", lambda i, j: (j, i), lambda s, b: s.split(s.get_loops(b)[1], [None, 5])),
            "transform_block_layout: the loops of block 'B' do not drive one axis each\nnote: transform the block before",
        ),
        (
            CHAIN,
            steps_on("B", lambda i, j: (j, i), lambda s, b: s.parallel(s.get_loops(b)[0])),
            "transform_block_layout: loop 'i' is parallel or annotated, which new loops would not be\nnote: transform the block first",
        ),
    ],
)
def test_refused(text: str, steps: Any, message: str) -> None:
    assert message in refused(text, steps)


def test_refused_places() -> None:
    from mirstack.parser import parse_mir
    from mirstack.passes.schedule import ScheduleError

    for name, message in (
        ("A", "transform_block_layout: loop 'i' holds more than block 'A'"),
        ("C", "transform_block_layout: 'tir.if' stands among the loops of block 'C'"),
        ("D", "transform_block_layout: the loops of block 'D' stand under a branch"),
    ):
        s = Schedule(parse_mir(TWO))
        with pytest.raises(ScheduleError) as caught:
            s.transform_block_layout(s.get_block(name), lambda i: (i,))
        assert message in str(caught.value)


def test_symbolic_domain() -> None:
    from mirstack.parser import parse_mir
    from mirstack.passes.schedule import ScheduleError

    s = Schedule(
        parse_mir("""
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,))
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
""")
    )
    with pytest.raises(
        ScheduleError, match="transform_block_layout: axis 'vi' of block 'A' has no constant domain that begins at 0"
    ):
        s.transform_block_layout(s.get_block("A"), lambda i: (i,))


def test_block_without_loops() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    with T.block("A"):
        vi = T.axis.spatial(1, 0)
        A[vi] = T.float32(1)
"""
    printed = scheduled(text, lambda s: s.transform_block_layout(s.get_block("A"), lambda i: (i,)))
    assert "for ax0 in range(1):" in printed
