"""Primitives that draw: what they draw, with what chances, and that a decision draws it again."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import ExprRV, Schedule, ScheduleError, Trace
from test_primitives import refused, scheduled
from test_trace import check_replays


def numbers(values: Any) -> list[int]:
    return [int(v) for v in values]


def test_perfect_tiles_of_any_seed() -> None:
    for seed in range(40):
        sch = Schedule(parse_mir(MATMUL), seed=seed)
        i, j, _ = sch.get_loops("C")
        tiles = sch.sample_perfect_tile(i, n=4, max_innermost_factor=3)
        assert prod(numbers(tiles)) == 24 and int(tiles[3]) <= 3
        assert sch.trace.decisions[sch.trace.insts[-1]] == numbers(tiles)
        assert numbers(sch.sample_perfect_tile(j, 1, -1)) == [20]
        sch.split(i, tiles)
        assert [sch.resolve(loop).name for loop in sch.get_loops("C")] == ["tir.for"] * 6


def test_tiles_are_equally_likely() -> None:
    sch = Schedule(parse_mir(MATMUL), seed=3)
    i = sch.get_loops("C")[0]
    count = Counter(tuple(numbers(sch.sample_perfect_tile(i, 2, 12))) for _ in range(1400))
    # 24 = a * b with b at most 12: seven ways.
    assert set(count) == {(2, 12), (3, 8), (4, 6), (6, 4), (8, 3), (12, 2), (24, 1)}
    assert all(140 < each < 260 for each in count.values())
    parts = Counter(tuple(numbers(sch.sample_partitioned_tile(i, 3, 1, 4))) for _ in range(200))
    assert all(a * b * c == 24 and b * c % 4 == 0 for a, b, c in parts)
    assert {a for a, _, _ in parts} == {1, 2, 3, 6}


def test_same_seed_same_tiles() -> None:
    def draw(seed: int) -> list[int]:
        sch = Schedule(parse_mir(MATMUL), seed=seed)
        i, j, _ = sch.get_loops("C")
        return numbers(sch.sample_perfect_tile(i, 3)) + numbers(sch.sample_partitioned_tile(j, 3, 2, 2))

    assert draw(5) == draw(5)
    assert len({tuple(draw(seed)) for seed in range(12)}) > 4


def test_decisions() -> None:
    sch = Schedule(parse_mir(MATMUL))
    i = sch.get_loops("C")[0]
    assert numbers(sch.sample_perfect_tile(i, 3, decision=[2, 3, 4])) == [2, 3, 4]
    # 5 does not divide 6: it takes all that is left.
    assert numbers(sch.sample_perfect_tile(i, 3, decision=[1, 5, 4])) == [1, 6, 4]
    assert numbers(sch.sample_partitioned_tile(i, 3, 1, 4, decision=[6, 2, 2])) == [6, 2, 2]
    assert numbers(sch.sample_partitioned_tile(i, 3, 1, 4, decision=[8, 3, 1])) == [6, 4, 1]
    assert numbers(sch.sample_partitioned_tile(i, 2, 0, 4, decision=[6, 2])) == [12, 2]
    assert numbers(sch.sample_partitioned_tile(i, 2, 1, 5)) == [24, 1]
    assert int(sch.sample_categorical([3, 7, 11], [0.0, 1.0, 0.0])) == 7
    assert int(sch.sample_categorical([3, 7, 11], [0.0, 1.0, 0.0], decision=2)) == 11


def test_categories_come_with_their_chances() -> None:
    sch = Schedule(parse_mir(MATMUL), seed=1)
    count = Counter(int(sch.sample_categorical([4, 8], [1, 3])) for _ in range(400))
    assert isinstance(sch.sample_categorical([4], [1]), ExprRV)
    assert 60 < count[4] < 140


def test_locations() -> None:
    def location(decision: int, *, text: str = CHAIN, block: str = "B") -> tuple[Any, str]:
        sch = Schedule(parse_mir(text))
        place = sch.sample_compute_location(sch.get_block(block), decision)
        found = sch.resolve(place)
        sch.compute_at(sch.get_block(block), place)
        return (found if isinstance(found, str) else found.var_name.data), print_mir(sch.mod)

    place, text = location(-2)
    assert place == "inline" and 'T.block("B")' not in text
    place, text = location(-1)
    assert place == "root" and text == print_mir(parse_mir(CHAIN))
    place, text = location(1)
    assert place == "j" and "B[vi, vj]" in text
    # Loop 3 is not there: the nearest further out is loop 0.
    assert location(3, text=STENCIL)[0] == "i"
    assert location(0, text=MATMUL, block="C")[0] == "i"


def test_drawn_locations() -> None:
    found: set[int] = set()
    for seed in range(30):

        def steps(s: Schedule, seed: int = seed) -> None:
            s.seed(seed)
            block = s.get_block("B")
            place = s.sample_compute_location(block)
            found.add(s.trace.decisions[s.trace.insts[-1]])
            s.compute_at(block, place)

        scheduled(CHAIN, steps)
    assert found == {-2, -1, 0, 1}


def test_reverse() -> None:
    sch = Schedule(parse_mir(CHAIN))
    block = sch.get_block("C")
    place = sch.sample_compute_location(sch.get_block("B"), -2)
    sch.reverse_compute_at(block, sch.sample_compute_location(sch.get_block("B"), -1))
    sch.reverse_compute_at(block, place)
    assert 'T.block("C")' not in print_mir(sch.mod)


def test_units_and_outputs_have_no_loops() -> None:
    sch = Schedule(parse_mir(CHAIN))
    sch.add_unit_loop(sch.get_loops("C")[0])
    drawn = {sch.resolve(sch.sample_compute_location(sch.get_block("B"))) for _ in range(40)}
    assert {each if isinstance(each, str) else each.var_name.data for each in drawn} == {"inline", "root", "i", "j"}
    assert sch.resolve(sch.sample_compute_location(sch.get_block("C"))) == "root"


def test_traces() -> None:
    sch = Schedule(parse_mir(CHAIN), seed=2)
    i, _ = sch.get_loops("C")
    sch.split(i, sch.sample_perfect_tile(i, 2))
    width = sch.sample_categorical([2, 5], [0.5, 0.5])
    sch.split(sch.get_loops("C")[2], [None, width])
    block = sch.get_block("B")
    sch.compute_at(block, sch.sample_compute_location(block, -2))
    assert "decision=-2" in str(sch.trace)
    check_replays(CHAIN, sch)
    again = Schedule(parse_mir(CHAIN))
    Trace.from_json(sch.trace.as_json()).apply_to_schedule(again)
    assert print_mir(again.mod) == print_mir(sch.mod)


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(n):
        with T.block("C"):
            vi = T.axis.spatial(n, i)
            C[vi] = A[vi]
    for i in T.serial(4294967296):
        with T.block("D"):
            vi = T.axis.spatial(4294967296, i)
            C[0] = A[0]
""".replace("4294967296", "T.int64(4294967296)")


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda s, i: s.sample_categorical([1, 2], [1.0]),
            "sample_categorical: there are 2 candidates, but 1 probabilities\nnote: give one for each",
        ),
        (
            lambda s, i: s.sample_categorical([1, 2], [1.0, -1.0]),
            "sample_categorical: [1.0, -1.0] are no probabilities: none is negative, and not all are 0",
        ),
        (
            lambda s, i: s.sample_categorical([1, 2], [1.0, 1.0], 2),
            "sample_categorical: decision 2 is the place of none of 2 candidates\nnote: it is from 0 to 1",
        ),
        (
            lambda s, i: s.sample_perfect_tile(i, 2, 0),
            "sample_perfect_tile: no innermost factor is at most 0\nnote: -1 allows any factor",
        ),
        (
            lambda s, i: s.sample_perfect_tile(i, 1, 4),
            "sample_perfect_tile: the one factor of loop 'i' is its extent 24, which is more than 4",
        ),
        (lambda s, i: s.sample_perfect_tile(i, 0), "sample_perfect_tile: n is 0\nnote: it is from 1 to 1024"),
        (
            lambda s, i: s.sample_perfect_tile(i, 2, decision=[24, 0]),
            "sample_perfect_tile: decision [24, 0] for loop 'i' is not 2 factors\nnote: they are whole numbers from 1",
        ),
        (
            lambda s, i: s.sample_partitioned_tile(i, 2, decision=[24]),
            "sample_partitioned_tile: decision [24] for loop 'i' is not 2 factors",
        ),
        (
            lambda s, i: s.sample_partitioned_tile(i, 2, 2),
            "sample_partitioned_tile: partition_pos is 2 and innerpart_factor 1\nnote: the first is from 0 to 1, the other at least 1",
        ),
        (
            lambda s, i: s.sample_compute_location(s.get_block("C"), -3),
            "sample_compute_location: decision -3 is not a place for block 'C', nor is any further out\nnote: possible are -1, 0, 1",
        ),
    ],
)
def test_refused(draw: Any, message: str) -> None:
    assert message in refused(MATMUL, lambda s: draw(s, s.get_loops("C")[0]))


def test_places_are_no_loops() -> None:
    sch = Schedule(parse_mir(MATMUL))
    place = sch.sample_compute_location(sch.get_block("C"), -1)
    with pytest.raises(ScheduleError) as error:
        sch.split(place, [None, 2])
    assert (
        f"the handle {place!r} stands for the place 'root' that sample_compute_location drew, which is not a loop"
        in str(error.value)
    )
    assert "note: only compute_at and reverse_compute_at take it" in str(error.value)


def test_refused_loops() -> None:
    sch = Schedule(parse_mir(SYMBOLIC))
    with pytest.raises(
        ScheduleError, match="sample_perfect_tile: loop 'i' has no constant extent, of which tiles could be drawn"
    ):
        sch.sample_perfect_tile(sch.get_loops("C")[0], 2)
    with pytest.raises(
        ScheduleError,
        match="sample_partitioned_tile: loop 'i' has 4294967296 iterations; tiles are drawn of fewer than 2147483648",
    ):
        sch.sample_partitioned_tile(sch.get_loops("D")[0], 2)
