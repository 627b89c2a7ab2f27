"""Deep and long programs, and time linear in the text."""

from __future__ import annotations

import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.parser import parse_mir, print_mir
from tvmscript_text import function

DEPTH = 2000

DEEP = {
    "loops": "\n".join(" " * k + f"for i{k} in range(n + {k}):" for k in range(DEPTH)) + "\n" + " " * DEPTH + "A[0, 0] = T.float32(1)",
    "parentheses": "A[0, 0] = " + "(" * DEPTH + "A[0, 1]" + ")" * DEPTH,
    "operators": "A[0, 0] = " + "(A[0, 0] * " * DEPTH + "A[0, 1]" + ")" * DEPTH,
    "calls": "A[0, 0] = " + "T.exp(" * DEPTH + "A[0, 1]" + ")" * DEPTH,
    "choices": "A[0, 0] = " + "T.if_then_else(n < 3, " * DEPTH + "A[0, 1]" + ", A[0, 2])" * DEPTH,
    "signs": "A[0, 0] = " + "-" * DEPTH + "A[0, 1]",
    "chain": "A[0, 0] = " + " + ".join(["A[0, 1]"] * DEPTH),
    "comparisons": "assert " + " < ".join(["n"] * DEPTH) + ', "order"',
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_deep_programs(name: str) -> None:
    module = parse_mir(function(DEEP[name]))
    text = print_mir(module)
    assert print_mir(parse_mir(text)) == text


def test_parsing_and_printing_are_linear() -> None:
    statement = """\
    for i, j in T.grid(8, 8):
        with T.block("b{k}"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(A[v_i, v_j])
            T.writes(A[v_i, v_j])
            x: T.int32 = v_i * 2 + {k}
            A[v_i, v_j] = T.exp(A[v_i, v_j] + T.float32({k})) * T.Cast("float32", x)
"""

    def text(count: int) -> str:
        return function("pass").replace("    pass\n", "") + "".join(statement.format(k=k) for k in range(count))

    def parsing(count: int) -> float:
        return cpu_seconds(lambda: parse_mir(text(count)))

    def printing(count: int) -> float:
        module = parse_mir(text(count))
        return cpu_seconds(lambda: print_mir(module))

    assert growth(parsing, 75, 600, below=20) < 20
    assert growth(printing, 75, 600, below=20) < 20


def test_many_names_in_one_scope() -> None:
    body = "\n".join(f"x: T.int32 = n + {k}" for k in range(3000))
    text = print_mir(parse_mir(function(body)))
    assert "    x_2999: T.int32 = n + 2999" in text


def test_ten_thousand_functions() -> None:
    text = "".join(f"@T.prim_func\ndef f{k}(n: T.int32):\n    T.evaluate(n)\n" for k in range(2000))
    module = parse_mir(text)
    assert len(list(module.ops)) == 2000
    assert print_mir(module).count("def f") == 2000
