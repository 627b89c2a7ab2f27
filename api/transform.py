"""`mirstack.transform`: every pass by TVM's name, and what runs passes.

with transform.PassContext(opt_level=3):
    mod = transform.Sequential([transform.InferType(), transform.FuseOps()])(mod)
"""

from __future__ import annotations

from ..passes.pass_info import PassInfo
from .ir.named_passes import PassConstructor, pass_constructor, pass_names
from .ir.sequential import Sequential
from .ir.transform import (
    FunctionPass,
    ModulePass,
    Pass,
    PassContext,
    PrintIR,
    function_pass,
    module_pass,
)
from .no_attribute import no_attribute

__all__ = [
    "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "function_pass",
    "module_pass",
]  # fmt: skip


def __getattr__(name: str) -> PassConstructor:
    found = pass_constructor(name)
    if found is None:
        raise no_attribute("transform", name, pass_names(), "pass")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *pass_names()])
