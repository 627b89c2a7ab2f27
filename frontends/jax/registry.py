"""Registers what converts StableHLO's operators: rules in `operators/*.mir`, and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..common.rule_table import RuleTable

if TYPE_CHECKING:
    from .node import HloNode

Converter: TypeAlias = "Callable[[HloNode], Any]"
"""Takes the node, returns a tensor or a list of results."""

TABLE: RuleTable[Converter] = RuleTable(
    __package__ or "",
    __file__,
    "jax.",
    modules=("contraction", "control_flow", "elementwise", "indexing", "reduction", "shape", "sorting", "windows"),
    files=("elementwise.mir",),
)

operator = TABLE.operator
