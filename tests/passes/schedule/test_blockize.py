"""blockize: loops and the block in them, and several blocks, as one block; what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mirstack.passes.schedule import Schedule

sys.path.insert(0, str(Path(__file__).parent))
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from test_primitives import refused, scheduled

TWO = """
@T.prim_func
def main(A: T.Buffer((8, 12), "float32"), B: T.Buffer((8, 12), "float32")):
    for m in range(2):
        for i, j in T.grid(8, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(8, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj + 4] = A[vi, vj + 4] * T.float32(3)
"""

DIGITS = """
@T.prim_func
def main(A: T.Buffer((4, 24), "float32"), B: T.Buffer((4, 24), "float32")):
    for i, j0, j1 in T.grid(4, 4, 6):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(24, j0 * 6 + j1)
            B[vi, vj] = A[vi, vj // 6 * 6 + vj % 6] + T.Cast("float32", vj // 6)
"""


def tiled(s: Schedule) -> list[Any]:
    """The loops of the product, cut in tiles: outer i, j, k, then inner i, j, k."""
    i, j, k = s.get_loops(s.get_block("C"))
    i0, i1 = s.split(i, [None, 4])
    j0, j1 = s.split(j, [None, 5])
    k0, k1 = s.split(k, [None, 8])
    s.reorder(i0, j0, k0, i1, j1, k1)
    return [i0, j0, k0, i1, j1, k1]


def test_reduction_moves_its_init() -> None:
    text = scheduled(MATMUL, lambda s: s.blockize(tiled(s)[3]))
    assert 'with T.block("C_o"):' in text
    assert 'vi_o, vj_o, vk_o = T.axis.remap("SSR", [i_0, j_0, k_0])' in text
    assert "T.writes(C[vi_o * 4:vi_o * 4 + 4, vj_o * 5:vj_o * 5 + 5])" in text
    assert 'vi_i_init, vj_i_init = T.axis.remap("SS", [i_1, j_1])' in text
    assert "T.reads(C[vi_o * 4 + vi_i, vj_o * 5 + vj_i], A[vi_o * 4 + vi_i, vk_o * 8 + vk_i]" in text


def test_spatial_loop_around_the_block_only() -> None:
    text = scheduled(CHAIN, lambda s: s.blockize(s.get_loops(s.get_block("B"))[1]))
    assert "vi_o = T.axis.spatial(16, i)" in text
    assert "vj_o = T.axis.spatial(1, 0)" in text
    assert "vj_i = T.axis.spatial(30, j)" in text
    assert "T.reads(A[vi_o, 0:30])" in text


def test_block_alone() -> None:
    text = scheduled(CHAIN, lambda s: s.blockize(s.get_block("B")))
    assert 'vi_o, vj_o = T.axis.remap("SS", [i, j])' in text
    assert "B[vi_o, vj_o] = A[vi_o, vj_o] * T.float32(2)" in text


def test_arithmetic_is_simplified() -> None:
    text = scheduled(DIGITS, lambda s: s.blockize(s.get_loops(s.get_block("B"))[2]))
    assert 'B[vi_o, vj_o * 6 + vj_i] = A[vi_o, vj_o * 6 + vj_i] + T.Cast("float32", vj_o)' in text


def test_handle_of_the_block_stands_for_the_inner_one() -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("B")
        outer = s.blockize(s.get_loops(block)[1])
        assert [s.resolve(b) for b in s.get_child_blocks(outer)] == [s.resolve(block)]
        s.split(s.get_loops(block)[0], [None, 5])

    scheduled(CHAIN, steps)


def test_predicates_go_to_their_nest() -> None:
    def steps(s: Schedule) -> None:
        i, j = s.get_loops(s.get_block("B"))
        s.split(i, [None, 5])
        j0, _ = s.split(j, [None, 30])
        s.blockize(j0)

    text = scheduled(CHAIN, steps)
    assert text.index("T.where(i_0 * 5 + i_1 < 16)") < text.index("vj_i")

    def inner(s: Schedule) -> None:
        _, j = s.get_loops(s.get_block("B"))
        s.blockize(s.split(j, [None, 7])[0])

    text = scheduled(CHAIN, inner)
    assert text.index("T.where(j_0 * 7 + j_1 < 30)") > text.index("vj_i")


def test_bounded_part_of_an_axis() -> None:
    bounded = """
@T.prim_func
def main(A: T.Buffer((30,), "float32"), B: T.Buffer((30,), "float32")):
    for j_0, j_1, j_2 in T.grid(6, 3, 2):
        with T.block("B"):
            vj = T.axis.spatial(30, j_0 * 5 + j_1 * 2 + j_2)
            T.where(j_1 * 2 + j_2 < 5)
            B[vj] = A[vj] * T.float32(2)
"""
    text = scheduled(bounded, lambda s: s.blockize(s.get_loops(s.get_block("B"))[0]))
    assert "vj_i = T.axis.spatial(30, j_0 * 5 + j_1 * 2 + j_2)" in text
    text = scheduled(bounded, lambda s: s.blockize(s.get_loops(s.get_block("B"))[1]))
    assert "vj_i = T.axis.spatial(5, j_1 * 2 + j_2)" in text
    assert "the predicate bounds j_0 * 5 + j_1 * 2 + j_2, which uses inner and outer loops" in refused(
        bounded, lambda s: s.blockize(s.get_loops(s.get_block("B"))[2])
    )


def test_reduction_with_a_predicate() -> None:
    def steps(s: Schedule) -> None:
        k = s.get_loops(s.get_block("C"))[2]
        s.blockize(s.split(k, [None, 5])[0])

    text = scheduled(MATMUL, steps)
    assert text.count("T.where(k_0 * 5 + k_1 < 16)") == 1


def test_unit_loops() -> None:
    def steps(s: Schedule, keep: bool) -> None:
        i, _ = s.get_loops(s.get_block("B"))
        _, i1 = s.split(i, [1, 16])
        s.blockize(i1, preserve_unit_iters=keep)

    assert "vi_o, vj_o" not in scheduled(CHAIN, lambda s: steps(s, False))
    assert "vi_o = T.axis.spatial(1, i_0)" in scheduled(CHAIN, lambda s: steps(s, True))


def test_several_blocks() -> None:
    text = scheduled(TWO, lambda s: s.blockize([s.get_block("B"), s.get_block("C")]))
    assert 'with T.block("outer_B_C_"):' in text
    assert "T.reads(A[0:8, 0:12])" in text
    assert text.count("vi_o") == 1


def test_refusals() -> None:
    def outer_after_inner(s: Schedule) -> None:
        _, j = s.get_loops(s.get_block("B"))
        j0, j1 = s.split(j, [None, 5])
        s.reorder(j1, j0)
        s.blockize(j0)

    assert (
        "blockize: the axes of block 'B' cannot be divided between loop 'j_0' with those in it and the loops around: "
        in refused(CHAIN, outer_after_inner)
    )

    def cut(s: Schedule) -> None:
        _, j = s.get_loops(s.get_block("B"))
        _, j1 = s.split(j, [None, 7])
        s.blockize(j1)

    message = refused(CHAIN, cut)
    assert "the predicate bounds" in message
    assert "split and reorder the loops so that each axis is bound to outer * extent" in message
    assert "blockize: loop 'm' holds 2 blocks ('B', 'C'), and must hold exactly one" in refused(
        TWO, lambda s: s.blockize(s.get_loops(s.get_block("B"))[0])
    )
    assert "blockize: no block is given" in refused(TWO, lambda s: s.blockize([]))
    assert "blockize: function 'main' is neither a loop nor a block inside the function" in refused(
        TWO, lambda s: s.blockize(s.get_block("root"))
    )


def test_several_blocks_refused() -> None:
    def both(s: Schedule, *names: str) -> None:
        s.blockize([s.get_block(n) for n in names])

    message = refused(MATMUL, lambda s: both(s, "C", "D"))
    assert "blockize: block 'C' is a reduction with a T.init(), which several blocks in one cannot keep" in message
    assert "decompose_reduction first" in message

    three = TWO.replace('"C"', '"E"') + TWO[TWO.index("        for i, j in T.grid(8, 8)") :]
    assert "blockize: the blocks 'B', 'C' do not stand next to each other" in refused(
        three, lambda s: both(s, "B", "C")
    )

    def nested(s: Schedule) -> None:
        s.blockize(s.get_loops(s.get_block("B"))[1])
        both(s, "B", "C")

    assert "blockize: block 'C' is in function 'main', block 'B' in block 'B_o'" in refused(TWO, nested)

    shared = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
            with T.block("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = B[vi, vj]
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = A[vi, 0]
"""
    assert (
        "blockize: the loops around block 'B' hold blocks besides it, inside of those that all the blocks share"
        in refused(shared, lambda s: both(s, "B", "C"))
    )


def test_other_statements_refused() -> None:
    guarded = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), n: T.int32):
    for i in range(4):
        if i < n:
            for j in range(4):
                with T.block("A"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    A[vi, vj] = T.float32(1)
"""
    assert "blockize: 'tir.if' stands between the loops around block 'A', which may be loops only" in refused(
        guarded, lambda s: s.blockize(s.get_loops(s.get_block("A"))[0])
    )
    evaluated = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32")):
    for i in range(4):
        T.evaluate(i)
        for j in range(4):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
"""
    assert "blockize: loop 'i' around block 'A' holds another statement, 'tir.evaluate'" in refused(
        evaluated, lambda s: s.blockize(s.get_loops(s.get_block("A"))[0])
    )


def test_reductions_refused() -> None:
    carried = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi, vk] = T.float32(0)
            B[vi, vk] = B[vi, vk] + A[vi, vk]
"""
    assert (
        "blockize: block 'B' is not a reduction block, so that its T.init() cannot move out of the inner loops: "
        in refused(carried, lambda s: s.blockize(s.get_loops(s.get_block("B"))[0]))
    )
    late = """
@T.prim_func
def main(A: T.Buffer((8, 9), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(9, k + 1)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""
    assert "blockize: reduction axis 'vk' of block 'B' starts at 1, not at the start of its domain" in refused(
        late, lambda s: s.blockize(s.get_loops(s.get_block("B"))[1])
    )
    moved = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(16, i + n)
            A[vi] = T.float32(1)
"""
    assert "blockize: axis 'vi' of block 'A' starts at n, which is not a constant" in refused(
        moved, lambda s: s.blockize(s.get_loops(s.get_block("A"))[0])
    )


def test_conditions_on_loops_that_drive_no_axis() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8, 4), "int32"), B: T.Buffer((8, 4), "int32")):
    for i, u, j in T.grid(8, 2, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(u < 1)
            B[vi, vj] = A[vi, vj] + 1
"""
    for keep in (False, True):
        inside = scheduled(text, lambda s, keep=keep: s.blockize(s.get_loops("B")[1], preserve_unit_iters=keep))
        assert inside.index('T.block("B")') < inside.index("T.where(u < 1)")
        outside = scheduled(text, lambda s, keep=keep: s.blockize(s.get_loops("B")[2], preserve_unit_iters=keep))
        assert outside.index('T.block("B_o")') < outside.index("T.where(u < 1)") < outside.index('T.block("B")')


def test_blocks_of_different_conditions() -> None:
    text = """
@T.prim_func
def main(B: T.Buffer((2, 2), "float32")):
    for i in range(2):
        for j in range(2):
            with T.block("all"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.float32(0)
        for j in range(2):
            with T.block("later"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(i >= 1)
                B[vi, vj] = T.float32(1)
"""
    said = refused(text, lambda sch: sch.blockize([sch.get_block("later"), sch.get_block("all")]))
    assert (
        "blockize: blocks 'later' and 'all' do not run in the same iterations of the loops that they share, by their T.where\n"
        "note: put together blocks of one condition"
    ) in said
