"""`mirstack.relay`: Relay in Python, shaped as TVM's `tvm.relay`.

Names are imported from the modules of this package when they are first used: expressions from `expr` and `adt`, types from
`ty`, and every operator as a function (`relay.add`, `relay.nn.dense`) made from the operator table by `op`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING
from typing import Any as AnyValue  # `Any` is the dimension of that name here.

from ..no_attribute import no_attribute

if TYPE_CHECKING:
    from . import backend as backend
    from . import build_module as build_module
    from . import prelude as prelude
    from . import scope_builder as scope_builder
    from . import testing as testing
    from . import type_functor as type_functor
    from .backend import vm as vm

    # isort: off
    # fmt: off
    from .adt import Clause as Clause, Constructor as Constructor, Match as Match, Pattern as Pattern
    from .adt import PatternConstructor as PatternConstructor, PatternTuple as PatternTuple
    from .adt import PatternVar as PatternVar, PatternWildcard as PatternWildcard, TypeData as TypeData
    from .expr import Call as Call, Constant as Constant, Expr as Expr, Function as Function, GlobalVar as GlobalVar
    from .expr import If as If, Let as Let, RefCreate as RefCreate, RefRead as RefRead, RefWrite as RefWrite
    from .expr import RelayExpr as RelayExpr, Tuple as Tuple, TupleGetItem as TupleGetItem
    from .expr import TupleWrapper as TupleWrapper, Var as Var, bind as bind, const as const, var as var
    from .build_module import build as build, build_config as build_config, create_executor as create_executor
    from .build_module import optimize as optimize
    from .dataflow_pattern import DataFlowPattern as DataFlowPattern
    from .feature import Feature as Feature
    from .expr_functor import ExprFunctor as ExprFunctor, ExprMutator as ExprMutator, ExprVisitor as ExprVisitor
    from .expr_functor import MixedModeMutator as MixedModeMutator, MixedModeVisitor as MixedModeVisitor
    from .prelude import Prelude as Prelude
    from .scope_builder import ScopeBuilder as ScopeBuilder
    from .type_functor import TypeFunctor as TypeFunctor, TypeMutator as TypeMutator, TypeVisitor as TypeVisitor
    from .text import astext as astext, fromtext as fromtext, parse as parse, parse_expr as parse_expr
    from .ty import Any as Any, FuncType as FuncType, GlobalTypeVar as GlobalTypeVar, TensorType as TensorType
    from .ty import TupleType as TupleType, Type as Type, TypeCall as TypeCall, TypeVar as TypeVar
    from .ty import ShapeVar as ShapeVar, scalar_type as scalar_type
    from ..ir.transform import FunctionPass as FunctionPass, ModulePass as ModulePass, PassContext as PassContext
    from ..ir.transform import function_pass as function_pass, module_pass as module_pass
    from ..ir.type_relation import TypeConstraint as TypeConstraint, TypeRelation as TypeRelation
    # fmt: on
    # isort: on

_MODULES = (
    "adt", "analysis", "backend", "build_module", "data_dep_optimization", "dataflow_pattern", "expr", "expr_functor", "frontend", "loops", "op",
    "param_dict", "prelude", "quantize", "scope_builder", "testing", "transform", "ty", "type_functor",
)  # fmt: skip

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
            "Any", "FuncType", "GlobalTypeVar", "IncompleteType", "RefType", "RelayRefType", "ShapeVar", "TensorType", "TupleType",
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
    **dict.fromkeys(("build", "build_config", "create_executor", "optimize"), "build_module"),
    **dict.fromkeys(("load_param_dict", "save_param_dict"), "..runtime.params"),
    **dict.fromkeys(
        ("ExprFunctor", "ExprMutator", "ExprVisitor", "MixedModeMutator", "MixedModeVisitor"), "expr_functor"
    ),
    **dict.fromkeys(("FunctionPass", "ModulePass", "PassContext", "function_pass", "module_pass"), "..ir.transform"),
    **dict.fromkeys(("TypeConstraint", "TypeRelation"), "..ir.type_relation"),
    "DataFlowPattern": "dataflow_pattern",
    "Feature": "feature",
    "pretty_print": "text",
    **dict.fromkeys(("TypeFunctor", "TypeMutator", "TypeVisitor"), "type_functor"),
    "Prelude": "prelude",
    "ScopeBuilder": "scope_builder",
    **dict.fromkeys(("astext", "fromtext", "parse", "parse_expr"), "text"),
}  # fmt: skip


def __getattr__(name: str) -> AnyValue:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name == "vm":
        return import_module(f"{__name__}.backend.vm")
    if name == "Span":
        from ..ir.node import Span

        return Span
    module = _PUBLIC.get(name)
    if module is not None:
        place = module if module.startswith("..") else f".{module}"
        found: AnyValue = getattr(import_module(place, __name__), name)
    else:
        from .op import find

        found = find(name, relay=True)
        if found is None:
            raise no_attribute("relay", name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from .op import names

    return sorted({*_MODULES, *_PUBLIC, "Span", "vm", *names("")})
