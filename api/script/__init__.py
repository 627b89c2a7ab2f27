"""`mirstack.script`: TVMScript in Python files, by the decorators `@T.prim_func` and `@I.ir_module`.

The function is never run: its source is parsed by the grammar of `.mir` files, so that errors are located in the Python
file. Variables around it that are numbers, strings, dtypes, or lists of such may be used in it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...support.public_names import public_names
from ..no_attribute import no_attribute

if TYPE_CHECKING:
    from . import ir as ir
    from . import tir as tir
    from .source import from_source as from_source
    from .source import ir_module as ir_module

_MODULES = ("ir", "tir")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in ("from_source", "ir_module"):
        return getattr(import_module(f"{__name__}.source"), name)
    raise no_attribute("script", name, __all__)


__all__ = ["from_source", "ir", "ir_module", "tir"]


__dir__ = public_names(__name__)
