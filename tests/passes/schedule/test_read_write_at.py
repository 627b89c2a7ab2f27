"""read_at, write_at: one copying block a turn, with what may stand in its way."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled


def tiled(s: Schedule, block: str = "C", factors: tuple[int, int] = (4, 5)) -> list[Any]:
    """The loops of a block, its first two split."""
    i, j, *rest = s.get_loops(block)
    i0, i1 = s.split(i, [None, factors[0]])
    j0, j1 = s.split(j, [None, factors[1]])
    s.reorder(i0, j0, *rest, i1, j1)
    return s.get_loops(block)


def test_read_at() -> None:
    def steps(s: Schedule) -> None:
        loops = tiled(s)
        new = s.read_at(loops[1], s.get_block("C"), 0, "shared")
        assert s.resolve(new) is s.resolve(s.get_block("A_shared"))
        s.read_at(loops[2], s.get_block("C"), "B", "local")

    text = scheduled(MATMUL, steps)
    assert 'T.block_attr({"auto_copy": 1})' in text
    assert "A_shared[v0 * 4 + ax0, ax1] = A[v0 * 4 + ax0, ax1]" in text
    assert "B_local[v0 * 5 + ax0, v1 + ax1] = B[v0 * 5 + ax0, v1 + ax1]" in text
    assert "T.reads(A[v0 * 4:v0 * 4 + 4, 0:16])" in text


def test_read_at_serves_all_readers_in_the_loop() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((34,), "float32"), C: T.Buffer((32,), "float32"), D: T.Buffer((32,), "float32")):
    for o in range(8):
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(32, o * 4 + i)
                C[v] = A[v] * T.float32(2)
        for i in range(4):
            with T.block("D"):
                v = T.axis.spatial(32, o * 4 + i)
                D[v] = A[v + 2] + C[v]
"""
    printed = scheduled(text, lambda s: s.read_at(s.get_loops("C")[0], s.get_block("D"), 0, "local"))
    assert "for ax0 in range(6):" in printed and "C[v] = A_local[v]" in printed and "A_local[v + 2] + C[v]" in printed
    made_here = scheduled(text, lambda s: s.read_at(s.get_loops("C")[0], s.get_block("D"), "C", "local"))
    assert made_here.index('T.block("C")') < made_here.index('T.block("C_local")') < made_here.index('T.block("D")')


def test_write_at() -> None:
    def steps(s: Schedule) -> None:
        loops = tiled(s)
        s.write_at(loops[1], s.get_block("C"), 0, "local")
        i, _ = s.get_loops("D")
        s.write_at(i, s.get_block("D"), "D", "shared")

    text = scheduled(MATMUL, steps)
    assert "C[v0 * 4 + ax0, v1 * 5 + ax1] = C_local[v0 * 4 + ax0, v1 * 5 + ax1]" in text
    assert "D[v0 + ax0, ax1] = D_shared[v0 + ax0, ax1]" in text


def test_write_at_inside_of_a_reduction() -> None:
    text = scheduled(MATMUL, lambda s: s.write_at(tiled(s)[2], s.get_block("C"), 0, "local"))
    assert "for i_0, j_0, k in T.grid(6, 4, 16):" in text and "for i_1, j_1 in T.grid(4, 5):" in text
    assert text.index("C_local[vi, vj] = C_local[vi, vj] +") < text.index('T.block("C_local")')


def test_threads_share() -> None:
    def steps(s: Schedule) -> None:
        i, j, _ = s.get_loops("C")
        s.bind(i, "blockIdx.x")
        s.bind(j, "threadIdx.x")
        s.read_at(j, s.get_block("C"), 1, "shared")
        s.read_at(j, s.get_block("C"), "A", "local")
        s.write_at(j, s.get_block("C"), 0, "shared")

    text = scheduled(MATMUL, steps)
    # All twenty threads read all of B, and one block of them a row of C.
    assert "T.reads(B[0:20, 0:16])" in text and "T.reads(A[v0, 0:16])" in text
    assert "C[v0 + ax0, ax1] = C_shared[v0 + ax0, ax1]" in text


def test_ranks_of_memory() -> None:
    def copied(scope: str) -> str:
        def steps(s: Schedule) -> None:
            i, j, _ = s.get_loops("C")
            s.bind(i, "threadIdx.y")
            s.bind(j, "threadIdx.x")
            s.write_at(j, s.get_block("C"), 0, scope)

        text = scheduled(MATMUL, steps)
        return next(line.strip() for line in text.splitlines() if "T.writes(C[" in line)

    assert copied("local") == "T.writes(C[v0, v1])"
    assert copied("warp") == "T.writes(C[v0, 0:20])"
    assert copied("shared.dyn") == copied("global") == "T.writes(C[0:24, 0:20])"


def in_loop(body: str) -> str:
    return f"""
@T.prim_func
def main(A: T.Buffer((34,), "float32"), C: T.Buffer((32,), "float32")):
    for o in range(8):
{body}
"""


TURN = """        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(32, o * 4 + i)
                C[v] = A[v]
"""


@pytest.mark.parametrize(
    ("text", "call", "message"),
    [
        (
            CHAIN,
            lambda s: s.read_at(s.get_loops("B")[0], s.get_block("C"), 0, "local"),
            "read_at: loop 'i' is not around block 'C'",
        ),
        (
            CHAIN,
            lambda s: s.write_at(s.get_loops("B")[0], s.get_block("B"), 0, "nowhere"),
            "write_at: there is no storage scope 'nowhere'",
        ),
        (
            CHAIN,
            lambda s: [s.vectorize(s.get_loops("B")[1]), s.read_at(s.get_loops("B")[1], s.get_block("B"), 0, "local")],
            "read_at: loop 'j' is vectorized: its iterations are lanes, which do not copy",
        ),
        (
            in_loop(TURN + TURN.replace('"C"', '"W"').replace("C[v] = A[v]", "A[v] = C[v]")),
            lambda s: s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "read_at: block 'W' writes 'A' in loop 'o' after a copy would have been made\nnote: all writers must come before the first reader in the loop",
        ),
        (
            in_loop(
                TURN.replace("range(4)", "range(5)").replace(
                    "                C[v]", "                T.where(o * 4 + i < 32)\n                C[v]"
                )
            ).replace("(34,)", "(32,)"),
            lambda s: s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "read_at: a copy for loop 'o' would read 'A' outside of it: dimension 0 from o * 4 to o * 4 + 4 of 32\nnote: split loops without a rest first, or cache_read and compute_at",
        ),
        (
            in_loop(TURN.replace("C[v] = A[v]", "C[v] = A[v * v % 30]")),
            lambda s: s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "",
        ),
        (
            in_loop(TURN.replace("o * 4 + i", "o * 4 + i // 2 * 2")),
            lambda s: s.write_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "write_at: what block 'C' writes of 'C' in an iteration of loop 'o' is not a full box: ",
        ),
        (
            in_loop(TURN.replace("range(4)", "range(1 + o % 4)")),
            lambda s: s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "read_at: how many elements of 'A' an iteration copies in dimension 0 differs from iteration to iteration",
        ),
        (
            MATMUL,
            lambda s: [
                s.decompose_reduction(s.get_block("C"), s.get_loops("C")[2]),
                s.write_at(s.get_loops("C_update")[1], s.get_block("C_update"), 0, "local"),
            ],
            "write_at: block 'C_update' is neither a complete nor a reduction block\nnote: not complete: ",
        ),
        (
            in_loop(TURN + "        C[0] = T.float32(1)\n"),
            lambda s: s.write_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "write_at: 'C' is used outside of any block",
        ),
        (
            in_loop(
                "        for p in range(2):\n"
                + "".join(
                    f"    {line}\n"
                    for line in (TURN + TURN.replace('"C"', '"R"').replace("C[v] = A[v]", "A[v] = C[v]")).splitlines()
                )
            ),
            lambda s: s.write_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "write_at: block 'R' uses 'C' before block 'C' and the threads that run it are done\nnote: only after the copy is what was written in its place",
        ),
        (
            STENCIL.replace("T.alloc_buffer((34,))", 'T.alloc_buffer((34,), "float32", strides=[2])'),
            lambda s: s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"),
            "read_at: buffer 'B' has strides",
        ),
    ],
)
def test_refused(text: str, call: Any, message: str) -> None:
    if message:
        assert message in refused(text, call)
    else:
        scheduled(text, call)


def test_matched_buffers_lie_where_the_copy_lies() -> None:
    text = in_loop(
        TURN.replace(
            "                C[v] = A[v]",
            "                M = T.match_buffer(A[v:v + 2], (2,))\n                C[v] = M[0] + M[1]",
        )
    )
    printed = scheduled(text, lambda s: s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local"))
    assert 'M = T.match_buffer(A_local[v:v + 2], (2,), scope="local")' in printed


GATHER = in_loop(
    TURN.replace(
        "                C[v] = A[v]",
        """                T.reads(A[T.Cast("int32", D[v]) % 3], D[v])
                T.writes(C[v])
                C[v] = A[T.Cast("int32", D[v]) % 3]""",
    )
).replace("C: T.Buffer", 'D: T.Buffer((32,), "float32"), C: T.Buffer')


def test_indices_that_are_loaded() -> None:
    def read(s: Schedule) -> None:
        s.read_at(s.get_loops("C")[0], s.get_block("C"), 0, "local")

    assert "T.reads(A[0:3])" in scheduled(GATHER, read)
    message = refused(GATHER.replace(" % 3", ""), read)
    assert "read_at: what block 'C' reads of 'A' in an iteration of loop 'o' is not known" in message


def test_threads_around_the_block_have_a_buffer_each() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((7, 3), "int32"), B: T.Buffer((7, 3), "int32")):
    for i, j, k in T.grid(7, 3, 13):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                B[vi, vj] = 1
            B[vi, vj] = T.max(B[vi, vj], A[vi, vj] * A[(vi + vk) % 7, vj])
"""

    def steps(s: Schedule) -> None:
        _, j, k = s.get_loops("B")
        s.bind(j, "blockIdx.x")
        first, _ = s.loop_partition(k, [None, 1])
        s.write_at(first, "B_k0", 0, "global")

    # The copy is of this thread's element: the second part of the sums of others is done already.
    assert "B[i + ax0, j + ax1] = B_global[i + ax0, j + ax1]" in scheduled(text, steps)


@pytest.mark.parametrize("scope", ["shared", "global"])
@pytest.mark.parametrize("put_together", [False, True])
def test_threads_that_share_memory_keep_what_others_wrote(scope: str, put_together: bool) -> None:
    """Each thread copies all that the threads wrote so far: the memory is not one of its own in native code either."""
    module = mirstack.parse("""
@T.prim_func
def main(A: T.Buffer((5, 4), "int32"), B: T.Buffer((5, 4), "int32")):
    for i, j in T.grid(5, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[4 - vi, vj] + 1
""")
    schedule = Schedule(module)
    block = schedule.get_block("B")
    _, j = schedule.get_loops(block)
    schedule.bind(j, "threadIdx.y")
    copy = schedule.write_at(j, block, 0, scope)
    if put_together:
        schedule.blockize([copy, block])
    a = np.arange(20, dtype=np.int32).reshape(5, 4)
    for target in ("interp", "cpu"):
        b = np.zeros((5, 4), np.int32)
        mirstack.compile(schedule.module, target)(a, b)  # pyright: ignore[reportArgumentType]
        np.testing.assert_array_equal(b, a[::-1] + 1)
