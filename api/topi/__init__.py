"""`mirstack.topi`: every operator as a function of TE tensors, `topi.nn.dense(x, w)`.

Arguments are as in TVM's TOPI, or as in `mirstack.relay` if TOPI has no function of an operator's name; `functions` has
the differences. An operator's TE compute is part of its entry in the operator table; `make` only calls it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..no_attribute import no_attribute
from .make import operator_names_of, topi_function

_MODULES = ("generic", "image", "nn", "tag", "testing", "utils", "vision", "x86")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    found = None if name.startswith("__") else topi_function(name)
    if found is None:
        raise no_attribute("topi", name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*_MODULES, *operator_names_of("")})
