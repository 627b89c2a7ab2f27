"""Elements whose place is loaded: what a block reads and writes is told, not run, and only in what is there before the block."""

from __future__ import annotations

from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack.parser import print_mir
from mirstack.passes.schedule import Schedule

HEAD = """@T.prim_func
def main(I: T.Buffer((8,), "int32"), X: T.Buffer((8,), "int32"), Y: T.Buffer((9,), "int32")):
    for a in range(9):
        with T.block("Y"):
            va = T.axis.spatial(9, a)
"""
INDICES = np.arange(7, -1, -1, dtype=np.int32)
VALUES = np.arange(10, 18, dtype=np.int32)
GATHERED = np.append(VALUES[INDICES], np.int32(1))


def check(text: str, expected: np.ndarray, *sizes: int) -> None:
    """Compares what the interpreter and code of each level compute."""
    module = mirstack.parse(text)
    runs: list[Any] = [mirstack.compile(module, "interp")]
    runs += [mirstack.compile(module, opt_level=level) for level in (0, 1, 3)]
    for run in runs:
        y = np.full_like(expected, 1)
        run(INDICES, VALUES, y, *sizes)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "body",
    (
        "Y[va] = T.if_then_else(va < 8, X[I[va]], 1)",
        "if va < 8:\n                Y[va] = X[I[va]]",
        "with T.init():\n                Y[va] = 1\n            if va < 8:\n                Y[va] = X[I[va]]",
    ),
)
def test_guarded_indices(body: str) -> None:
    """The region tells of I[va] where the block does not load it."""
    check(HEAD + f"            {body}\n", GATHERED)


def test_guarded_store() -> None:
    scattered = HEAD + "            if va < 8:\n                Y[I[va]] = va\n"
    check(scattered, np.append(INDICES, np.int32(1)))


def test_guarded_sum_of_symbolic_size() -> None:
    check(
        """@T.prim_func
def main(i: T.handle, x: T.handle, Y: T.Buffer((1,), "int32"), n: T.int32):
    I = T.match_buffer(i, (n,), "int32")
    X = T.match_buffer(x, (n,), "int32")
    for o, a in T.grid(1, n + 2):
        with T.block("Y"):
            vo, va = T.axis.remap("SR", [o, a])
            with T.init():
                Y[vo] = 0
            Y[vo] = Y[vo] + T.if_then_else(va < n, X[I[va]], 1)
""",
        np.array([VALUES.sum() + 2], np.int32),
        8,
    )


def test_guarded_tensor() -> None:
    check(
        """@te.func
def main():
    I = te.placeholder((8,), name="I", dtype="int32")
    X = te.placeholder((8,), name="X", dtype="int32")
    Y = te.compute((9,), lambda i: te.if_then_else(i < 8, X[I[i]], 1), name="Y")
    return [I, X, Y]
""",
        GATHERED,
    )


def test_padded_layout_behind_an_index() -> None:
    """The element that the padding has no index for is not read."""
    sch = Schedule(
        mirstack.parse(
            """@T.prim_func
def main(X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
    for a in range(8):
        with T.block("Y"):
            va = T.axis.spatial(8, a)
            Y[va] = X[(va * 5 + 3) % 8]
"""
        )
    )
    sch.cache_index("Y", "local", 0)
    sch.transform_layout("Y", ("write", 0), lambda i: [i // 3, i % 3], pad_value=1)
    y = np.zeros((3, 3), np.int32)
    run: Any = mirstack.compile(sch.module)
    run(VALUES, y)
    np.testing.assert_array_equal(y.ravel(), np.append(VALUES[(np.arange(8) * 5 + 3) % 8], np.int32(1)))


@pytest.mark.parametrize(
    "body",
    (
        "t: T.int32 = T.if_then_else(va < 8, va, 7)\n            Y[va] = X[t]",
        "k = T.alloc_buffer((1,), 'int32')\n            k[0] = T.min(va, 7)\n            Y[va] = X[k[0]]",
        "k = T.alloc_buffer((1,), 'int32')\n            k[0] = 0\n"
        "            while X[k[0]] < T.min(va, 7) + 10:\n                k[0] = k[0] + 1\n            Y[va] = X[k[0]]",
    ),
)
def test_what_the_block_computes_tells_no_region(body: str) -> None:
    """Which element it is, is not known before the block runs: the whole dimension may be read."""
    text = HEAD + f"            {body}\n"
    assert "T.reads(X[0:8])" in print_mir(mirstack.parse(text))
    check(text, np.append(VALUES, VALUES[7]))


def test_what_the_block_stores_tells_no_region() -> None:
    """I[0] is another number when the block reads X there than it was before."""
    text = """@T.prim_func
def main(I: T.Buffer((8,), "int32"), X: T.Buffer((8,), "int32"), Y: T.Buffer((8,), "int32")):
    K = T.alloc_buffer((1,), "int32")
    for a in range(8):
        with T.block("Y"):
            va = T.axis.spatial(8, a)
            K[0] = I[va]
            Y[va] = X[K[0]]
"""
    assert "T.reads(I[va], X[0:8], K[0])" in print_mir(mirstack.parse(text))
    check(text, VALUES[INDICES])
