"""`mirstack.relay.transform`: the passes on Relay by TVM's names, and `function_pass`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...passes.pass_info import PassInfo
from ..ir.module import IRModule
from ..ir.named_passes import PassConstructor, pass_constructor, pass_names
from ..ir.transform import FunctionPass, PassContext, Sequential, function_pass
from .dataflow_pattern import DFPattern, partition
from .expr import Function, RelayExpr

__all__ = ["FunctionPass", "MergeComposite", "PassContext", "Sequential", "function_pass"]

_FOLDERS = ("passes.relay.", "passes.rules.", "passes.common.", "lowering.relay.")


PatternEntry = tuple[str, DFPattern] | tuple[str, DFPattern, Callable[[Any], bool]]
"""A name, a pattern, and, if it is there, what a match (its root) has to be."""


def MergeComposite(pattern_table: Sequence[PatternEntry]) -> FunctionPass:
    """A pass that puts what the patterns match into functions, whose attribute `Composite` is the pattern's name.

    Patterns are tried in order; what is in such a function already stays there.
    """

    def merge(function: Function, mod: IRModule, ctx: PassContext) -> Function:
        result: RelayExpr = function
        for name, pattern, *checks in pattern_table:
            result = partition(pattern, result, {"Composite": name}, *checks)
        assert isinstance(result, Function)
        return result

    return FunctionPass(merge, PassInfo(0, "MergeComposite", ("InferType",)))


def __getattr__(name: str) -> PassConstructor:
    found = pass_constructor(name) if name in pass_names(_FOLDERS) else None
    if found is None:
        raise AttributeError(f"module 'mirstack.relay.transform' has no pass '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *pass_names(_FOLDERS)])
