"""`topi.vision`: the operators of detection on TE tensors."""

from importlib import import_module
from typing import Any

from ..make import members

_MODULES = ("rcnn", "ssd")
_find, _names = members(__name__, "vision.")


def __getattr__(name: str) -> Any:
    return import_module(f"{__name__}.{name}") if name in _MODULES else _find(name)


def __dir__() -> list[str]:
    return sorted([*_names(), *_MODULES])
