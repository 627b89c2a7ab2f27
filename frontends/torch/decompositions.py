"""Decomposes operators to core ATen ones, by torch's tables and functions of our own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from .registry import TABLE
from .tensors import require_torch

BY_TORCH = frozenset((
    "_addmm_activation", "_batch_norm_with_update_functional", "_native_batch_norm_legit_functional", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "addmv", "bucketize", "diag", "dist", "linalg_vector_norm", "logsumexp", "narrow_copy", "prelu", "tril_indices",
    "triu_indices", "unfold",
))  # fmt: skip
"""Operators that torch decomposes, but neither for core ATen nor at an export."""


@cache
def _own() -> Mapping[Any, Callable[..., Any]]:
    """Returns decompositions that torch's tables for core ATen do not have."""
    torch = require_torch()
    from torch._decomp import decomposition_table

    aten = torch.ops.aten
    found = {op: function for op, function in decomposition_table.items() if _name(op) in BY_TORCH}
    found[aten._transformer_encoder_layer_fwd.default] = _encoder_layer
    found[aten._trilinear.default] = _trilinear
    found[aten.var_mean.correction] = _var_mean
    return found


def _name(op: Any) -> str:
    """Returns the name of an ATen operator without its overload.

    "" for others, and for overloads that write to `out`.
    """
    return op._opname if getattr(op, "namespace", "") == "aten" and op._overloadname != "out" else ""


@cache
def for_export() -> dict[Any, Any]:
    """Returns the decompositions of an exported program, except of operators converted whole."""
    return _not_converted({**require_torch().export.default_decompositions(), **_own()})


@cache
def for_graph() -> dict[Any, Any]:
    """Returns decompositions of what AOTAutograd leaves, except of operators converted whole."""
    from torch._decomp import _core_aten_decompositions_post_autograd as core  # pyright: ignore[reportPrivateUsage]

    return _not_converted({**core(), **_own()})


def _not_converted(table: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the decompositions of operators that nothing converts, and of overloads of others."""
    found = {
        op: function
        for op, function in table.items()
        if not (op.namespace == "aten" and TABLE.is_converted(op._opname))
    }
    return {**found, require_torch().ops.aten.round.decimals: _round}


def _round(x: Any, *, decimals: int) -> Any:
    """Rounds to a number of decimals, of a negative one to tens, hundreds and so on."""
    scale = 10 ** abs(decimals)
    return (x * scale).round() / scale if decimals > 0 else (x / scale).round() * scale


def _encoder_layer(
    src: Any, _width: int, heads: int, qkv_weight: Any, qkv_bias: Any, proj_weight: Any, proj_bias: Any, use_gelu: bool,
    norm_first: bool, eps: float, norm_weight_1: Any, norm_bias_1: Any, norm_weight_2: Any, norm_bias_2: Any, ffn_weight_1: Any,
    ffn_bias_1: Any, ffn_weight_2: Any, ffn_bias_2: Any, mask: Any = None, mask_type: int | None = None,
) -> Any:  # fmt: skip
    """Computes a layer of nn.TransformerEncoder, src (batch, place, channel).

    `mask` marks what is not seen: of type 0 (place, place), of type 1 (batch, place), of type 2 (batch, head, place, place).
    """
    torch = require_torch()
    nn = torch.nn.functional

    def normed(x: Any, weight: Any, bias: Any) -> Any:
        return nn.layer_norm(x, weight.shape, weight, bias, eps)

    x = normed(src, norm_weight_1, norm_bias_1) if norm_first else src
    batch, places, width = x.shape
    split = nn.linear(x, qkv_weight, qkv_bias).view(batch, places, 3, heads, width // heads)
    query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
    seen = None if mask is None else ~mask.to(torch.bool)
    if seen is not None and mask_type == 1:
        seen = seen.view(batch, 1, 1, places)
    found = nn.scaled_dot_product_attention(query, key, value, seen)
    x = src + nn.linear(found.transpose(1, 2).reshape(batch, places, width), proj_weight, proj_bias)
    x = x if norm_first else normed(x, norm_weight_1, norm_bias_1)
    hidden = nn.linear(normed(x, norm_weight_2, norm_bias_2) if norm_first else x, ffn_weight_1, ffn_bias_1)
    x = x + nn.linear(nn.gelu(hidden) if use_gelu else nn.relu(hidden), ffn_weight_2, ffn_bias_2)
    return x if norm_first else normed(x, norm_weight_2, norm_bias_2)


def _trilinear(
    first: Any, second: Any, third: Any, expand1: list[int], expand2: list[int], expand3: list[int], sumdim: list[int],
    _unroll: int = 1,
) -> Any:  # fmt: skip
    """Multiplies three tensors, each with axes of size 1 put in, and sums over axes."""

    def expanded(x: Any, axes: list[int]) -> Any:
        for axis in sorted(axes):
            x = x.unsqueeze(axis)
        return x

    return (expanded(first, expand1) * expanded(second, expand2) * expanded(third, expand3)).sum(sumdim)


def _var_mean(
    x: Any, dim: list[int] | None = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Any, Any]:
    """Returns variance and mean over axes."""
    axes = dim or list(range(x.dim()))
    return x.var(axes, correction=1 if correction is None else correction, keepdim=keepdim), x.mean(axes, keepdim)
