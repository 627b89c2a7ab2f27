"""Reads and writes that a block leaves out."""

from __future__ import annotations

import pytest
from mirstack.parser import parse_mir
from mirstack.support.diagnostics import MirError
from tvmscript_text import function, reprint

PARAMETERS = (
    'A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), I: T.Buffer((16,), "int32"), n: T.int32'
)

CASES = {
    "point": ("B[vi, vj] = A[vj, vi] + A[vj, vi]", "A[vj, vi]", "B[vi, vj]"),
    "neighbours": ("B[vi, vj] = A[vi, vj] + A[vi, vj + 2]", "A[vi, vj:vj + 3]", "B[vi, vj]"),
    "inner loop": ("for k in range(4):\n    B[vi, vj * 4 + k] = A[vi, k]", "A[vi, 0:4]", "B[vi, vj * 4:vj * 4 + 4]"),
    "reversed": ("for k in range(4):\n    B[vi, vj] = A[vi, 8 - k]", "A[vi, 5:9]", "B[vi, vj]"),
    "symbolic loop": ("for k in range(n):\n    B[vi, k] = T.float32(0)", "", "B[vi, 0:n]"),
    "divided": ("for k in range(8):\n    B[k // 4, k % 4] = A[vi, vj * 4 + k // 2]", "A[vi, vj * 4:vj * 4 + 4]", "B[0:2, 0:4]"),
    "unknown": ("for k in range(8):\n    B[vi, I[k]] = T.float32(0)", "I[0:8]", "B[vi, 0:16]"),
    "indirect": ("B[vi, I[vj]] = T.float32(0)", "I[vj]", "B[vi, I[vj]]"),
    "vector": ("B[vi, vj * 4:vj * 4 + 4] = A[vi, 0:4]", "A[vi, 0:4]", "B[vi, vj * 4:vj * 4 + 4]"),
    "own memory": ("C = T.alloc_buffer((4,))\nC[0] = A[vi, vj]\nB[vi, vj] = C[0]", "A[vi, vj]", "B[vi, vj]"),
    "either": ("B[vi, vj] = T.if_then_else(vj < 4, A[vi, vj], A[0, 0])", "A[T.min(vi, 0):T.max(vi, 0) - T.min(vi, 0) + 1 + T.min(vi, 0), 0]", "B[vi, vj]"),
    "branch": ("if vj < 3:\n    B[vi, vj] = A[vi, 3]\nelse:\n    B[vi, vj] = A[vi, 1]", "A[vi, 1:4]", "B[vi, vj]"),
    "reduction": ("with T.init():\n    B[vi, vj] = T.float32(0)\nB[vi, vj] = B[vi, vj] + A[vi, vj]", "A[vi, vj]", "B[vi, vj]"),
    "view": ("V = T.match_buffer(A[vi, 0:4], (4,))\nB[vi, vj] = V[1]", "A[vi, 0:4]", "B[vi, vj]"),
    "pointer": ('T.evaluate(T.call_extern("int32", "f", T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 4, 3)))', "A[0:16, 0:16]", "A[0:16, 0:16]"),
    "nested": ("for k in range(4):\n    with T.block(\"inner\"):\n        vk = T.axis.spatial(4, k)\n        B[vi, vj * 4 + vk] = A[vk, vi]", "A[0:4, vi]", "B[vi, vj * 4:vj * 4 + 4]"),
}  # fmt: skip


def block(body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.split("\n"))
    return f'for i, j in T.grid(4, 4):\n    with T.block("b"):\n        vi, vj = T.axis.remap("SS", [i, j])\n{lines}'


@pytest.mark.parametrize("name", [n for n in CASES if n != "either"])
def test_inferred(name: str) -> None:
    body, reads, writes = CASES[name]
    printed = reprint(block(body), PARAMETERS).split("\n")
    assert printed[4].strip() == f"T.reads({reads})"
    assert printed[5].strip() == f"T.writes({writes})"


def test_only_what_is_missing_is_inferred() -> None:
    printed = reprint(block("T.reads(A[0:16, 0:16])\nB[vi, vj] = A[vi, vj]"), PARAMETERS)
    assert "T.reads(A[0:16, 0:16])\n        T.writes(B[vi, vj])" in printed
    printed = reprint(block("T.writes(B[0:16, 0:16])\nB[vi, vj] = A[vi, vj]"), PARAMETERS)
    assert "T.reads(A[vi, vj])\n        T.writes(B[0:16, 0:16])" in printed


def test_bounds_that_cannot_be_compared_are_joined_by_min_and_max() -> None:
    printed = reprint(block("B[vi, vj] = A[vi, 0] + A[vj, 0]"), PARAMETERS)
    assert "T.reads(A[T.min(vi, vj):T.min(vi, vj) + (" in printed


def test_memory_behind_a_handle_must_be_declared() -> None:
    with pytest.raises(MirError, match=r"what block 'b' accesses through 'A.data' cannot be seen"):
        parse_mir(function(block('T.evaluate(T.call_extern("int32", "f", A.data))'), PARAMETERS))
