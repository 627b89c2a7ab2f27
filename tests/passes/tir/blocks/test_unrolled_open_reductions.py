"""Reductions over what may be nothing around which loops are unrolled, and checks that stand inside of expressions."""

from __future__ import annotations

import mirstack
import numpy as np
import pytest
from mirstack.fuzz.case import Case
from mirstack.fuzz.pipelines.fuzzer import FUZZER
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.tir.buffers.check_open_bounds import check_function
from mirstack.passes.tir.loops.unroll_loop import UnrollLoop
from mirstack.passes.tir.rewriting import prim_funcs
from mirstack.support.diagnostics import MirError
from xdsl.context import Context

SUM = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (4, n, 3), "float32")
    B = T.match_buffer(b, (4,), "float32")
    LOOPS
                with T.block("s"):
                    vi, vj, vk = T.axis.remap("SRR", [i, j, k])
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vj, vk]
"""
GATHER = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    T.func_attr({"mirstack.check_bounds": T.bool(True)})
    for i in range(4):
        B[i] = T.if_then_else(i < 2, A[I[i]], T.float32(0))
"""


@pytest.mark.parametrize(
    "loops",
    [
        ("i in range(4)", "k in T.unroll(3)", "j in range(n)"),
        ("i in range(4)", "j in range(n)", "k in T.unroll(3)"),
        ("i in T.unroll(4)", "j in range(n)", "k in range(3)"),
    ],
)
def test_unrolled_loops_around_an_open_reduction(loops: tuple[str, ...]) -> None:
    nest = "\n".join(f"{'    ' * (depth + 1)}for {loop}:" for depth, loop in enumerate(loops))
    module = parse_mir(SUM.replace("    LOOPS", nest))
    UnrollLoop().apply(Context(), module)
    run = mirstack.compile(mirstack.parse(print_mir(module)))
    for n in (0, 2):
        a, b = np.ones((4, n, 3), np.float32), np.full(4, 7, np.float32)
        run(a, b)
        np.testing.assert_array_equal(b, np.full(4, 3 * n, np.float32))


def test_a_check_in_an_expression_has_no_text() -> None:
    module = parse_mir(GATHER)
    assert check_function(prim_funcs(module)[0]) == 1
    with pytest.raises(
        MirError, match=r"'tir.assert' stands where only expressions may(.|\n)*MLIR's form \(-t mlir\) has"
    ):
        print_mir(module)


def test_the_fuzzer_takes_it_for_a_refusal() -> None:
    inputs = {"A": np.ones(4, np.float32), "I": np.zeros(4, np.int32), "B": np.zeros(4, np.float32)}
    case = Case("passes", GATHER, inputs, {"pipeline": ["check-open-bounds"], "entry": "main"}, frozenset())
    assert (FUZZER.check(case).refused or "").startswith("text: ")
