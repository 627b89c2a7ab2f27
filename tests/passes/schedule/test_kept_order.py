"""A block is not moved, copied or inlined past a block that overwrites what it reads, or that reads what it overwrites."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mirstack
import pytest
from mirstack.passes.schedule import Schedule, ScheduleError

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import OVERWRITTEN, UPDATES
from test_primitives import refused, scheduled

CARRIED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[7 - vi]
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = D[vi]
"""

SHARED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + T.float32(1)
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[7 - vi]
"""

READ_FIRST = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + T.float32(1)
"""


def first_loop(s: Schedule, name: str) -> Any:
    """The outermost loop around a block."""
    return s.get_loops(s.get_block(name))[0]


def test_cache_read_of_what_is_overwritten_later() -> None:
    text = scheduled(OVERWRITTEN, lambda s: s.cache_read(s.get_block("C"), 1, "local"))
    assert text.index("X_local[v0, v1] = X[v0, v1]") < text.index('T.block("C")')
    message = refused(CARRIED, lambda s: s.cache_read(s.get_block("B"), 0, "local"))
    assert "cache_read: block 'B' reads 'A' before block 'A' writes it: one copy cannot hold both values" in message
    assert "name the consumer blocks that read it after" in message


def test_cache_between_readers() -> None:
    message = refused(SHARED, lambda s: s.cache_read(s.get_block("D"), 0, "local"))
    assert (
        "cache_read: block 'C' reads 'B' in the loops of block 'B', and others read it outside: no one copy is made before all of them"
        in message
    )
    assert "name the consumer blocks that are to use the new buffer" in message
    scheduled(SHARED, lambda s: s.cache_read(s.get_block("D"), 0, "local", ["D"]))
    assert "cache_write: block 'C' reads 'B' in the loops of block 'B', and others read it outside" in refused(
        SHARED, lambda s: s.cache_write(s.get_block("B"), 0, "local")
    )
    scheduled(SHARED, lambda s: s.cache_write(s.get_block("B"), 0, "local", ["C"]))


def test_cache_write_of_an_update() -> None:
    message = refused(UPDATES, lambda s: s.cache_write(s.get_block("A"), 0, "local"))
    assert (
        "cache_write: block 'A' reads 'A' before it writes it, and the new buffer would not hold what it reads"
        in message
    )
    assert "cache_inplace it" in message


def test_moves() -> None:
    two = OVERWRITTEN.replace("C[vi, vj] = B[vi, vj] + X", "C[vi, vj] = X")
    message = refused(two, lambda s: s.compute_at(s.get_block("B"), first_loop(s, "D")))
    assert "compute_at: block 'A' overwrites what block 'B' reads, after it" in message
    assert "the two must keep their order" in message
    assert "reverse_compute_at: block 'B' overwrites what block 'C' reads, after it" in refused(
        UPDATES, lambda s: s.reverse_compute_at(s.get_block("C"), first_loop(s, "B"))
    )
    assert "reverse_compute_at: block 'D' reads what is in the output of block 'C' before that writes it" in refused(
        READ_FIRST, lambda s: s.reverse_compute_at(s.get_block("C"), first_loop(s, "B"))
    )


def test_inlining() -> None:
    message = refused(OVERWRITTEN, lambda s: s.compute_inline(s.get_block("B")))
    assert (
        "compute_inline: block 'A' overwrites 'A', which block 'B' reads, before 'B' is read for the last time"
        in message
    )
    assert "what is computed from the old values must be kept" in message
    once = OVERWRITTEN.replace("D[vi, vj] = B[vi, vj] + A", "D[vi, vj] = A")
    scheduled(once, lambda s: s.compute_inline(s.get_block("B")))
    message = refused(READ_FIRST, lambda s: s.reverse_compute_inline(s.get_block("C")))
    assert (
        "reverse_compute_inline: block 'D' uses 'C' before block 'C' writes it, which is to happen in block 'B' already"
        in message
    )


TURNS = """
@T.prim_func
def main(A: T.Buffer((1,), "int32"), C: T.Buffer((3,), "int32"), D: T.Buffer((1,), "int32")):
    B = T.alloc_buffer((1,), "int32")
    for i in range(1):
        with T.block("B"):
            vi = T.axis.spatial(1, i)
            B[vi] = A[vi]
    for i in range(3):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            C[vi] = B[0] + i
        with T.block("A"):
            vi = T.axis.spatial(3, i)
            A[0] = vi
    for i in range(1):
        with T.block("D"):
            vi = T.axis.spatial(1, i)
            D[vi] = A[vi]
"""

READ_IN_TURNS = """
@T.prim_func
def main(A: T.Buffer((3,), "int32"), C: T.Buffer((3,), "int32"), D: T.Buffer((3,), "int32")):
    B = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("D"):
            vi = T.axis.spatial(3, i)
            D[vi] = C[0]
        with T.block("B"):
            vi = T.axis.spatial(3, i)
            B[vi] = A[vi] * 2
    for i in range(3):
        with T.block("C"):
            vi = T.axis.spatial(3, i)
            C[vi] = B[vi] + 1
"""


def test_what_runs_in_turns() -> None:
    # The overwriting block stands behind the readers, but the loop around both comes back to them.
    assert (
        "compute_inline: block 'A' overwrites 'A', which block 'B' reads, before 'B' is read for the last time"
        in refused(TURNS, lambda s: s.compute_inline("B"))
    )
    assert (
        "reverse_compute_inline: block 'D' uses 'C' before block 'C' writes it, which is to happen in block 'B' already"
        in refused(READ_IN_TURNS, lambda s: s.reverse_compute_inline("C"))
    )
    both = TURNS.replace("C[vi] = B[0] + i", "C[vi] = B[0] + A[0]")
    assert "cache_read: block 'B' reads 'A' before block 'A' writes it: one copy cannot hold both values" in refused(
        both, lambda s: s.cache_read("C", "A", "local")
    )
    before = TURNS.replace(
        '        with T.block("A"):\n            vi = T.axis.spatial(3, i)\n',
        '    for i in range(3):\n        with T.block("A"):\n            vi = T.axis.spatial(3, i)\n',
    )
    assert "C[vi] = A[0] + i" in scheduled(before, lambda s: s.compute_inline("B"))


COPIED_AGAIN = """
@T.prim_func
def main(A: T.Buffer((3,), "int32"), D: T.Buffer((3,), "int32")):
    B = T.alloc_buffer((3,), "int32")
    C = T.alloc_buffer((3,), "int32")
    for s in range(3):
        with T.block("A"):
            vs = T.axis.spatial(3, s)
            A[vs] = A[vs] * 2 + 1
        for i in range(3):
            with T.block("B"):
                vi = T.axis.spatial(3, i)
                B[vi] = A[vi]
        with T.block("C"):
            vs = T.axis.spatial(3, s)
            C[vs] = B[0] + B[1] + B[2]
    for i in range(3):
        with T.block("D"):
            vi = T.axis.spatial(3, i)
            D[vi] = C[vi]
"""


def test_what_is_written_again_with_other_values() -> None:
    """C reads what this iteration has written, all of B; the next one writes all of B again, of what A is then."""

    def move(sch: Schedule) -> None:
        sch.compute_at(sch.get_block("C"), sch.get_loops(sch.get_block("D"))[0])

    assert (
        "compute_at: block 'C' would leave loop 's', and block 'B' may write elements again in later iterations of loop 's', of"
        " other values\nnote: choose a loop inside of those that the blocks share"
    ) in refused(COPIED_AGAIN, move)
    # Of what nobody writes in the loop B is the same each time.
    scheduled(COPIED_AGAIN.replace("A[vs] = A[vs] * 2 + 1", "T.evaluate(0)"), move)


def test_a_consumer_stays_in_its_iteration_of_shared_loops() -> None:
    """In iteration s it reads what iteration s + 1 overwrites: where its axis came from what is written, it would follow that."""
    schedule = Schedule(
        mirstack.parse("""@T.prim_func
def main(A: T.Buffer((3, 6), "int32"), B: T.Buffer((4, 6), "int32"), C: T.Buffer((3,), "int32")):
    for s in range(3):
        for i in range(6):
            with T.block("B"):
                vs, vi = T.axis.remap("SS", [s, i])
                B[vs, vi] = A[vs, vi]
        with T.block("C"):
            vs = T.axis.spatial(3, s)
            C[vs] = B[vs + 1, vs]
""")
    )
    message = (
        "reverse_compute_at: block 'C' would run in other iterations of loop 's', as block 'C' is not known to read only elements"
        " of 'B' that block 'B' writes in the same iteration of loop 's'"
    )
    with pytest.raises(ScheduleError) as caught:
        schedule.reverse_compute_at(schedule.get_block("C"), schedule.get_loops(schedule.get_block("B"))[1])
    assert message in str(caught.value)
