"""The reasons that refusals give: what about a block, a region or a layout is not as the primitive needs it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mirstack.fuzz.schedules.programs import CHAIN, MATMUL
from mirstack.passes.schedule import Schedule
from test_primitives import refused
from test_tensorize import DESC, message

Steps = Callable[[Schedule], object]

INDEXED_BY_REDUCTION = (
    MATMUL.replace("T.grid(24, 20, 16)", "T.grid(24, 1, 16)")
    .replace("C[vi, vj] = ", "C[vi, vk] = ")
    .replace("= C[vi, vj] +", "= C[vi, vk] +")
)
DIFFERENT_ELEMENTS = MATMUL.replace("C[vi, vj] = T.float32(0)", "C[vi, 0] = T.float32(0)")


@pytest.mark.parametrize(
    ("text", "steps", "reason"),
    [
        (
            INDEXED_BY_REDUCTION,
            lambda s: s.decompose_reduction(s.get_block("C"), s.get_loops(s.get_block("C"))[0]),
            "block 'C' is not a reduction block: a reduction axis indexes its output 'C'",
        ),
        (
            DIFFERENT_ELEMENTS,
            lambda s: s.decompose_reduction(s.get_block("C"), s.get_loops(s.get_block("C"))[0]),
            "block 'C' is not a reduction block: it sets, reads and updates different elements of 'C'",
        ),
        (
            CHAIN,
            lambda s: s.transform_layout(s.get_block("B"), "B", lambda i, j: [i // 2, j]),
            "cannot be shown to keep all elements apart: two elements would share a place",
        ),
    ],
)
def test_reasons(text: str, steps: Steps, reason: str) -> None:
    assert reason in refused(text, steps)


def test_index_that_moves_otherwise() -> None:
    said = message(DESC.replace("A[vi, vk] * B[vj, vk]", "A[3 - vi, vk] * B[vj, vk]"))
    assert (
        "index 0 of 'A' is vi_o * 4 + vi_i, which does not move as that of 'A' in the description: it is not 'tile'"
        in said
    )
    assert "note: the description has the load of 'A' here" in said


def strided(*statements: str) -> str:
    """A block Y in loops i and j that writes parts of the rows of Y."""
    text = """
@T.prim_func
def main(X: T.Buffer((4, 8), "float32"), Y: T.Buffer((4, 16), "float32")):
    for i, j in T.grid(4, 8):
        with T.block("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
"""
    return text + "".join(f"            {statement}\n" for statement in statements)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            strided("Y[vi, vj * 2] = X[vi, vj]"),
            "is not a full box: the steps in dimension 1 leave elements out, or meet elements twice",
        ),
        (
            strided("T.writes(Y[vi, vj], Y[vi, vj + 8])", "Y[vi, vj] = X[vi, vj]", "Y[vi, vj + 8] = X[vi, vj]"),
            "is not a full box: block 'Y' writes 'Y' at 2 places",
        ),
    ],
)
def test_boxes(text: str, reason: str) -> None:
    def steps(s: Schedule) -> None:
        block = s.get_block("Y")
        s.write_at(s.get_loops(block)[0], block, 0, "local")

    said = refused(text, steps)
    assert f"write_at: what block 'Y' writes of 'Y' in an iteration of loop 'i' {reason}" in said
    assert "note: the copy would overwrite elements that the block leaves alone" in said
