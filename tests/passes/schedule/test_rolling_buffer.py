"""rolling_buffer: buffers that keep one window, and everything that stands in the way of that."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

CONV = """
@T.prim_func
def main(A: T.Buffer((12, 14), "float32"), C: T.Buffer((8, 10), "float32")):
    B = T.alloc_buffer((10, 12))
    for i, j, p, q in T.grid(10, 12, 3, 3):
        with T.block("B"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                B[vi, vj] = T.float32(0)
            B[vi, vj] = B[vi, vj] + A[vi + vp, vj + vq]
    for i, j, p, q in T.grid(8, 10, 3, 3):
        with T.block("C"):
            vi, vj, vp, vq = T.axis.remap("SSRR", [i, j, p, q])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi + vp, vj + vq]
"""


def at(factor: int, block: str = "B", reader: str = "C", **kwargs: Any) -> Any:
    """Splits the first loop of `reader`, and computes `block` there."""

    def steps(s: Schedule) -> None:
        outer, _ = s.split(s.get_loops(s.get_block(reader))[0], [None, factor])
        s.compute_at(s.get_block(block), outer)

    return steps


def rolled(*steps: Any, block: str = "B") -> Any:
    def all_steps(s: Schedule) -> None:
        for step in steps:
            step(s)
        s.rolling_buffer(s.get_block(block), block)

    return all_steps


@pytest.mark.parametrize("factor", [1, 2, 4, 5, 8, 16])
def test_window_of_a_stencil(factor: int) -> None:
    text = scheduled(STENCIL, rolled(at(factor)))
    assert f"B = T.alloc_buffer(({factor + 2},))" in text
    # With one element a turn, the loop inside is of three turns still.
    assert f"B[vi % {factor + 2}] = A[vi] * T.float32(2)" in text
    assert "< 1 or 2 <= ax0" in text and "T.axis.opaque(34, " in text


def test_two_dimensions_overlap_and_the_outer_one_rolls() -> None:
    def steps(s: Schedule) -> None:
        i, j, p, q = s.get_loops(s.get_block("C"))
        i0, i1 = s.split(i, [None, 4])
        j0, j1 = s.split(j, [None, 5])
        s.reorder(i0, j0, i1, j1, p, q)
        s.compute_at(s.get_block("B"), j0)
        s.rolling_buffer(s.get_block("B"), "B")

    text = scheduled(CONV, steps)
    assert "B = T.alloc_buffer((6, 12))" in text
    assert "T.where((i_0 < 1 or 2 <= ax0) and (j_0 < 1 or 2 <= ax1))" in text


def test_window_that_does_not_divide() -> None:
    text = scheduled(STENCIL, rolled(at(5)))
    assert "T.where(i_0 * 5 + ax0 < 34 and (i_0 < 1 or 2 <= ax0))" in text


def test_sums_in_windows_that_do_not_divide() -> None:
    """The predicate bounds the window, which no sum drives: sums begin anew where windows overlap."""
    text = scheduled(CONV, rolled(at(3)))
    assert "T.where(i_0 * 3 + ax0 < 10 and (i_0 < 1 or 2 <= ax0))" in text


def test_quotients_move_by_their_ceiling() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((14,), "float32"), C: T.Buffer((24,), "float32")):
    B = T.alloc_buffer((14,))
    for o in range(5):
        for x in range(5):
            with T.block("B"):
                v = T.axis.spatial(14, o * 5 // 2 + x)
                T.where(o * 5 // 2 + x < 14)
                B[v] = A[v] * T.float32(2)
        for y in range(5):
            with T.block("C"):
                v = T.axis.spatial(24, o * 5 + y)
                T.where(o * 5 + y < 24)
                C[v] = B[v // 2] + B[v // 2 + 1] + B[v // 2 + 2]
"""
    assert "o < 1 or 2 <= x" in scheduled(text, rolled())


def test_later_primitives_keep_the_order_of_turns() -> None:
    def reorder(s: Schedule) -> None:
        rolled(at(4))(s)
        s.parallel(s.get_loops(s.get_block("C"))[0])

    assert "loop 'i_0'" in refused(STENCIL, reorder)


def test_blocks_that_hold_the_window_keep_the_order_of_turns() -> None:
    def reorder(s: Schedule) -> None:
        s.compute_at(s.get_block("B"), s.get_loops(s.get_block("C"))[0])
        s.rolling_buffer(s.get_block("B"), 0)
        _, inner = s.split(s.get_loops(s.get_block("C"))[0], [None, 4])
        s.loop_partition(inner, [2, None])
        (block,) = s.get_child_blocks(s.get_block("root"))
        (loop,) = s.get_loops(block)
        outer, middle = s.split(loop, [None, 2])
        s.reorder(middle, outer)

    message = refused(STENCIL, reorder)
    assert "reorder: iterations of loop 'i_0_0' may not run in another order" in message
    assert "uses elements of 'B' that an earlier instance of it writes" in message


THREE = """
@T.prim_func
def main(A: T.Buffer((36,), "float32"), D: T.Buffer((32,), "float32")):
    B = T.alloc_buffer((34,))
    C = T.alloc_buffer((34,))
    for i in range(34):
        with T.block("B"):
            vi = T.axis.spatial(34, i)
            B[vi] = A[vi] + A[vi + 2]
    for i in range(34):
        with T.block("C"):
            vi = T.axis.spatial(34, i)
            C[vi] = B[vi] * T.float32(2)
    for i in range(32):
        with T.block("D"):
            vi = T.axis.spatial(32, i)
            D[vi] = C[vi] + C[vi + 2]
"""


def test_chain_from_the_last_to_the_first() -> None:
    def steps(s: Schedule) -> None:
        at(8, "C", "D")(s)
        s.compute_at(s.get_block("B"), s.get_loops(s.get_block("D"))[0])
        s.rolling_buffer(s.get_block("C"), 0)
        s.rolling_buffer(s.get_block("B"), 0)

    text = scheduled(THREE, steps)
    assert text.count("T.alloc_buffer((10,))") == 2


def loop_text(body: str, outer: str = "range(8)", buffers: str = "") -> str:
    """A program of two blocks B and C in a loop, with another writer W in it where the body says so."""
    return f"""
@T.prim_func
def main(A: T.Buffer((34,), "float32"), C: T.Buffer((32,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((34,))
{buffers}    for o in {outer}:
{body}
"""


MAKE = """        for x in range(6):
            with T.block("B"):
                v = T.axis.spatial(34, o * 4 + x)
                B[v] = A[v] * T.float32(2)
"""
USE = """        for y in range(4):
            with T.block("C"):
                v = T.axis.spatial(32, o * 4 + y)
                C[v] = B[v] + B[v + 2]
"""
SUM = """        for y in range(4):
            with T.block("C"):
                vo, vy = T.axis.remap("RS", [o, y])
                with T.init():
                    C[vy] = T.float32(0)
                C[vy] = C[vy] + B[vo * 4 + vy] + B[vo * 4 + vy + 2]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            loop_text(MAKE + USE, "T.parallel(8)"),
            "rolling_buffer: loop 'o' is parallel, but the iterations around 'B' must run one after the other",
        ),
        (
            loop_text(MAKE + SUM),
            "rolling_buffer: rolling loop 'o' drives reduction axis 'vo' of block 'C', which T.init() begins\nnote: decompose_reduction block 'C' first",
        ),
        (loop_text(USE + MAKE), "rolling_buffer: block 'B' does not come before all readers of 'B' in loop 'o'"),
        (
            loop_text(MAKE + USE.replace("B[v + 2]", "B[T.min(v + 3, 33)]")),
            "rolling_buffer: block 'C' is not known to read only what an iteration of loop 'o' computes of 'B'\nnote: what earlier iterations computed is overwritten",
        ),
        (
            loop_text(
                MAKE.replace("B[v] =", "B[E[v // 5]] =") + USE, buffers='    E = T.alloc_buffer((8,), "int32")\n'
            ),
            "is not a full box: an index is loaded, or computed in the block",
        ),
        (
            loop_text(MAKE.replace("o * 4 + x", "o * 4 + x // 2 * 2") + USE),
            "rolling_buffer: what block 'B' writes of 'B' in an iteration of loop 'o' is not a full box: ",
        ),
        (
            loop_text(
                MAKE.replace("                B[", "                T.where(o * 4 + x * 2 < 40)\n                B[")
                + USE
            ),
            "rolling_buffer: the condition o * 2 + x < 20 of block 'B' bounds no axis of it: in which iterations an element is computed is not known",
        ),
        (
            loop_text(
                MAKE.replace("        for x", "        if o > 0:\n            for x")
                .replace("            with", "                with")
                .replace("                v", "                    v")
                .replace("                B[v]", "                    B[v]")
                + USE
            ),
            "rolling_buffer: block 'B' stands under a branch",
        ),
        (
            loop_text(MAKE.replace("range(6)", "range(4)") + USE.replace("B[v + 2]", "B[v]"), buffers=""),
            "rolling_buffer: in no dimension of 'B' do iterations of a loop around block 'B' and its readers share elements",
        ),
        (
            loop_text(
                MAKE.replace("o * 4 + x", "o % 4 * 3 // 2 + x")
                + USE.replace("B[v] + B[v + 2]", "B[v // 4 % 4 * 3 // 2 + v % 4]")
            ),
            "rolling_buffer: in no dimension of 'B' do iterations of a loop around block 'B' and its readers share elements",
        ),
        (
            loop_text(
                """        with T.block("W"):
            vo = T.axis.spatial(8, o)
            E[0] = D[vo]
"""
                + MAKE.replace("A[v] *", "A[v] * E[0] *")
                + USE,
                buffers="    E = T.alloc_buffer((1,))\n",
            ),
            "rolling_buffer: what loop 'o' computes of 'B' may differ from iteration to iteration: axis 'vo' of block 'W' is not an index of what it writes",
        ),
        (
            # The last two of the six that a turn reads are written in the next one.
            loop_text(
                """        for x in range(4):
            with T.block("W"):
                v = T.axis.spatial(34, o * 4 + x)
                E[v] = A[v]
"""
                + MAKE.replace("A[v] *", "E[v] *")
                + USE,
                buffers="    E = T.alloc_buffer((34,))\n",
            ),
            "rolling_buffer: block 'B' is not known to read only what was written of 'E' when loop 'o' comes to it",
        ),
        (
            loop_text(
                "        E[0] = D[o]\n" + MAKE.replace("A[v] *", "A[v] * E[0] *") + USE,
                buffers="    E = T.alloc_buffer((1,))\n",
            ),
            "rolling_buffer: 'E' is written outside of any block",
        ),
        (
            loop_text(MAKE.replace("                B[v]", "                D[0] = A[v]\n                B[v]") + USE),
            "rolling_buffer: block 'B' writes other buffers besides 'B', all of them whole",
        ),
        (
            loop_text(MAKE + USE + "        C[0] = B[0]\n"),
            "rolling_buffer: 'B' is used outside of block 'B' and the blocks that read it",
        ),
        (
            loop_text(
                MAKE.replace("B[v] =", 'T.evaluate(T.call_extern("int32", "f", 1))\n                B[v] =') + USE
            ),
            "rolling_buffer: what loop 'o' computes of 'B' may differ from iteration to iteration: block 'B' does more than compute elements",
        ),
        (
            loop_text(
                "        for p in range(1 + o % 2):\n" + "".join(f"    {line}\n" for line in (MAKE + USE).splitlines())
            ),
            "rolling_buffer: how far loop 'p' runs depends on loop 'o'",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    assert message in refused(text, rolled())


def test_windows_and_loops() -> None:
    diagonal = """
@T.prim_func
def main(A: T.Buffer((34, 34), "float32"), C: T.Buffer((8, 4, 4), "float32")):
    B = T.alloc_buffer((34, 34))
    for o in range(8):
        for x, y in T.grid(6, 6):
            with T.block("B"):
                v = T.axis.spatial(34, o * 4 + x)
                w = T.axis.spatial(34, o * 4 + y)
                B[v, w] = A[v, w] * T.float32(2)
        for x, y in T.grid(4, 4):
            with T.block("C"):
                vo, vx, vy = T.axis.remap("SSS", [o, x, y])
                C[vo, vx, vy] = B[vo * 4 + vx, vo * 4 + vy] + B[vo * 4 + vx + 2, vo * 4 + vy + 2]
"""
    message = refused(diagonal, rolled())
    assert "rolling_buffer: loop 'o' moves dimension 1 of 'B' as well as dimension 0" in message
    assert "note: a window must be moved by a loop of its own" in message
    message = refused(STENCIL, rolled())
    assert "rolling_buffer: no loop is around both block 'B' and the blocks that read 'B'" in message
    assert "note: compute_at block 'B' at a loop of its readers first" in message


def test_buffers() -> None:
    message = refused(CHAIN, rolled(block="C"))
    assert "rolling_buffer: 'C' is not an allocation of this function: its caller needs all of it" in message
    assert "note: cache_write it first, and roll the copy" in message
    unread = CHAIN.replace("C[vi, vj] = B[vi, vj] +", "C[vi, vj] = A[vi, vj] +")
    assert "rolling_buffer: nothing reads 'B'" in refused(unread, rolled())
    strided = STENCIL.replace("T.alloc_buffer((34,))", 'T.alloc_buffer((34,), "float32", strides=[2])')
    assert "rolling_buffer: buffer 'B' has strides" in refused(strided, rolled(at(4)))
    matched = loop_text(
        MAKE
        + USE.replace(
            "                C[v]", "                E = T.match_buffer(B[v:v + 3], (3,))\n                C[v]"
        ).replace("B[v] + B[v + 2]", "E[0] + E[2]")
    )
    assert "rolling_buffer: 'B' is used otherwise than by its elements" in refused(matched, rolled())


def test_reductions_and_places() -> None:
    message = refused(
        MATMUL,
        lambda s: [
            s.decompose_reduction(s.get_block("C"), s.get_loops(s.get_block("C"))[2]),
            s.rolling_buffer(s.get_block("C_init"), 0),
        ],
    )
    assert "rolling_buffer: block 'C_init' is neither a complete nor a reduction block" in message
    assert "note: not complete: " in message and "note: no reduction: " in message
    spread = """
@T.prim_func
def main(A: T.Buffer((34, 3), "float32"), C: T.Buffer((32,), "float32")):
    B = T.alloc_buffer((34,))
    for o, k in T.grid(8, 3):
        for x in range(6):
            with T.block("B"):
                v = T.axis.spatial(34, o * 4 + x)
                vk = T.axis.reduce(3, k)
                with T.init():
                    B[v] = T.float32(0)
                B[v] = B[v] + A[v, vk]
        for y in range(4):
            with T.block("C"):
                v = T.axis.spatial(32, o * 4 + y)
                C[v] = B[v] + B[v + 2]
"""
    message = refused(spread, rolled())
    assert "axis 'vk' of block 'B' is reduced over several iterations" in message
    tiles = """
@T.prim_func
def main(A: T.Buffer((34,), "float32"), C: T.Buffer((32,), "float32")):
    B = T.alloc_buffer((34,))
    for o in range(8):
        for x in range(3):
            with T.block("B"):
                v = T.axis.spatial(17, o * 2 + x)
                T.reads(A[v * 2:v * 2 + 2])
                T.writes(B[v * 2:v * 2 + 2])
                for z in range(2):
                    B[v * 2 + z] = A[v * 2 + z] * T.float32(2)
        for y in range(4):
            with T.block("C"):
                v = T.axis.spatial(32, o * 4 + y)
                C[v] = B[v] + B[v + 2]
"""
    assert "rolling_buffer: block 'B' writes several elements of 'B' in one instance" in refused(tiles, rolled())
