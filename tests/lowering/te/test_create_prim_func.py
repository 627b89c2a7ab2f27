"""`create_prim_func`: TVM's own results, and random programs against the TE interpreter."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mirstack.benchmarks.timing import cpu_seconds, growth
from mirstack.dialects.te import FuncOp
from mirstack.dialects.te import builder as te
from mirstack.dialects.te.interpreter import interpret_te_func
from mirstack.dialects.tir.interpreter import interpret_prim_func
from mirstack.lowering.te.create_prim_func import create_prim_func
from mirstack.parser import parse_mir, print_mir
from mirstack.support.diagnostics import MirError
from mirstack.support.verify import verify
from mirstack.support.walk import walk_ops
from xdsl.dialects.builtin import ModuleOp


def matmul_int64() -> FuncOp:
    size = te.const(128, "int64")
    A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((te.const(0, "int64"), size), name="k")
    return te.func("main", [A, B, te.compute((size, size), lambda x, y: te.sum(A[x, k] * B[y, k], axis=k), name="C")])


def tensor_attr() -> FuncOp:
    A, B = te.placeholder((128, 128), name="A"), te.placeholder((128, 128), name="B")
    k = te.reduce_axis((0, 128), name="k")
    attrs: Any = {"layout_free_placeholders": [B]}
    C = te.compute((128, 128), lambda x, y: te.sum(A[x, k] * B[y, k], axis=k), name="C", attrs=attrs)
    return te.func("main", [A, B, C])


def argmax(value_first: bool) -> FuncOp:
    v = 0 if value_first else 1
    m, n = te.var("m"), te.var("n")
    idx, val = te.placeholder((m, n), "int32", "idx"), te.placeholder((m, n), name="val")
    k = te.reduce_axis((0, n), "k")

    def combine(x: Any, y: Any) -> Any:
        return tuple(te.Select(x[v] >= y[v], x[p], y[p]) for p in range(2))

    def identity(*dtypes: str) -> Any:
        return tuple(te.min_value(t) if p == v else te.const(-1, t) for p, t in enumerate(dtypes))

    sources = (val, idx) if value_first else (idx, val)
    reducer = te.comm_reducer(combine, identity, name="argmax")
    outputs = te.compute((m,), lambda i: reducer(tuple(s[i, k] for s in sources), axis=k), name="argmax")
    return te.func("main", [*sources, *outputs])


def zero_dim() -> FuncOp:
    a, b = te.placeholder((), "int32", "a"), te.placeholder((), "int32", "b")
    return te.func("main", [a, b, te.compute((), lambda: a() + b(), name="c")])


def argmax_of_all() -> FuncOp:
    A = te.placeholder((3, 4, 5), name="A")
    ks = [te.reduce_axis((0, e), f"k{i}") for i, e in enumerate((3, 4, 5))]

    def combine(x: Any, y: Any) -> Any:
        first = te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0]))
        return te.Select(first, x[0], y[0]), te.Select(x[1] > y[1], x[1], y[1])

    reducer = te.comm_reducer(combine, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    index, _ = te.compute((), lambda: reducer((ks[0] * 20 + ks[1] * 5 + ks[2], A(*ks)), axis=ks), name="A_red_temp")
    return te.func("main", [A, te.compute((), lambda: index(), name="A_red")])


def sum_keepdims() -> FuncOp:
    A, k = te.placeholder((3, 4, 5), name="A"), te.reduce_axis((0, 3), "k0")
    return te.func(
        "main", [A, te.compute((1, 4, 5), lambda ax0, ax1, ax2: te.sum(A[k, ax1, ax2], axis=k), name="A_red")]
    )


def take() -> FuncOp:
    A, I = te.placeholder((6, 8), name="A"), te.placeholder((5,), "int32", "I_1")  # noqa: E741
    return te.func(
        "main", [A, I, te.compute((6, 5), lambda ax0, ax1: A[ax0, te.min(te.max(0, I[ax1]), 7)], name="T_take")]
    )


def softmax() -> FuncOp:
    A = te.placeholder((4, 6, 8), name="A")
    k, k2 = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 4), "k")
    largest = te.compute((6, 8), lambda *i: te.max(A(k, *i), axis=k), name="T_softmax_maxelem")
    powers = te.compute(A.shape, lambda *i: te.exp(A(*i) - largest(*i[1:])), name="T_softmax_exp")
    total = te.compute((6, 8), lambda *i: te.sum(powers(k2, *i), axis=k2), name="T_softmax_expsum")
    norm = te.compute(A.shape, lambda *i: powers(*i) / total(*i[1:]), name="T_softmax_norm", attrs={"axis": 0})
    return te.func("main", [A, norm])


def all_of_row() -> FuncOp:
    A, k = te.placeholder((3, 4), "bool", "A"), te.reduce_axis((0, 4), "k1")
    return te.func("main", [A, te.compute((3,), lambda ax0: te.all(A[ax0, k], axis=k), name="A_red")])


TVM: dict[str, Callable[[], FuncOp]] = {
    "0276_te_create_primfunc__test_matmul_int64": matmul_int64,
    "0285_te_create_primfunc__test_tensor_attr": tensor_attr,
    "0288_te_create_primfunc__test_argmax_idx_val": lambda: argmax(False),
    "0289_te_create_primfunc__test_argmax_val_idx": lambda: argmax(True),
    "0291_te_create_primfunc__test_zero_dim_add": zero_dim,
    "0113_topi__argmax_None_False": argmax_of_all,
    "0084_topi__sum_0_True": sum_keepdims,
    "0213_topi__take": take,
    "0127_topi__softmax_0": softmax,
    "0125_topi__all": all_of_row,
}


@pytest.mark.parametrize("case", TVM)
def test_as_tvm(case: str, corpus: Path) -> None:
    """The TIR function is TVM's, to the letter."""
    wanted = print_mir(parse_mir((corpus / "tir" / f"{case}.py").read_text()))
    lowered = ModuleOp([create_prim_func(TVM[case]())])
    verify(lowered)
    assert print_mir(lowered) == wanted


class Programs:
    """Random tensor programs: elementwise, gathers, stencils, choices and reductions over earlier tensors."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.tensors = [te.placeholder((4, 5), name="A"), te.placeholder((4, 5), "int32", name="I")]

    def program(self) -> FuncOp:
        for number in range(self.random.randint(2, 5)):
            self.tensors.append(self.compute(f"T{number}"))
        return te.func("f", self.tensors[:2] + self.random.sample(self.tensors[2:], 1) + self.tensors[-1:][:0])

    def compute(self, name: str) -> te.Tensor:
        if self.random.random() < 0.4:
            k = te.reduce_axis((self.random.randint(0, 2), 5), name="k")
            reducer = self.random.choice([te.sum, te.min, te.max])
            where = self.random.choice([None, k > 2])
            made = te.compute((4, 5), lambda i, j: reducer(self.value(i, k, 2), axis=k, where=where), name=name)
        else:
            made = te.compute((4, 5), lambda i, j: self.value(i, j, 3), name=name)
        return made

    def read(self, i: te.Expr, j: te.Expr) -> te.Expr:
        tensor = self.random.choice(self.tensors)
        row = self.random.choice([i, 3 - i, te.min(te.max(self.tensors[1][i, j], 0), 3), te.max(i - 1, 0)])
        column = self.random.choice([j, 4 - j, (j + i) % 5])
        return tensor[row, column]

    def value(self, i: te.Expr, j: te.Expr, depth: int) -> te.Expr:
        choice = self.random.randrange(7) if depth else 6
        a = self.value(i, j, depth - 1) if choice < 6 else self.read(i, j)
        b = self.value(i, j, depth - 1) if choice < 5 else a
        match choice:
            case 0:
                return a + b
            case 1:
                return te.max(a, b)
            case 2:
                return te.if_then_else(i > 0, self.tensors[0][i - 1, j] + a, b)
            case 3:
                return te.Select(a > b, a, b)
            case 4:
                return a - b * 2
            case 5:
                return te.abs(a)
            case _:
                return a


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int) -> None:
    """The TIR function computes what the TE interpreter says; text and lowering keep the program."""
    func = Programs(seed).program()
    verify(ModuleOp([func]))
    module = ModuleOp([func.clone()])
    assert parse_mir(print_mir(module)).is_structurally_equivalent(module)
    lowered = create_prim_func(func)
    verify(ModuleOp([lowered]))
    generator = np.random.default_rng(seed)
    args: dict[str, Any] = {
        "A": generator.integers(-9, 9, (4, 5)).astype("float32"),
        "I": generator.integers(-3, 9, (4, 5)).astype("int32"),
    }
    outputs = interpret_te_func(func, args)
    (name,) = outputs
    args[name] = np.zeros_like(outputs[name])
    interpret_prim_func(lowered, args)
    np.testing.assert_allclose(args[name], outputs[name], rtol=1e-5)


def test_lowering_is_linear() -> None:
    def seconds(count: int) -> float:
        A = te.placeholder((8,), name="A")
        x = A
        for _ in range(count):
            x = te.compute((8,), lambda i, *, x=x: te.exp(x[i]) * 2.0 + 1.0, name="x")
        func = te.func("f", [A, x])
        assert sum(op.name == "tir.block" for op in walk_ops(create_prim_func(func))) == count
        return cpu_seconds(lambda: create_prim_func(func))

    assert growth(seconds, 100, 800, below=24) < 24


def test_a_size_must_be_bound() -> None:
    n = te.var("n")
    A = te.placeholder((n + 1,), name="A")
    with pytest.raises(MirError, match="no parameter binds the symbolic size 'n' of function 'f'"):
        create_prim_func(te.func("f", [A, te.compute((n + 1,), lambda i: A[i], name="B")]))


def test_a_large_shared_body_stays_shared() -> None:
    A = te.placeholder((8,), name="A")

    def powers(i: te.Expr) -> te.Expr:
        x = A[i]
        for _ in range(30):
            x = x * x + 1.0
        return x

    lowered = create_prim_func(te.func("f", [A, te.compute((8,), powers, name="B")]))
    verify(ModuleOp([lowered]))
    assert sum(op.name == "tir.mul" for op in walk_ops(lowered)) == 30
