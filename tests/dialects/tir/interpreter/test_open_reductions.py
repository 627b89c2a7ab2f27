"""Reductions over nothing store what `T.init` does, in the interpreter as at every level, whatever the order of their loops."""

from __future__ import annotations

import numpy as np
import pytest
from mirstack.api.compile import compile
from mirstack.driver.pipeline import read_pipeline
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.registry import pass_factories
from xdsl.context import Context

BLOCK = """
        with T.block("O"):
            v, w = T.axis.remap("SR", [i, k])
            with T.init():
                O[v] = T.float32(1)
            O[v] = O[v] + T.exp(A[v, w])
"""

TWO = """
        with T.block("O"):
            v, w, u = T.axis.remap("SRR", [i, k, l])
            with T.init():
                O[v] = T.float32(1)
            O[v] = O[v] + A[v, w] * A[v, u]
"""

SPLIT = """
        with T.block("O"):
            v = T.axis.spatial(3, i)
            w = T.axis.reduce(n, k0 * 4 + k1)
            T.where(i < 2 and k0 * 4 + k1 < n)
            with T.init():
                O[v] = T.float32(1)
            O[v] = O[v] + A[v, w]
"""

LATER = """
        with T.block("O"):
            v = T.axis.spatial(3, i)
            w = T.axis.reduce(n + 1, k + 1)
            with T.init():
                O[v] = T.float32(1)
            O[v] = O[v] + A[v, w - 1]
"""

FUSED = """
        with T.block("O"):
            v = T.axis.spatial(3, f // 4)
            w = T.axis.reduce(4, f % 4)
            u = T.axis.reduce(n, k)
            with T.init():
                O[v] = T.float32(1)
            O[v] = O[v] + A[v, u] * A[v, u + w - w]
"""

KNOWN = """
@T.prim_func
def main(O: T.Buffer((3,), "float32"), A: T.Buffer((3, 0), "float32")):
"""

OPEN = """
@T.prim_func
def main(o: T.handle, a: T.handle):
    n = T.int32()
    O = T.match_buffer(o, (3,), "float32")
    A = T.match_buffer(a, (3, n), "float32")
"""

PROGRAMS = {
    "of extent 0": f"{KNOWN}    for i, k in T.grid(3, 0):{BLOCK}",
    "outside": f"{KNOWN}    for k, i in T.grid(0, 3):{BLOCK}",
    "the inner of two": f"{KNOWN}    for i, k, l in T.grid(3, 2, 0):{TWO}",
    "symbolic": f"{OPEN}    for i, k in T.grid(3, n):{BLOCK}",
    "symbolic, outside": f"{OPEN}    for k, i in T.grid(n, 3):{BLOCK}",
    "symbolic, split": f"{OPEN}    for i, k0, k1 in T.grid(3, (n + 3) // 4, 4):{SPLIT}",
    "symbolic, in a loop of elements and terms": f"{OPEN}    for f, k in T.grid(12, n):{FUSED}",
    "a second part": f"{OPEN}    for i, k in T.grid(3, n):{LATER}",
}
STORED = {"symbolic, split": [1, 1, 5], "a second part": [5, 5, 5]}
"""What is in memory afterwards, where that is not all ones."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_of_nothing(name: str) -> None:
    for level in (None, 0, 3):
        module = parse_mir(PROGRAMS[name])
        run = compile(module, "interp") if level is None else compile(module, opt_level=level)
        out = np.full(3, 5, "float32")
        run(out, np.zeros((3, 0), "float32"))
        np.testing.assert_array_equal(out, STORED.get(name, [1, 1, 1]), f"{name} at {level}")


def test_of_something() -> None:
    a = np.arange(15, dtype="float32").reshape(3, 5)
    for name in ("symbolic, split", "symbolic, outside"):
        expected = (a.sum(axis=1) if "split" in name else np.exp(a).sum(axis=1)) + 1
        if "split" in name:
            expected[2] = 5
        for target in ("interp", "cpu"):
            out = np.full(3, 5, "float32")
            compile(parse_mir(PROGRAMS[name]), target)(out, a)  # pyright: ignore[reportArgumentType]
            np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "pipeline", ["remove-no-op", "hoist-if-then-else", "unroll-loop{auto-max-step=12 auto-max-extent=2}", "simplify"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_loops_that_start_nothing(name: str, pipeline: str) -> None:
    module = parse_mir(PROGRAMS[name])
    for each in read_pipeline(pipeline, pass_factories()):
        each.apply(Context(), module)
    out = np.full(3, 5, "float32")
    compile(parse_mir(print_mir(module)), "interp")(out, np.zeros((3, 0), "float32"))
    np.testing.assert_array_equal(out, STORED.get(name, [1, 1, 1]), f"{name} after {pipeline}")


@pytest.mark.parametrize("kind", ["T.serial", "T.unroll"])
def test_unrolled_loop_of_no_iterations_goes(kind: str) -> None:
    """One that carries no reduction has no effect."""
    text = f"{KNOWN}    for i in {kind}(0):\n        for k in T.serial(0):{BLOCK.replace(chr(10), chr(10) + '    ')}"
    module = parse_mir(text)
    for each in read_pipeline("unroll-loop{auto-max-step=12 auto-max-extent=2}", pass_factories()):
        each.apply(Context(), module)
    assert " for i " not in print_mir(module)


def test_a_loop_of_elements_and_terms_has_none_of_both() -> None:
    """For f in range(3 * n), an element being f // n: where n is 0, no iteration says which element it would be."""
    axes = "v = T.axis.spatial(3, f // n)\n            w = T.axis.reduce(n, f % n)"
    block = BLOCK.replace('v, w = T.axis.remap("SR", [i, k])', axes)
    fused = f"{OPEN}    for f in range(3 * n):{block}"
    out = np.full(3, 5, "float32")
    compile(parse_mir(fused), "interp")(out, np.zeros((3, 0), "float32"))
    np.testing.assert_array_equal(out, [5, 5, 5])
