"""What primitives on loops, and annotations and queries, say when they refuse."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from mirstack.parser import parse_mir
from mirstack.passes.schedule import Schedule, ScheduleError
from test_primitives import refused, scheduled

Steps = Callable[[Schedule], object]


def loop(s: Schedule, block: str, number: int = 0) -> Any:
    """Loop `number` around a block."""
    return s.get_loops(s.get_block(block))[number]


def loops(s: Schedule, block: str) -> list[Any]:
    """The loops around a block."""
    return list(s.get_loops(s.get_block(block)))


TRIANGLE = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        for j in range(i + 1):
            with T.block("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.float32(1)
"""

SHIFTED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in T.serial(2, 8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)
"""

SYMBOLIC = """
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,))
    for i in range(n):
        with T.block("A"):
            vi = T.axis.spatial(n, i)
            A[vi] = T.float32(1)
"""

CROWDED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8, 4), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)
        for j in range(4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi]
"""

IN_TURN = """
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32"), D: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[{}]
"""

SCAN = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("A"):
            vi = T.axis.scan(8, i)
            vj = T.axis.spatial(4, j)
            A[vi, vj] = T.float32(1)
"""

REPEATED = """
@T.prim_func
def main(A: T.Buffer((11,), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("A"):
            vi = T.axis.spatial(11, i + j)
            A[vi] = T.float32(1)
"""

UPDATE = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + T.float32(1)
"""

NAMESAKES = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = T.float32(1)
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[7 - vi]
"""

REVERSED = NAMESAKES.replace('T.block("A")', 'T.block("B")', 2).replace('T.block("B")', 'T.block("A")', 1)

LEFT_EMPTY = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    A = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = X[vi]
        T.evaluate(T.tvm_storage_sync("shared"))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
"""


def annotated_twice(s: Schedule) -> None:
    s.annotate(s.get_block("B"), "key", 1)
    s.annotate(s.get_block("B"), "key", 2)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (annotated_twice, "annotate: block 'B' has an annotation 'key' already\nnote: unannotate it first"),
        (
            lambda s: s.unannotate(loop(s, "B"), "key"),
            "unannotate: loop 'i' has no annotation 'key'\nnote: it has none",
        ),
        (
            lambda s: s.annotate(s.get_block("root"), "key", 1),
            "annotate: function 'main' carries no annotations\nnote: give a loop or a block",
        ),
        (
            lambda s: s.compute_inline(s.get_block("root")),
            "compute_inline: function 'main' is not a block\nnote: give a block that get_block returned",
        ),
        (
            lambda s: s.get_output_blocks(loop(s, "B")),
            "get_output_blocks: 'scope_block' must be a block or a string, not a loop\n"
            "note: it is called as sch.get_output_blocks(scope_block)",
        ),
        (
            lambda s: s.cache_read(s.get_block("C"), 0, "local", ["D"]),
            "cache_read: the function has 0 blocks named 'D'\nnote: its blocks are 'B', 'C'",
        ),
    ],
)
def test_annotations_and_queries(steps: Steps, message: str) -> None:
    assert message in refused(CHAIN, steps)


def test_namesakes() -> None:
    message = refused(NAMESAKES, lambda s: s.get_block("A"))
    assert "function 'main' has 2 blocks named 'A'\nnote: give each its own name" in message


def bound(s: Schedule) -> None:
    s.bind(loop(s, "B"), "threadIdx.x")
    s.split(loop(s, "B"), [None, 4])


def split_annotated(s: Schedule) -> None:
    s.annotate(loop(s, "B"), "key", 1)
    s.split(loop(s, "B"), [None, 4])


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            CHAIN,
            bound,
            "split: loop 'i' is bound to threadIdx.x, and a bound loop keeps its shape\nnote: split before bind",
        ),
        (
            CHAIN,
            split_annotated,
            "split: loop 'i' has annotations (key)\nnote: unannotate it first, or split before annotate",
        ),
        (
            SHIFTED,
            lambda s: s.fuse(loop(s, "A")),
            "fuse: loop 'i' does not start at 0\nnote: run it from 0 and add the start where its variable is used",
        ),
        (
            CHAIN,
            lambda s: s.split(loop(s, "B"), []),
            "split: loop 'i' needs at least one factor\nnote: give a number, or None, for each new loop",
        ),
        (
            CHAIN,
            lambda s: s.split(loop(s, "B"), [None, None]),
            "split: 2 factors of loop 'i' are None\nnote: leave one to be computed",
        ),
        (
            CHAIN,
            lambda s: s.split(loop(s, "B"), [None, 0]),
            "split: 0 is not a factor of loop 'i'\nnote: a factor is a positive number",
        ),
        (
            CHAIN,
            lambda s: s.split(loop(s, "B"), [3, 5]),
            "split: the factors [3, 5] make 15 iterations, but loop 'i' has 16\n"
            "note: the product must be at least the loop's extent; or give None for one factor",
        ),
        (
            SYMBOLIC,
            lambda s: s.split(loop(s, "A"), [4, 4]),
            "split: loop 'i' has a symbolic extent\nnote: give None for one factor",
        ),
        (CHAIN, lambda s: s.fuse(), "fuse: no loop given\nnote: give the loops from the outermost to the innermost"),
        (
            CHAIN,
            lambda s: s.fuse(*reversed(loops(s, "B"))),
            "fuse: loop 'i' is not the only thing directly in loop 'j'\n"
            "note: give the loops from the outermost to the innermost, with nothing between them",
        ),
        (
            TRIANGLE,
            lambda s: s.fuse(*loops(s, "A")),
            "fuse: the extent of loop 'j' depends on loop 'i'\nnote: fuse loops that form a box",
        ),
        (CHAIN, lambda s: s.reorder(), "reorder: no loop given\nnote: give loops of one nest in their new order"),
        (
            CHAIN,
            lambda s: s.reorder(loop(s, "B"), loop(s, "B")),
            "reorder: loop 'i' is given twice\nnote: name each loop once",
        ),
        (
            CHAIN,
            lambda s: s.reorder(loop(s, "B"), loop(s, "C", 1)),
            "reorder: loops 'i' and 'j' are not nested in each other\nnote: reorder takes loops of one nest",
        ),
        (
            CROWDED,
            lambda s: s.reorder(*reversed(loops(s, "B"))),
            "reorder: loop 'j' is not alone in loop 'i'\n"
            "note: only loops with nothing else between them can change places",
        ),
        (
            TRIANGLE,
            lambda s: s.reorder(*reversed(loops(s, "A"))),
            "reorder: the bounds of loop 'j' depend on loop 'i'\nnote: keep 'j' inside of 'i'",
        ),
        (
            IN_TURN.format("3 - vi, 3 - vj"),
            lambda s: s.reorder(*reversed(loops(s, "D"))),
            "reorder: iterations of loop 'i' may not run in another order: block 'D' uses elements of 'C' that block 'C' writes in other iterations\n"
            "note: compute the blocks in loops of their own, or keep the order of the loops",
        ),
        (
            SCAN,
            lambda s: s.reorder(*reversed(loops(s, "A"))),
            "reorder: axis 'vi' of block 'A' is neither spatial nor a reduction axis, so that order matters\n"
            "note: reorder only loops inside of which block 'A' is not",
        ),
        (
            REPEATED,
            lambda s: s.reorder(*reversed(loops(s, "A"))),
            "reorder: the bindings of block 'A' are not affine in its loops: ",
        ),
    ],
)
def test_shape_of_loops(text: str, steps: Steps, message: str) -> None:
    assert message in refused(text, steps)


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            UPDATE,
            lambda s: s.parallel(loop(s, "A")),
            "parallel: block 'A' in loop 'i' is neither a complete nor a reduction block\n"
            "note: not complete: it reads and writes 'A'\nnote: no reduction: it has no T.init()",
        ),
        (
            REPEATED,
            lambda s: s.vectorize(loop(s, "A")),
            "vectorize: the bindings of block 'A' are not affine in its loops: ",
        ),
        (
            REPEATED,
            lambda s: s.vectorize(loop(s, "A")),
            "note: no two iterations may run the same instance: bind each axis to loops of its own",
        ),
        (
            CHAIN,
            lambda s: s.bind(loop(s, "B"), "threadIdx.w"),
            "bind: there is no thread axis 'threadIdx.w'\n"
            "note: there are blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z and vthread",
        ),
        (
            MATMUL,
            lambda s: s.vectorize(loop(s, "C", 2)),
            "vectorize: loop 'k' drives axis 'vk' of block 'C', which is not a spatial axis: its iterations depend on each other\n"
            "note: rfactor loop 'k' to make its iterations independent, or vectorize a loop that drives spatial axes only "
            "('i', 'j')",
        ),
    ],
)
def test_kinds_of_loops(text: str, steps: Steps, message: str) -> None:
    assert message in refused(text, steps)


BEHIND = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = C[T.max(vi - 1, 0)] + C[T.max(vi - 2, 0)]
"""

AHEAD = """
@T.prim_func
def main(A: T.Buffer((9, 4), "float32"), D: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi + 1, vj]
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(1)
"""

HALVED = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi // 2] = A[vi]
"""

OF_EACH = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), D: T.Buffer((8, 4), "float32"), E: T.Buffer((8, 4), "float32")):
    C = T.alloc_buffer((4,))
    for i in range(8):
        for j in range(4):
            with T.block("C"):
                vj = T.axis.spatial(4, j)
                C[vj] = A[i, vj]
        for j in range(4):
            with T.block("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[3 - vj]
        for j in range(4):
            with T.block("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = D[vi, 3 - vj]
"""

TOGETHER = """
@T.prim_func
def main(A: T.Buffer((10, 12), "float32"), C: T.Buffer((10, 12), "float32"), D: T.Buffer((10, 12), "float32")):
    for i, j in T.grid(10, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj]
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj]
"""


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "bind"])
def test_iterations_that_meet(kind: str) -> None:
    def steps(s: Schedule, block: str, number: int = 0) -> None:
        arguments = ("threadIdx.x",) if kind == "bind" else ()
        getattr(s, kind)(loop(s, block, number), *arguments)

    refusal = f"{kind}: iterations of loop 'i' may not run at once: "
    for text, reason in (
        (BEHIND, "block 'D' reads elements of 'C' that block 'C' may write in another iteration"),
        (AHEAD, "block 'D' reads elements of 'A' that block 'A' may write in another iteration"),
        (HALVED, "block 'B' overwrites elements of 'B' that it may write in another iteration"),
        (
            OF_EACH.replace("C = T.alloc_buffer((4,))", "").replace("(A:", '(C: T.Buffer((4,), "float32"), A:'),
            "block 'C' overwrites elements of 'C' that it may write in another iteration",
        ),
    ):
        assert refusal + reason in refused(text, partial(steps, block=reason.split("'")[1]))
    scheduled(AHEAD, lambda s: steps(s, "D", 1))
    scheduled(OF_EACH, lambda s: steps(s, "D"))


def test_iterations_of_fused_and_split_loops_are_apart() -> None:
    def steps(s: Schedule) -> None:
        i, j = loops(s, "C")
        outer, _, inner = s.split(s.fuse(i, j), [None, 2, 4])
        s.parallel(outer)
        s.vectorize(inner)

    scheduled(TOGETHER, steps)
    scheduled(TOGETHER.replace("(10, 12)", "(10, 13)").replace("(10, 12)", "(10, 13)"), steps)


PLANE = """
@T.prim_func
def main(A: T.Buffer((224,), "float32"), C: T.Buffer((14, 14), "float32")):
    for o, m, l in T.grid(2, 7, 16):
        with T.block("C"):
            v = T.axis.spatial(196, o * 112 + m * 16 + l)
            T.where(o * 112 + m * 16 + l < 196)
            C[v // 14, v % 14] = A[v]
"""


def test_elements_of_a_plane_are_apart_where_their_places_are() -> None:
    scheduled(PLANE, lambda s: s.vectorize(loop(s, "C", 2)))
    same = PLANE.replace("v // 14", "v // 14 // 2")
    reason = "block 'C' overwrites elements of 'C' that it may write in another iteration"
    assert reason in refused(same, lambda s: s.vectorize(loop(s, "C", 2)))


def partitioned_without_blocks(s: Schedule) -> None:
    left = loop(s, "A")
    s.compute_inline(s.get_block("A"))
    s.loop_partition(left, [2, None])


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            LEFT_EMPTY,
            partitioned_without_blocks,
            "loop_partition: loop 'i' holds no block\nnote: its parts are named after a block in it",
        ),
        (
            MATMUL,
            lambda s: s.merge(loop(s, "C", 1), loop(s, "C", 1)),
            "merge: loop 'j' holds another of the loops, or is given twice",
        ),
        (
            MATMUL.replace("T.grid(24, 20):", "T.grid(12, 20):"),
            lambda s: s.merge(loop(s, "C"), loop(s, "D")),
            "merge: loops 'i' and 'i' have the extents 24 and 12\n"
            "note: merged loops run the same number of iterations; split one of them first",
        ),
        (
            REVERSED,
            lambda s: s.merge(loop(s, "A"), loop(s, "B")),
            "merge: the iterations of loops 'i' and 'i' cannot alternate: ",
        ),
    ],
)
def test_partition_and_merge(text: str, steps: Steps, message: str) -> None:
    assert message in refused(text, steps)


@pytest.mark.parametrize("read", ["vi, vj", "3 - vi, vj"])
def test_blocks_of_one_nest_keep_what_they_need(read: str) -> None:
    """Where only iterations of `i` meet, or none, the order of the two loops is free."""
    sch = Schedule(parse_mir(IN_TURN.format(read)))
    sch.reorder(*reversed(loops(sch, "D")))
    assert [str(sch.resolve(each).var_name.data) for each in loops(sch, "D")] == ["j", "i"]


def test_first_of_a_sum_stays_first() -> None:
    """A third of what was fused from elements and terms begins neither: of element 1 it runs term 1 before term 0."""
    sch = Schedule(
        parse_mir("""
@T.prim_func
def main(A: T.Buffer((4, 2), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 2):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
""")
    )
    parts = sch.split(sch.fuse(*loops(sch, "B")), [None, 3])
    with pytest.raises(
        ScheduleError,
        match=r"reorder: T\.init\(\) of block 'B' cannot run in another order: loop 'i_k_fused_0' drives both its elements and its reduction",
    ):
        sch.reorder(*reversed(parts))
