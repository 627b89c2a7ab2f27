"""cache_inplace: a block that updates a buffer works on a copy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule
from mirstack.support.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import CHAIN
from test_primitives import refused, scheduled

UPDATE = """
@T.prim_func
def main(A: T.Buffer((12, 8), "float32"), B: T.Buffer((12, 8), "float32")):
    for i, j in T.grid(12, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] * T.float32(2) + B[vi, vj]
"""

OPAQUE = """
@T.prim_func
def main(A: T.Buffer((64,), "int32")):
    for i in range(1):
        with T.block("A"):
            T.reads(A[0:64])
            T.writes(A[0:64])
            T.evaluate(T.call_extern("int32", "f", A.data))
"""


def inplace(scope: str = "local") -> Any:
    """The primitive on block A."""
    return lambda s: s.cache_inplace(s.get_block("A"), 0, scope)


def test_elements() -> None:
    text = scheduled(UPDATE, inplace())
    assert 'A_local = T.alloc_buffer((12, 8), scope="local")' in text
    assert "A_local[vi, vj] = A_local[vi, vj] * T.float32(2) + B[vi, vj]" in text
    assert (
        text.index("A_local[v0, v1] = A[v0, v1]")
        < text.index('T.block("A")')
        < text.index("A[v0, v1] = A_local[v0, v1]")
    )
    assert "for ax0, ax1 in T.grid(1, 1):" in text


def test_rows() -> None:
    def steps(s: Schedule) -> None:
        outer = s.blockize(s.get_loops(s.get_block("A"))[1])
        before, after = s.cache_inplace(outer, "A", "shared")
        assert len(s.get_loops(before)) == len(s.get_loops(after)) == 3

    assert scheduled(UPDATE, steps).count("for ax0, ax1 in T.grid(1, 8):") == 2


def test_whole_buffer_behind_an_address() -> None:
    module = parse_mir(OPAQUE)
    schedule = Schedule(module)
    inplace()(schedule)
    verify(module)
    text = print_mir(module)
    assert 'T.call_extern("int32", "f", A_local.data)' in text
    assert text.count("for ax0 in range(64):") == 2
    assert print_mir(parse_mir(text)) == text


def test_predicate() -> None:
    def steps(s: Schedule) -> None:
        s.split(s.get_loops(s.get_block("A"))[0], [None, 5])
        inplace()(s)

    text = scheduled(UPDATE, steps)
    assert text.count("T.where(i_0 * 5 + i_1 < 12)") == 3
    assert text.count("for ax0, ax1 in T.grid(1, 1):") == 2


def test_unknown_parts_are_copied_whole() -> None:
    gather = UPDATE.replace("A[vi, vj] * T.float32(2)", "A[T.min(vi * vi, 11), vj] * T.float32(3) + A[vi, vj]")
    text = scheduled(gather, inplace())
    assert "for ax0, ax1 in T.grid(12, 8):" in text


def test_refusals() -> None:
    message = refused(CHAIN, lambda s: s.cache_inplace(s.get_block("B"), 0, "local"))
    assert "cache_inplace: block 'B' does not write 'A'" in message
    assert "cache_read it" in message
    assert "there is no storage scope 'shed'" in refused(UPDATE, inplace("shed"))
    assert "block 'A' reads no buffer number 2" in refused(
        UPDATE, lambda s: s.cache_inplace(s.get_block("A"), 2, "local")
    )

    parallel = UPDATE.replace("for i, j in T.grid(12, 8):", "for i in T.parallel(12):\n      for j in range(8):")
    message = refused(parallel, inplace())
    assert (
        "cache_inplace: the copies of 'A' would stand in loop 'i', which is parallel: its iterations would share the copy"
        in message
    )
    assert "cache_inplace first" in message
    guarded = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(8):
        if i < n:
            with T.block("A"):
                vi = T.axis.spatial(8, i)
                A[vi] = A[vi] + T.float32(1)
"""
    assert "cache_inplace: block 'A' stands in 'tir.if', not in a loop or block" in refused(guarded, inplace())
