"""decompose_padding: the padding is written first, then the inside; refused where something could read in between."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

PAD = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), P: T.Buffer((16, 14), "float32")):
    for i, j in T.grid(16, 14):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.if_then_else(2 <= vi and vi < 14 and 1 <= vj and vj < 11, A[vi - 2, vj - 1], T.float32(3))
"""

CONV = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    P = T.alloc_buffer((18,))
    for i in range(18):
        with T.block("P"):
            vi = T.axis.spatial(18, i)
            P[vi] = T.if_then_else(1 <= vi and vi < 17, A[vi - 1], T.float32(0))
    for i, k in T.grid(16, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + P[vi + vk]
"""


def decomposed(depth: int = 0, block: str = "P", *before: Any) -> Any:
    def steps(s: Schedule) -> None:
        for step in before:
            step(s)
        s.decompose_padding(s.get_block(block), s.get_loops(s.get_block(block))[depth])

    return steps


@pytest.mark.parametrize("depth", [0, 1])
def test_loops_run_over_the_inside(depth: int) -> None:
    text = scheduled(PAD, decomposed(depth))
    assert 'T.block("P_pad_const")' in text and "P[vi, vj] = T.float32(3)" in text
    if depth == 0:
        assert "for i, j in T.grid(12, 10):" in text and "P[vi + 2, vj + 1] = A[vi, vj]" in text
    else:
        # Loop i holds both blocks: its turns outside of the inside are left out by a condition.
        assert "for j in range(10):" in text and "T.where(2 <= i and i < 14)" in text


def test_the_filling_block_is_returned_and_named() -> None:
    def steps(s: Schedule) -> None:
        old = s.get_block("P")
        new = s.decompose_padding(old, s.get_loops("P")[0])
        assert s.resolve(new) is s.resolve(s.get_block("P_pad_const"))
        assert s.resolve(old) is s.resolve(s.get_block("P"))
        assert len(s.get_loops(old)) == len(s.get_loops(new)) == 2

    scheduled(PAD, steps)


@pytest.mark.parametrize(
    "before",
    [
        lambda s: s.split(s.get_loops("P")[0], [None, 5]),
        lambda s: s.fuse(*s.get_loops("P")),
        lambda s: s.reorder(*s.get_loops("P")[::-1]),
        lambda s: s.parallel(s.get_loops("P")[0]),
        lambda s: s.vectorize(s.get_loops("P")[1]),
        lambda s: s.split(s.get_loops("P")[1], [2, 7]),
    ],
)
def test_after_other_primitives(before: Any) -> None:
    scheduled(PAD, decomposed(0, "P", before))


def test_select_and_other_forms() -> None:
    select = PAD.replace("A[vi - 2, vj - 1]", "A[T.max(vi - 2, 0) % 12, (vj + 9) % 10]").replace(
        "T.if_then_else", "T.Select"
    )
    assert "T.Select" not in scheduled(select, decomposed())
    one_side = PAD.replace(
        "2 <= vi and vi < 14 and 1 <= vj and vj < 11", "vi < 12 and vj < 10 and vi <= 10 and -1 <= vj"
    ).replace("A[vi - 2, vj - 1]", "A[vi, vj]")
    assert "for i, j in T.grid(11, 10):" in scheduled(one_side, decomposed())


def test_units_are_plain() -> None:
    unit = (
        PAD.replace("(12, 10)", "(1, 10)")
        .replace("(16, 14)", "(1, 14)")
        .replace("2 <= vi and vi < 14 and", "")
        .replace("vi - 2", "vi")
    )
    text = scheduled(unit, decomposed())
    assert text.count("vi = T.axis.spatial(1, 0)") == 2


def at_tile(s: Schedule) -> None:
    i, k = s.get_loops("C")
    outer, inner = s.split(i, [None, 4])
    s.reorder(outer, inner, k)
    s.compute_at(s.get_block("P"), outer)


def test_at_a_tile_of_the_reader() -> None:
    """The padding may be filled at a tile, and before all of them."""
    inner = scheduled(CONV, decomposed(1, "P", at_tile))
    assert inner.index("for i_0") < inner.index("P_pad_const")
    outer = scheduled(CONV, decomposed(0, "P", at_tile))
    assert outer.index("P_pad_const") < outer.index('T.block("P")')
    assert outer.count("for i_0") == 2


def test_reader_that_reaches_further() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    P = T.alloc_buffer((18,))
    for o in range(9):
        for i in range(2):
            with T.block("P"):
                vi = T.axis.spatial(18, o * 2 + i)
                P[vi] = T.if_then_else(1 <= vi and vi < 17, A[vi - 1], T.float32(0))
        for i in range(2):
            with T.block("C"):
                vi = T.axis.spatial(18, o * 2 + i)
                T.where(2 <= o * 2 + i)
                C[vi - 2] = P[vi] + P[vi - 1]
"""
    message = refused(text, decomposed())
    assert (
        "decompose_padding: block 'C' in loop 'o' is not known to read of 'P' only what block 'P' has just written"
        in message
    )
    assert "note: give a loop inside of 'o', which holds both" in message
    scheduled(text, decomposed(1))
    swapped = text.replace("C[vi - 2] = P[vi] + P[vi - 1]", "C[vi - 2] = P[vi]")
    scheduled(swapped, decomposed())


def test_symbolic_size() -> None:
    from mirstack.parser import parse_mir, print_mir

    module = parse_mir("""
@T.prim_func
def main(a: T.handle, p: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    P = T.match_buffer(p, (n + 4,), "float32")
    for i in range(n + 4):
        with T.block("P"):
            vi = T.axis.spatial(n + 4, i)
            P[vi] = T.if_then_else(2 <= vi and vi < n + 2, A[vi - 2], T.float32(0))
""")
    decomposed()(Schedule(module))
    module.verify()
    assert "for i in range(n):" in print_mir(module) and "P[vi + 2] = A[vi]" in print_mir(module)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            CHAIN.replace('T.block("B")', 'T.block("P")'),
            "decompose_padding: block 'P' does not choose between a value and padding\nnote: it must be P[…] = T.if_then_else(condition, value, padding)",
        ),
        (
            MATMUL.replace('T.block("C")', 'T.block("P")'),
            "decompose_padding: block 'P' is not a complete block: axis 'vk' is not a spatial axis",
        ),
        (PAD.replace("T.float32(3)", "A[0, 0]"), "decompose_padding: the padding of block 'P' is not a constant"),
        (
            PAD.replace("T.float32(3)", 'T.Cast("float32", vi)'),
            "decompose_padding: the padding of block 'P' depends on its axes",
        ),
        (
            PAD.replace("2 <= vi and", "2 <= vi + vj and"),
            "decompose_padding: the condition 2 <= vi + vj of block 'P' does not bound one axis\nnote: what is inside must be a range of each axis: low <= v and v < high",
        ),
        (PAD.replace("2 <= vi and", "vi % 2 == 0 and"), "of block 'P' does not bound one axis"),
        (
            PAD.replace("2 <= vi and vi < 14 and 1 <= vj and vj < 11", "vi < 16"),
            "decompose_padding: block 'P' pads nothing: its condition always holds",
        ),
        (
            PAD.replace("vi < 14", "vi < 1"),
            "decompose_padding: block 'P' copies nothing: no value of axis 'vi' is inside",
        ),
        (
            PAD.replace("            P[vi", "            T.evaluate(0)\n            P[vi"),
            "decompose_padding: block 'P' is more than one store",
        ),
        (
            PAD + "            P[vi, vj] = P[vi, vj]\n",
            "decompose_padding: block 'P' is not a complete block: it reads and writes 'P'",
        ),
        (PAD + "            P[vi, 0] = T.float32(1)\n", "decompose_padding: block 'P' is more than one store"),
        (PAD + "        P[0, 0] = T.float32(1)\n", "decompose_padding: 'P' is used outside of any block"),
        (
            PAD.replace("        with", "        if i < 3:\n            with")
            .replace("            vi, vj =", "                vi, vj =")
            .replace("            P[vi", "                P[vi"),
            "decompose_padding: block 'P' stands under a branch in loop 'i'",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refused(text, decomposed())


def test_loop_elsewhere() -> None:
    message = refused(CONV, lambda s: s.decompose_padding(s.get_block("P"), s.get_loops("C")[0]))
    assert "decompose_padding: loop 'i' is not around block 'P'" in message


def test_padding_does_not_move_to_what_it_pads() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), E: T.Buffer((12,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * T.float32(2)
    for i in range(12):
        with T.block("E"):
            vi = T.axis.spatial(12, i)
            E[vi] = T.if_then_else(2 <= vi and vi < 10, C[vi - 2], T.float32(0))
"""
    message = refused(text, lambda s: s.reverse_compute_at(s.get_block("E"), s.get_loops("C")[0]))
    assert (
        "reverse_compute_at: axis 'vi' of block 'E' runs from 0 to 11, but what loop 'i' makes is read from 2 to 9 only: the rest would not run"
        in message
    )
    assert "note: compute_at what it reads at a loop of it instead" in message
    scheduled(text, lambda s: s.compute_at(s.get_block("C"), s.get_loops("E")[0]))
