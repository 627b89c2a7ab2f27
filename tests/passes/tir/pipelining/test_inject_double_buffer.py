"""inject-double-buffer: for any number of turns, and however the loop is split, the results are the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.tir.pipelining.inject_double_buffer import InjectDoubleBuffer
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import find_errors
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

TEXT = """
@T.prim_func
def main(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(EXTENT):
        p = T.allocate([5], "int32", "global")
        P = T.Buffer((5,), "int32", data=p)
        Q = T.decl_buffer((3,), "int32")
        with T.attr(p, "double_buffer_scope", 1):
            for j in range(5):
                P[j] = A[i * 5 + j] + i
        with T.attr(Q.data, "double_buffer_scope", 1):
            for j in range(3):
                if i > 1:
                    Q[j] = A[i + j]
                else:
                    Q[j] = j
        for j in range(5):
            C[i * 5 + j] = P[4 - j] * 2 + Q[j % 3]
"""


def results(module: ModuleOp) -> list[np.ndarray]:
    """What the program makes of its buffers, for several numbers of turns."""
    func = next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))
    found: list[np.ndarray] = []
    for n in (0, 1, 2, 3, 8, 12):
        a = np.random.default_rng(n).integers(0, 10, 64).astype(np.int32)
        c = np.zeros(64, np.int32)
        interpret_prim_func(func, {"A": a, "C": c, "n": np.int32(n)}, module)
        found.append(c)
    return found


@pytest.mark.parametrize("split", [0, 1, 2, 4])
@pytest.mark.parametrize("extent", ["n", "1", "7", "12"])
def test_same_results(extent: str, split: int) -> None:
    module = parse_mir(TEXT.replace("EXTENT", extent))
    expected = results(module)
    InjectDoubleBuffer(split_loop=split).apply(Context(), module)
    assert find_errors(module) == []
    after = print_mir(module)
    assert print_mir(parse_mir(after)) == after
    for ours, theirs in zip(results(module), expected, strict=True):
        assert np.array_equal(ours, theirs), after


def test_odd_split() -> None:
    with pytest.raises(MirError, match=re.escape("the option split-loop of inject-double-buffer is 3")):
        InjectDoubleBuffer(split_loop=3).apply(Context(), parse_mir(TEXT.replace("EXTENT", "4")))
