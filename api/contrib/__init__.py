"""`mirstack.contrib`: `cc`, `graph_executor`, `pickle_memoize` and `utils`, by TVM's names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ...support.public_names import public_names
from ..no_attribute import no_attribute

if TYPE_CHECKING:
    from . import cc as cc
    from . import graph_executor as graph_executor
    from . import pickle_memoize as pickle_memoize
    from . import utils as utils

__all__ = ["cc", "graph_executor", "pickle_memoize", "utils"]


def __getattr__(name: str) -> object:
    # `graph_runtime` is what TVM called it before.
    if name in ("graph_executor", "graph_runtime"):
        return import_module(f"{__name__}.graph_executor")
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise no_attribute("contrib", name, __all__)


__dir__ = public_names(__name__)
