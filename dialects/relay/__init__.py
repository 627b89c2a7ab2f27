"""Defines the `relay` dialect: TVM's graph IR as SSA ops.

Types are in `types`, structure (functions, calls, control flow, data types) in `ir`, match patterns in `patterns`, entries
of the operator table in `operator`, the operators themselves in `operators/`.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .ir import (
    CallGlobalOp,
    CallOp,
    CallTirOp,
    ConstantOp,
    ConstructOp,
    ConstructorRefOp,
    FnOp,
    FuncOp,
    GlobalRefOp,
    IfOp,
    LetOp,
    MatchOp,
    RefOp,
    RefReadOp,
    RefWriteOp,
    ReturnOp,
    TupleGetItemOp,
    TupleOp,
    TypeDataOp,
)
from .operator import (
    REQUIRED,
    Attrs,
    AttrSpec,
    Operator,
    OperatorOp,
    OpPattern,
    Relation,
    all_operators,
    from_attribute,
    get_operator,
    is_operator,
    operator_class,
    to_attribute,
)
from .patterns import ConstructorPattern, TuplePattern, VarPattern, WildcardPattern, bound_names
from .types import UNKNOWN, AdtType, FuncType, RefType, TypeVarType, UnknownType

STRUCTURE_OPS = (
    FuncOp, FnOp, ReturnOp, ConstantOp, LetOp, TupleOp, TupleGetItemOp, GlobalRefOp, CallOp, CallGlobalOp, CallTirOp,
    IfOp, TypeDataOp, ConstructOp, ConstructorRefOp, MatchOp, RefOp, RefReadOp, RefWriteOp,
)  # fmt: skip


def relay_dialect() -> Dialect:
    """Returns the dialect with every operator; MLIR's generic form needs it, Relay's text does not."""
    return Dialect(
        "relay",
        [*STRUCTURE_OPS, *map(operator_class, all_operators().values())],
        [
            UnknownType, FuncType, TypeVarType, AdtType, RefType,
            WildcardPattern, VarPattern, ConstructorPattern, TuplePattern,
        ],
    )  # fmt: skip


__all__ = [
    "REQUIRED",
    "STRUCTURE_OPS",
    "UNKNOWN",
    "AdtType",
    "AttrSpec",
    "Attrs",
    "CallGlobalOp",
    "CallOp",
    "CallTirOp",
    "ConstantOp",
    "ConstructOp",
    "ConstructorPattern",
    "ConstructorRefOp",
    "FnOp",
    "FuncOp",
    "FuncType",
    "GlobalRefOp",
    "IfOp",
    "LetOp",
    "MatchOp",
    "OpPattern",
    "Operator",
    "OperatorOp",
    "RefOp",
    "RefReadOp",
    "RefType",
    "RefWriteOp",
    "Relation",
    "ReturnOp",
    "TupleGetItemOp",
    "TupleOp",
    "TuplePattern",
    "TypeDataOp",
    "TypeVarType",
    "UnknownType",
    "VarPattern",
    "WildcardPattern",
    "all_operators",
    "bound_names",
    "from_attribute",
    "get_operator",
    "is_operator",
    "operator_class",
    "relay_dialect",
    "to_attribute",
]
