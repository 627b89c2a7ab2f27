"""reindex, reindex_cache_read, reindex_cache_write: copies that axes index; what they refuse."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from test_primitives import refused, scheduled

TRANSPOSE = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), B: T.Buffer((10, 12), "float32")):
    for i, j in T.grid(10, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * T.float32(2)
"""

CONV = """
@T.prim_func
def main(A: T.Buffer((10, 3), "float32"), W: T.Buffer((3, 3, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    for i, f, r, c in T.grid(8, 4, 3, 3):
        with T.block("C"):
            vi, vf, vr, vc = T.axis.remap("SSRR", [i, f, r, c])
            with T.init():
                C[vi, vf] = T.float32(0)
            C[vi, vf] = C[vi, vf] + A[vi + vr, vf // 4 * 3 + vc] * W[vr, vc, vf]
"""


def test_reindex_read() -> None:
    text = scheduled(TRANSPOSE, lambda s: s.reindex(s.get_block("B"), ("read", 0)))
    assert "A_reindex = T.alloc_buffer((10, 12))" in text
    assert "A_reindex[v0, v1] = A[v1, v0]" in text
    assert "B[vi, vj] = A_reindex[vi, vj] * T.float32(2)" in text


def test_reindex_overlapping_places() -> None:
    text = scheduled(CONV, lambda s: s.reindex(s.get_block("C"), "A"))
    assert "A_reindex = T.alloc_buffer((8, 3, 3))" in text
    assert "A_reindex[v0, v1, v2] = A[v0 + v1, v2]" in text


def test_reindex_write_of_a_reduction() -> None:
    text = scheduled(CONV, lambda s: s.reindex(s.get_block("C"), ("write", 0)))
    assert "C_reindex[vi, vf] = C_reindex[vi, vf] + A" in text
    assert text.index('T.block("C_reindex")') > text.index('T.block("C")')
    transposed = TRANSPOSE.replace("B[vi, vj] = A[vj, vi]", "A[vj, vi] = B[vi, vj]")
    assert "A[v1, v0] = A_reindex[v0, v1]" in scheduled(transposed, lambda s: s.reindex(s.get_block("B"), "A"))


def test_copies_in_a_loop_are_of_what_a_turn_needs() -> None:
    def steps(s: Schedule) -> None:
        s.compute_at(s.get_block("C"), s.get_loops(s.get_block("D"))[0])
        s.reindex(s.get_block("D"), ("read", 0))
        s.reindex(s.get_block("C"), ("write", 0))

    text = scheduled(MATMUL, steps)
    assert text.count("for ax0, ax1 in T.grid(1, 20):") == 2


def test_reindex_cache_read() -> None:
    text = scheduled(
        CHAIN, lambda s: s.reindex_cache_read(s.get_block("C"), 0, "shared", lambda i, j: (j // 2, i, j % 2))
    )
    assert 'B_shared = T.alloc_buffer((15, 16, 2), scope="shared")' in text
    assert "B_shared[v1 // 2, v0, v1 % 2] = B[v0, v1]" in text
    assert "C[vi, vj] = B_shared[vj // 2, vi, vj % 2] + T.float32(1)" in text


def test_reindex_cache_write() -> None:
    text = scheduled(CHAIN, lambda s: s.reindex_cache_write(s.get_block("B"), "B", "local", lambda i, j: (j, i)))
    assert 'B_local = T.alloc_buffer((30, 16), scope="local")' in text
    assert "B[v0, v1] = B_local[v1, v0]" in text
    fused = scheduled(CHAIN, lambda s: s.reindex_cache_write(s.get_block("B"), 0, "local", lambda i, j: [i * 30 + j]))
    assert "B_local[vi * 30 + vj] = A[vi, vj] * T.float32(2)" in fused


def test_written_parts_are_copied_alone() -> None:
    part = CHAIN.replace("for i, j in T.grid(16, 30):", "for i, j in T.grid(5, 7):", 1)
    text = scheduled(part, lambda s: s.reindex(s.get_block("B"), ("write", 0)))
    assert "for ax0, ax1 in T.grid(5, 7):" in text


def test_read_before_it_is_overwritten() -> None:
    later = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[7 - vi] * T.float32(2)
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(5)
"""
    scheduled(later, lambda s: s.reindex(s.get_block("B"), ("read", 0)))


def test_places_refused() -> None:
    assert "reindex: block 'C' accesses 'B' at 3 places, and must at exactly one" in refused(
        STENCIL, lambda s: s.reindex(s.get_block("C"), "B")
    )
    gathered = TRANSPOSE.replace("A[vj, vi]", 'A[T.Cast("int32", A[vj, vi]), vi]')
    assert "accesses 'A' at 2 places" in refused(gathered, lambda s: s.reindex(s.get_block("B"), ("read", 0)))
    indirect = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), I: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[T.Cast("int32", I[vi])]
"""
    message = refused(indirect, lambda s: s.reindex(s.get_block("B"), "A"))
    assert "reindex: the place 'A[tir.cast(I[…])]' in block 'B' is not chosen by its axes alone" in message
    guarded = STENCIL.replace("B[vi] + B[vi + 1] + B[vi + 2]", "T.if_then_else(vi > 0, B[vi - 1], T.float32(0))")
    message = refused(guarded, lambda s: s.reindex(s.get_block("C"), "B"))
    assert (
        "reindex: a copy over all axes would access 'B' outside of it: index 0, vi - 1, is not known to be from 0 to 33"
        in message
    )
    passed = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(A[vi])
            T.evaluate(T.call_extern("int32", "f", A.data, vi))
"""
    assert "reindex: block 'A' uses 'A' otherwise than by its elements" in refused(
        passed, lambda s: s.reindex(s.get_block("A"), ("read", 0))
    )


def test_orders_refused() -> None:
    own = TRANSPOSE.replace("B[vi, vj] = A[vj, vi]", "A[vi, vj] = A[vi, vj]")
    assert "reindex: block 'B' writes 'A' too: what it reads must be finished before" in refused(
        own, lambda s: s.reindex(s.get_block("B"), ("read", 0))
    )
    assert (
        "reindex: block 'B' is neither complete (it reads and writes 'A') nor a reduction (it has no T.init()), so that a copy may not stand for its output"
        in refused(own, lambda s: s.reindex(s.get_block("B"), ("write", 0)))
    )
    halves = TRANSPOSE.replace("B[vi, vj]", "B[vi // 2, vj]")
    message = refused(halves, lambda s: s.reindex(s.get_block("B"), ("write", 0)))
    assert "reindex: the old indices [vi // 2, vj] of 'B' cannot be shown to keep its elements apart: " in message
    loose = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        A[i] = T.float32(1)
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
"""
    assert "reindex: 'A' is used in function 'main' outside of any block" in refused(
        loose, lambda s: s.reindex(s.get_block("B"), ("read", 0))
    )
    squared = TRANSPOSE.replace(
        'vi, vj = T.axis.remap("SS", [i, j])',
        "vi = T.axis.spatial(10, i * i % 10)\n            vj = T.axis.spatial(12, j)",
    )
    assert "reindex: which elements block 'B' writes before they are copied is not known: " in refused(
        squared, lambda s: s.reindex(s.get_block("B"), ("write", 0))
    )

    def parallel(s: Schedule) -> None:
        s.compute_at(s.get_block("B"), s.get_loops(s.get_block("C"))[0])
        s.parallel(s.get_loops(s.get_block("C"))[0])
        s.reindex(s.get_block("C"), ("read", 0))

    message = refused(CHAIN, parallel)
    assert (
        "reindex: the copies of 'B' would stand in loop 'i', which is parallel: its iterations would share the new buffer"
        in message
    )
    assert "reindex first" in message


def test_maps_refused() -> None:
    def read(s: Schedule, index_map: Any) -> None:
        s.reindex_cache_read(s.get_block("C"), 0, "local", index_map)

    assert "reindex_cache_read: the map takes 1 index, but block 'C' has 2 axes" in refused(
        CHAIN, lambda s: read(s, lambda i: [i])
    )
    assert "the map gives 'i', which is not an index" in refused(CHAIN, lambda s: read(s, lambda i, j: ["i", j]))
    message = refused(CHAIN, lambda s: read(s, lambda i, j: [i, j // 2]))
    assert "the new indices [vi, vj // 2] of 'B' cannot be shown to keep its elements apart" in message
    assert "cannot be shown to keep its elements apart" in refused(CHAIN, lambda s: read(s, lambda i, j: [i]))
    assert "reindex_cache_read: new index 1, vj - 3, may be negative (-3)" in refused(
        CHAIN, lambda s: read(s, lambda i, j: [i, j - 3])
    )
    assert "there is no storage scope 'shed'" in refused(
        CHAIN, lambda s: s.reindex_cache_read(s.get_block("C"), 0, "shed", lambda i, j: [i, j])
    )
    message = refused(MATMUL, lambda s: s.reindex_cache_write(s.get_block("C"), 0, "local", lambda i, j, k: [i, j, k]))
    assert "reindex_cache_write: the new indices of 'C' use axis 'vk', which is not a spatial axis" in message


SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 16))
    B = T.match_buffer(b, (16, n))
    for i, j in T.grid(16, n):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * T.float32(2)
"""


def test_symbolic_shapes() -> None:
    module = parse_mir(SYMBOLIC)
    schedule = Schedule(module)
    schedule.reindex(schedule.get_block("B"), ("read", 0))
    schedule.reindex(schedule.get_block("B"), ("write", 0))
    verify(module)
    text = print_mir(module)
    assert "A_reindex = T.alloc_buffer((16, n))" in text
    assert "B_reindex = T.alloc_buffer((16, n))" in text
    assert print_mir(parse_mir(text)) == text
    with pytest.raises(ScheduleError, match="reindex_cache_read: how far new index 1, vj \\* vj, reaches is not known"):
        schedule.reindex_cache_read(schedule.get_block("B"), 0, "local", lambda i, j: (i, j * j))
