"""Operators that a file defines: types, meaning, native code, gradients, all from one definition."""

from __future__ import annotations

from io import StringIO
from textwrap import dedent

import numpy as np
import pytest
from mirstack import compile as compile_program
from mirstack.dialects.relay.operator import (
    _OPERATORS,  # pyright: ignore[reportPrivateUsage]
    all_operators,
    get_operator,
    operator_at,
)
from mirstack.dialects.relay.operators import NAMESPACES
from mirstack.dialects.relay.own_operators import Description, make_operator
from mirstack.driver.mir_opt import main
from mirstack.driver.mlir_frontend import parse_mlir
from mirstack.driver.modules import register_dialects
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

PROGRAM = """
@te.func
def swish():
    x = te.placeholder((), name="x")
    slope = te.var("slope", "float32")
    y = te.compute((), lambda: x() * te.sigmoid(x() * slope), name="y")
    return [x, slope, y]

@te.func
def difference32():
    x = te.placeholder((), name="x")
    y = te.placeholder((), name="y")
    z = te.compute((), lambda: te.abs(x() - y()), name="z")
    return [x, y, z]

@te.func
def difference64():
    x = te.placeholder((), "float64", name="x")
    y = te.placeholder((), "float64", name="y")
    z = te.compute((), lambda: te.abs(x() - y()), name="z")
    return [x, y, z]

@te.func
def picked():
    n = te.var("n")
    m = te.var("m")
    x = te.placeholder((n, m), name="x")
    at = te.var("at")
    y = te.compute((n,), lambda i: x[i, at], name="y")
    return [x, at, y]

@T.prim_func
def scaled(a: T.handle, by: T.Buffer((), "float32"), b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * by[()]

operator my.swish(%x: Tensor, slope=1.0) -> Tensor {
  compute @swish
  gradient %gradient * (sigmoid(%x * const($slope, %x.dtype)) * (1 - %result * const($slope, %x.dtype)) + %result * const($slope, %x.dtype))
}
operator my.difference(%x: Tensor, %y: Tensor) -> Tensor { compute @difference32, @difference64 }
operator my.picked(%x: Tensor, at=0) -> Tensor { compute @picked kind injective }
operator my.scaled(%x: Tensor, by=2.0) -> Tensor { compute @scaled }

def @main(%x: Tensor[(3, 4), float32], %y: Tensor[(4), float32], %z: Tensor[(?, 4), float32]) {
  let %s = my.swish(my.difference(nn.relu(%x), %y), slope=1.5);
  (%s, my.scaled(my.picked(%s, at=2), by=3.0), my.swish(%z), my.difference(cast(%x, dtype="float64"), 1f64))
}
"""


def parsed(text: str) -> ModuleOp:
    module = parse_mir(text)
    verify(module)
    return module


def expected(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> list[np.ndarray]:
    swish = lambda a, slope: a / (1 + np.exp(-slope * a))  # noqa: E731
    s = swish(np.abs(np.maximum(x, 0) - y), 1.5)
    return [s, 3 * s[:, 2], swish(z, 1.0), np.abs(x.astype("float64") - 1)]


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_meaning_and_native_code(target: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype("float32") for shape in ((3, 4), (4,), (5, 4))]
    results = compile_program(parsed(PROGRAM), target=target)(*arrays)  # type: ignore[arg-type]
    for result, reference in zip(results, expected(*arrays), strict=True):
        np.testing.assert_allclose(result, reference, rtol=2e-6)


def test_each_file_has_its_own_operators() -> None:
    first, second = parsed(PROGRAM), parsed(PROGRAM.replace("slope=1.0) -> Tensor {", "slope=2.0) -> Tensor {"))
    defaults = [operator_at("my.swish", list(module.ops)[-1]) for module in (first, second)]
    assert [each.specs["slope"].default for each in defaults if each is not None] == [1.0, 2.0]
    assert get_operator("my.swish") is None
    with pytest.raises(MirError, match=r"unknown operator 'my\.swish'"):
        parse_mir("def @main(%x: Tensor[(4), float32]) { my.swish(%x) }")
    again = parse_mir("def @g(%x: Tensor[(4), float32]) { my.swish(%x) }", init=second)
    assert "operator my.swish(%x: Tensor, slope=2.0)" in print_mir(again)


def test_gradient_is_the_rule(capsys: pytest.CaptureFixture[str], tmp_path) -> None:  # type: ignore[no-untyped-def]
    file, result = tmp_path / "f.mir", tmp_path / "g.mir"
    body = "def @main(%x: Tensor[(8), float32]) { sum(my.swish(%x, slope=1.5)) }"
    file.write_text(PROGRAM[: PROGRAM.index("def @main")] + body)
    assert main([str(file), "-p", "first-order-gradient", "-o", str(result)]) == 0
    x = np.linspace(-3, 3, 8, dtype="float32")
    _, (gradient,) = compile_program(str(result), target="interp")(x)
    f = lambda a: a / (1 + np.exp(-1.5 * a))  # noqa: E731
    wide = x.astype("float64")
    np.testing.assert_allclose(gradient, (f(wide + 1e-6) - f(wide - 1e-6)) / 2e-6, atol=1e-5)


def test_reads_outside_are_checked() -> None:
    text = PROGRAM[: PROGRAM.index("def @main")] + "def @main(%x: Tensor[(3, 4), float32]) { my.picked(%x, at=9) }"
    with pytest.raises(MirError, match=r"@fused_my_picked reads outside of dimension 1"):
        compile_program(parsed(text))(np.zeros((3, 4), "float32"))


def test_a_rule_makes_operators_of_its_file() -> None:
    rule = "rewrite @r { multiply(%x, sigmoid(%x)) => my.swish(%x) }\n"
    body = "def @main(%x: Tensor[(8), float32]) { multiply(%x, sigmoid(%x)) }"
    module = parsed(PROGRAM[: PROGRAM.index("def @main")] + rule + body)
    from mirstack.passes.rules.apply_rules import ApplyRules

    ApplyRules().apply(Context(), module)
    assert "my.swish(%x)" in print_mir(module).partition("def @main")[2]


def test_namespaces_are_those_of_the_table() -> None:
    assert {name.partition(".")[0] for name in all_operators() if "." in name} - {"my"} == {*NAMESPACES}


def test_what_is_not_said_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MirError, match=r"operator my\.x: the type of its result is not said"):
        make_operator(Description("my.x", ("x",), numpy=lambda attrs, x: x))
    known = make_operator(Description("my.swish", ("x",), relation="identity", numpy=lambda attrs, x: x))
    monkeypatch.setitem(_OPERATORS._entries, "my.swish", known)
    with pytest.raises(MirError, match=r"operator my\.swish: an extension that is loaded has defined it"):
        parse_mir(PROGRAM)


def test_functions_of_other_levels_are_refused() -> None:
    text = StringIO()
    Printer(text, print_generic_format=True).print_op(parsed(PROGRAM))
    wrong = text.getvalue().replace('functions = ["scaled"]', 'functions = ["my.swish"]')
    with pytest.raises(MirError, match=r"operator my\.scaled: @my\.swish is neither a TE nor a TIR function"):
        context = Context()
        register_dialects(context)
        verify(parse_mlir(context, wrong, "<input>"))


def test_a_tuple_has_no_written_gradient() -> None:
    op = "operator my.tuple(%xs...: Tensor) -> Tensor { compute @swish gradient %xs }"
    with pytest.raises(MirError) as raised:
        parse_mir(PROGRAM.replace("def @main", op + "\ndef @main", 1))
    assert "@swish takes no tuple, which an argument is" in str(raised.value)


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_sizes_known_only_at_run_time_are_compared(target: str) -> None:
    rows = """
    @te.func
    def rows():
        n = te.var("n")
        x = te.placeholder((n, 4), name="x")
        y = te.placeholder((n,), name="y")
        k = te.reduce_axis((0, 4), name="k")
        s = te.compute((n,), lambda i: te.sum(x[i, k] * y[i], axis=k), name="s")
        return [x, y, s]
    """
    text = (
        dedent(rows)
        + """
operator my.rows(%x: Tensor, %y: Tensor) -> Tensor { compute @rows kind reduction }
def @main(%x: Tensor[(?, ?), float32], %y: Tensor[(?), float32]) { my.rows(%x, %y) }
"""
    )
    net = compile_program(parsed(text), target)  # type: ignore[arg-type]
    ones = lambda *shape: np.ones(shape, "float32")  # noqa: E731
    assert list(net(ones(3, 4), ones(3))) == [4, 4, 4]
    for x, y in (((3, 5), 3), ((3, 3), 3), ((3, 4), 2), ((3, 4), 5)):
        with pytest.raises(MirError, match=r"my\.rows: (dimension|argument)"):
            net(ones(*x), ones(y))
