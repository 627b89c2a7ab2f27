"""Registers what converts ATen operators, named without their overload: rules and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..common.rule_table import RuleTable

Converter: TypeAlias = "Callable[..., Any]"
"""Takes the node, then the operator's arguments in the order of its schema: `def permute(node, x, dims)`.

It returns a tensor, or a list of results; None for one that cannot be asked for.
"""

TABLE: RuleTable[Converter] = RuleTable(
    __package__ or "",
    __file__,
    "torch.aten.",
    modules=(
        "attention", "creation", "elementwise", "gradients", "indexing", "matrices", "normalization", "padding", "pooling", "reduction",
        "resampling", "shape", "sorting", "strided_views",
    ),
    # Operands of operators in the first are converted to one dtype before rules see them.
    files=("elementwise.mir", "plain.mir"),
)  # fmt: skip

operator = TABLE.operator
