"""reverse_compute_at of reductions: each instance once, in an order that begins with T.init."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

SUMS = """
@T.prim_func
def main(A: T.Buffer((6, 12), "float32"), C: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((6, 12))
    for i, k in T.grid(6, 12):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] * T.float32(2)
    for i, k in T.grid(6, 12):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi, vk]
"""


REPEATED = (
    SUMS.replace("B[vi, vk]", "B[vi, vk, 0]")
    .replace(
        """T.grid(6, 12):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk, 0]""",
        """T.grid(6, 12):
      for j in range(2):
        with T.block("B"):
            vi, vk, vj = T.axis.remap("SSS", [i, k, j])
            B[vi, vk, 0]""",
    )
    .replace("(6, 12))\n    for", "(6, 12, 1))\n    for")
)


def moved(depth: int, *before: Any) -> Any:
    def steps(s: Schedule) -> None:
        for step in before:
            step(s)
        s.reverse_compute_at(s.get_block("C"), s.get_loops("B")[depth])

    return steps


def split(s: Schedule) -> None:
    i, k = s.get_loops("B")
    k0, k1 = s.split(k, [None, 4])
    s.reorder(k0, i, k1)


def test_rows_and_elements() -> None:
    assert 'vi, vk = T.axis.remap("SR", [i, ax0])' in scheduled(SUMS, moved(0))
    assert "for i, k in T.grid(6, 12):" in scheduled(SUMS, moved(1))


def test_parts_of_sums() -> None:
    text = scheduled(SUMS, moved(1, split))
    assert "vk = T.axis.reduce(12, k_0 * 4 + ax0)" in text
    scheduled(SUMS, moved(0, split))


def test_parts_with_a_rest() -> None:
    def rows(s: Schedule) -> None:
        i, k = s.get_loops("B")
        k0, k1 = s.split(k, [None, 3])
        i0, i1 = s.split(i, [None, 4])
        s.reorder(k0, i0, i1, k1)

    text = scheduled(SUMS, moved(1, rows))
    assert "T.where(i_0 * 4 + ax0 < 6)" in text and "vk = T.axis.reduce(12, k_0 * 3 + ax1)" in text

    def terms(s: Schedule) -> None:
        i, k = s.get_loops("B")
        k0, k1 = s.split(k, [None, 5])
        s.reorder(k0, i, k1)

    text = scheduled(SUMS, moved(0, terms))
    assert "T.where(k_0 * 5 + ax1 < 12)" in text


def test_threads_add_up_together() -> None:
    def bound(s: Schedule) -> None:
        split(s)
        s.bind(s.get_loops("B")[0], "threadIdx.x")

    scheduled(SUMS, moved(0, bound))


@pytest.mark.parametrize(
    ("text", "steps", "message"),
    [
        (
            SUMS,
            moved(0, split, lambda s: s.parallel(s.get_loops("B")[0])),
            "reverse_compute_at: loop 'k_0' is parallel, and would drive reduction axis 'vk' of block 'C'",
        ),
        (
            SUMS.replace("B[vi, vk] = A[vi, vk]", "B[vi, 11 - vk] = A[vi, vk]"),
            moved(1),
            "reverse_compute_at: reduction axis 'vk' of block 'C' would not begin with its first value, for which T.init stands",
        ),
        (
            REPEATED,
            moved(2),
            "reverse_compute_at: the iterations of loop 'j' are not known to run each instance of reduction block 'C' once: loop j is in no index",
        ),
        (
            SUMS.replace("B[vi, vk]\n", "B[vi, vk] + B[vi, 11 - vk]\n"),
            moved(1),
            "reverse_compute_at: ",
        ),
        (
            SUMS.replace("with T.init():\n                C[vi] = T.float32(0)\n            ", "").replace(
                "C[vi] = C[vi] +", "C[vi] = C[vi] +"
            ),
            moved(0),
            "reverse_compute_at: block 'C' is not a complete block: axis 'vk' is not a spatial axis\nnote: nor is it a reduction block: it has no T.init()",
        ),
    ],
)
def test_refused(text: str, steps: Any, message: str) -> None:
    assert message in refused(text, steps)


def test_sums_of_unknown_number() -> None:
    text = SUMS.replace('A: T.Buffer((6, 12), "float32"), C: T.Buffer((6,), "float32")', "a: T.handle, c: T.handle")
    sizes = "    n = T.int32()\n    A = T.match_buffer(a, (n, 12))\n    C = T.match_buffer(c, (n,))\n    B ="
    text = text.replace("    B =", sizes).replace("(6,", "(n,")
    message = refused(text, moved(1, split))
    assert "of reduction block 'C' once: how many there are is not known" in message


def test_several_elements_of_one_instance() -> None:
    text = SUMS.replace(
        'T.grid(6, 12):\n        with T.block("C")', 'T.grid(6, 6):\n        with T.block("C")'
    ).replace("C[vi] = C[vi] + B[vi, vk]", "C[vi] = C[vi] + B[vi, vk * 2] + B[vi, vk * 2 + 1]")
    message = refused(text, moved(1))
    assert (
        "reverse_compute_at: reduction block 'C' reads several elements of 'B' in one instance, which different iterations of loop 'k' make"
        in message
    )


ROWS = """
@T.prim_func
def main(A: T.Buffer((6, 12), "float32"), D: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((6, 12))
    C = T.alloc_buffer((6,))
    for i in range(6):
        for k in range(12):
            with T.block("B"):
                vi, vk = T.axis.remap("SS", [i, k])
                B[vi, vk] = A[vi, vk] * T.float32(2)
        for k in range(12):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vk]
        for u in range(1):
            with T.block("D"):
                vi = T.axis.spatial(6, i)
                D[vi] = C[vi]
"""


def test_readers_in_the_same_row() -> None:
    text = scheduled(ROWS, moved(1))
    assert text.index('T.block("B")') < text.index('T.block("C")') < text.index('T.block("D")')
    assert text.count("for k in range(12):") == 1


def test_readers_of_unfinished_sums() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((6, 12), "float32"), D: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((6, 12))
    C = T.alloc_buffer((6,))
    for k0 in range(3):
        for i, k1 in T.grid(6, 4):
            with T.block("B"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.spatial(12, k0 * 4 + k1)
                B[vi, vk] = A[vi, vk] * T.float32(2)
        for i, k1 in T.grid(6, 4):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(12, k0 * 4 + k1)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + B[vi, vk]
        for i in range(6):
            with T.block("D"):
                vi = T.axis.spatial(6, i)
                D[vi] = C[vi]
"""
    message = refused(text, moved(1))
    assert (
        "reverse_compute_at: block 'D', which reads the sums of block 'C', is in loop 'k0', which would drive the reduction: they would be unfinished"
        in message
    )
    assert "note: choose a loop that shares none but those of other axes with the readers" in message
