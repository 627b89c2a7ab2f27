"""What compute_at, compute_inline and their reverse forms say when they refuse, and what they need not refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL, STENCIL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

Steps = Callable[[Schedule], object]


def func(*lines: str) -> str:
    """A function of X and Y, of 4 by 8, with buffers A and B of that shape, and these blocks each in loops t and i.

    A line is `name: statement`; blocks are called by their names.
    """
    text = '@T.prim_func\ndef main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):\n'
    text += "    A = T.alloc_buffer((4, 8))\n    B = T.alloc_buffer((4, 8))\n"
    for line in lines:
        name, _, statement = line.partition(": ")
        text += "    for t, i in T.grid(4, 8):\n"
        text += f'        with T.block("{name}"):\n            vt, vi = T.axis.remap("SS", [t, i])\n'
        text += f"            {statement}\n"
    return text


def at(name: str, target: str, loop: int = 0, reverse: bool = False, **more: Any) -> Steps:
    """compute_at, or reverse_compute_at, of a block at a loop of another."""

    def steps(s: Schedule) -> None:
        primitive = s.reverse_compute_at if reverse else s.compute_at
        primitive(s.get_block(name), s.get_loops(s.get_block(target))[loop], **more)

    return steps


COPY = func("A: A[vt, vi] = X[vt, vi]", "B: B[vt, vi] = A[vt, vi] * T.float32(2)", "Y: Y[vt, vi] = B[vt, vi]")
UNREAD = func("A: A[vt, vi] = X[vt, vi]", "Y: Y[vt, vi] = X[vt, vi]")
TWO_READERS = func("A: A[vt, vi] = X[vt, vi]", "B: B[vt, vi] = A[vt, vi]", "Y: Y[vt, vi] = A[vt, vi] + B[vt, vi]")
READ_FIRST = func("Y: Y[vt, vi] = A[vt, vi]", "A: A[vt, vi] = X[vt, vi]")
OVERWRITTEN = func("B: B[vt, vi] = A[vt, vi]", "A: A[vt, vi] = X[vt, vi]", "Y: Y[vt, vi] = B[vt, vi]")
OVERWRITTEN_OUTPUT = func("A: A[vt, vi] = X[vt, vi]", "B: B[vt, vi] = Y[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]")
ACCUMULATED = func("A: A[vt, vi] = A[vt, vi] + X[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]")
LOOP_INSIDE = func("A: A[vt, vi] = X[t, i]", "Y: Y[vt, vi] = A[vt, vi]")

NESTED = """
@T.prim_func
def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    A = T.alloc_buffer((4, 8))
    for t, i in T.grid(4, 8):
        with T.block("A"):
            vt, vi = T.axis.remap("SS", [t, i])
            A[vt, vi] = X[vt, vi]
    for t in range(4):
        with T.block("outer"):
            vt = T.axis.spatial(4, t)
            for k in range(8):
                with T.block("inner"):
                    vk = T.axis.spatial(8, k)
                    Y[vt, vk] = A[vt, vk]
"""

ONE_NEST = """
@T.prim_func
def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    A = T.alloc_buffer((4, 8))
    B = T.alloc_buffer((4, 8))
    for t in range(4):
        for i in range(8):
            with T.block("A"):
                vt, vi = T.axis.remap("SS", [t, i])
                A[vt, vi] = X[vt, vi]
        for i in range(8):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vt, vi] = X[vt, vi] * T.float32(2)
        for i in range(8):
            with T.block("Y"):
                vt, vi = T.axis.remap("SS", [t, i])
                Y[vt, vi] = A[vt, vi] + B[vt, vi]
"""

# What block Y reads of A in one turn of t, block A writes in the turn before.
CARRIED = """
@T.prim_func
def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 8), "float32")):
    A = T.alloc_buffer((8,))
    for t in range(4):
        for i in range(8):
            with T.block("Y"):
                vt, vi = T.axis.remap("SS", [t, i])
                Y[vt, vi] = A[vi]
        for i in range(8):
            with T.block("A"):
                vt, vi = T.axis.remap("SS", [t, i])
                A[vi] = X[vt, vi]
"""

REPEATED_READER = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    A = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = X[vi]
    for i, j in T.grid(4, 5):
        with T.block("Y"):
            vi = T.axis.spatial(8, i + j)
            Y[vi] = A[vi]
"""


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            CHAIN,
            at("C", "B"),
            "compute_at: block 'C' writes 'C', an output: it would be recomputed in each iteration\n"
            "note: compute_at moves producers of intermediate buffers; reverse_compute_at moves consumers",
        ),
        (
            UNREAD,
            at("A", "Y"),
            "compute_at: nothing reads what block 'A' computes\n"
            "note: compute_at moves a block to its readers; one that has none stays where it is",
        ),
        (
            TWO_READERS,
            at("A", "Y"),
            "compute_at: block 'B' reads the output of block 'A', but is not in loop 't'\n"
            "note: all readers of what block 'A' computes must be in the loop",
        ),
        (
            READ_FIRST,
            at("A", "Y"),
            "compute_at: block 'Y' reads the output of block 'A' before that writes it\n"
            "note: the two must keep their order",
        ),
        (CARRIED, at("A", "Y", 1), "compute_at: block 'Y' reads the output of block 'A' before that writes it"),
        (
            OVERWRITTEN,
            at("B", "Y"),
            "compute_at: block 'A' overwrites what block 'B' reads, after it\nnote: the two must keep their order",
        ),
        (
            ACCUMULATED,
            at("A", "Y"),
            "compute_at: block 'A' is neither a complete nor a reduction block\n"
            "note: not complete: it reads and writes 'A'\nnote: no reduction: it has no T.init()",
        ),
        (
            LOOP_INSIDE,
            at("A", "Y"),
            "compute_at: block 'A' uses loop 'i' other than through an axis\n"
            "note: bind an axis of the block to the loop",
        ),
        (
            NESTED,
            at("A", "inner"),
            "compute_at: loop 'k' and block 'A' are not in the same scope\n"
            "note: give a loop around which the same blocks are as around block 'A'",
        ),
        (
            COPY,
            at("B", "Y", index=3),
            "compute_at: place 3 of loop 't' is not between what is read and its readers\n"
            "note: the loop has places 0 to 1; -1 and -2 choose one that is right",
        ),
        (CHAIN, at("B", "B"), "compute_at: loop 'i' is around block 'B' already"),
    ],
)
def test_compute_at_refused(text: str, steps: Steps, message: str) -> None:
    assert message in refused(text, steps)


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            REPEATED_READER,
            at("Y", "A", reverse=True),
            "reverse_compute_at: the bindings of block 'Y' are not affine in its loops: ",
        ),
        (
            CHAIN,
            at("B", "C", reverse=True),
            "reverse_compute_at: no block makes what block 'B' reads\n"
            "note: reverse_compute_at moves consumers; compute_at moves producers",
        ),
        (
            TWO_READERS,
            at("Y", "A", reverse=True),
            "reverse_compute_at: block 'B', whose output block 'Y' reads, is neither in loop 't' nor before it\n"
            "note: all producers must have run",
        ),
        (
            COPY,
            at("Y", "A", reverse=True),
            "reverse_compute_at: block 'B', whose output block 'Y' reads, is neither in loop 't' nor before it",
        ),
        (
            func("A: A[vt, vi] = X[vt, vi]", "B: B[vt, vi] = X[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]"),
            at("Y", "B", reverse=True),
            "reverse_compute_at: loop 't' holds no block that makes what block 'Y' reads\nnote: give a loop around 'A'",
        ),
        (
            OVERWRITTEN_OUTPUT,
            at("Y", "A", reverse=True),
            "reverse_compute_at: block 'B' reads what is in the output of block 'Y' before that writes it\n"
            "note: the two must keep their order",
        ),
        (
            MATMUL,
            at("D", "C", 2, reverse=True),
            "reverse_compute_at: block 'C' reduces axis 'vk' over a loop around this place, so that block 'D' would read unfinished sums\n"
            "note: choose a loop outside of the reduction",
        ),
        (
            COPY,
            at("Y", "B", reverse=True, index=0),
            "reverse_compute_at: place 0 of loop 't' is not between what is read and its readers",
        ),
    ],
)
def test_reverse_compute_at_refused(text: str, steps: Steps, message: str) -> None:
    assert message in refused(text, steps)


def test_producers_in_the_same_outer_loop() -> None:
    """What a moved block reads may be made in the same outer loop: it has run in that turn."""
    text = scheduled(ONE_NEST, at("B", "Y", 1))
    assert text.count("for i in range(8):") == 2
    text = scheduled(ONE_NEST, at("Y", "B", 1, reverse=True))
    assert text.count("for i in range(8):") == 2


def test_reader_before_the_loop() -> None:
    """A block that reads the old output stays before the moved one."""
    text = func(
        "B: B[vt, vi] = Y[vt, vi]", "A: A[vt, vi] = X[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]", "X: X[vt, vi] = B[vt, vi]"
    )
    scheduled(text, at("Y", "A", reverse=True))


def inline(name: str, reverse: bool = False, split: int | None = None) -> Steps:
    """compute_inline, or its reverse, of a block, after a split of its inner loop."""

    def steps(s: Schedule) -> None:
        block = s.get_block(name)
        if split is not None:
            s.split(s.get_loops(block)[1], [None, split])
        (s.reverse_compute_inline if reverse else s.compute_inline)(block)

    return steps


MATCHED = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    A = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = X[vi]
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(Y[vi])
            M = T.match_buffer(A[vi], (1,))
            Y[vi] = M[0]
"""

UPDATED = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((4,), "float32")):
    A = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = X[vi]
    for t, i in T.grid(4, 8):
        with T.block("Y"):
            vt, vi = T.axis.remap("SR", [t, i])
            Y[vt] = Y[vt] + A[vi]
"""

PARTS = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    A = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("low"):
            vi = T.axis.spatial(4, i)
            A[vi] = X[vi]
    for i in range(4):
        with T.block("high"):
            vi = T.axis.spatial(4, i)
            A[vi + 4] = X[vi]
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = A[vi]
"""

HALF = """
@T.prim_func
def main(X: T.Buffer((8,), "float32"), Y: T.Buffer((8,), "float32")):
    A = T.alloc_buffer((8,))
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = X[vi]
    for i in range(8):
        with T.block("Y"):
            vi = T.axis.spatial(8, i)
            Y[vi] = A[vi]
"""

REPEATED_ELEMENT = func("A: A[vt, vi] = X[vt, vi]", "Y: Y[vt, vi] = A[vt, 0]")


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            CHAIN,
            inline("C"),
            "compute_inline: 'C' is not an intermediate buffer of the function: its contents are seen outside\n"
            "note: only a buffer of T.alloc_buffer may vanish",
        ),
        (
            MATMUL,
            inline("C"),
            "compute_inline: block 'C' is more than one store\n"
            "note: its body must be a single assignment B[v0, v1, …] = expression",
        ),
        (
            ACCUMULATED,
            inline("A"),
            "compute_inline: block 'A' is not a complete block: it reads and writes 'A'\n"
            "note: each element must be computed once, from finished inputs",
        ),
        (
            CHAIN,
            inline("B", split=8),
            "compute_inline: block 'B' has a predicate (T.where)\n"
            "note: inline before splitting, or split by factors of the extent",
        ),
        (
            func("A: A[vt, 7 - vi] = X[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]"),
            inline("A"),
            "compute_inline: index 1 of 'A' is not an axis of block 'A'\n"
            "note: the block must write B[v0, v1, …], each index one axis of its own",
        ),
        (
            func("A: A[vt, vt] = X[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]"),
            inline("A"),
            "compute_inline: block 'A' does not index its output by each axis once\n"
            "note: the block must write B[v0, v1, …], each index one axis of its own",
        ),
        (
            UNREAD,
            inline("A"),
            "compute_inline: nothing reads 'A'\nnote: there is no place for what block 'A' computes",
        ),
        (
            MATCHED,
            inline("A"),
            "compute_inline: 'A' is used otherwise than by loads of its elements\n"
            "note: only loads can be replaced by what block 'A' computes",
        ),
        (LOOP_INSIDE, inline("A"), "compute_inline: block 'A' uses loop 'i' other than through an axis"),
    ],
)
def test_compute_inline_refused(text: str, steps: Steps, message: str) -> None:
    assert message in refused(text, steps)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (
            UPDATED,
            "Y",
            "reverse_compute_inline: block 'Y' is not a complete block: axis 'vi' is not a spatial axis\n"
            "note: each element must be computed once, from finished inputs",
        ),
        (
            CHAIN,
            "B",
            "reverse_compute_inline: block 'B' reads 0 buffers that blocks of its scope compute\n"
            "note: it must read exactly one",
        ),
        (
            PARTS,
            "Y",
            "reverse_compute_inline: 'A' is written by 2 blocks\nnote: one block must write the buffer",
        ),
        (
            func("A: A[vt, vi] = X[vt, vi]", "B: B[vt, vi] = A[vt, vi]", "Y: Y[vt, vi] = A[vt, vi]"),
            "Y",
            "reverse_compute_inline: block 'Y' is not the only reader of 'A'\n"
            "note: the buffer vanishes, so that no other block may read it",
        ),
        (
            MATMUL,
            "D",
            "reverse_compute_inline: the producer, block 'C', is not a complete block: axis 'vk' is not a spatial axis\n"
            "note: reverse_compute_at puts the block after a producer that reduces",
        ),
        (
            STENCIL,
            "C",
            "reverse_compute_inline: block 'C' reads 'B' at 3 places\n"
            "note: it must read one element of the buffer in each instance; compute_inline the producer instead",
        ),
        (
            REPEATED_ELEMENT,
            "Y",
            "reverse_compute_inline: the indices at which block 'Y' reads 'A' cannot be inverted: ",
        ),
        (
            HALF,
            "Y",
            "reverse_compute_inline: block 'Y' reads elements that block 'A' does not make (index 0)\n"
            "note: the producer must cover all instances of the inlined block",
        ),
    ],
)
def test_reverse_compute_inline_refused(text: str, name: str, message: str) -> None:
    assert message in refused(text, inline(name, reverse=True))


def test_reverse_compute_inline_predicate() -> None:
    assert (
        "reverse_compute_inline: block 'C' has a predicate (T.where)\n"
        "note: inline before splitting, or split by factors of the extent"
    ) in refused(CHAIN, inline("C", reverse=True, split=8))
