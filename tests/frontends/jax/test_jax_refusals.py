"""Why an operator of StableHLO cannot be imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mirstack
import numpy as np
import pytest
from extras import library
from mirstack.frontends.jax.importer import SHOWN_OPS

pytestmark = pytest.mark.extra
jax = library("jax", "jax")
library("jax.export", "jax")

jnp, lax = jax.numpy, jax.lax
FLOATS = np.ones((4, 6), "float32")
INTEGERS = np.ones((4, 6), "int32")


def by_xor(x: Any) -> Any:
    return lax.reduce(x, np.int32(0), lax.bitwise_xor, (1,))


def mixed_pairs(x: Any) -> Any:
    return lax.reduce((x, x), (jnp.float32(0), jnp.float32(0)), lambda a, b: (a[0] + b[1], a[1] * b[0]), (1,))


def windows_of_pairs(x: Any) -> Any:
    def both(a: Any, b: Any) -> Any:
        return a[0] + b[0], a[1] + b[1]

    return lax.reduce_window((x, x), (0.0, 0.0), both, (2, 2), (1, 1), "VALID")


def wide_windows(x: Any) -> Any:
    return lax.reduce_window(x, np.inf, lax.min, (4, 65), (1, 1), ((0, 0), (70, 70)))


def applied(x: Any) -> Any:
    return x.at[jnp.array([1, 2])].apply(jnp.tanh)


def scattered(x: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(0, 1), inserted_window_dims=(), scatter_dims_to_operand_dims=()
    )
    return lax.scatter(x, jnp.zeros((0,), "int32"), x * 2, numbers)


@pytest.mark.parametrize(
    ("function", "argument", "reason"),
    [
        (lambda x: jnp.fft.rfft(x).real, FLOATS, "stablehlo.fft: there is no such operator here"),
        (lambda x: jnp.linalg.qr(x)[0], FLOATS, "a function of XLA's library, which is not here"),
        (lambda x: x.astype("complex64").real, FLOATS, "tensors of complex<f32> cannot be computed here"),
        (by_xor, INTEGERS, "it combines elements by xor(a0,a1); only sums, products, extremes, and, or, argmax and argmin"),
        (lambda x: lax.reduce(x, np.int32(-1), lax.bitwise_and, (1,)), INTEGERS, "bits of integers cannot be combined along an axis here"),
        (mixed_pairs, FLOATS, "it reduces several tensors at once, and is not argmax or argmin"),
        (windows_of_pairs, FLOATS, "windows of several tensors at once cannot be reduced here"),
        (wide_windows, FLOATS, "its windows have more than 256 elements"),
        (applied, FLOATS, "it combines elements by tanh(a0); only sums, products and extremes, or none"),
        (scattered, FLOATS, "its index vectors have no elements"),
        (lambda x: lax.bitcast_convert_type(x, "uint8"), FLOATS, "bits are read as a dtype of another width"),
        (lambda x: lax.reduce_precision(x, 4, 3), FLOATS, "floats of 4 bits of exponent and 3 of mantissa cannot be computed here"),
        (lambda x: lax.conv(x, x, (1,) * 4, "SAME"), np.ones((2,) * 6, "float32"), "convolutions over 4 axes cannot be computed here"),
        (lambda x: lax.conv_general_dilated(x, x, (1,), "SAME", batch_group_count=2), np.ones((2, 2, 2), "float32"), "convolutions in groups of the batch cannot be computed here"),
        (lambda x: x, np.ones(3, "complex64"), "input 'x' has elements of complex64, which tensors here cannot have"),
        (lambda x: (), FLOATS, "lambda returns no array"),
        (lambda x: [lax.bitcast_convert_type(x + k, "uint8") for k in range(SHOWN_OPS + 2)], FLOATS, "2 more ops cannot be imported"),
    ],
)  # fmt: skip
def test_reasons(function: Callable[..., Any], argument: Any, reason: str) -> None:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_jax(function, argument)
    assert reason in str(error.value)


(OPEN,) = jax.export.symbolic_shape("n")


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: lax.dynamic_update_slice(x, jnp.ones((1, 3)), (x.sum().astype(int), 0)), "the size of an axis that a slice is written to is known only at run time"),
        (lambda x: x.at[x[0].astype(int)].add(1.0), "the size of an axis that a slice is taken of is known only at run time"),
        (lambda x: x.at[jnp.array([1, 2])].add(1.0), "the operand has dimensions that are known only at run time"),
    ],
)  # fmt: skip
def test_reasons_of_open_sizes(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_jax(function, jax.ShapeDtypeStruct((OPEN, 3), "float32"))
    assert reason in str(error.value)


def test_two_open_axes_of_a_batch() -> None:
    first, second = jax.export.symbolic_shape("a, b")
    given = jax.ShapeDtypeStruct((first, second, 3, 3), "float32")
    with pytest.raises(mirstack.MirError, match="a reshape of several open dimensions cannot be expressed here"):
        mirstack.from_jax(lambda x: x @ x, given)


def test_all_operators_that_cannot_be_imported_are_listed_with_their_places() -> None:
    def spectrum(x: Any) -> Any:
        return jnp.fft.rfft(x).real.sum() + jnp.linalg.cholesky(x)

    with pytest.raises(mirstack.MirError) as error:
        mirstack.from_jax(spectrum, np.eye(3, dtype="float32"))
    text = str(error.value)
    assert "spectrum: node 'fft': error: stablehlo.fft: there is no such operator here" in text
    assert "stablehlo.custom_call @lapack_spotrf_ffi: a function of XLA's library" in text
