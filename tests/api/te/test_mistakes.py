"""What is wrong in a Python program of tensor expressions is told in words, at its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import pytest
from mirstack import te
from mirstack.support.diagnostics import MirError

A = te.placeholder((8, 8), name="A")


def rows(name: str = "C") -> te.Tensor:
    return te.compute((8,), lambda i: A[i, 0], name=name)


def lowered(*params: Any, name: str = "main") -> Any:
    tensor = rows()
    return mirstack.lower(te.create_schedule(tensor.op), [A, tensor, *params], name=name)


def aligned(factor: int, offset: int) -> None:
    first = rows("B")
    second = te.compute((8,), lambda i: first[i], name="D")
    op: Any = first.op
    te.create_schedule(second.op)[first].storage_align(op.axis[0], factor, offset)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: te.create_prim_func([rows()]), "tensor 'A' is read, but neither computed before nor a parameter"),
        (lambda: lowered(rows("E")), "parameter 'E' is computed by no stage of this schedule"),
        (lambda: lowered(A), "'A' is a parameter twice"),
        (lambda: lowered(name="a b"), "'a b' cannot be the name of a function: it is not an identifier"),
        (lambda: te.reduce_axis((4, 0), "k"), "reduce_axis 'k' ends at 0, before it begins at 4"),
        (lambda: te.compute((4,), 5), "a compute takes a function of its axes, lambda i, j: …, not the number 5"),  # type: ignore[arg-type]
        (lambda: te.var(5), "the name of a variable is a string, not the number 5"),  # type: ignore[arg-type]
        (lambda: aligned(10**20, 0), "the factor of storage_align is 100000000000000000000, which does not fit int32"),
        (lambda: aligned(8, -(10**20)), "the offset of storage_align is -100000000000000000000, which does not fit"),
    ],
)
def test_refused(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(MirError) as caught:
        wrong()
    assert message in str(caught.value)


def test_target_is_a_text() -> None:
    with pytest.raises(TypeError, match="a target is a text or a dictionary, not 5"):
        mirstack.build(lowered(), target=5)  # type: ignore[arg-type]


def test_compile_takes_a_schedule_with_its_parameters() -> None:
    tensor = rows()
    with pytest.raises(TypeError, match="a schedule of te is compiled with its parameters"):
        mirstack.compile(te.create_schedule(tensor.op))
