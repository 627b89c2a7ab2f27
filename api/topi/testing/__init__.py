"""`topi.testing`: what operators compute, in numpy, and schedules by kind of operator, by TVM's names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ....support.text import did_you_mean

_MODULES = ("convolutions", "images", "networks", "schedules", "tensors")


def __getattr__(name: str) -> Any:
    for module in () if name.startswith("__") else _MODULES:
        found = vars(import_module(f".{module}", __name__)).get(name)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"topi.testing has no '{name}'{did_you_mean(name, __dir__())}")


def __dir__() -> list[str]:
    return sorted(name for module in _MODULES for name in import_module(f".{module}", __name__).__all__)
