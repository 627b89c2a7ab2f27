"""What a block reads and writes: one answer, TVM's, for TVMScript text, for TE, and after a schedule primitive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.te import builder as te
from mirstack.lowering.te.create_prim_func import create_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.passes.schedule import Schedule
from mirstack.support.verify import verify
from xdsl.dialects.builtin import ModuleOp

Indices = Callable[..., list[Any]]

BETWEEN = "T.min(vi, {0}):T.min(vi, {0}) + (T.max(vi, {0}) + 1 - T.min(vi, {0}))"

# The indices by which a block reads A, in text and in TE, and what it reads: A and the buffers of indices.
OF_AXES: dict[str, tuple[list[str], Indices, str]] = {
    "point": (["vi + 1"], lambda i, j, n, f: [i + 1], "A[vi + 1]"),
    "one value stays as written": (["vi * 2 + 1 - vi"], lambda i, j, n, f: [i * 2 + 1 - i], "A[vi * 2 + 1 - vi]"),
    "a union is simplified": (["vi * 2 - vi"] * 2, lambda i, j, n, f: [i * 2 - i, i * 2 - i], "A[vi]"),
    "neighbours": (["vi", "vi + 2"], lambda i, j, n, f: [i, i + 2], "A[vi:vi + 3]"),
    "backwards": (["vi + 2", "vi"], lambda i, j, n, f: [i + 2, i], "A[vi:vi + 3]"),
    "strided": (["vi * 4", "vi * 4 + 3"], lambda i, j, n, f: [i * 4, i * 4 + 3], "A[vi * 4:vi * 4 + 4]"),
    "two axes": (["vi", "vj"], lambda i, j, n, f: [i, j], f"A[{BETWEEN.format('vj')}]"),
    "axis and number": (["vi", "0"], lambda i, j, n, f: [i, 0], f"A[{BETWEEN.format('0')}]"),
    "remainders": (["vi % 4", "vi % 4 + 1"], lambda i, j, n, f: [i % 4, i % 4 + 1], "A[vi % 4:vi % 4 + 2]"),
    "loaded": (["I[vi]"], lambda i, j, n, f: [n[i]], "A[I[vi]], I[vi]"),
    "loaded twice": (["I[vi]", "I[vi] + 1"], lambda i, j, n, f: [n[i], n[i] + 1], "A[I[vi]:I[vi] + 2], I[vi]"),
    "float": (['T.Cast("int32", F[vi])'], lambda i, j, n, f: [f[i].astype("int32")], "A[0:64], F[vi]"),
}  # fmt: skip

# The same with a loop `k` over 4 inside the block, which TE has not.
OF_LOOPS = {
    "whole loop": ("k", "A[0:4]"),
    "tile": ("vi * 4 + k", "A[vi * 4:vi * 4 + 4]"),
    "terms are independent": ("k * 2 + vi - k", "A[vi - 3:vi - 3 + 10]"),
    "reversed loop": ("8 - k", "A[5:9]"),
    "halves": ("vi * 2 + k // 2", "A[vi * 2:vi * 2 + 2]"),
    "one period": ("k % 8", "A[0:4]"),
    "two periods": ("(k + 6) % 8", "A[0:8]"),
    "minimum": ("T.min(k, 2)", "A[0:3]"),
    "choice": ("T.Select(k < 2, k, 7)", "A[0:8]"),
    "call": ('T.Cast("int32", T.sqrt(F[vi]))', "A[0:64], F[vi]"),
    "loaded in a loop": ("I[k]", "A[0:64], I[0:4]"),
    "factor": ("vi * k", "A[0:64]"),
}


def text(body: str, reads: str = "") -> str:
    """A function of one block `b` with a body; `reads` is declared of it, whatever it reads."""
    declared = f"            T.reads({reads})\n            T.writes(B[vi, vj])\n" if reads else ""
    return f"""
@T.prim_func
def main(P: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int32"), F: T.Buffer((64,), "float32"),
         B: T.Buffer((8, 8), "float32")):
    A = T.alloc_buffer((64,))
    for x in range(64):
        with T.block("A"):
            vx = T.axis.spatial(64, x)
            A[vx] = P[vx]
    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
{declared}{body}
"""


def reads_of(module: ModuleOp, block: str) -> str:
    """What the text of a module declares that a block reads."""
    verify(module)
    lines = print_mir(module).split(f'with T.block("{block}"):')[1].split("\n")
    line = next(line.strip() for line in lines if line.strip().startswith("T.reads("))
    return line.removeprefix("T.reads(").removesuffix(")")


def declared_in_text(body: str) -> str:
    """The reads that text without `T.reads` gets."""
    return reads_of(parse_mir(text(body)), "b")


def declared_again(body: str) -> str:
    """The reads that a block with other ones has after a primitive: what it read of A, it reads of P."""
    module = parse_mir(text(body, "A[0:64], I[0:64], F[0:64]"))
    Schedule(module).compute_inline("A")
    return reads_of(module, "b").replace("P[", "A[")


def declared_by_te(indices: Indices) -> str:
    """The reads of a block made of TE."""
    A, I, F = te.placeholder((64,), name="A"), te.placeholder((64,), "int32", "I"), te.placeholder((64,), name="F")  # noqa: E741
    B = te.compute((8, 8), lambda i, j: sum((A[e] for e in indices(i, j, I, F)), te.const(0.0)), name="B")
    reads = reads_of(ModuleOp([create_prim_func(te.func("main", [A, I, F, B]))]), "B")
    return reads.replace("v_i", "vi").replace("v_j", "vj")


@pytest.mark.parametrize("name", OF_AXES)
def test_of_axes(name: str) -> None:
    written, indices, reads = OF_AXES[name]
    body = f"            B[vi, vj] = {' + '.join(f'A[{index}]' for index in written)}"
    assert declared_in_text(body) == reads
    assert declared_again(body) == reads
    assert declared_by_te(indices) == reads


@pytest.mark.parametrize("name", OF_LOOPS)
def test_of_loops(name: str) -> None:
    index, reads = OF_LOOPS[name]
    body = f"            for k in range(4):\n                B[vi, vj] = A[{index}]"
    assert declared_in_text(body) == reads
    assert declared_again(body) == reads


def test_branches_bound_loops() -> None:
    """What a condition says of a loop holds in its branches only, of what is computed before them, too."""
    body = """            for k in range(8):
                if k < 3:
                    B[vi, vj] = A[k]
                else:
                    B[vi, vj] = T.if_then_else(k == 5, A[k + 10], A[k + 2])"""
    for declared in (declared_in_text(body), declared_again(body)):
        assert declared == "A[0:16]"
    assert declared_in_text(body.replace("A[k + 10]", "A[k]")) == "A[0:10]"
    assert declared_in_text(body.replace("B[vi, vj] = A[k]\n", "B[vi, vj] = A[k + 6]\n")) == "A[5:16]"


def test_branches_never_taken() -> None:
    body = """            for k in range(4):
                if k == 9:
                    B[vi, vj] = A[k + 2]"""
    assert declared_in_text(body) == "A[2:6]"


def test_what_the_block_makes_is_not_known_outside() -> None:
    """An index that is loaded through a view, or from what the block stores, stands for the whole dimension."""
    body = """            V = T.match_buffer(I[vi:vi + 2], (2,), "int32")
            B[vi, vj] = A[V[1]]"""
    assert declared_in_text(body) == "A[0:64], I[vi:vi + 2]"
    body = """            I[vi] = vj
            B[vi, vj] = A[I[vi]]"""
    assert declared_in_text(body) == "A[0:64], I[vi]"


def test_sums_of_init_and_order() -> None:
    """What `T.init()` begins is not read; a store comes before its value, a load before those in its indices."""
    body = """            with T.init():
                B[vi, vj] = F[vi]
            B[vi, vj] = B[vi, vj] + A[I[vj] + I[vj + 1]]"""
    assert declared_in_text(body) == "F[vi], A[I[vj] + I[vj + 1]], I[vj:vj + 2]"


def test_views_are_of_their_source() -> None:
    body = """            V = T.match_buffer(A[I[vi]:I[vi] + 2], (2,))
            B[vi, vj] = V[0] + V[1]"""
    assert declared_in_text(body) == "I[vi], A[I[vi]:I[vi] + 2]"


def test_init_of_te_is_read() -> None:
    A, F, k = te.placeholder((8, 4), name="A"), te.placeholder((8,), name="F"), te.reduce_axis((0, 4), name="k")
    B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k, init=[F[i]]), name="B")
    assert reads_of(ModuleOp([create_prim_func(te.func("main", [A, F, B]))]), "B") == "F[v_i], A[v_i, v_k]"


def test_symbolic_loops() -> None:
    """A loop that runs has a size of at least 1, which signs what it is multiplied with."""
    body = """            for k, l in T.grid(I[vi], 4):
                B[vi, vj] = A[I[vi] * l + k]"""
    assert declared_in_text(body) == "I[vi], A[0:I[vi] * 4]"


def test_many_accesses_take_linear_time() -> None:
    def source(count: int) -> str:
        return text("            B[vi, vj] = " + " + ".join(f"A[(vi + {k}) % {k + 2}]" for k in range(count)))

    assert growth(lambda count: cpu_seconds(lambda: parse_mir(source(count))), 100, 400, below=8) < 8
