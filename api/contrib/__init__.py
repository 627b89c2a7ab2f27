"""`mirstack.contrib`: `graph_executor`, by TVM's name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ...support.public_names import public_names

if TYPE_CHECKING:
    from . import graph_executor as graph_executor

__all__ = ["graph_executor"]


def __getattr__(name: str) -> object:
    # `graph_runtime` is what TVM called it before.
    if name in ("graph_executor", "graph_runtime"):
        return import_module(f"{__name__}.graph_executor")
    raise AttributeError(f"module 'mirstack.contrib' has no attribute '{name}'")


__dir__ = public_names(__name__)
