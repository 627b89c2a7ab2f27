"""`mirstack.relay`: Relay in Python, shaped as TVM's `tvm.relay`.

Names are imported from the modules of this package when they are first used: expressions from `expr` and `adt`, types from
`ty`, and every operator as a function (`relay.add`, `relay.nn.dense`) made from the operator table by `op`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from typing import Any as AnyValue  # `Any` is the dimension of that name here.

if TYPE_CHECKING:
    from .adt import (
        Clause as Clause,
    )
    from .adt import (
        Constructor as Constructor,
    )
    from .adt import (
        Match as Match,
    )
    from .adt import (
        Pattern as Pattern,
    )
    from .adt import (
        PatternConstructor as PatternConstructor,
    )
    from .adt import (
        PatternTuple as PatternTuple,
    )
    from .adt import (
        PatternVar as PatternVar,
    )
    from .adt import (
        PatternWildcard as PatternWildcard,
    )
    from .adt import (
        TypeData as TypeData,
    )
    from .expr import (
        Call as Call,
    )
    from .expr import (
        Constant as Constant,
    )
    from .expr import (
        Expr as Expr,
    )
    from .expr import (
        Function as Function,
    )
    from .expr import (
        GlobalVar as GlobalVar,
    )
    from .expr import (
        If as If,
    )
    from .expr import (
        Let as Let,
    )
    from .expr import (
        RefCreate as RefCreate,
    )
    from .expr import (
        RefRead as RefRead,
    )
    from .expr import (
        RefWrite as RefWrite,
    )
    from .expr import (
        RelayExpr as RelayExpr,
    )
    from .expr import (
        Tuple as Tuple,
    )
    from .expr import (
        TupleGetItem as TupleGetItem,
    )
    from .expr import (
        TupleWrapper as TupleWrapper,
    )
    from .expr import (
        Var as Var,
    )
    from .expr import (
        bind as bind,
    )
    from .expr import (
        const as const,
    )
    from .expr import (
        var as var,
    )
    from .expr_functor import ExprFunctor as ExprFunctor
    from .expr_functor import ExprMutator as ExprMutator
    from .expr_functor import ExprVisitor as ExprVisitor
    from .text import astext as astext
    from .text import fromtext as fromtext
    from .text import parse as parse
    from .text import parse_expr as parse_expr
    from .ty import (
        Any as Any,
    )
    from .ty import (
        FuncType as FuncType,
    )
    from .ty import (
        GlobalTypeVar as GlobalTypeVar,
    )
    from .ty import (
        TensorType as TensorType,
    )
    from .ty import (
        TupleType as TupleType,
    )
    from .ty import (
        Type as Type,
    )
    from .ty import (
        TypeCall as TypeCall,
    )
    from .ty import (
        TypeVar as TypeVar,
    )
    from .ty import (
        scalar_type as scalar_type,
    )

_MODULES = ("adt", "analysis", "dataflow_pattern", "expr", "expr_functor", "op", "transform", "ty")

_PUBLIC: dict[str, str] = {
    **dict.fromkeys(
        (
            "Call", "Constant", "Expr", "Function", "GlobalVar", "If", "Let", "RefCreate", "RefRead", "RefWrite", "RelayExpr",
            "Tuple", "TupleGetItem", "TupleWrapper", "Var", "bind", "const", "var",
        ),
        "expr",
    ),
    **dict.fromkeys(
        (
            "Any", "FuncType", "GlobalTypeVar", "IncompleteType", "RefType", "RelayRefType", "TensorType", "TupleType",
            "Type", "TypeCall", "TypeKind", "TypeVar", "scalar_type",
        ),
        "ty",
    ),
    **dict.fromkeys(
        (
            "Clause", "Constructor", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard",
            "TypeData",
        ),
        "adt",
    ),
    **dict.fromkeys(("BlockBuilder", "call_tir"), "block_builder"),
    **dict.fromkeys(("ExprFunctor", "ExprMutator", "ExprVisitor"), "expr_functor"),
    **dict.fromkeys(("astext", "fromtext", "parse", "parse_expr"), "text"),
}  # fmt: skip


def __getattr__(name: str) -> AnyValue:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name == "Span":
        from ..ir.node import Span

        return Span
    module = _PUBLIC.get(name)
    if module is not None:
        found: AnyValue = getattr(import_module(f"{__name__}.{module}"), name)
    else:
        from .op import find

        found = find(name, relay=True)
        if found is None:
            raise AttributeError(f"module 'mirstack.relay' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from .op import names

    return sorted({*_MODULES, *_PUBLIC, "Span", *names("")})
