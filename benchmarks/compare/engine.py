"""Defines an engine: the form of a program that it reads, and how to load and call that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from .graph import Array
from .material import Material
from .setting import Setting


@dataclass
class Call:
    """A program bound to its inputs: `run` computes the results again, `read` returns the last ones."""

    run: Callable[[], Any]
    read: Callable[[Any], list[Array]]


class Engine(Protocol):
    """An engine's file. Importing it raises ImportError where the engine is not installed."""

    def prepare(self, material: Material) -> Any:
        """Returns the program in the form in which users hand it to the engine: a file, or a Python function."""
        ...

    def load(self, prepared: Any, setting: Setting) -> Any:
        """Compiles or reads the program; the process was restricted before it imported the engine."""
        ...

    def bind(self, program: Any, inputs: Sequence[Array]) -> Call:
        """Binds the program to these inputs, in the form that suits the engine best."""
        ...


ENGINES: dict[str, str] = {
    "mirstack": "ours",
    "onnxruntime": "onnx_runtime",
    "openvino": "open_vino",
    "torch": "torch_cpu",
    "jax": "jax_cpu",
    "tvm": "tvm_relax",
    "iree": "iree_cpu",
}
"""Files by the names that users type."""

OURS = "mirstack"


def engine_of(name: str) -> Engine:
    """Returns the engine. Raises ImportError where it is not installed."""
    return cast(Engine, import_module(f"{__package__}.engines.{ENGINES[name]}"))
