"""TE text: what is read is written back, and read again as the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.te import builder as te
from mirstack.dialects.te.interpreter import interpret_te_func
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.lowering.te.create_prim_func import create_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.parser.te import evaluate
from mirstack.support.deep_stack import in_deep_stack
from mirstack.support.diagnostics import MirError, source_position
from mirstack.support.verify import verify
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp


def check_fixed_point(module: ModuleOp) -> str:
    """The module's text, which is read as the same module and written the same way."""
    text = print_mir(module)
    again = parse_mir(text)
    verify(again)
    assert in_deep_stack(lambda: again.is_structurally_equivalent(module)), text
    assert print_mir(again) == text
    return text


def function(body: str) -> str:
    lines = "".join(f"    {line}\n" if line else "\n" for line in body.strip("\n").splitlines())
    return f"@te.func\ndef f():\n{lines}"


def unscheduled(program: str) -> str:
    """The tensors of a corpus program, without its schedule, as a TE function."""
    tensors = program[: program.index("s = te.create_schedule")]
    args = re.search(r"^args = (.*)$", program, re.MULTILINE)
    assert args is not None
    return function(f"{tensors}\nreturn {args[1]}")


def corpus_inputs(case: dict[str, Any]) -> list[Any]:
    generator = np.random.default_rng(case["seed"])
    values: list[Any] = []
    for param in case["params"]:
        if "shape" not in param:
            values.append(param["value"])
        elif param["dtype"].startswith(("int", "uint")):
            values.append(generator.integers(0, 10, param["shape"]).astype(param["dtype"]))
        else:
            drawn = generator.standard_normal(param["shape"])
            drawn = abs(drawn) + 0.5 if param.get("gen") == "abs_plus_half" else drawn
            values.append((drawn * param.get("scale", 1)).astype(param["dtype"]))
    return values


def test_corpus(corpus: Path) -> None:
    """Every program of the corpus round-trips; those with numbers give them, interpreted as TE and as the TIR it lowers to."""
    checked = 0
    for path in sorted((corpus / "te").glob("*.py")):
        program = path.read_text()
        if "hybrid" in program:
            continue
        module = parse_mir(unscheduled(program), path.name)
        verify(module)
        check_fixed_point(module)
        case = json.loads(path.with_suffix(".json").read_text())
        recorded = path.with_suffix(".npz")
        if not recorded.exists():
            continue
        (func,) = module.ops
        prim = create_prim_func(func)  # type: ignore[arg-type]
        verify(ModuleOp([prim]))
        args = dict(zip(func.param_names(), corpus_inputs(case), strict=True))  # type: ignore[attr-defined]
        outputs = interpret_te_func(func, args)  # type: ignore[arg-type]
        interpret_prim_func(prim, args)
        with np.load(recorded) as wanted:
            for place, name in enumerate(args):
                if f"p{place}" in wanted and name in outputs:
                    np.testing.assert_allclose(outputs[name], wanted[f"p{place}"], rtol=1e-4, atol=1e-5)
                    np.testing.assert_allclose(args[name], wanted[f"p{place}"], rtol=1e-4, atol=1e-5)
                    checked += 1
    assert checked >= 40


def test_python_is_understood() -> None:
    text = check_fixed_point(
        parse_mir(
            function("""
M = N = 4
scale: int = 2 ** 3 // 3  # 2
""")
            + """    shape = (M,) + (N * 2,)
    options = {"tag": "x", "more": [1, 2]}
    A = te.placeholder(shape, name="A")
    rank = len(A.shape)
    def twice(x):
        y = x * scale
        return y + (1 if rank == 2 and not rank == 3 else 0)
    B = te.compute(A.shape[:-1] + (8,), lambda *i: twice(A(*i)), tag=options["tag"], name="B")
    evens = (0, 1, 2, 3)[::2]
    C = te.compute([*B.shape], lambda i, j: B[i][j] + max(M, 3) - abs(-1), name="C")
    D = te.compute((B.op.axis[1].dom[1] if False else 8,), lambda i: C[0, i] + evens[1], name="D")
    return A, D
"""
        )
    )
    assert 'B = te.compute((4, 8), lambda i0, i1: A[i0, i1] * 2.0 + 1.0, name="B", tag="x")' in text
    assert "lambda i, j: B[i, j] + 4.0 - 1.0" in text
    assert "C[0, i] + 2.0" in text


def test_names_are_not_hidden() -> None:
    text = check_fixed_point(
        parse_mir(
            function("""
n = te.var("n")
i = te.placeholder((n,), name="i")
B = te.compute((n, 4), lambda n, j: i[n] + j, name="B")
lambda_ = te.compute((4,), lambda _: B[0, _], name="lambda")
C = te.compute((2,), lambda te: lambda_[te], name="te")
D = te.compute((2, 2), lambda *a: C[a[0]] + a[1], varargs_names=["x.outer", "x"], name="D")
return [i, D]
""")
        )
    )
    assert (
        'te.compute((2, 2), lambda *axes_1: C[axes_1[0]] + axes_1[1].astype("float32"), name="D", varargs_names=["x.outer", "x"])'
        in text
    )


def test_large_shared_values_get_names() -> None:
    A = te.placeholder((8,), name="A")

    def powers(i: te.Expr) -> te.Expr:
        x = A[i]
        for _ in range(40):
            x = x * x + 1.0
        return x

    text = check_fixed_point(ModuleOp([te.func("f", [A, te.compute((8,), powers, name="B")])]))
    assert len(text) < 3000
    assert "def B_body(i):" in text


def test_constants_keep_their_dtypes() -> None:
    A = te.placeholder((8,), "int8", name="A")
    D = te.placeholder((8,), "float64", name="D")
    computes = [
        te.compute((8,), lambda i, *, v=value: v(i), name=f"B{k}")
        for k, value in enumerate(
            [
                lambda i: A[i] + 3,
                lambda i: A[i].astype("float32") + 0.1,
                lambda i: D[i] + te.const(0.1, "float64"),
                lambda i: te.const(2**63 + 5, "uint64"),
                lambda i: te.const(float("-inf"), "float16"),
                lambda i: te.const(float("nan")),
                lambda i: te.const(True),
                lambda i: te.const(-0.0),
                lambda i: te.const(1e-45),
                lambda i: te.max_value("int64"),
                lambda i: te.min_value("float32"),
                lambda i: i.astype("int64") * te.const(1 << 40),
            ]
        )
    ]
    check_fixed_point(ModuleOp([te.func("f", [A, D, *computes])]))


def test_locations() -> None:
    module = parse_mir(
        function("A = te.placeholder((8,))\nB = te.compute((8,),\n    lambda i: A[i] * 2)\nreturn [A, B]"), "f.mir"
    )
    places = {op.name: source_position(op.location) for op in walk_ops(module) if op.name != "builtin.module"}
    assert places["te.func"] == ("f.mir", 2, 1)
    assert places["te.compute"] == ("f.mir", 4, 9)
    assert places["te.read"] == ("f.mir", 5, 19)
    assert places["tir.mul"] == ("f.mir", 5, 24)
    assert None not in places.values()


def test_reading_is_linear() -> None:
    def seconds(count: int) -> float:
        lines = ["A = te.placeholder((8,))", "x0 = te.compute((8,), lambda i: A[i])"]
        lines += [f"x{k} = te.compute((8,), lambda i: te.exp(x{k - 1}[i]) * 2 + 1)" for k in range(1, count)]
        text = function("\n".join([*lines, f"return [A, x{count - 1}]"]))
        return cpu_seconds(lambda: print_mir(parse_mir(text)))

    assert growth(seconds, 200, 800, below=10) < 10


def test_calls_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluate.MOST_CALLS == 200_000
    monkeypatch.setattr(evaluate, "MOST_CALLS", 2_000)
    text = function("def g(n):\n    return g(n - 1) + g(n - 1) if n > 0 else 1\nB = g(40)\nreturn [B]")
    with pytest.raises(
        MirError, match="4:16: error: this statement makes more than 2,000 calls of functions of the text"
    ):
        parse_mir(text, "calls.py")


@pytest.mark.parametrize("depth", [500])
def test_deep_nesting(depth: int) -> None:
    value = "A[i]"
    for step in range(depth):
        value = f"tir.if_then_else(i > {step}, {value}, 0.0)"
    check_fixed_point(
        parse_mir(function(f"A = te.placeholder((8,))\nB = te.compute((8,), lambda i: {value})\nreturn [A, B]"))
    )
