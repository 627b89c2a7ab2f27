"""`te.gradient` against numerical differences, in float64, by the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from mirstack import te, topi
from mirstack.support.diagnostics import MirError

RNG = np.random.default_rng(1)
STEP = 1e-5


def tensors(*shapes: tuple[int, ...]) -> list[te.Tensor]:
    return [te.placeholder(shape, "float64", f"a{number}") for number, shape in enumerate(shapes)]


def run(params: list[te.Tensor], arrays: list[Any], results: list[te.Tensor]) -> list[Any]:
    outs = [np.zeros([int(extent) for extent in each.dims], each.dtype) for each in results]  # type: ignore[call-overload]
    mirstack.build(te.create_prim_func([*params, *results]), target="interp")(*arrays, *outs)
    return outs


def reduced(kind: Any) -> Callable[..., Any]:
    def made(a: te.Tensor) -> Any:
        k = te.reduce_axis((0, 4), "k")
        return te.compute((3,), lambda i: kind(a[k, i] * a[k, 2 - i], axis=k))

    return made


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "functions of one value": (
        lambda a: te.compute(
            (4, 3), lambda i, j: te.exp(a[i, j]) + te.log(a[i, j]) * te.sin(a[i, j]) - te.tanh(a[i, j])
        ),
        [(4, 3)],
    ),
    "quotients and powers": (
        lambda a, b: te.compute((3, 4), lambda i, j: a[j, i] / b[j, i] + te.power(a[j, i], te.const(3, "float64"))),
        [(4, 3), (4, 3)],
    ),
    "choices": (
        lambda a: te.compute((4,), lambda i: te.max(a[i], 1.2) + te.if_then_else(i > 1, te.abs(a[i]), te.sqrt(a[i]))),
        [(4,)],
    ),
    "sums": (reduced(te.sum), [(4, 3)]),
    "greatest": (reduced(te.max), [(4, 3)]),
    "least": (reduced(te.min), [(4, 3)]),
    "indices that are sums": (
        lambda a: te.compute((3,), lambda i: a[i + i] + a[i * 2 + 1] + a[i + 1] + a[5 - i]),
        [(6,)],
    ),
    "convolution": (lambda x, w: topi.nn.conv2d_nchw(x, w, 2, 1, 1), [(1, 2, 4, 4), (2, 2, 3, 3)]),
    "softmax of a product": (lambda x, w: topi.nn.softmax(topi.nn.dense(x, w)), [(2, 3), (4, 3)]),
    "pooling": (lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg"), [(1, 1, 4, 4)]),
    "moved elements": (lambda a: topi.concatenate((topi.transpose(a), topi.reshape(a, (3, 4))), 0), [(4, 3)]),
}


@pytest.mark.parametrize("name", CASES)
def test_as_differences(name: str) -> None:
    make, shapes = CASES[name]
    params = tensors(*shapes)
    output = make(*params)
    head = te.placeholder(output.shape, "float64", "head")
    found = te.gradient(output, params, head)
    arrays = [RNG.uniform(0.5, 2, shape) for shape in shapes]
    weights = RNG.uniform(-1, 1, [int(extent) for extent in output.shape])
    grads = run([*params, head], [*arrays, weights], found)
    for number, array in enumerate(arrays):
        place = tuple(int(RNG.integers(extent)) for extent in array.shape)
        sides: list[float] = []
        for sign in (1, -1):
            moved = [each.copy() for each in arrays]
            moved[number][place] += sign * STEP
            sides.append(float((run(params, moved, [output])[0] * weights).sum()))
        assert grads[number][place] == pytest.approx((sides[0] - sides[1]) / (2 * STEP), rel=1e-4, abs=1e-6)


def test_without_a_head_it_is_the_jacobian() -> None:
    (a, b) = tensors((3,), (2,))
    output = te.compute((3,), lambda i: a[2 - i] * 5.0)
    of_a, of_b = te.gradient(output, [a, b])
    assert (of_a.shape, of_b.shape) == ((3, 3), (3, 2))
    jacobian, zeros = run([a, b], [np.ones(3), np.ones(2)], [of_a, of_b])
    assert np.array_equal(jacobian, 5 * np.eye(3)[::-1]) and not zeros.any()


def test_what_has_no_gradient() -> None:
    (a,) = tensors((4,))
    k = te.reduce_axis((0, 4), "k")
    product = te.compute((1,), lambda i: te.prod(a[k], axis=k), name="P")
    outside = te.extern((4,), [a], lambda ins, outs: te.call_packed("f", ins[0], outs[0]), name="E")
    refused: dict[str, te.Tensor] = {
        "te.gradient does not differentiate the reduction of 'P'": product,
        "te.gradient differentiates computes, which 'E' is not": outside,
        "te.gradient does not know the derivative of 'atan2'": te.compute((4,), lambda i: te.atan2(a[i], a[i])),
        "te.gradient differentiates powers with respect to the base only": te.compute(
            (4,), lambda i: te.power(a[i], a[i])
        ),
    }
    for message, output in refused.items():
        with pytest.raises(MirError, match=message):
            te.gradient(output, [a])
