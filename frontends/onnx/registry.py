"""Registers the functions that convert nodes, by domain, operator and opset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .node import Node
    from .values import Value

    Converted: TypeAlias = "Value | Sequence[Value | None]"
    Converter: TypeAlias = "Callable[[Node], Converted]"

MICROSOFT = "com.microsoft"

MODULES = (
    "attention", "control_flow", "contrib", "contrib_attention", "contrib_quantized", "conversion", "image", "indexing", "mathematics",
    "matrices", "neural_network", "ngrams", "quantized", "random_numbers", "recurrent", "reduction", "sequences", "shape", "signal",
)  # fmt: skip
"""Modules of `operators/`; importing one registers its converters."""

_CONVERTERS: dict[tuple[str, str], list[tuple[int, Converter]]] = {}


def operator(*names: str, since: int = 1, domain: str = "") -> Callable[[Converter], Converter]:
    """Registers a function that converts nodes of these operators, from opset `since` of their domain on.

    @operator("Flatten")
    def flatten(node: Node) -> SSAValue: ...
    """

    def register(converter: Converter) -> Converter:
        for name in names:
            versions = _CONVERTERS.setdefault((domain, name), [])
            versions.append((since, converter))
            versions.sort(key=lambda version: version[0])
        return converter

    return register


def find_converter(domain: str, name: str, opset: int) -> Converter | None:
    """Returns the function that converts an operator as the opset defines it; None where there is none."""
    load()
    found = None
    for since, converter in _CONVERTERS.get((domain, name), ()):
        if since <= opset:
            found = converter
    return found


def first_opset(domain: str, name: str) -> int | None:
    """Returns the first opset of which an operator is converted; None where it never is."""
    load()
    versions = _CONVERTERS.get((domain, name))
    return versions[0][0] if versions else None


def converted_operators() -> list[tuple[str, str]]:
    """Returns domain and name of all operators that a Python function converts."""
    load()
    return sorted(_CONVERTERS)


def load() -> None:
    """Imports the modules of `operators/`, once."""
    if not _LOADED:
        _LOADED.append(True)
        for module in MODULES:
            import_module(f"{__package__}.operators.{module}")


_LOADED: list[bool] = []
