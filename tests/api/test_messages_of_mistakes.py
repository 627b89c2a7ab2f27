"""Mistakes in Python: each message names the operator or the argument, and what is meant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import relay, te, topi
from mirstack.api.compile import TargetName


def _stage() -> Any:
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="B")
    return te.create_schedule(B.op)[B]


def _computed(function: Callable[[Any], Any]) -> Any:
    A = te.placeholder((4,), name="A")
    return te.compute((4,), lambda i: function(A[i]))


X = relay.var("x", shape=(2, 3))
MISTAKES: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "axs": (
        TypeError,
        "relay.sum: got an unexpected keyword argument 'axs'; did you mean 'axis'?",
        lambda: relay.sum(X, axs=1),
    ),
    "add": (TypeError, "relay.add: missing a required argument: 'rhs'", lambda: relay.add(X)),
    "relu": (TypeError, "relay.nn.relu: too many positional arguments", lambda: relay.nn.relu(X, 1)),
    "dens": (AttributeError, "Relay has no operator 'nn.dens'; did you mean 'dense'?", lambda: relay.nn.dens(X, X)),
    "topi": (AttributeError, "topi has no operator 'nn.dens'; did you mean 'dense'?", lambda: topi.nn.dens),
    "large": (TypeError, "no dtype holds an integer of 100 bits: the largest has 64", lambda: relay.const(10**30)),
    "vectorise": (AttributeError, "a stage has no 'vectorise'; did you mean 'vectorize'?", lambda: _stage().vectorise),
    "numpy": (mirstack.MirError, "numpy.exp takes numbers, not an expression\n", lambda: _computed(np.exp)),
    "numpy's note": (mirstack.MirError, "note: write te.exp(…)", lambda: _computed(np.exp)),
    "math": (
        mirstack.MirError,
        "an expression is not a Python number while the program is described\nnote: for math.exp(a) write te.exp(a)",
        lambda: _computed(math.exp),
    ),
    "empty": (mirstack.MirError, "compile takes the path of a file, or a program", lambda: mirstack.compile("")),
    "caches": (
        mirstack.MirError,
        "'32X' does not say how large caches are",
        lambda: mirstack.compile(mirstack.parse("def @main(%x: int32) { %x }"), caches="32X"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(mistake: str) -> None:
    kind, message, make = MISTAKES[mistake]
    with pytest.raises(kind) as raised:
        make()
    assert message in str(raised.value)


def test_numbers_of_numpy_with_expressions() -> None:
    for function in (lambda a: np.float32(2) * a, lambda a: a * np.float32(2)):
        assert isinstance(_computed(function), te.Tensor)
    A = te.placeholder((4,), name="A")
    products = np.array([1, 2]) * A[0]
    assert products.shape == (2,)


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_an_output_that_is_not_contiguous(target: TargetName) -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32")):
    for i, j in T.grid(2, 3):
        B[i, j] = A[i, j]
"""
    copied = mirstack.compile(mirstack.parse(text), target=target)
    rows, columns = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32, order="F")
    with pytest.raises(ValueError, match=r"'A' must be contiguous in row-major order; pass numpy\.ascontiguousarray"):
        copied(columns, rows)
    with pytest.raises(ValueError, match=r"'B' must be contiguous in row-major order; it is written, so pass a contig"):
        copied(rows, columns)


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_what_an_assertion_says(target: TargetName) -> None:
    text = "@T.prim_func\ndef f(A: T.Buffer((4,), 'int32')):\n    assert A[0] < 4, 'it is small'\n    A[1] = 2\n"
    run = mirstack.compile(mirstack.parse(text), target=target)
    with pytest.raises(mirstack.MirError, match=r"<string>:3:5: error: it is small\Z|error: it is small\n"):
        run(np.full(4, 9, np.int32))


@pytest.mark.parametrize("target", ["interp", "cpu"])
def test_a_size_that_nothing_determines(target: TargetName) -> None:
    text = """@T.prim_func
def f(a: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (m + 1,))
    A[0] = T.float32(1)
"""
    run = mirstack.compile(mirstack.parse(text), target=target)
    with pytest.raises(mirstack.MirError, match=r"<string>:4:9: error: nothing determines 'm'"):
        run(np.zeros(4, np.float32))
