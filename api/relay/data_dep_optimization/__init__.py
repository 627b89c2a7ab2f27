"""`relay.data_dep_optimization`: rewrites of a function together with its weights."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...no_attribute import no_attribute

if TYPE_CHECKING:
    from . import simplify_fc_transpose as simplify_fc_transpose

__all__ = ["simplify_fc_transpose"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise no_attribute("relay.data_dep_optimization", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
