"""What rules need to know of the dialect that they rewrite: names, attributes, constants, how an op is made."""

from __future__ import annotations

from functools import cache

from .level import Level

LEVELS = (
    "relay", "tir", "te", "arith", "math", "index", "scf", "memref", "vector", "tensor", "linalg", "llvm", "cf", "func",
)  # fmt: skip
"""The dialects that rules may be for."""


@cache
def level_of(op_name: str) -> Level:
    """The level of an op by its full name: Relay's, TIR's, or that of any other dialect."""
    return named_level(op_name.partition(".")[0])


@cache
def named_level(name: str) -> Level:
    """The level called like its dialect ("relay", "tir", "arith", …)."""
    if name == "relay":
        from .relay import RelayLevel

        return RelayLevel()
    if name == "tir":
        from .tir import TirLevel

        return TirLevel()
    from .other import OtherLevel

    return OtherLevel(name)


__all__ = ["LEVELS", "Level", "level_of", "named_level"]
