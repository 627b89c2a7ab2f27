"""`mirstack.onnx`: ONNX' own interface to runtimes, in `mirstack.onnx.backend`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name == "backend":
        return import_module(f"{__name__}.backend")
    raise AttributeError(f"module 'mirstack.onnx' has no attribute '{name}'")


def __dir__() -> list[str]:
    return ["backend"]
