"""Layers whose weights are parameters: `layers.conv2d(x, name="conv1", …)` has `%conv1_weight`."""

from __future__ import annotations

from typing import Any

from ....support.public_names import public_names
from ..expr import RelayExpr, TupleGetItem, Var, var
from ..op import find


def nn() -> Any:
    """Returns `relay.nn`."""
    return find("nn", relay=True)


def _parameter(given: RelayExpr | None, name: str, kind: str) -> RelayExpr:
    return var(f"{name}_{kind}") if given is None else given


def conv2d(data: RelayExpr, weight: RelayExpr | None = None, **kwargs: Any) -> RelayExpr:
    """A convolution; arguments besides `name` are `relay.nn.conv2d`'s."""
    name: str = kwargs.pop("name", "conv2d")
    return nn().conv2d(data, _parameter(weight, name, "weight"), **kwargs)


def conv3d(data: RelayExpr, weight: RelayExpr | None = None, **kwargs: Any) -> RelayExpr:
    """A convolution of volumes; arguments besides `name` are `relay.nn.conv3d`'s."""
    name: str = kwargs.pop("name", "conv3d")
    return nn().conv3d(data, _parameter(weight, name, "weight"), **kwargs)


def conv2d_transpose(data: RelayExpr, weight: RelayExpr | None = None, **kwargs: Any) -> RelayExpr:
    """A transposed convolution; arguments besides `name` are `relay.nn.conv2d_transpose`'s."""
    name: str = kwargs.pop("name", "conv2d_transpose")
    return nn().conv2d_transpose(data, _parameter(weight, name, "weight"), **kwargs)


def dense_add_bias(
    data: RelayExpr,
    weight: RelayExpr | None = None,
    bias: RelayExpr | None = None,
    units: int | None = None,
    **kwargs: Any,
) -> RelayExpr:
    """A dense layer with a bias. (N,I) → (N,units)"""
    name: str = kwargs.pop("name", "dense")
    product = nn().dense(data, _parameter(weight, name, "weight"), units, **kwargs)
    return nn().bias_add(product, _parameter(bias, name, "bias"), axis=-1)


def batch_norm_infer(
    data: RelayExpr,
    gamma: RelayExpr | None = None,
    beta: RelayExpr | None = None,
    moving_mean: RelayExpr | None = None,
    moving_var: RelayExpr | None = None,
    **kwargs: Any,
) -> RelayExpr:
    """A normalization by known statistics; arguments besides `name` are `relay.nn.batch_norm`'s."""
    name: str = kwargs.pop("name", "batch_norm")
    result = nn().batch_norm(
        data,
        _parameter(gamma, name, "gamma"),
        _parameter(beta, name, "beta"),
        _parameter(moving_mean, name, "moving_mean"),
        _parameter(moving_var, name, "moving_var"),
        **kwargs,
    )
    found = result[0]
    assert isinstance(found, TupleGetItem)
    return found


def data(shape: tuple[int, ...], dtype: str) -> Var:
    """The input of a network, `%data`."""
    return var("data", shape=shape, dtype=dtype)


__all__ = ["batch_norm_infer", "conv2d", "conv2d_transpose", "conv3d", "data", "dense_add_bias"]


__dir__ = public_names(__name__)
