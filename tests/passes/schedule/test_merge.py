"""merge: nests that may alternate, turn by turn, and those that may not."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, STENCIL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

THREE = """
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), D: T.Buffer((6, 8), "float32")):
    B = T.alloc_buffer((6, 8))
    C = T.alloc_buffer((6,))
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, k in T.grid(6, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk]
    for i, j in T.grid(6, 8):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = B[vi, vj] + C[vi]
"""


def loops(sch: Schedule, depth: int, *names: str) -> list[Any]:
    """The loops number `depth` around blocks."""
    return [sch.get_loops(sch.get_block(name))[depth] for name in names]


def test_whole_nests() -> None:
    text = scheduled(CHAIN, lambda s: s.merge(*loops(s, 1, "B", "C")))
    assert "for i_m, j_m in T.grid(16, 30):" in text and text.count("T.grid") == 1


def test_outer_loops_of_three() -> None:
    text = scheduled(THREE, lambda s: s.merge(*loops(s, 0, "B", "C", "D")))
    assert "for i_m in range(6):" in text and "for k in range(8):" in text


def test_handles_of_blocks_survive() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("C")
        merged = s.merge(*loops(s, 0, "B", "C", "D"))
        assert s.resolve(s.get_loops(block)[0]) is s.resolve(merged)

    scheduled(THREE, steps)


def test_inside_of_a_common_loop() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), B: T.Buffer((4, 6), "float32"), C: T.Buffer((4, 6), "float32")):
    for o in range(4):
        for i in range(6):
            with T.block("B"):
                vo, vi = T.axis.remap("SS", [o, i])
                B[vo, vi] = A[vo, vi] + T.float32(1)
        for i in range(6):
            with T.block("C"):
                vo, vi = T.axis.remap("SS", [o, i])
                C[vo, vi] = B[vo, vi] * T.float32(3)
"""
    assert "for o, i_m in T.grid(4, 6):" in scheduled(text, lambda s: s.merge(*loops(s, 1, "B", "C")))


def test_turns_that_need_later_ones() -> None:
    same = STENCIL.replace("for i in range(32):", "for i in range(34):").replace(
        "vi = T.axis.spatial(32, i)", "vi = T.axis.spatial(32, T.min(i, 31))"
    )
    assert "have the extents 34 and 32" in refused(STENCIL, lambda s: s.merge(*loops(s, 0, "B", "C")))
    message = refused(same, lambda s: s.merge(*loops(s, 0, "B", "C")))
    assert "merge: the iterations of loops 'i' and 'i' cannot alternate" in message
    assert "compute_at or reverse_compute_at" in message


def test_reduction_that_is_not_finished() -> None:
    message = refused(THREE, lambda s: s.merge(*loops(s, 1, "C", "D")))
    assert "a later iteration of the first nest may touch the element of 'C' that the second touches" in message


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (CHAIN, lambda s: s.merge(*loops(s, 0, "B")), "merge: there must be at least two loops"),
        (
            CHAIN,
            lambda s: s.merge(*s.get_loops(s.get_block("B"))),
            "merge: loop 'i' holds another of the loops, or is given twice",
        ),
        (
            CHAIN,
            lambda s: s.merge(s.get_loops(s.get_block("B"))[0], s.get_loops(s.get_block("C"))[1]),
            "merge: loop 'i' is loop number 1 of its nest, 'j' number 2\nnote: give loops of the same depth",
        ),
        (
            THREE,
            lambda s: s.merge(*loops(s, 0, "B", "D")),
            "merge: loop 'i' does not stand directly after loop 'i'",
        ),
        (
            CHAIN,
            lambda s: [s.parallel(loops(s, 0, "B")[0]), s.merge(*loops(s, 0, "B", "C"))],
            "merge: loops 'i' and 'i' are parallel and serial",
        ),
    ],
)
def test_refused(text: str, steps: Any, message: str) -> None:
    assert message in refused(text, steps)


def test_what_is_touched_is_not_known() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i, k in T.grid(4, 1):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            T.reads(A[0:4], B[0:4])
            T.writes(B[A[vi + vk]])
            B[A[vi + vk]] = 1
    for i, k in T.grid(4, 1):
        with T.block("C"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi] = B[vi] + 1
"""
    message = refused(text, lambda s: s.merge(*loops(s, 0, "B", "C")))
    assert "a later iteration of the first nest may touch the element of 'B'" in message


def test_branches_scopes_and_bare_statements() -> None:
    branch = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), n: T.int32):
    if n > 0:
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] + T.float32(1)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] + T.float32(1)
"""
    assert "merge: loop 'i' stands under a branch" in refused(branch, lambda s: s.merge(*loops(s, 0, "B", "C")))
    scopes = """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    with T.block("outer"):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] + T.float32(1)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] + T.float32(1)
"""
    message = refused(scopes, lambda s: s.merge(*loops(s, 0, "B", "C")))
    assert "merge: loops 'i' and 'i' are not in the same scope" in message
    bare = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] + T.float32(1)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            A[vi] = A[vi] + T.float32(1)
"""
    message = refused(bare, lambda s: s.merge(*loops(s, 0, "B", "C")))
    assert "a statement stands outside of blocks in the first nest" in message
    two = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32")):
    for i in range(4):
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
        for j in range(4):
            with T.block("B2"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.float32(1)
"""
    message = refused(two, lambda s: s.merge(*loops(s, 1, "B", "C")))
    assert "merge: loop 'j' is not the only thing directly in loop 'i'" in message
