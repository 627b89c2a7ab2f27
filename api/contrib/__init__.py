"""`mirstack.contrib`: `graph_executor` and `pickle_memoize`, by TVM's names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ...support.public_names import public_names
from ..no_attribute import no_attribute

if TYPE_CHECKING:
    from . import graph_executor as graph_executor
    from . import pickle_memoize as pickle_memoize

__all__ = ["graph_executor", "pickle_memoize"]


def __getattr__(name: str) -> object:
    # `graph_runtime` is what TVM called it before.
    if name in ("graph_executor", "graph_runtime"):
        return import_module(f"{__name__}.graph_executor")
    if name == "pickle_memoize":
        return import_module(f"{__name__}.{name}")
    raise no_attribute("contrib", name, ["graph_executor"])


__dir__ = public_names(__name__)
