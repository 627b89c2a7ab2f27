"""Refusals where a primitive would change what is computed: shared loops, parts of buffers, blocks that move out of loops."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

TWO_IN_A_LOOP = """
@T.prim_func
def main(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    L = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("a"):
            vi = T.axis.spatial(3, i)
            L[vi] = A[vi]
        with T.block("b"):
            vi = T.axis.spatial(3, i)
            B[vi] = L[vi]
"""

EARLIER_READER = """
@T.prim_func
def main(A: T.Buffer((3,), "int32"), L: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    for i in range(3):
        with T.block("a"):
            vi = T.axis.spatial(3, i)
            B[vi] = L[vi]
    for i in range(3):
        with T.block("b"):
            vi = T.axis.spatial(3, i)
            L[vi] = A[vi]
"""

PART = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(6):
        with T.block("b"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("c"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
"""

READ_BEHIND = """
@T.prim_func
def main(A: T.Buffer((8, 2), "int32"), C: T.Buffer((8, 2), "int32")):
    B = T.alloc_buffer((8, 2), "int32")
    for i in range(8):
        for j in range(2):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        with T.block("c"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi, 0:2])
            T.writes(C[vi, 0:2])
            for j in range(2):
                C[vi, j] = B[vi, j]
"""

STRIDED = PART.replace("B[vi] = A[vi]", "B[vi // 3 * 4 + vi % 3] = A[vi]")

GUARDED = """
@T.prim_func
def main(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):
    for i, j in T.grid(3, 3):
        with T.block("b"):
            vi = T.axis.spatial(8, i * 3 + j)
            T.where(i * 3 + j < 8)
            B[vi] = A[vi]
"""

OTHER_ITERATIONS = """
@T.prim_func
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32")):
    C = T.alloc_buffer((4,), "int32")
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * 2
        with T.block("c"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[3 - vi]
    for i in range(4):
        with T.block("d"):
            vi = T.axis.spatial(4, i)
            D[vi] = C[vi] + 1
"""

PIECE_BY_PIECE = """
@T.prim_func
def main(A: T.Buffer((4, 4), "int32"), B: T.Buffer((4,), "int32"), D: T.Buffer((4, 4), "int32")):
    C = T.alloc_buffer((4, 4), "int32")
    for i in range(4):
        with T.block("b"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi, 0] * 2
        for j in range(4):
            with T.block("c"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
    for i, j in T.grid(4, 4):
        with T.block("d"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] + B[(vi + vj) % 4]
"""

Steps = Callable[[Schedule], object]

REFUSED: dict[str, tuple[str, Steps, str]] = {
    "pad_einsum of a shared loop": (
        TWO_IN_A_LOOP,
        lambda s: s.pad_einsum("b", [2]),
        "pad_einsum: loop 'i' of axis 'vi' of block 'b' holds block 'a', too, which would run more often\n"
        "note: give each block loops of its own, or 1 for this axis",
    ),
    "pad_einsum of a loop that drives two axes": (
        PART.replace(
            "vi = T.axis.spatial(6, i)\n            B[vi] = A[vi]",
            "vi = T.axis.spatial(6, i)\n            vj = T.axis.spatial(6, i)\n            B[vi] = A[vj]",
        ),
        lambda s: s.pad_einsum("b", [4, 1]),
        "pad_einsum: loop 'i' drives 2 axes of block 'b', and must drive 'vi' alone\nnote: pad before splitting",
    ),
    "pad_einsum of a part of a buffer": (
        PART,
        lambda s: s.pad_einsum("b", [4]),
        "pad_einsum: block 'b' is not known to write all of 'B': it leaves elements out\n"
        "note: only an output that is written whole can be copied out of a padded one",
    ),
    "pad_einsum beside a reader": (
        READ_BEHIND,
        lambda s: s.pad_einsum("b", [1, 4]),
        "pad_einsum: block 'c' uses 'B' in the loops of block 'b', which are between the padded copies\n"
        "note: give each block loops of its own",
    ),
    "cache_write of every other element": (
        STRIDED,
        lambda s: s.cache_write("b", 0, "local"),
        "cache_write: block 'b' is not known to write all of what would be copied back to 'B': ",
    ),
    "cache_write for a reader of more": (
        PART,
        lambda s: s.cache_write("b", 0, "local", ["c"]),
        "cache_write: block 'c' is not known to read only elements of 'B' that block 'b' writes: the new buffer holds no others\n"
        "note: leave it out of consumer_blocks",
    ),
    "cache_write for an earlier reader": (
        EARLIER_READER,
        lambda s: s.cache_write("b", 0, "local", ["a"]),
        "cache_write: block 'a' reads 'L' before block 'b' writes it: the new buffer would not hold what it reads\n"
        "note: list consumers that come after the block",
    ),
    "cache_write for a block elsewhere": (
        READ_BEHIND,
        lambda s: s.cache_write(s.blockize(s.get_loops("b")[1]), 0, "local", [s.get_block("b")]),
        "cache_write: block 'b' is listed as a consumer, but is not in the scope of block 'b_o'\nnote: list blocks that stand",
    ),
    "compute_inline out of a loop": (
        OTHER_ITERATIONS,
        lambda s: s.compute_inline("c"),
        "compute_inline: block 'c' would leave loop 'i', and block 'c' is not known to read only elements of 'B' that block 'b' writes in the same iteration of loop 'i'\n"
        "note: what is computed from the values of then must be kept",
    ),
    "compute_at out of a loop": (
        OTHER_ITERATIONS,
        lambda s: s.compute_at("c", s.get_loops("d")[0]),
        "compute_at: block 'c' would leave loop 'i', and block 'c' is not known to read only elements of 'B' that block 'b' writes in the same iteration of loop 'i'\n"
        "note: choose a loop inside of those that the blocks share",
    ),
    "reverse_compute_at of what is made piece by piece": (
        PIECE_BY_PIECE,
        lambda s: s.reverse_compute_at("d", s.get_loops("c")[1]),
        "reverse_compute_at: block 'd' may read elements of 'B' (dimension 0) that other iterations of loop 'j' make\n"
        "note: choose a loop outside of those that make 'B' piece by piece",
    ),
    "transform_block_layout that leaves values out": (
        TWO_IN_A_LOOP.replace("""        with T.block("b")""", """    for i in range(3):\n        with T.block("b")"""),
        lambda s: s.transform_block_layout("b", lambda i: (i * 2,)),
        "transform_block_layout: the map is not one-to-one on the axes of block 'b': vi * 2 leaves out values: it counts in steps of 2",
    ),
    "transform_block_layout of a part": (
        GUARDED.replace("            T.where(i * 3 + j < 8)\n", "")
        .replace("i, j in T.grid(3, 3)", "i in range(5)")
        .replace("i * 3 + j", "i"),
        lambda s: s.transform_block_layout("b", lambda i: (i,)),
        "transform_block_layout: the loops of block 'b' run over a part of axis 'vi' only, and new ones would run over all of it\n"
        "note: transform the block before its loops are partitioned",
    ),
    "transform_block_layout from 1 on": (
        TWO_IN_A_LOOP.replace("""        with T.block("b")""", """    for i in range(3):\n        with T.block("b")"""),
        lambda s: s.transform_block_layout("b", lambda i: (i + 1,)),
        "transform_block_layout: the map is not one-to-one on the axes of block 'b': vi + 1 begins at 1, not at 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    text, steps, message = REFUSED[name]
    assert message in refused(text, steps)


def test_what_is_read_by_quotients_is_made_in_the_same_iteration() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((3, 16), "int32"), C: T.Buffer((6, 8), "int32")):
    B = T.alloc_buffer((3, 16), "int32")
    for i, j in T.grid(3, 16):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(6, 8):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[(vi * 8 + vj) // 16, (vi * 8 + vj) % 16]
"""
    moved = scheduled(text, lambda s: s.reverse_compute_at("c", s.get_loops("b")[0]))
    assert "for ax0, ax1 in T.grid(2, 8):" in moved and "vi = T.axis.spatial(6, i * 2 + ax0)" in moved


def test_predicate_bounds_what_is_copied_back() -> None:
    text = scheduled(GUARDED, lambda s: s.cache_write("b", 0, "local"))
    assert 'B_local = T.alloc_buffer((8,), "int32", scope="local")' in text and "for ax0 in range(8):" in text


def test_consumers_of_what_is_written() -> None:
    text = PART.replace("C[vi] = B[vi]", "C[vi] = B[vi % 6]")
    assert "C[vi] = B_local[vi % 6]" in scheduled(text, lambda s: s.cache_write("b", 0, "local", ["c"]))


def test_layout_of_a_blockized_block() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 6), "int32"), B: T.Buffer((4, 6), "int32")):
    for i, j in T.grid(4, 6):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
"""

    def steps(s: Schedule) -> None:
        s.transform_block_layout(s.blockize(s.get_loops("b")[1]), lambda i, j: (j, i))

    assert "for ax0, ax1 in T.grid(1, 4):" in scheduled(text, steps)


def test_blockize_under_two_predicates() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((9, 2), "int32"), B: T.Buffer((9, 2), "int32")):
    for i, j in T.grid(9, 2):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1
"""

    def steps(s: Schedule) -> None:
        _, unit = s.split(s.get_loops("b")[1], [3, None])
        s.split(unit, [None, 2, 1])
        s.blockize(s.get_loops("b")[0])

    assert "vj_i = T.axis.spatial(2, j_1_0 * 2 + j_0 + j_1_1 + j_1_2)" in scheduled(text, steps)


def test_layout_of_what_nested_blocks_read() -> None:
    """What a block declares is made of what those in it declare: they come first."""

    def steps(s: Schedule) -> None:
        s.loop_partition(s.get_loops("c")[0], [3, None])
        s.transform_layout("b_i1", ("write", 0), lambda i, j: (0, i, j))

    assert "T.reads(A[0:3, 0:2], B[0, 0:3, 0:2])" in scheduled(READ_BEHIND, steps)


def test_no_separators_leave_a_parameter() -> None:
    text = scheduled(PART, lambda s: s.set_axis_separator("b", ("write", 0), []))
    assert "match_buffer" not in text


def test_declared_indices_stay_before_the_branch() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((2,), "int32")):
    B = T.alloc_buffer((12,), "int32")
    for i in range(12):
        with T.block("b"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi // 2, vi % 8] - A[vi // 2, vi % 8]
    for i in range(2):
        with T.block("c"):
            vi = T.axis.spatial(2, i)
            C[vi] = B[vi + 10]
"""
    assert "if vi >= 10:" in scheduled(text, lambda s: s.reverse_compute_inline("c"))


PREDICATED = """
@T.prim_func
def main(A: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for i, u in T.grid(8, 2):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            T.where(i < 4)
            D[vi] = B[vi] + 1
"""


def test_a_block_that_runs_for_some_values_of_its_axes() -> None:
    message = refused(PREDICATED, lambda s: s.reverse_compute_at("D", s.get_loops("B")[0]))
    assert "reverse_compute_at: block 'D' does not run for every value of its axes: it runs only where i < 4" in message
    assert "note: give its axes the domain for which it runs" in message
    some = PREDICATED.replace("            T.where(i < 4)\n", "").replace(
        "            B[", "            T.where(i >= 2)\n            B["
    )
    message = refused(some, lambda s: s.compute_at("B", s.get_loops("D")[0]))
    assert "compute_at: block 'B' does not run for every value of its axes: it runs only where 2 <= i" in message
    once = PREDICATED.replace("i < 4", "u < 1")
    assert "T.where" not in scheduled(once, lambda s: s.reverse_compute_at("D", s.get_loops("B")[0]))


def test_reader_of_one_element_takes_that_element() -> None:
    """An axis of one value says nothing of where it reads: of 15 instances of the producer one stores."""
    text = """
@T.prim_func
def main(A: T.Buffer((5, 3), "int32"), C: T.Buffer((1, 1), "int32")):
    B = T.alloc_buffer((5, 3), "int32")
    for i, j in T.grid(5, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    for i in range(1):
        with T.block("C"):
            vi = T.axis.spatial(1, i)
            C[0, vi] = B[vi, vi]
"""
    printed = scheduled(text, lambda s: s.reverse_compute_inline(s.get_block("C")))
    assert "if vi == 0 and vj == 0:" in printed
