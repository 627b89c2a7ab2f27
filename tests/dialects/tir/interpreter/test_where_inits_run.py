"""T.init() of reductions of symbolic extents runs natively where the interpreter runs it, be it last, again or never."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mirstack.api.compile import compile
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError

PROGRAM = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    T.func_attr({"tir.noalias": True})
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (m, n), "int32")
    B = T.match_buffer(b, (m,), "int32")
    LOOPS
            vi = T.axis.spatial(m, ROW)
            vj = T.axis.reduce(n, COLUMN)
            T.where(WHERE)
            with T.init():
                B[PLACE] = START
            B[PLACE] = B[READ] + A[vi, vj]
"""


def program(
    loops: str = "for i, j in T.grid(m, n):",
    column: str = "j",
    where: str = "i < m",
    place: str = "vi",
    read: str | None = None,
    start: str = "5",
    row: str = "i",
    around: str = "",
) -> str:
    block = f'\n        {around or "if True:"}\n            with T.block("s"):'
    text = PROGRAM.replace("LOOPS", loops + block)
    head, marker, body = text.partition('with T.block("s"):')
    text = head + marker + body.replace("\n    ", "\n        ")
    if not around:
        text = text.replace("\n        if True:", "").replace("\n            with T.block", "\n        with T.block")
        head, marker, body = text.partition('with T.block("s"):')
        text = head + marker + body.replace("\n    ", "\n")
    names = {"ROW": row, "COLUMN": column, "WHERE": where, "PLACE": place, "READ": read or place, "START": start}
    return re.sub("|".join(names), lambda found: names[found[0]], text)


PROGRAMS = {
    "from the last on": program(column="n - 1 - j"),
    "from the last on, outside": program("for j, i in T.grid(n, m):", "n - 1 - j"),
    "each twice": program("for i, j in T.grid(m, n * 2):", "j // 2"),
    "twice in all": program("for i, j in T.grid(m, n * 2):", "j % n"),
    "the first at the end": program(column="(j + 1) % n"),
    "every second": program(where="j % 2 == 0"),
    "never the first": program(where="j >= 1"),
    "all in one element": program(place="0"),
    "of another element": program(read="(vi + 1) % m"),
    "under a branch": program(around="if j >= 0:"),
    "from the first term on": program(start="A[vi, vj]"),
    "one loop of all": program("for f in range(m * n):", "f % n", where="f >= 0", row="f // n"),
    "over and over": program("for i, j, again in T.grid(m, n, 3):"),
    "beside an opaque axis": program().replace("T.axis.spatial", "T.axis.opaque"),
}
NO_VALUE = {"from the first term on"}
"""Whose first value is read from what has no elements."""


def stored(text: str, level: int | None, rows: int, columns: int) -> list[int]:
    run = compile(parse_mir(text), "interp") if level is None else compile(parse_mir(text), opt_level=level)
    out = np.full(rows, 77, "int32")
    run(np.arange(rows * columns, dtype="int32").reshape(rows, columns), out)
    return out.tolist()


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_starts_sums_where_the_interpreter_does(name: str) -> None:
    text = PROGRAMS[name]
    for rows, columns in ((4, 6), (3, 1), (2, 0)):
        if columns == 0 and name in NO_VALUE:
            continue
        fixed = re.sub(r"\bm\b", str(rows), text.replace("    n, m = T.int32(), T.int32()\n", ""))
        fixed = re.sub(r"\bn\b", str(columns), fixed)
        expected = stored(text, None, rows, columns)
        assert stored(text, 0, rows, columns) == stored(text, 3, rows, columns) == expected, (rows, columns)
        if columns:
            assert stored(fixed, None, rows, columns) == stored(fixed, 3, rows, columns) == expected


def test_sums_of_nothing_begin_also_from_the_last_term() -> None:
    assert stored(PROGRAMS["from the last on"], None, 2, 0) == [5, 5]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("from the last on", "reduction axis 'vj' is n - 1 in the first iteration, not 0, where T.init() runs"),
        (
            "each twice",
            "whether T.init() runs once for each element is not known: the bindings do not tell all iterations of 'j' apart",
        ),
        ("from the first term on", "decompose_reduction: T.init() of block 's' uses 'vj', an axis of the reduction"),
    ],
)
def test_inits_that_run_elsewhere_are_not_moved(name: str, reason: str) -> None:
    schedule = Schedule(parse_mir(PROGRAMS[name]))
    with pytest.raises(ScheduleError) as caught:
        schedule.decompose_reduction(schedule.get_block("s"), schedule.get_loops("s")[1])
    assert reason in str(caught.value)


def test_sums_of_nothing_are_written_back() -> None:
    schedule = Schedule(parse_mir(program()))
    said = (
        "write_at: loop 'j', over which block 's' reduces, may have no iteration: what T.init() sets is not copied then"
    )
    with pytest.raises(ScheduleError, match=re.escape(said)):
        schedule.write_at(schedule.get_loops("s")[1], "s", 0, "shared")
    schedule.write_at(schedule.get_loops("s")[0], "s", 0, "shared")
    for level in (None, 0, 3):
        assert stored(print_mir(schedule.mod), level, 2, 0) == [5, 5]
        assert stored(print_mir(schedule.mod), level, 2, 3) == [8, 17]


def test_sums_of_nothing_are_split_twice() -> None:
    schedule = Schedule(parse_mir(program()))
    schedule.split(schedule.split(schedule.get_loops("s")[1], [4, None])[1], [4, None])
    for level in (None, 0, 3):
        assert stored(print_mir(schedule.mod), level, 2, 0) == [5, 5]
        assert stored(print_mir(schedule.mod), level, 2, 3) == [8, 17]
