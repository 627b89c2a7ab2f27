"""`T`: the words of TVMScript; decorators, dtypes, buffers and functions act in Python, too."""

from __future__ import annotations

from typing import Any

from .source import macro, prim_func
from .words import word


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'mirstack.script.tir' has no attribute '{name}'")
    return word(name)


__all__ = ["macro", "prim_func"]
