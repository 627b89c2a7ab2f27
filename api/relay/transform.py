"""`mirstack.relay.transform`: the passes on Relay by TVM's names, and `function_pass`."""

from __future__ import annotations

from ..ir.named_passes import PassConstructor, pass_constructor, pass_names
from ..ir.transform import FunctionPass, PassContext, Sequential, function_pass

__all__ = ["FunctionPass", "PassContext", "Sequential", "function_pass"]

_FOLDERS = ("passes.relay.", "passes.rules.", "passes.common.", "lowering.relay.")


def __getattr__(name: str) -> PassConstructor:
    found = pass_constructor(name) if name in pass_names(_FOLDERS) else None
    if found is None:
        raise AttributeError(f"module 'mirstack.relay.transform' has no pass '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *pass_names(_FOLDERS)])
