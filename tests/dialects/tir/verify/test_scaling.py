"""The verifier and the interpreter's planning take time linear in a function, and any depth."""

from __future__ import annotations

from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.tir import PrimFuncOp
from mirstack.dialects.tir.verify import check_module, verify_prim_func
from mirstack.parser import parse_mir


def function_of(loops: int) -> PrimFuncOp:
    body = "".join(
        f"    for i{n} in range(16):\n        with T.block('b{n}'):\n            v = T.axis.spatial(16, i{n})\n            A[v] = A[v] + T.float32({n})\n"
        for n in range(loops)
    )
    module = parse_mir('@T.prim_func\ndef f(A: T.Buffer((16,), "float32")):\n' + body)
    return next(op for op in module.body.block.ops if isinstance(op, PrimFuncOp))


def seconds(loops: int) -> float:
    func = function_of(loops)
    assert verify_prim_func(func) == []
    return cpu_seconds(lambda: verify_prim_func(func))


def test_linear_in_the_number_of_blocks():
    assert growth(seconds, 100, 800, below=20) < 20


def test_deep_nests():
    depth = 1200
    text = '@T.prim_func\ndef f(A: T.Buffer((1,), "int32")):\n'
    # Tabs would not do: TVMScript indents by spaces.
    text += "".join(" " * (level + 1) + f"for i{level} in range(1):\n" for level in range(depth))
    text += " " * (depth + 1) + "A[0] = 1\n"
    check_module(parse_mir(text))
