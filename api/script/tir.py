"""`T`: the words of TVMScript; decorators, dtypes, buffers and functions act in Python, too."""

from __future__ import annotations

from types import ModuleType
from typing import Any as AnyValue  # `T.Any` is a dimension.

from .source import macro, prim_func
from .words import DTYPES, word


def __getattr__(name: str) -> AnyValue:
    if name.startswith("__"):
        raise AttributeError(f"module 'mirstack.script.tir' has no attribute '{name}'")
    return word(name)


def __dir__() -> list[str]:
    from ...parser.tvmscript.registry import construct
    from .. import tir

    words = {name.partition(".")[0] for name in construct.names()}
    functions = (name for name in dir(tir) if not isinstance(getattr(tir, name), ModuleType))
    return sorted({*__all__, "Buffer", "axis", "handle", *DTYPES, *words, *functions})


__all__ = ["macro", "prim_func"]
