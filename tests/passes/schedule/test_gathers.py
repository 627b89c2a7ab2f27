"""Blocks whose indices are loaded: what is not known where a region is declared is the whole dimension."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule
from mirstack.support.verify import verify
from test_primitives import scheduled

GATHER = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), I: T.Buffer((8,), "int64"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[T.Cast("int32", I[vi])], I[vi])
            T.writes(C[vi])
            C[vi] = B[T.Cast("int32", I[vi])]
"""

TOTAL = """
@T.prim_func
def main(A: T.Buffer((16, 6), "float32"), I: T.Buffer((8, 4), "int64"), C: T.Buffer((8,), "float32")):
    for i, k, l in T.grid(8, 4, 6):
        with T.block("C"):
            vi, vk, vl = T.axis.remap("SRR", [i, k, l])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[T.Cast("int32", I[vi, vk]), vl]
"""

SCATTER = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int64"), C: T.Buffer((16,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.opaque(8, i)
            T.reads(A[vi], I[vi])
            T.writes(C[T.Cast("int32", I[vi])])
            C[T.Cast("int32", I[vi])] = A[vi]
"""


@pytest.mark.parametrize(
    ("program", "steps", "line"),
    [
        (GATHER, lambda s: s.compute_at("B", *s.get_loops("C")), "for ax0 in range(16):"),
        (GATHER, lambda s: s.compute_inline("B"), 'T.reads(A[T.Cast("int32", I[vi])], I[vi])'),
        (GATHER, lambda s: s.blockize(*s.get_loops("C")), "T.reads(B[0:16], I[0:8])"),
        (TOTAL, lambda s: s.blockize(s.get_loops("C")[2]), "T.reads(A[0:16, 0:6], I[vi_o, vk_o])"),
        (TOTAL, lambda s: s.rfactor(s.get_loops("C")[1], 0), 'T.reads(A[T.Cast("int32", I[vi, vk]), vl], I[vi, vk])'),
        (
            TOTAL,
            lambda s: s.decompose_reduction("C", s.get_loops("C")[1]),
            'T.reads(C[vi], A[T.Cast("int32", I[vi, vk]), vl], I[vi, vk])',
        ),
        (SCATTER, lambda s: s.blockize(*s.get_loops("C")), "T.writes(C[0:16])"),
    ],
)
def test_regions(program: str, steps: Callable[[Schedule], object], line: str) -> None:
    assert line in scheduled(program, steps)


def test_names_and_calls() -> None:
    """A region may load an index once more, whatever its name; a call stands for anything."""
    load, named = 'T.Cast("int32", I[vi])', "            C[vi] = B[x]"
    text = GATHER.replace(f"            C[vi] = B[{load}]", f"            x: T.int32 = {load}\n{named}")
    assert f"T.reads(I[vi], A[{load}])" in scheduled(text, lambda s: s.compute_inline("B"))
    module = parse_mir(text.replace(load, 'T.call_extern("int32", "f", vi)'))
    Schedule(module).compute_inline("B")
    verify(module)
    assert "T.reads(A[0:16])" in print_mir(module)
