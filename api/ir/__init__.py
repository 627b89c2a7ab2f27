"""`mirstack.ir`: modules, operators, structural equality, passes and instruments, shaped as `tvm.ir`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..no_attribute import no_attribute

_MODULES = ("container", "instrument", "op", "transform")

_PUBLIC: dict[str, str] = {
    "Array": "container",
    "IRModule": "module",
    "Map": "container",
    "Node": "node",
    "Span": "node",
    "Op": "op",
    "PrimFunc": "prim_func",
    "assert_structural_equal": "structural",
    "get_first_structural_mismatch": "structural",
    "structural_equal": "structural",
    "structural_hash": "structural",
    "GlobalVar": "..relay.expr",
    "RelayExpr": "..relay.expr",
    **dict.fromkeys(
        (
            "FuncType",
            "GlobalTypeVar",
            "IncompleteType",
            "RelayRefType",
            "TensorType",
            "TupleType",
            "Type",
            "TypeCall",
            "TypeKind",
            "TypeVar",
        ),
        "..relay.ty",
    ),
    **dict.fromkeys(("PointerType", "PrimType", "Range"), "...dialects.tir.node.expr"),
    **dict.fromkeys(("Attrs", "DictAttrs"), "attrs"),
    **dict.fromkeys(("BaseExpr", "BaseFunc", "CallingConv"), "base"),
    **dict.fromkeys(("DummyGlobalInfo", "GlobalInfo", "VDevice"), "global_info"),
    **dict.fromkeys(("TensorAffineType", "TupleAffineType"), "affine_type"),
    **dict.fromkeys(("TypeConstraint", "TypeRelation"), "type_relation"),
    **dict.fromkeys(("load_json", "save_json"), "json_nodes"),
    **dict.fromkeys(("SequentialSpan", "SourceName"), "node"),
    "EnvFunc": "env_func",
    "register_op_attr": "op_attrs",
    "make_node": "base",
    "Constructor": "..relay.adt",
    "TypeData": "..relay.adt",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name == "PrimExpr":
        return import_module("...dialects.tir.node.expr", __name__).Expr
    module = _PUBLIC.get(name)
    if module is None:
        raise no_attribute("ir", name, _PUBLIC)
    where = module if module.startswith("..") else f".{module}"
    found: Any = getattr(import_module(where, __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_MODULES, *_PUBLIC, "PrimExpr"})
