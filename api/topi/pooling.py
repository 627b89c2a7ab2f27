"""TOPI's functions of pooling, which take the kind of pooling as an argument.

topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max")     nn.max_pool2d(x, …)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..relay.expr import RelayExpr
from ..relay.op import find

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _kind(pool_type: str) -> str:
    """Returns the kind of pooling. Raises ValueError for one that is neither `max` nor `avg`."""
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type is 'max' or 'avg', not {pool_type!r}")
    return pool_type


def _pool(rank: int) -> Callable[..., RelayExpr]:
    def function(
        data: RelayExpr,
        kernel: Any,
        stride: Any,
        dilation: Any,
        padding: Any,
        pool_type: str,
        ceil_mode: bool = False,
        layout: str = _LAYOUTS[rank],
        count_include_pad: bool = True,
    ) -> RelayExpr:
        more = {"count_include_pad": count_include_pad} if _kind(pool_type) == "avg" else {}
        return find(f"nn.{pool_type}_pool{rank}d")(
            data, kernel, stride, dilation, padding, layout, ceil_mode=ceil_mode, **more
        )

    return function


def _pool_grad(
    grads: RelayExpr,
    data: RelayExpr,
    kernel: Any,
    stride: Any,
    padding: Any,
    pool_type: str,
    ceil_mode: bool = False,
    layout: str = "NCHW",
    count_include_pad: bool = True,
) -> RelayExpr:
    more = {"count_include_pad": count_include_pad} if _kind(pool_type) == "avg" else {}
    return find(f"nn.{pool_type}_pool2d_grad")(
        grads, data, kernel, stride, padding, layout, ceil_mode=ceil_mode, **more
    )


def _global_pool(data: RelayExpr, pool_type: str, layout: str = "NCHW") -> RelayExpr:
    return find(f"nn.global_{_kind(pool_type)}_pool2d")(data, layout)


def _adaptive(rank: int) -> Callable[..., RelayExpr]:
    def function(data: RelayExpr, output_size: Any, pool_type: str, layout: str = _LAYOUTS[rank]) -> RelayExpr:
        return find(f"nn.adaptive_{_kind(pool_type)}_pool{rank}d")(data, output_size, layout)

    return function


POOLS: dict[str, Callable[..., Any]] = {
    "nn.adaptive_pool": _adaptive(2),
    "nn.adaptive_pool1d": _adaptive(1),
    "nn.adaptive_pool3d": _adaptive(3),
    "nn.global_pool": _global_pool,
    "nn.pool1d": _pool(1),
    "nn.pool2d": _pool(2),
    "nn.pool3d": _pool(3),
    "nn.pool_grad": _pool_grad,
}
"""Functions of Relay expressions, by TOPI's names."""
