"""Imports numpy, the TE builder and numeric helpers on first use: typing a module needs none of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any


class LazyModule:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Kept in the instance's dictionary, so that the next use is an ordinary attribute.
        value = self.__dict__[attribute] = getattr(import_module(self._name), attribute)
        return value


if TYPE_CHECKING:
    import numpy as np

    from .... import elementary, numeric
    from ....te import builder as te
else:
    _DIALECTS = __name__.rsplit(".", 4)[0]
    np = LazyModule("numpy")
    te = LazyModule(f"{_DIALECTS}.te.builder")
    numeric = LazyModule(f"{_DIALECTS}.numeric")
    elementary = LazyModule(f"{_DIALECTS}.elementary")

__all__ = ["elementary", "np", "numeric", "te"]
