"""`tir.transform`: the passes on TIR by TVM's names, `tir.transform.Simplify()`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..ir.named_passes import pass_constructor, pass_names
from ..ir.sequential import Sequential
from ..ir.transform import ModulePass, PassContext, module_pass
from ..no_attribute import no_attribute

_FOLDERS = ("passes.tir.", "passes.schedule.", "passes.common.", "lowering.tir.")

_OF_FUNCTIONS = (
    "AnnotateEntryFunc", "Apply", "BindTarget", "ConvertForLoopsToSerial", "Filter", "PrimFuncPass", "RemoveAssume",
    "RemoveStoreUndef", "SkipAssert", "StorageFlatten", "prim_func_pass",
)  # fmt: skip
"""What `function_passes` has."""

__all__ = ["ModulePass", "PassContext", "Sequential", "module_pass"]


def __getattr__(name: str) -> Any:
    if name in _OF_FUNCTIONS:
        return getattr(import_module(".function_passes", __package__), name)
    found = pass_constructor(name) if name in pass_names(_FOLDERS) else None
    if found is None:
        raise no_attribute("tir.transform", name, pass_names(_FOLDERS), "pass")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *_OF_FUNCTIONS, *pass_names(_FOLDERS)})
