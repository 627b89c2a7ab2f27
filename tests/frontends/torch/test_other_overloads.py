"""Overloads beside core ATen's that are converted whole, against torch: drawn shapes, dtypes and arguments, interpreted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.extra
torch = library("torch", "torch")

from test_core_aten import FLOATS, INTEGERS, NUMBERS, Case, Draw, check  # noqa: E402


def _two(d: Draw) -> Case:
    return d.tensor(shape := d.shape(), d.one_of(*NUMBERS)), d.tensor(d.broadcast(shape), d.one_of(*NUMBERS))


def _alike(d: Draw) -> Case:
    dtype = d.one_of(*NUMBERS)
    return d.tensor(shape := d.shape(), dtype), d.tensor(d.broadcast(shape), dtype)


def _floats(d: Draw) -> Case:
    return (d.tensor(dtype=d.one_of(*FLOATS), low=-8, high=8),)


def _number(d: Draw) -> Case:
    return d.tensor(dtype=d.one_of(*NUMBERS)), d.one_of(0, 1, 0.5)


def _along(d: Draw) -> Case:
    return d.tensor(shape := d.shape(1), d.one_of(*FLOATS)), d.axis(shape)


CASES: dict[str, Callable[[Draw], Case]] = {
    **dict.fromkeys(("max.other", "min.other", "rsub.Tensor"), _two),
    **dict.fromkeys(("clamp_max.Tensor", "clamp_min.Tensor"), _alike),
    **dict.fromkeys(("hardsigmoid.default", "hardswish.default", "relu6.default", "silu.default", "var.default"), _floats),
    **dict.fromkeys(("clamp_max.default", "clamp_min.default", "rsub.Scalar"), _number),
    **dict.fromkeys(("softmax.int", "log_softmax.int"), _along),
    "_safe_softmax.default": lambda d: (*_along(d), d.one_of(None, torch.float64)),
    "all.default": lambda d: (d.tensor(dtype=d.any_dtype(), low=-1, high=1),),
    "all.dim": lambda d: (d.tensor(shape := d.shape(1), d.any_dtype(), -1, 1), d.axis(shape), d.flag()),
    "all.dims": lambda d: (d.tensor(shape := d.shape(1), d.any_dtype(), -1, 1), d.axes(shape) or None, d.flag()),
    "arange.default": lambda d: (d.one_of(5, 2.5, 0),),
    "arange.start": lambda d: (d.one_of(-1, 0.5), d.one_of(4, 2.5)),
    "squeeze.default": lambda d: (d.tensor(d.shape(most=2), d.any_dtype()),),
    "split.Tensor": lambda d: (d.tensor([5, 4], d.any_dtype()), d.integer(1, 6), d.integer(-2, 1)),
    "stack.default": lambda d: ([d.tensor(shape := d.shape(), "float32"), d.tensor(shape, "float64")], d.integer(0, len(shape))),
    "sum.default": lambda d: (d.tensor(dtype=d.any_dtype()),),
    "t.default": lambda d: (d.tensor(d.shape(0, 2), d.any_dtype()),),
    "transpose.int": lambda d: (d.tensor(shape := d.shape(1), d.any_dtype()), d.axis(shape), d.axis(shape)),
    "where.Scalar": lambda d: (d.tensor(dtype="bool"), d.one_of(1, 0.5), d.one_of(2, 2.5)),
    "where.ScalarOther": lambda d: (d.tensor(shape := d.shape(), "bool"), d.tensor(shape, d.one_of(*FLOATS)), 0.5),
    "where.ScalarSelf": lambda d: (d.tensor(shape := d.shape(), "bool"), 2, d.tensor(shape, d.one_of(*INTEGERS))),
    "where.default": lambda d: (d.tensor(d.shape(1), "bool"),),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_equals_torch(name: str) -> None:
    packet, _, overload = name.partition(".")
    op = getattr(getattr(torch.ops.aten, packet), overload)

    @settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=(HealthCheck.too_slow,))
    @given(st.data())
    def run(data: st.DataObject) -> None:
        check(op, CASES[name](Draw(data)), "interp")

    run()


@pytest.mark.parametrize("decimals", [2, 0, -1])
def test_rounds_to_decimals(decimals: int) -> None:
    class Rounded(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.round(x, decimals=decimals)

    x = torch.tensor([1.2345, -0.125, 0.5, 15.0, -96.4])
    got = mirstack.compile(mirstack.from_torch(Rounded(), (x,)), "interp")(x.numpy())
    torch.testing.assert_close(torch.from_numpy(np.asarray(got)), Rounded()(x))
