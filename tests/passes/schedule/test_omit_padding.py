"""omit_padding: turns that multiply by zeros alone are left out, and only those."""

from __future__ import annotations

from typing import Any

import pytest
from mirstack.fuzz.schedules.programs import MATMUL
from mirstack.passes.schedule import Schedule
from test_primitives import refused, scheduled

CONV = """
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), W: T.Buffer((5, 3), "float32"), C: T.Buffer((12, 10), "float32")):
    P = T.alloc_buffer((20, 14))
    for i, j in T.grid(20, 14):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.if_then_else(4 <= vi and vi < 16 and 2 <= vj and vj < 12, A[vi - 4, vj - 2], T.float32(0))
    for i, j, r, s in T.grid(12, 10, 5, 3):
        with T.block("C"):
            vi, vj, vr, vs = T.axis.remap("SSRR", [i, j, r, s])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + P[vi + vr * 2, vj + vs * 2] * W[vr, vs]
"""


def omitting(*which: int, parts: int = 10, text: str = CONV) -> str:
    """The convolution with its columns in parts, and the loops of the window outside of a part."""

    def steps(s: Schedule) -> None:
        i, j, r, q = s.get_loops("C")
        j0, j1 = s.split(j, [None, parts])
        s.reorder(i, j0, r, q, j1)
        s.decompose_reduction("C", r)
        for number in which:
            s.omit_padding("C_update", (r, q)[number])

    return scheduled(text, steps)


def test_rows_of_a_window_outside_of_the_input() -> None:
    text = omitting(0)
    assert (
        "v: T.int32 = r * 2 + i\n            if v >= 4 and v < 16:\n                for s, j_1 in T.grid(3, 10):"
        in text
    )


def test_each_loop_asks_for_what_it_drives() -> None:
    text = omitting(1, 0, parts=2)
    assert "v: T.int32 = r * 2 + i\n            if v >= 4 and v < 16:" in text
    # Of two columns, both are outside or none is.
    assert "v_1: T.int32 = s + j_0\n                    if v_1 >= 1 and v_1 < 6:" in text


def test_parts_with_a_rest() -> None:
    text = omitting(1, parts=4)
    assert "if j_0 * 2 + s < 6:" in text and "T.where(j_0 * 4 + j_1 < 10)" in text


PLAIN = "it must be C[…] = C[…] + A[…] * B[…], its T.init decomposed"


@pytest.mark.parametrize(
    ("text", "steps", "message", "note"),
    [
        (
            CONV,
            lambda s: s.omit_padding("C", s.get_loops("C")[2]),
            "omit_padding: block 'C' is not a sum of products",
            PLAIN,
        ),
        (
            CONV,
            lambda s: s.omit_padding("P", s.get_loops("P")[1]),
            "omit_padding: block 'P' is not a sum of products",
            PLAIN,
        ),
        (
            CONV.replace("* W[vr, vs]", "- W[vr, vs]"),
            lambda s: (s.decompose_reduction("C", s.get_loops("C")[2]), s.omit_padding("C_update", s.get_loops("C_update")[2])),
            "omit_padding: block 'C_update' is not a sum of products",
            PLAIN,
        ),
        (
            CONV,
            lambda s: (s.decompose_reduction("C", s.get_loops("C")[2]), s.omit_padding("C_update", s.get_loops("C_update")[0])),
            "omit_padding: loop 'i' does not hold block 'C_update' alone",
            "give a loop around block 'C_update' that holds nothing else",
        ),
        (
            MATMUL,
            lambda s: (s.decompose_reduction("C", s.get_loops("C")[2]), s.omit_padding("C_update", s.get_loops("C_update")[2])),
            "omit_padding: block 'C_update' reads no buffer that a block before it pads with zeros",
            "a padded buffer is made by P[…] = T.if_then_else(condition, value, 0)",
        ),
        (
            CONV.replace("T.float32(0))", "T.float32(1))"),
            lambda s: (s.decompose_reduction("C", s.get_loops("C")[2]), s.omit_padding("C_update", s.get_loops("C_update")[2])),
            "omit_padding: block 'C_update' reads no buffer that a block before it pads with zeros",
            "a padded buffer is made by P[…] = T.if_then_else(condition, value, 0)",
        ),
        (
            CONV,
            lambda s: (
                s.reorder(s.get_loops("C")[0], *s.get_loops("C")[2:], s.get_loops("C")[1]),
                s.decompose_reduction("C", s.get_loops("C")[1]),
                s.omit_padding("C_update", s.get_loops("C_update")[2]),
            ),
            "omit_padding: no iteration of loop 's' is known to read padding alone",
            "choose a loop over the window, outside of those over what the window is moved by",
        ),
    ],
)  # fmt: skip
def test_refusals(text: str, steps: Any, message: str, note: str) -> None:
    told = refused(text, steps)
    assert message in told and note in told
