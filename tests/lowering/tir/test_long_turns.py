"""Loops with long turns are kept from being unrolled; of those that sum something up, only the longer ones."""

from __future__ import annotations

from compiled_ir import lower_to_scf
from mirstack.lowering.tir.statements import LOOP_ANNOTATION, ROLLED
from mirstack.parser import parse_mir
from xdsl.dialects import scf


def is_rolled(body: str, loop_kind: str = "range") -> bool:
    """Whether the loop over i, whose turns do this, must stay a loop."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    W = T.alloc_buffer((8,), "float32", scope="local")
    for i in {loop_kind}(8):
{body}
"""
    module = parse_mir(text)
    lower_to_scf(module)
    loop = next(op for op in module.walk() if isinstance(op, scf.ForOp | scf.ParallelOp))
    return loop.attributes.get(LOOP_ANNOTATION) == ROLLED


def lines(line: str) -> str:
    """The line for eight numbers, one after the other."""
    return "\n".join("        " + line.replace("#", str(k)) for k in range(8))


def test_long_turns() -> None:
    """Turns of which none needs what another computed."""
    assert is_rolled(lines("C[i, #] = A[i, #] * A[i, #]"))


def test_short_turns() -> None:
    """LLVM may do several at once."""
    assert not is_rolled("        C[i, 0] = A[i, 0]")


def test_sums() -> None:
    """What a turn reads before it is written is of the turns before."""
    assert not is_rolled(lines("C[0, #] = C[0, #] + A[i, #]"))


def test_memory_of_a_turn() -> None:
    """What a turn writes first and then reads is its own."""
    assert is_rolled(lines("W[#] = A[#, i]") + "\n" + lines("C[i, #] = W[#] + A[i, #]"))


def test_long_sums() -> None:
    """The addresses of so many numbers are not worth sharing."""
    assert is_rolled("\n".join(lines("C[0, #] = C[0, #] + A[i, #]") for _ in range(3)))


def test_loops_inside() -> None:
    """A loop that stays one is a long turn."""
    assert is_rolled("        for j in range(8):\n            C[0, j] = C[0, j] + A[i, j]")
    assert not is_rolled("        for j in T.unroll(2):\n            C[0, j] = C[0, j] + A[i, j]")


def test_threads() -> None:
    """Loops whose turns are spread over threads are like the others."""
    assert is_rolled(lines("C[i, #] = A[i, #] * A[i, #]"), "T.parallel")
    assert not is_rolled("        C[i, 0] = A[i, 0]", "T.parallel")
