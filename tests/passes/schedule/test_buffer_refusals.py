"""What primitives on buffers and reductions say when they refuse: copies, scopes, padding, inits, and intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from mirstack.passes.schedule import Schedule
from test_move_refusals import PARTS, func
from test_primitives import refused
from test_tensorize import DESC, message

Steps = Callable[[Schedule], object]

ACCUMULATED = func("A: A[vt, vi] = A[vt, vi] + X[vt, vi]")


@pytest.mark.parametrize(
    ("text", "steps", "said"),
    [
        (
            PARTS,
            lambda s: s.cache_read(s.get_block("Y"), 0, "local"),
            "cache_read: 'A' is written by 2 blocks, so that no one copy holds its final value\n"
            "note: a buffer that one block writes, or none, can be copied",
        ),
        (
            ACCUMULATED,
            lambda s: s.cache_read(s.get_block("A"), "A", "local"),
            "cache_read: no block but its writer reads 'A'\n"
            "note: cache_inplace is for a block that reads what it writes",
        ),
        (
            CHAIN,
            lambda s: s.cache_read(s.get_block("C"), 7, "local"),
            "cache_read: block 'C' reads no buffer number 7\nnote: it reads 0: 'B'",
        ),
        (
            CHAIN,
            lambda s: s.cache_read(s.get_block("C"), "D", "local"),
            "cache_read: block 'C' reads no buffer 'D'\nnote: it reads 0: 'B'",
        ),
        (
            PARTS,
            lambda s: s.cache_write(s.get_block("low"), 0, "local"),
            "cache_write: block 'low' is not alone in writing its output: 'A' is also written by block 'high'\n"
            "note: one block must write the buffer",
        ),
        (
            CHAIN,
            lambda s: s.set_scope(s.get_block("C"), 0, "local"),
            "set_scope: buffer 'C' is not an allocation of this function, so its scope is its caller's\n"
            "note: cache_write it first",
        ),
        (
            CHAIN,
            lambda s: s.set_scope(s.get_block("B"), 0, "fast"),
            "set_scope: there is no storage scope 'fast'\nnote: there are global, shared, local, warp, ",
        ),
        (
            CHAIN,
            lambda s: s.storage_align(s.get_block("B"), 0, 1, 0, 1),
            "storage_align: factor 0 for dimension 1 of buffer 'B' is not a positive number\n"
            "note: the stride is made a multiple of the factor, plus the offset",
        ),
    ],
)
def test_buffers(text: str, steps: Steps, said: str) -> None:
    assert said in refused(text, steps)


SHIFTED_SUM = """
@T.prim_func
def main(A: T.Buffer((12,), "float32"), W: T.Buffer((3,), "float32"), B: T.Buffer((10,), "float32")):
    for i, k in T.grid(10, 3):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi + vk] * W[vk]
"""

LARGEST = """
@T.prim_func
def main(A: T.Buffer((10, 6), "float32"), B: T.Buffer((10,), "float32")):
    for i, k in T.grid(10, 6):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = T.max(B[vi], A[vi, vk])
"""


FIRST_COLUMN = """
@T.prim_func
def main(A: T.Buffer((7, 1), "float32"), B: T.Buffer((7, 1), "float32")):
    for i, j in T.grid(7, 1):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, 0] = A[vi, vj]
"""

SCALED = LARGEST.replace('(10, 6), "float32")', '(10, 6), "float32"), S: T.Buffer((10,), "float32")').replace(
    "T.max(B[vi], A[vi, vk])", "B[vi] + A[vi, vk] * S[vi]"
)


def pad(name: str, padding: list[int], split: list[Any] | None = None) -> Steps:
    """pad_einsum of a block, after a split of its outermost loop."""

    def steps(s: Schedule) -> None:
        block = s.get_block(name)
        if split is not None:
            s.split(s.get_loops(block)[0], split)
        s.pad_einsum(block, padding)

    return steps


@pytest.mark.parametrize(
    ("text", "steps", "said"),
    [
        (
            MATMUL,
            pad("C", [16, 16]),
            "pad_einsum: block 'C' has 3 axes, but padding has 2 numbers\nnote: give a number for each axis: vi, vj, vk",
        ),
        (
            MATMUL,
            pad("C", [16, 0, 1]),
            "pad_einsum: axis 'vj' of block 'C' cannot be padded to a multiple of 0\n"
            "note: give a positive number; 1 leaves an axis as it is",
        ),
        (
            ACCUMULATED,
            pad("A", [16, 16]),
            "pad_einsum: block 'A' is neither a complete nor a reduction block: it has no T.init()\n"
            "note: pad a block that computes each element once, or sums with T.init()",
        ),
        (
            MATMUL,
            pad("C", [16, 16, 1], [None, 7]),
            "pad_einsum: block 'C' has a predicate (T.where)\nnote: pad before splitting",
        ),
        (
            MATMUL,
            pad("C", [16, 1, 1], [None, 6]),
            "pad_einsum: axis 'vi' of block 'C' is not bound to a loop of its own\nnote: pad before splitting",
        ),
        (
            SHIFTED_SUM,
            pad("B", [16, 1]),
            "pad_einsum: 'A' is not indexed by the padded axis alone in some dimension\n"
            "note: only axes that index on their own can be padded",
        ),
        (
            LARGEST,
            pad("B", [1, 4]),
            "pad_einsum: reduction axis 'vk' is padded, but the block is not a sum of products: zeros would change it\n"
            "note: give 1 for reduction axes",
        ),
        (
            SCALED,
            pad("B", [1, 4]),
            "pad_einsum: reduction axis 'vk' is padded, but does not index every factor: what is added would not be 0 times 0\n"
            "note: give 1 for reduction axes",
        ),
        (
            FIRST_COLUMN,
            pad("B", [1, 4]),
            "pad_einsum: axis 'vj' is padded, but does not index 'B': what is added would be stored over its elements\n"
            "note: give 1 for this axis",
        ),
    ],
)
def test_pad_einsum(text: str, steps: Steps, said: str) -> None:
    assert said in refused(text, steps)


def test_pad_einsum_asks_the_blocks_within() -> None:
    """The block around them declares B[0, vi]: true of the 2 old values of vi only."""
    text = """
@T.prim_func
def main(A: T.Buffer((2, 4), "int32"), B: T.Buffer((1, 2), "int32")):
    for i, k in T.grid(2, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi // 2, vi % 2] = 0
            B[vi // 2, vi % 2] = B[vi // 2, vi % 2] + A[vi, vk]
"""

    def steps(sch: Schedule) -> None:
        outer = sch.blockize(sch.get_block("B"), preserve_unit_iters=False)
        sch.pad_einsum(outer, [4, 1])

    assert "pad_einsum: 'B' is not indexed by the padded axis alone in some dimension" in refused(text, steps)


REPEATED_SUM = """
@T.prim_func
def main(A: T.Buffer((11, 6), "float32"), B: T.Buffer((11,), "float32")):
    for i, j, k in T.grid(8, 4, 6):
        with T.block("B"):
            vi = T.axis.spatial(11, i + j)
            vk = T.axis.reduce(6, k)
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
"""

RUN_AGAIN = REPEATED_SUM.replace("i + j", "i")
"""Each sum is computed four times, and begins anew each time."""


def decompose(block: str, of: str, loop: int = 0, order: list[int] | None = None) -> Steps:
    """decompose_reduction of a block at a loop of another, after a reorder."""

    def steps(s: Schedule) -> None:
        loops = s.get_loops(s.get_block(of))
        if order is not None:
            s.reorder(*[loops[k] for k in order])
        s.decompose_reduction(s.get_block(block), loops[loop])

    return steps


@pytest.mark.parametrize(
    ("text", "steps", "said"),
    [
        (
            MATMUL,
            decompose("C", "D"),
            "decompose_reduction: loop 'i' is not around block 'C'\n"
            "note: give a loop that get_loops returned for block 'C'",
        ),
        (
            MATMUL,
            decompose("D", "D"),
            "decompose_reduction: block 'D' is not a reduction block: it has no T.init()\n"
            "note: the block must set with T.init() what it then updates",
        ),
        (
            REPEATED_SUM,
            decompose("B", "B"),
            "decompose_reduction: the bindings of block 'B' are not affine in its loops: ",
        ),
        (
            RUN_AGAIN,
            decompose("B", "B"),
            "decompose_reduction: the bindings of block 'B' are not affine in its loops: "
            "loop 'j' drives no axis, so that its iterations run the same instances again",
        ),
        (
            MATMUL,
            decompose("C", "C", 1, [2, 0, 1]),
            "decompose_reduction: loop 'k' drives a reduction axis of block 'C' and is around loop 'j'\n"
            "note: initialize before all reduction loops: decompose at 'k' or a loop around it",
        ),
    ],
)
def test_decompose_reduction(text: str, steps: Steps, said: str) -> None:
    assert said in refused(text, steps)


def test_bindings_of_a_description() -> None:
    turned = DESC.replace(
        'vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
        'vi = T.axis.spatial(4, 3 - i)\n                vj, vk = T.axis.remap("SR", [j, k])',
    )
    said = message(turned)
    assert "axis 'vi_i' of block 'C_update' is bound to i_1, where 'vi' of the description is bound to -i_1 + 3" in said


def test_statements_that_no_description_has() -> None:
    line = "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]"

    def waiting(text: str, indent: str) -> str:
        return text.replace(line, f"while C[vi, vj] < T.float32(0):\n{indent}    {line}")

    said = message(waiting(DESC, " " * 16), main=waiting(MATMUL, " " * 12))
    assert "tensorize: 'tir.while' cannot be compared with a description: it is not 'tile'" in said


PARTLY = """
@T.prim_func
def main(B: T.Buffer((2,), "int32")):
    for i, a, b in T.grid(2, 2, 2):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, b])
            T.where(a * 2 + b < 2)
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + vk
"""


def test_init_in_iterations_without_an_update() -> None:
    """A predicate leaves out the second iteration of a loop: the init would run again in it."""

    def steps(sch: Schedule) -> None:
        sch.decompose_reduction(sch.get_block("B"), sch.get_loops(sch.get_block("B"))[2])

    assert (
        "decompose_reduction: block 'B' does not run in all iterations of loop 'a': its T.where decides that together with a loop further"
        " in\nnote: decompose at 'a' or a loop around it"
    ) in refused(PARTLY, steps)
