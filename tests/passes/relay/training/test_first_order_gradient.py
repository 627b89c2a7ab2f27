"""Gradients of tuples: the fields of wide ones are summed apart, which gives the same numbers and few ops."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from mirstack.benchmarks.programs import unpacked
from mirstack.dialects.relay import ir
from mirstack.dialects.relay.interpreter import flatten, interpret
from mirstack.parser import parse_mir
from mirstack.passes.relay.training import first_order_gradient
from mirstack.passes.relay.training.first_order_gradient import FirstOrderGradient
from mirstack.support.verify import find_errors
from mirstack.support.walk import walk_ops
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

X = "Tensor[(2), float64]"


def differentiated(text: str) -> ModuleOp:
    module = parse_mir(text)
    FirstOrderGradient().apply(Context(), module)
    assert find_errors(module) == []
    return module


def tuple_program(seed: int) -> str:
    """Tuples of tensors and of tuples; fields used alone, several times and in any order, and tuples used whole."""
    rng = random.Random(seed)
    lines: list[str] = []
    tensors, tuples = ["%x", "%p.0"], [("%p", 2)]
    for k in range(rng.randint(8, 20)):
        name = f"%t{k}"
        match rng.choice(["tuple", "nested", "field", "field", "sum", "whole"]):
            case "tuple":
                fields = [rng.choice(tensors) for _ in range(rng.randint(2, 5))]
                lines.append(f"let {name} = ({', '.join(fields)});")
                tuples.append((name, len(fields)))
            case "nested":
                (inner, width), other = rng.choice(tuples), rng.choice(tensors)
                lines += [f"let {name} = ({other}, {inner});", f"let {name}_again = {name}.1;"]
                tuples += [(f"{name}.1", width), (f"{name}_again", width)]
            case "field":
                whole, width = rng.choice(tuples)
                lines.append(f"let {name} = {whole}.{rng.randrange(width)};")
                tensors.append(name)
            case "sum":
                lines.append(f"let {name} = multiply({rng.choice(tensors)}, sin({rng.choice(tensors)}));")
                tensors.append(name)
            case _:
                whole, width = rng.choice(tuples)
                lines.append(f"let {name} = concatenate({whole}, axis=0);")
                lines.append(f"let {name}_sum = multiply(%x, sum({name}));")
                tensors.append(f"{name}_sum")
    result = rng.choice([rng.choice(tensors), f"({rng.choice(tensors)}, {rng.choice(tensors)})", rng.choice(tuples)[0]])
    return f"def @main(%x: {X}, %p: ({X}, {X})) {{\n{' '.join(lines)}\n{result}\n}}\n"


def values(text: str, wide: int, monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    monkeypatch.setattr(first_order_gradient, "_WIDE", wide)
    rng = np.random.default_rng(0)
    x, a, b = rng.standard_normal((3, 2))
    return flatten(interpret(differentiated(text), "main", [x, (a, b)]))


@pytest.mark.parametrize("seeds", [range(20), pytest.param(range(20, 1000), marks=pytest.mark.slow)], ids=str)
def test_wide_tuples_have_the_gradients_of_narrow_ones(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        text = tuple_program(seed)
        narrow = values(text, 1_000, monkeypatch)
        for wide in (0, 3):
            for one, other in zip(narrow, values(text, wide, monkeypatch), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9, err_msg=text)


def ops_of_gradient(text: str) -> int:
    return sum(1 for _ in walk_ops(differentiated(text)))


def inner_unpacked(count: int) -> str:
    """Fields of a tuple in a tuple."""
    fields = ", ".join("%x" for _ in range(count))
    taken = ", ".join(f"%t.0.{k}" for k in range(count))
    return f"def @main(%x: {X}) {{ let %t = (({fields}), %x); concatenate(({taken}), axis=0) }}"


@pytest.mark.parametrize("make", [unpacked, inner_unpacked])
def test_ops_grow_with_the_program(make: Callable[[int], str]) -> None:
    """Four times the fields make four times the ops; each was once written anew for each other, sixteen times."""
    small, large = (ops_of_gradient(make(size)) for size in (60, 240))
    assert large < 4.5 * small


def test_narrow_tuples_are_written_anew() -> None:
    """As TVM does: one tuple for each field that is used."""
    module = differentiated(f"def @main(%x: {X}, %y: {X}) {{ let %t = (%x, %y); add(%t.0, %t.1) }}")
    assert sum(isinstance(op, ir.TupleOp) for op in walk_ops(module)) == 6
