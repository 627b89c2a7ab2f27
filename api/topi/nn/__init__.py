"""`topi.nn`: the operators of networks on TE tensors."""

from importlib import import_module
from typing import Any

from ..make import members

_find, _names = members(__name__, "nn.")


def __getattr__(name: str) -> Any:
    return import_module(f"{__name__}.{name}") if name == "utils" else _find(name)


def __dir__() -> list[str]:
    return sorted([*_names(), "utils"])
