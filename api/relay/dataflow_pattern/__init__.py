"""Patterns of expressions: `is_op("nn.relu")(is_op("nn.dense")(wildcard(), wildcard()))`; TVM's names.

`patterns` defines the patterns, `matcher` matches them, `rewriting` replaces or outlines the matches.
"""

from __future__ import annotations

from ....support.public_names import public_names
from .patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    wildcard,
)
from .rewriting import DFPatternCallback, partition, rewrite

DataFlowPattern = DFPattern

__all__ = [
    "AltPattern", "AttrPattern", "CallPattern", "ConstantPattern", "DFPattern", "DFPatternCallback", "DataFlowPattern", "DataTypePattern",
    "DominatorPattern", "ExprPattern", "FunctionPattern", "IfPattern", "LetPattern", "ShapePattern", "TupleGetItemPattern",
    "TuplePattern", "TypePattern", "VarPattern", "WildcardPattern", "dominates", "has_attr", "has_dtype", "has_shape",
    "has_type", "is_constant", "is_expr", "is_if", "is_let", "is_op", "is_tuple", "is_tuple_get_item", "is_var", "match",
    "partition", "rewrite", "wildcard",
]  # fmt: skip


__dir__ = public_names(__name__)
