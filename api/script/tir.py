"""`T`: the words of TVMScript. Only the decorators act in Python; the others annotate parameters."""

from __future__ import annotations

from typing import Any

from .source import macro, prim_func
from .words import Word


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'mirstack.script.tir' has no attribute '{name}'")
    return Word(f"T.{name}")


__all__ = ["macro", "prim_func"]
