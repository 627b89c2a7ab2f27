"""The table of scalar operators: all that it names is there, and a row is all that a function of floats needs."""

import math

import mirstack
import numpy as np
import pytest
from mirstack import te
from mirstack.dialects.arith.from_ssa import CONSTRUCTORS
from mirstack.dialects.tir import BINARY_OPS
from mirstack.dialects.tir.interpreter.intrinsics import EXTERNS
from mirstack.dialects.tir.interpreter.scalar import meaning
from mirstack.dialects.tir.scalar_ops import (
    BINARY_ROWS,
    FLOATS,
    INTRINSICS,
    NUMBERS,
    OPERATORS,
    ROWS,
    SCALAR_OPS,
    ScalarOp,
)
from mirstack.lowering.tir.expressions import MLIR_OPS
from mirstack.parser import parse_mir, print_mir

MATH = [row for row in INTRINSICS.values() if row.operands in (FLOATS, NUMBERS)]


def test_each_binary_op_has_one_row() -> None:
    assert tuple(BINARY_ROWS) == BINARY_OPS
    assert len(SCALAR_OPS) == len(ROWS)
    for op, row in BINARY_ROWS.items():
        assert op.name == f"tir.{row.name}"
        # The name in messages: the operator, or a function where that is ambiguous.
        assert op.SYMBOL in (row.symbol, f"T.{row.printed or row.node}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_what_a_row_names_exists(row: ScalarOp) -> None:
    for name in (row.mlir_float, row.mlir_signed, row.mlir_unsigned, row.mlir_bool):
        assert name in ("", "libm") or name in MLIR_OPS
    if row.op is None:
        assert bool(row.numpy) == (row.name in EXTERNS)
    else:
        assert row.op in CONSTRUCTORS
        for path in (row.numpy, row.numpy_integer):
            assert not path or callable(meaning(path))


def call(row: ScalarOp, dtype: str) -> str:
    """A call whose operands lie where every function is defined; of `acosh` from 1 on."""
    first = "X[i] + 1.0" if row.name == "acosh" else "X[i]"
    if dtype == "float64":
        first = first.replace("1.0", "T.float64(1.0)")
    return f"T.{row.name}({', '.join((first, 'Y[i]')[: row.arity])})"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_function_is_read_printed_interpreted_and_compiled(dtype: str) -> None:
    count, size = len(MATH), 6
    lines = [f"        R[{number}, i] = {call(row, dtype)}\n" for number, row in enumerate(MATH)]
    text = f"""@T.prim_func
def main(X: T.Buffer(({size},), "{dtype}"), Y: T.Buffer(({size},), "{dtype}"), R: T.Buffer(({count}, {size}), "{dtype}")):
    for i in range({size}):
{"".join(lines)}"""
    printed = print_mir(parse_mir(text))
    # T.abs of a float is read as T.fabs.
    assert all(f"T.{row.name}(" in printed for row in MATH if row.name != "abs")
    assert print_mir(parse_mir(printed)) == printed
    x = np.linspace(0.1, 0.9, size).astype(dtype)
    interpreted, compiled = np.zeros((count, size), dtype), np.zeros((count, size), dtype)
    mirstack.compile(parse_mir(text), "interp")(x, x[::-1].copy(), interpreted)
    mirstack.compile(parse_mir(text), "cpu")(x, x[::-1].copy(), compiled)
    assert np.all(np.isfinite(interpreted))
    np.testing.assert_allclose(compiled, interpreted, rtol=2e-6 if dtype == "float32" else 1e-12)


def test_nextafter_is_the_neighbour() -> None:
    i = te.placeholder((4,), "float64", "i")
    expr = te.nextafter(i[0], math.inf)
    assert expr.dtype == "float64" and "nextafter" in repr(expr)


@pytest.mark.parametrize("row", [row for row in MATH if row.te_name], ids=lambda row: row.name)
def test_te_has_each_function_of_the_table(row: ScalarOp) -> None:
    x = te.placeholder((4,), "float64", "x")
    made = getattr(te, row.te_name)(*(x[k] for k in range(row.arity)))
    assert made.dtype == "float64" and row.name in repr(made)


def test_the_analyzer_has_all_operators() -> None:
    assert set(CONSTRUCTORS) == set(OPERATORS)
