"""loop_partition: parts in their order, names of copies, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled


def loop(sch: Schedule, name: str = "B", depth: int = 0) -> Any:
    return sch.get_loops(sch.get_block(name))[depth]


def test_rest_is_a_part() -> None:
    def steps(s: Schedule) -> None:
        parts = s.loop_partition(loop(s), [4, 2])
        assert len(parts) == 3
        assert [s.resolve(part).var_name.data for part in parts] == ["i0", "i1", "i2"]  # type: ignore[attr-defined]

    text = scheduled(CHAIN, steps)
    assert (
        "for i0, j in T.grid(4, 30):" in text and "for i1 in range(4, 6):" in text and "for i2 in range(6, 16):" in text
    )
    for name in ("B_i_common", "B_i0_partition", "B_i1_partition", "B_i2_partition", "B_i0", "B_i1", "B_i2"):
        assert f'T.block("{name}")' in text


def test_computed_part_and_again() -> None:
    def steps(s: Schedule) -> None:
        s.loop_partition(loop(s, depth=1), [None, 8])
        s.loop_partition(loop(s, "C"), [3])

    text = scheduled(CHAIN, steps)
    assert "for i0, j in T.grid(3, 30):" in text and "for i1 in range(3, 16):" in text
    assert "for j1 in range(22, 30):" in text


def test_reductions_begin_once() -> None:
    text = scheduled(MATMUL, lambda s: s.loop_partition(loop(s, "C", 2), [None, 5]))
    assert "for k0 in range(11):" in text and "vk = T.axis.reduce(16, k1)" in text


def test_window_of_another_block() -> None:
    scheduled(STENCIL, lambda s: s.loop_partition(loop(s, "C"), [1, None, 1]))


def test_parts_are_scheduled_further() -> None:
    def steps(s: Schedule) -> None:
        s.loop_partition(loop(s, depth=1), [16, None])
        s.vectorize(loop(s, "B_j0"))
        s.unroll(loop(s, "B_j1"))

    text = scheduled(CHAIN, steps)
    assert "for j0 in T.vectorized(16):" in text and "for j1 in T.unroll(16, 30):" in text


def test_parts_that_begin_later_are_split() -> None:
    def steps(s: Schedule) -> None:
        s.loop_partition(loop(s, depth=1), [7, None])
        # Twenty-three turns from the eighth on, the last vector of which is not whole.
        s.vectorize(s.split(loop(s, "B_j1"), [None, 8])[1])

    text = scheduled(CHAIN, steps)
    assert "for j1_0 in range(3):" in text and "j1_0 * 8 + j1_1 + 7" in text and "T.where(j1_0 * 8 + j1_1 < 23)" in text


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ([], "loop_partition: loop 'i' needs at least one factor"),
        ([None, None], "loop_partition: 2 factors of loop 'i' are None\nnote: leave one to be computed"),
        ([-2, 4], "loop_partition: -2 is not a number of iterations of loop 'i'\nnote: a factor is a positive number"),
        ([10, 7], "loop_partition: the factors take 17 of the 16 turns of loop 'i'\nnote: their sum is at most"),
        ([None, 16], "take 16 of the 16 turns of loop 'i'\nnote: their sum must leave an iteration for None"),
    ],
)
def test_refused_factors(factors: list[int | None], message: str) -> None:
    assert message in refused(CHAIN, lambda s: s.loop_partition(loop(s), factors))


def test_refused_loops() -> None:
    symbolic = """
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,))
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
"""
    from mirstack.parser import parse_mir
    from mirstack.passes.schedule import ScheduleError

    sch = Schedule(parse_mir(symbolic))
    with pytest.raises(ScheduleError, match="loop_partition: loop 'i' has a symbolic extent"):
        sch.loop_partition(loop(sch), [2])


def test_handle_of_the_loop_says_where_it_went() -> None:
    def steps(s: Schedule) -> None:
        old = loop(s)
        s.loop_partition(old, [4])
        s.parallel(old)

    assert "loop 'i' was partitioned; its blocks are in the loops that loop_partition returned" in refused(CHAIN, steps)


def test_elements_that_no_init_begins_are_read() -> None:
    """T.init() runs where both reduction axes begin, for B[vi, 0] alone: the others are added to what was there."""

    def steps(s: Schedule) -> None:
        s.loop_partition(loop(s, depth=2), [None, 2])
        s.cache_write(s.get_block("B_j_common"), 0, "local")

    text = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((2, 3), "int32")):
    for i, k, j in T.grid(2, 3, 8):
        with T.block("B"):
            vi, vk, vj = T.axis.remap("SRR", [i, k, j])
            with T.init():
                B[vi, vk] = -100
            B[vi, vk] = B[vi, vk] + A[vj]
"""
    assert "B_j_common" in (message := refused(text, steps)) and "cache_write" in message


def test_regions_of_parts_of_symbolic_length() -> None:
    """A product of a size and a loop's variable ends where the loop does, not where its dtype does."""
    schedule = Schedule(
        parse_mir("""
@T.prim_func
def main(a: T.handle, B: T.Buffer((4,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (4, n), "int32")
    for i, j in T.grid(4, n):
        with T.block("s"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vj]
""")
    )
    i, j = schedule.get_loops("s")
    schedule.split(j, [4, None])
    schedule.loop_partition(i, [1, None])
    assert "T.reads(B[0], A[0, 0:(n + 3) // 4 * 4])" in print_mir(schedule.module)
